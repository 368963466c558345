//! Nothing but a home for the test programs of this package.

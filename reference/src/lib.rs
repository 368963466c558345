//! The other side: a model of a Chronicle server's connection handling, and a real server around it.

pub mod model;

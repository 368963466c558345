//! What holds for written contracts of any shape.

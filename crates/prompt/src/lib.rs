//! What the model is told.
//!
//! What is absent: no I/O, no clock; facts come in as values.

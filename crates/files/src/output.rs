//! The part of outputs that needs no system; what a model sees of them in the end is the host's to say.

pub(crate) use crate::cut::{blob, hash, head, lossy, whole_chars};

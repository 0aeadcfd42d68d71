//! What followers are told: the log's own records, and deltas on their way to becoming one.

use serde::Serialize;
use std::sync::Arc;
use windlass_kernel::{Record, Seq, SessionId};

/// A record is a fact and stored; a delta is told and never stored.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Frame {
    Record(Arc<Record>),
    Delta(Arc<DeltaFrame>),
}

impl Frame {
    pub fn record(&self) -> Option<&Record> {
        match self {
            Frame::Record(record) => Some(record),
            Frame::Delta(_) => None,
        }
    }
}

/// A piece of what a room is making.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeltaFrame {
    pub session: SessionId,
    /// The `Began` of the work that makes it.
    pub work: Seq,
    /// Which block of the message.
    pub index: u32,
    /// Bytes of this block told before: a follower that has more already skips them.
    pub offset: usize,
    pub delta: DeltaKind,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeltaKind {
    Text,
    Thinking,
    /// A call's arguments, as JSON text.
    Input,
    /// A running tool's output.
    Progress,
}

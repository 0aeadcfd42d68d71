//! What came in since the last batch.

use crate::gate::Wish;
use crate::handle::Reply;
use crate::report::{Item, Piece, Report};
use bytes::Bytes;
use tokio::sync::oneshot;
use windlass_kernel::*;
use windlass_store::Input;

/// What came in since the last batch, in order.
#[derive(Default)]
pub(crate) struct News {
    pub items: Vec<Arrival>,
    pub blobs: Vec<(BlobRef, Bytes)>,
    /// Sent back once the batch is stored.
    pub acks: Vec<(Reply, Result<Seq, Rejected>)>,
    pub closing: bool,
    /// Told once the session lies.
    pub waiting: Vec<oneshot::Sender<()>>,
}

pub(crate) enum Arrival {
    Fact {
        work: Seq,
        event: Event,
    },
    Delta(Piece),
    Wish(Wish),
    /// An input from the store that hooks did not let through.
    Refused {
        input: InputId,
        reason: String,
    },
}

impl Arrival {
    /// A fact of no room's work.
    pub fn known(event: Event) -> Arrival {
        Arrival::Fact { work: Seq(0), event }
    }

    /// An input that somebody left in the store.
    pub fn left(input: Input) -> Arrival {
        Arrival::Wish(Wish { command: input.command, from_store: Some(input.id), reply: None, told: None })
    }
}

impl News {
    /// Takes a report in, after what came before it.
    pub fn take_in(&mut self, report: Report) {
        self.blobs.extend(report.blobs);
        for item in report.items {
            match (item, self.items.last_mut()) {
                // Told as one: a frame per network read, not per delta.
                (Item::Delta(piece), Some(Arrival::Delta(last)))
                    if (last.work, last.index, last.kind) == (piece.work, piece.index, piece.kind) =>
                {
                    last.text.push_str(&piece.text);
                }
                (Item::Delta(piece), _) => self.items.push(Arrival::Delta(piece)),
                (Item::Fact(event), _) => self.items.push(Arrival::Fact { work: report.work, event }),
            }
        }
    }
}

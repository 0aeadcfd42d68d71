//! How rooms tell the loop what happened.

use crate::DeltaKind;
use bytes::Bytes;
use tokio::sync::mpsc;
use windlass_kernel::{BlobRef, Event, Seq};

/// Reports waiting for the loop before a room has to wait.
pub(crate) const REPORTS_QUEUED: usize = 256;

/// What a room has to tell at one time.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub work: Seq,
    pub items: Vec<Item>,
    pub blobs: Vec<(BlobRef, Bytes)>,
}

#[derive(Debug)]
pub(crate) enum Item {
    Fact(Event),
    Delta(Piece),
}

#[derive(Debug)]
pub(crate) struct Piece {
    pub work: Seq,
    pub index: u32,
    pub kind: DeltaKind,
    pub text: String,
}

/// A room's way to the loop, for one work.
#[derive(Clone)]
pub(crate) struct Reporter {
    pub work: Seq,
    pub to: mpsc::Sender<Report>,
}

impl Reporter {
    /// Waits for room in the queue. A loop that is gone hears nothing: its session is over.
    pub async fn send(&self, items: Vec<Item>, blobs: Vec<(BlobRef, Bytes)>) {
        if !items.is_empty() {
            let _ = self.to.send(Report { work: self.work, items, blobs }).await;
        }
    }

    pub async fn fact(&self, event: Event) {
        self.send(vec![Item::Fact(event)], vec![]).await;
    }

    /// Tells `text` if there is room in the queue; drops it if not.
    pub fn progress(&self, text: String) {
        let piece = Piece { work: self.work, index: 0, kind: DeltaKind::Progress, text };
        let _ = self.to.try_send(Report { work: self.work, items: vec![Item::Delta(piece)], blobs: vec![] });
    }

    pub fn try_fact(&self, event: Event) {
        let _ = self.to.try_send(Report { work: self.work, items: vec![Item::Fact(event)], blobs: vec![] });
    }
}

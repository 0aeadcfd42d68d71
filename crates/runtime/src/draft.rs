//! A batch in the making: facts become records, in order, before anything of them is stored.

use crate::redact::redact;
use crate::{Frame, Setup};
use bytes::Bytes;
use std::sync::Arc;
use windlass_kernel::*;
use windlass_store::{Batch, Fence};

/// What is going to be stored, told and acted on together.
pub(crate) struct Draft {
    fence: Fence,
    expected: Seq,
    records: Vec<Arc<Record>>,
    /// Records and deltas in the order they are told.
    pub frames: Vec<Frame>,
    pub blobs: Vec<(BlobRef, Bytes)>,
    pub consumed: Vec<InputId>,
    sync: bool,
}

impl Draft {
    pub fn new(fence: Fence, state: &State, always_sync: bool) -> Draft {
        Draft {
            fence,
            expected: state.head,
            records: vec![],
            frames: vec![],
            blobs: vec![],
            consumed: vec![],
            sync: always_sync,
        }
    }

    /// Makes `event`, without the secrets in it, the next record and folds it into `state`, ahead of its being stored:
    /// if the append fails, the state is wrong and the session must be thrown away.
    pub fn happened(&mut self, setup: &Setup, state: &mut State, cause: Option<Seq>, mut event: Event) -> Seq {
        redact(&setup.secrets, &mut event, &mut self.blobs);
        self.sync |= wants_sync(state, &event);
        let seq = state.head.next();
        let record = Arc::new(Record {
            v: SCHEMA_VERSION,
            tenant: setup.tenant.clone(),
            session: self.fence.session,
            seq,
            id: EventId((setup.world.id)()),
            epoch: self.fence.epoch,
            at: (setup.world.now)(),
            cause,
            event,
        });
        state.apply(&record);
        self.frames.push(Frame::Record(record.clone()));
        self.records.push(record);
        seq
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.consumed.is_empty()
    }

    /// The batch to store, and what to tell once it is.
    pub fn close(self) -> (Batch, Vec<Frame>) {
        let Draft { fence, expected, records, frames, blobs, consumed, sync } = self;
        (Batch { fence, expected, records, blobs, consumed, sync }, frames)
    }
}

/// What must survive power loss before anything is done about it: the intent of a side effect, and the end of a turn.
fn wants_sync(state: &State, event: &Event) -> bool {
    match event {
        Event::TurnFinished { .. } => true,
        Event::Began { step: Step::RunTool { call } } => {
            let plan = state.call(call).and_then(|call| call.plan.as_ref());
            plan.is_none_or(|plan| plan.on_crash != OnCrash::Repeat)
        }
        _ => false,
    }
}

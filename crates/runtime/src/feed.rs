//! Telling followers, and keeping what late ones need: the blocks that are not whole yet.

use crate::report::Piece;
use crate::{DeltaFrame, DeltaKind, Frame};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::mpsc;
use windlass_kernel::{ContentBlock, Event, Seq, SessionId};

/// Frames a follower may lag behind before it is let go and has to ask again.
const FRAMES_AHEAD: usize = 256;

pub(crate) struct Feed {
    session: SessionId,
    /// A queue each, so that a frame is kept no longer than until the last of them has read it.
    followers: Vec<mpsc::Sender<Frame>>,
    open: BTreeMap<(Seq, u32), OpenBlock>,
}

struct OpenBlock {
    kind: DeltaKind,
    text: String,
    told: usize,
}

impl Feed {
    pub fn new(session: SessionId) -> Feed {
        Feed { session, followers: vec![], open: BTreeMap::new() }
    }

    /// Takes a piece in; what comes back is told once what stands before it is stored.
    pub fn hear(&mut self, piece: Piece) -> Frame {
        let Piece { work, index, kind, text } = piece;
        let open = self.open.entry((work, index)).or_insert(OpenBlock { kind, text: String::new(), told: 0 });
        let offset = open.told;
        open.told += text.len();
        // A tool's progress is for the eye only, and its result comes whole.
        if kind != DeltaKind::Progress {
            open.text.push_str(&text);
        }
        Frame::Delta(Arc::new(DeltaFrame { session: self.session, work, index, offset, delta: kind, text }))
    }

    /// Forgets what `event` makes whole.
    pub fn settle(&mut self, event: &Event) {
        match event {
            Event::BlockFinished { work, index, .. } => {
                self.open.remove(&(*work, *index));
            }
            Event::ModelFinished { work, .. }
            | Event::ModelFailed { work, .. }
            | Event::ModelCancelled { work, .. } => self.open.retain(|(of, _), _| of != work),
            Event::ToolFinished(finished) => self.open.retain(|(of, _), _| *of != finished.work),
            _ => {}
        }
    }

    /// The text blocks of `work` that broke off: what was told is a fact even if the rest never comes.
    pub fn broken_off(&self, work: Seq) -> Vec<Event> {
        let of_work = self.open.range((work, 0)..=(work, u32::MAX));
        let texts = of_work.filter(|(_, open)| open.kind == DeltaKind::Text && !open.text.is_empty());
        let broken = texts.map(|((work, index), open)| Event::BlockFinished {
            work: *work,
            index: *index,
            block: ContentBlock::text(&open.text),
            partial: true,
        });
        broken.collect()
    }

    /// The same of every work.
    pub fn all_broken_off(&self) -> Vec<(Seq, Event)> {
        let works: BTreeSet<Seq> = self.open.keys().map(|(work, _)| *work).collect();
        works.into_iter().flat_map(|work| self.broken_off(work).into_iter().map(move |event| (work, event))).collect()
    }

    /// Tells every follower; one whose queue is full is let go, and finds what it missed in the store.
    pub fn tell(&mut self, frames: Vec<Frame>) {
        if self.followers.is_empty() {
            return;
        }
        for frame in frames {
            self.followers.retain(|follower| follower.try_send(frame.clone()).is_ok());
        }
    }

    /// A new follower: everything told from now on, and the open blocks as told so far.
    pub fn follow(&mut self) -> (Vec<Frame>, mpsc::Receiver<Frame>) {
        let open = self.open.iter().filter(|(_, open)| !open.text.is_empty());
        let frames = open.map(|((work, index), open)| {
            let (session, work, index, text) = (self.session, *work, *index, open.text.clone());
            Frame::Delta(Arc::new(DeltaFrame { session, work, index, offset: 0, delta: open.kind, text }))
        });
        let frames = frames.collect();
        let (to, live) = mpsc::channel(FRAMES_AHEAD);
        self.followers.push(to);
        (frames, live)
    }
}

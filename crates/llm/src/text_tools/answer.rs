//! A model's events, with the calls in its text made calls.

use super::find::{Finder, Piece};
use super::form::Call;
use crate::assembly::{Assembly, Content};
use crate::call_ids::{CallIds, is_made_here};
use crate::{BlockKind, Delta, ModelEvent, ToolSpec};
use std::collections::HashMap;
use std::sync::Arc;
use windlass_kernel::{CallId, ContentBlock, StopReason};

/// The most bytes of blanks that wait to see whether text or a call follows.
const MAX_GAP_BYTES: usize = 1024;

pub(super) struct Answer {
    finder: Finder,
    out: Assembly,
    /// The index of the next block told.
    next: u32,
    /// The text block being told.
    text: Option<u32>,
    /// Blanks that begin no text block yet.
    gap: String,
    ids: CallIds,
    /// Calls were found in the text.
    has_calls: bool,
    /// How many bytes were heard of each text block of the model's.
    heard: HashMap<u32, usize>,
    /// What the model's other blocks are told as.
    others: HashMap<u32, Other>,
}

struct Other {
    index: u32,
    /// The id in the place of one that may be taken.
    id: Option<String>,
}

impl Answer {
    pub(super) fn new(provider: &str, tools: Arc<[ToolSpec]>, ids: CallIds) -> Answer {
        Answer {
            finder: Finder::new(tools),
            out: Assembly::new(provider),
            next: 0,
            text: None,
            gap: String::new(),
            ids,
            has_calls: false,
            heard: HashMap::new(),
            others: HashMap::new(),
        }
    }

    pub(super) fn read(&mut self, events: Vec<ModelEvent>) -> Vec<ModelEvent> {
        for event in events {
            self.event(event);
        }
        self.out.take()
    }

    fn event(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::BlockStarted { index, kind: BlockKind::Text } => drop(self.heard.insert(index, 0)),
            ModelEvent::BlockStarted { index, kind } => self.start_other(index, kind),
            ModelEvent::Delta { index, delta: Delta::Text(text) } if self.heard.contains_key(&index) => {
                *self.heard.entry(index).or_default() += text.len();
                self.hear(&text);
            }
            ModelEvent::Delta { index, delta } => {
                let index = self.other(index);
                self.out.tell(ModelEvent::Delta { index, delta });
            }
            ModelEvent::BlockFinished { index, block } => match (self.heard.remove(&index), block) {
                (Some(heard), ContentBlock::Text { text }) => {
                    self.hear(text.get(heard..).unwrap_or_default());
                    self.end_text();
                }
                (_, block) => self.finish_other(index, block),
            },
            ModelEvent::Finished { stop, raw_stop, usage } => {
                self.end_text();
                let stop = if self.has_calls { StopReason::ToolUse } else { stop };
                self.out.tell(ModelEvent::Finished { stop, raw_stop, usage });
            }
            ModelEvent::Accepted { .. } | ModelEvent::Started { .. } => self.out.tell(event),
        }
    }

    fn hear(&mut self, text: &str) {
        let pieces = self.finder.push(text);
        self.tell(pieces);
    }

    fn tell(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.say(&text),
                Piece::Call(call) => self.call(call),
            }
        }
    }

    fn say(&mut self, text: &str) {
        let is_blank = text.len() + self.gap.len() <= MAX_GAP_BYTES && text.trim().is_empty();
        if is_blank && self.text.is_none() {
            self.gap.push_str(text);
            return;
        }
        let index = self.text.unwrap_or_else(|| self.begin(Content::Text));
        self.text = Some(index);
        if let Some(open) = self.out.block(index) {
            open.text.push_str(&std::mem::take(&mut self.gap));
            open.text.push_str(text);
        }
    }

    fn call(&mut self, call: Call) {
        self.finish_text();
        self.gap.clear();
        self.has_calls = true;
        let id = self.ids.make();
        let index = self.begin(Content::ToolUse { id, name: call.name, signature: None });
        if let Some(open) = self.out.block(index) {
            open.text = call.arguments;
        }
        self.out.finish(index);
    }

    fn begin(&mut self, content: Content) -> u32 {
        let index = self.next;
        self.next += 1;
        self.out.start(index, content);
        index
    }

    fn finish_text(&mut self) {
        if let Some(index) = self.text.take() {
            self.out.finish(index);
        }
    }

    /// The model's text block ended: what is held back is decided.
    fn end_text(&mut self) {
        let pieces = self.finder.end();
        self.tell(pieces);
        let gap = std::mem::take(&mut self.gap);
        if !self.has_calls && !gap.is_empty() {
            let index = self.begin(Content::Text);
            self.out.block(index).into_iter().for_each(|open| open.text.push_str(&gap));
            self.text = Some(index);
        }
        self.finish_text();
    }

    fn start_other(&mut self, place: u32, mut kind: BlockKind) {
        let index = self.next;
        self.next += 1;
        let mut renamed = None;
        if let BlockKind::ToolUse { id, .. } = &mut kind
            && is_made_here(id)
        {
            *id = self.ids.make();
            renamed = Some(id.clone());
        }
        self.others.insert(place, Other { index, id: renamed });
        self.out.tell(ModelEvent::BlockStarted { index, kind });
    }

    fn finish_other(&mut self, place: u32, mut block: ContentBlock) {
        let index = self.other(place);
        let other = self.others.remove(&place);
        if let (ContentBlock::ToolUse(call), Some(id)) = (&mut block, other.and_then(|other| other.id)) {
            call.id = CallId(id);
        }
        self.out.tell(ModelEvent::BlockFinished { index, block });
    }

    /// What the model's block at `place` is told as; a block that never began has a place behind all others.
    fn other(&self, place: u32) -> u32 {
        self.others.get(&place).map_or(self.next, |other| other.index)
    }
}

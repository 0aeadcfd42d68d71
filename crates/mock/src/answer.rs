//! A step's answer to one request, filled in.

use crate::request::Request;
use crate::script::{self, Input, MessageReply, Step};
use crate::template::{self, Names};
use std::borrow::Cow;
use std::collections::HashSet;

#[derive(Default)]
pub struct Answer {
    pub blocks: Vec<Block>,
    /// The stop reason in Anthropic's words.
    pub stop: String,
    pub usage: Usage,
}

pub struct Block {
    pub kind: Kind,
    pub said: Said,
    /// Gemini: the signature that goes out with the block.
    pub carried: Option<String>,
    /// Most bytes of one delta.
    pub fragment: usize,
}

pub enum Kind {
    Text,
    Thinking {
        signature: Option<String>,
    },
    Redacted,
    /// `ordinal` counts the answer's calls.
    Tool {
        id: String,
        name: String,
        ordinal: usize,
    },
    /// The block's own JSON; there are no deltas.
    Native(serde_json::Value),
}

/// What a block says.
pub enum Said {
    Text(String),
    /// This many bytes of made-up text; never held in memory as a whole.
    Filler(usize),
}

/// Tokens by class, none counted twice.
#[derive(Clone, Copy, Default)]
pub struct Usage {
    /// Without what was read from the cache or written to it.
    pub input: u64,
    /// Reasoning included.
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub reasoning: u64,
}

impl Usage {
    /// All that was read, as the vendors count it that do not tell it apart.
    pub fn prompt(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }
}

/// The made-up text: lines of 80 bytes.
const LINE: &str = "the mock says a line of eighty bytes so that a client has something to show us.\n";

impl Said {
    pub fn bytes(&self) -> usize {
        match self {
            Said::Text(text) => text.len(),
            Said::Filler(bytes) => *bytes,
        }
    }

    /// The end of a piece of at most `size` bytes from `from`; never within a character, never nothing.
    pub fn end(&self, from: usize, size: usize) -> usize {
        let Said::Text(text) = self else { return (from + size).min(self.bytes()) };
        let wanted = from.saturating_add(size).min(text.len());
        let down = text.floor_char_boundary(wanted);
        if down > from { down } else { text.ceil_char_boundary(from + 1) }
    }

    pub fn whole(&self) -> Cow<'_, str> {
        self.piece(0, self.bytes())
    }

    pub fn piece(&self, from: usize, to: usize) -> Cow<'_, str> {
        match self {
            Said::Text(text) => Cow::Borrowed(&text[from..to]),
            Said::Filler(_) => filler(from, to),
        }
    }

    /// Where the first `chars` characters end.
    pub fn chars(&self, chars: usize) -> usize {
        match self {
            Said::Text(text) => text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at),
            Said::Filler(bytes) => chars.min(*bytes),
        }
    }
}

fn filler(from: usize, to: usize) -> Cow<'static, str> {
    let at = from % LINE.len();
    let bytes = to - from;
    match LINE.get(at..at + bytes) {
        Some(piece) => Cow::Borrowed(piece),
        None => {
            let mut out = String::with_capacity(bytes);
            out.push_str(&LINE[at..]);
            while out.len() < bytes {
                out.push_str(&LINE[..LINE.len().min(bytes - out.len())]);
            }
            Cow::Owned(out)
        }
    }
}

/// What the request gives to its answer.
pub struct Given<'r> {
    pub request: &'r Request<'r>,
    pub body_bytes: usize,
    pub names: Names,
    /// Number of the round within the step, from 0.
    pub nth: usize,
}

/// Fills a step's blocks for one request.
pub fn answer(step: &Step, reply: &MessageReply, given: &mut Given) -> Answer {
    let mut ids = Ids::of(given.request);
    let mut blocks = Vec::new();
    let calls_per_round = step.called_tools().count() * step.parallel;
    for (form, signature) in reply.blocks.iter().zip(reply.carried()) {
        let copies = if matches!(form, script::Block::Tool { .. }) { step.parallel } else { 1 };
        for copy in 0..copies {
            given.names.insert("k".into(), ids.calls.to_string());
            given.names.insert("n".into(), (given.nth * calls_per_round + ids.calls).to_string());
            let (kind, said) = block(form, &given.names, &mut ids);
            let carried = signature.filter(|_| copy == 0).map(str::to_string);
            let fragment = step.pace.fragment.unwrap_or(usize::MAX);
            blocks.push(Block { kind, said: Said::Text(said), carried, fragment });
        }
    }
    if reply.text_bytes > 0 {
        let said = Said::Filler(reply.text_bytes);
        blocks.push(Block { kind: Kind::Text, said, carried: None, fragment: reply.chunk });
    }
    let stop = reply.stop.clone().unwrap_or_else(|| (if ids.calls > 0 { "tool_use" } else { "end_turn" }).into());
    let usage = usage(reply, &blocks, given.body_bytes);
    Answer { blocks, stop, usage }
}

fn block(form: &script::Block, names: &Names, ids: &mut Ids) -> (Kind, String) {
    let fill = |text: &str| template::fill(text, names).into_owned();
    match form {
        script::Block::Text { text, .. } => (Kind::Text, fill(text)),
        script::Block::Thinking { text, signature } => (Kind::Thinking { signature: signature.clone() }, fill(text)),
        script::Block::Redacted(data) => (Kind::Redacted, data.clone()),
        script::Block::Native(value) => (Kind::Native(template::fill_value(value, names)), String::new()),
        script::Block::Tool { name, id, input, .. } => {
            let (id, ordinal) = ids.next(id.as_deref().map(fill));
            let arguments = match input {
                Input::Value(value) => template::fill_value(value, names).to_string(),
                Input::Raw(raw) => fill(raw),
            };
            (Kind::Tool { id, name: name.clone(), ordinal }, arguments)
        }
    }
}

/// Gives every call an id that the request does not hold yet; the same request gets the same ids again.
struct Ids {
    used: HashSet<String>,
    round: usize,
    calls: usize,
}

impl Ids {
    fn of(request: &Request) -> Ids {
        let mut used = HashSet::new();
        for message in request.messages().iter().filter(|message| message.role == "assistant") {
            let blocks = message.parts().iter().filter(|part| part.kind == "tool_use");
            used.extend(blocks.filter_map(|part| part.id.as_deref().map(str::to_string)));
            used.extend(message.tool_calls.iter().flatten().map(|call| call.id.to_string()));
        }
        Ids { used, round: request.round(), calls: 0 }
    }

    fn next(&mut self, own: Option<String>) -> (String, usize) {
        let ordinal = self.calls;
        self.calls += 1;
        let plain = format!("toolu_{}_{ordinal}", self.round);
        let id = match own {
            Some(own) => own,
            None if !self.used.contains(&plain) => plain,
            None => (2..).map(|n| format!("{plain}_{n}")).find(|id| !self.used.contains(id)).unwrap_or(plain),
        };
        (id, ordinal)
    }
}

/// Four bytes are a token, unless the script says otherwise.
fn usage(reply: &MessageReply, blocks: &[Block], body_bytes: usize) -> Usage {
    let tokens = |bytes: usize| bytes.div_ceil(4) as u64;
    let size = |block: &Block| {
        block.said.bytes()
            + match &block.kind {
                Kind::Tool { name, .. } => name.len(),
                Kind::Native(value) => value.to_string().len(),
                _ => 0,
            }
    };
    let stated = reply.usage;
    Usage {
        input: stated.input.unwrap_or_else(|| tokens(body_bytes)),
        output: stated.output.unwrap_or_else(|| tokens(blocks.iter().map(size).sum())),
        cache_read: stated.cache_read.unwrap_or(0),
        cache_write: stated.cache_write.unwrap_or(0),
        reasoning: stated.reasoning.unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_never_cut_a_character_and_lose_nothing() {
        let said = Said::Text("aéß€😀z".into());
        for size in 1..8 {
            let (mut at, mut all) = (0, String::new());
            while at < said.bytes() {
                let to = said.end(at, size);
                all.push_str(&said.piece(at, to));
                at = to;
            }
            assert_eq!(all, "aéß€😀z", "in pieces of {size}");
        }
    }

    #[test]
    fn filler_is_the_same_text_in_any_pieces() {
        assert_eq!(LINE.len(), 80);
        let said = Said::Filler(1000);
        let whole = said.piece(0, 1000);
        let pieces: String = (0..1000).step_by(7).map(|at| said.piece(at, said.end(at, 7)).into_owned()).collect();
        assert_eq!((whole.len(), whole == pieces), (1000, true));
    }
}

//! An answer's events, one by one: what comes next, and where they break.

use crate::answer::{Answer, Block, Kind};
use crate::route::Protocol;
use crate::script::{Break, Fault, Garble, LineEnd, Pace, Place, Warp};
use crate::{anthropic, bedrock, gemini, openai, responses};
use serde_json::Value;
use std::cell::Cell;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// What every event of an answer shares.
pub struct Wire {
    pub protocol: Protocol,
    pub id: String,
    pub model: String,
    /// Responses: with the block's number the id of an item, so that the same request gets the same items again.
    pub round: usize,
    /// Chat Completions: the client wants the usage chunk.
    pub include_usage: bool,
    /// Chat Completions and Gemini: what stands before and after every delta.
    pub chunk_head: String,
    pub chunk_tail: String,
    /// Responses: what is said is a refusal.
    pub refuses: bool,
    /// Responses: the number of the next event.
    pub sequence: Cell<u64>,
}

/// One event of a stream; every protocol leaves out those that it does not have.
pub enum Event<'a> {
    Start(&'a Answer),
    Begun,
    Open(usize, &'a Block),
    OpenPart(usize, &'a Block),
    Delta(usize, &'a Block, &'a str),
    Sign(usize, &'a str),
    Said(usize, &'a Block),
    ClosePart(usize, &'a Block),
    Close(usize, &'a Block),
    Finish(&'a Answer),
    Usage(&'a Answer),
    Done,
    Ping,
    Error(Value),
}

impl Wire {
    fn write(&self, event: Event, out: &mut Vec<u8>) {
        match self.protocol {
            Protocol::Anthropic | Protocol::Vertex => anthropic::write(self, event, out),
            Protocol::OpenAi => openai::write(self, event, out),
            Protocol::Responses => responses::write(self, event, out),
            Protocol::Gemini => gemini::write(self, event, out),
            Protocol::Bedrock => bedrock::write(self, event, out),
        }
    }
}

/// Where in its answer a player is.
#[derive(Clone, Copy)]
enum At {
    Start,
    Begun,
    Open(usize),
    OpenPart(usize),
    Delta(usize, usize),
    Sign(usize),
    Said(usize),
    ClosePart(usize),
    Close(usize),
    Finish,
    Usage,
    Done,
    End,
}

/// Writes an answer's events one by one.
pub struct Player {
    wire: Wire,
    answer: Answer,
    pace: Pace,
    fault: Option<Fault>,
    garble: Option<Garble>,
    bom: bool,
    at: At,
    /// Events in place of the answer's own, and which is next.
    tape: Option<(Vec<Vec<u8>>, usize)>,
    /// Events generated, without pings.
    made: usize,
    /// Events written, pings included.
    events: usize,
    since_ping: usize,
}

impl Player {
    pub fn new(wire: Wire, answer: Answer, pace: Pace, warp: &Warp, fault: Option<Fault>) -> Player {
        let bom = warp.bom && wire.protocol != Protocol::Bedrock;
        let garble = warp.garble.clone();
        let (made, events, since_ping) = (0, 0, 0);
        Player { wire, answer, pace, fault, garble, bom, at: At::Start, tape: None, made, events, since_ping }
    }

    /// Sends these events in place of the answer's.
    pub fn with_tape(mut self, events: Vec<Vec<u8>>) -> Player {
        self.tape = Some((events, 0));
        self
    }

    /// Sends the events of the answer in another order; the error is how many there are.
    pub fn with_order(mut self, order: &[usize]) -> Result<Player, usize> {
        let mut all = Vec::new();
        while !matches!(self.at, At::End) {
            let mut event = Vec::new();
            if self.advance(&mut event) && !event.is_empty() {
                all.push(event);
            }
        }
        let count = all.len();
        let events: Option<Vec<Vec<u8>>> = order.iter().map(|at| all.get(*at).cloned()).collect();
        Ok(self.with_tape(events.ok_or(count)?))
    }

    /// Writes the next event; false at the end, or where the answer breaks.
    pub fn next(&mut self, out: &mut Vec<u8>) -> bool {
        if self.events == 0 && self.bom {
            out.extend_from_slice(BYTE_ORDER_MARK);
        }
        let from = out.len();
        while out.len() == from {
            if self.broken() {
                return self.error_event(out);
            }
            if self.ping_is_due() {
                self.since_ping = 0;
                self.wire.write(Event::Ping, out);
            } else if self.advance(out) {
                self.since_ping += usize::from(out.len() > from);
            } else {
                return self.error_event(out);
            }
        }
        self.events += 1;
        self.end_lines(out, from);
        true
    }

    fn is_at_end(&self) -> bool {
        match &self.tape {
            Some((events, next)) => *next == events.len(),
            None => matches!(self.at, At::End),
        }
    }

    fn ping_is_due(&self) -> bool {
        self.pace.ping_every.is_some_and(|every| self.since_ping == every) && !self.is_at_end()
    }

    fn broken(&self) -> bool {
        match self.fault.as_ref().map(|fault| fault.at) {
            Some(Place::Events(events)) => self.events >= events,
            Some(Place::Block { index, chars }) => match self.at {
                At::Delta(at, from) => at == index && from == self.answer.blocks[at].said.chars(chars),
                At::Sign(at) | At::Close(at) => at == index,
                _ => false,
            },
            _ => false,
        }
    }

    /// An error event stands where other faults only fall silent.
    fn error_event(&mut self, out: &mut Vec<u8>) -> bool {
        self.at = At::End;
        if let Some((events, next)) = &mut self.tape {
            *next = events.len();
        }
        let Some(Fault { how: Break::Event(refusal), .. }) = &self.fault else { return false };
        let from = out.len();
        self.wire.write(Event::Error(refusal.event(self.wire.protocol)), out);
        self.fault = None;
        self.end_lines(out, from);
        true
    }

    fn end_lines(&self, out: &mut Vec<u8>, from: usize) {
        let end: &[u8] = match self.pace.line_end {
            _ if self.wire.protocol == Protocol::Bedrock => return,
            LineEnd::Lf => return,
            LineEnd::Cr => b"\r",
            LineEnd::CrLf => b"\r\n",
        };
        // JSON holds no line ends of its own.
        for byte in out.split_off(from) {
            match byte {
                b'\n' => out.extend_from_slice(end),
                _ => out.push(byte),
            }
        }
    }

    /// Writes the event at hand, if it is one, and goes on; false at the end.
    fn advance(&mut self, out: &mut Vec<u8>) -> bool {
        if let Some((events, next)) = &mut self.tape {
            let Some(event) = events.get(*next) else { return false };
            out.extend_from_slice(event);
            *next += 1;
            return true;
        }
        let from = out.len();
        if !self.step(out) {
            return false;
        }
        if out.len() > from {
            if let Some(garble) = self.garble.as_ref().filter(|garble| garble.event == self.made) {
                spoil(out, from, garble.with.as_deref(), self.wire.protocol);
            }
            self.made += 1;
        }
        true
    }

    fn step(&mut self, out: &mut Vec<u8>) -> bool {
        let (wire, answer) = (&self.wire, &self.answer);
        let open = |at| if at < answer.blocks.len() { At::Open(at) } else { At::Finish };
        let block = |at: usize| &answer.blocks[at];
        let (event, next) = match self.at {
            At::Start => (Some(Event::Start(answer)), At::Begun),
            At::Begun => (Some(Event::Begun), open(0)),
            At::Open(at) => {
                let whole = matches!(block(at).kind, Kind::Redacted | Kind::Native(_));
                (Some(Event::Open(at, block(at))), if whole { At::Close(at) } else { At::OpenPart(at) })
            }
            At::OpenPart(at) => (Some(Event::OpenPart(at, block(at))), At::Delta(at, 0)),
            At::Delta(at, from) if from < block(at).said.bytes() => {
                let to = self.delta_end(at, from);
                wire.write(Event::Delta(at, block(at), &block(at).said.piece(from, to)), out);
                (None, At::Delta(at, to))
            }
            At::Delta(at, _) => (None, At::Sign(at)),
            At::Sign(at) => {
                let event = match &block(at).kind {
                    Kind::Thinking { signature: Some(signature) } => Some(Event::Sign(at, signature)),
                    _ => None,
                };
                (event, At::Said(at))
            }
            At::Said(at) => (Some(Event::Said(at, block(at))), At::ClosePart(at)),
            At::ClosePart(at) => (Some(Event::ClosePart(at, block(at))), At::Close(at)),
            At::Close(at) => (Some(Event::Close(at, block(at))), open(at + 1)),
            At::Finish => (Some(Event::Finish(answer)), At::Usage),
            At::Usage => (Some(Event::Usage(answer)), At::Done),
            At::Done => (Some(Event::Done), At::End),
            At::End => return false,
        };
        if let Some(event) = event {
            wire.write(event, out);
        }
        self.at = next;
        true
    }

    /// A delta ends with its fragment, or where the script breaks it.
    fn delta_end(&self, at: usize, from: usize) -> usize {
        let block = &self.answer.blocks[at];
        let to = block.said.end(from, block.fragment);
        match self.fault.as_ref().map(|fault| fault.at) {
            Some(Place::Block { index, chars }) if index == at => to.min(block.said.chars(chars)),
            _ => to,
        }
    }
}

/// Spoils the event that begins at `from`: its data is another text, or the byte in its middle is turned over.
fn spoil(out: &mut Vec<u8>, from: usize, with: Option<&str>, protocol: Protocol) {
    let Some(with) = with else {
        let middle = usize::midpoint(from, out.len());
        out[middle] = !out[middle];
        return;
    };
    if protocol == Protocol::Bedrock {
        out.truncate(from);
        bedrock::chunk(out, with.as_bytes());
        return;
    }
    let mark = b"data: ";
    let data = out[from..].windows(mark.len()).position(|bytes| bytes == mark).map_or(0, |at| at + mark.len());
    out.truncate(from + data);
    out.extend_from_slice(with.as_bytes());
    out.extend_from_slice(b"\n\n");
}

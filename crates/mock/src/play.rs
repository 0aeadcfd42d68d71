//! An answer on its way: its events in order, at its pace, to where it breaks.

use crate::answer::{Answer, Block, Kind};
use crate::log::Entry;
use crate::request::Protocol;
use crate::script::{Break, Fault, Pace, Place};
use crate::socket::Gauge;
use crate::{anthropic, openai};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use serde_json::Value;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;

/// Bytes gathered into one frame where the script sets no pace.
const FRAME_BYTES: usize = 16 * 1024;

/// Milliseconds between looks at whether a slow reader has taken what stands before a cut.
const CUT_POLL_MS: u64 = 1;

/// What every event of an answer shares.
pub struct Wire {
    pub protocol: Protocol,
    pub id: String,
    pub model: String,
    /// OpenAI: the client wants the usage chunk.
    pub include_usage: bool,
    /// OpenAI: what stands before every delta.
    pub chunk_head: String,
}

/// One event of a stream.
pub enum Event<'a> {
    Start(&'a Answer),
    Open(usize, &'a Block),
    Delta(usize, &'a Block, &'a str),
    Sign(usize, &'a str),
    Close(usize),
    Finish(&'a Answer),
    Usage(&'a Answer),
    Done,
    Ping,
    Error(Value),
}

impl Wire {
    fn write(&self, event: Event, out: &mut Vec<u8>) {
        match self.protocol {
            Protocol::Anthropic => anthropic::write(self, event, out),
            Protocol::OpenAi => openai::write(self, event, out),
        }
    }
}

/// Where in its answer a player is.
#[derive(Clone, Copy)]
enum At {
    Start,
    Open(usize),
    Delta(usize, usize),
    Sign(usize),
    Close(usize),
    Finish,
    Usage,
    Done,
    End,
}

/// Writes an answer's events one by one.
pub struct Player {
    pub wire: Wire,
    pub answer: Answer,
    pub pace: Pace,
    fault: Option<Fault>,
    at: At,
    /// Events written, pings included.
    events: usize,
    since_ping: usize,
}

impl Player {
    pub fn new(wire: Wire, answer: Answer, pace: Pace, fault: Option<Fault>) -> Player {
        Player { wire, answer, pace, fault, at: At::Start, events: 0, since_ping: 0 }
    }

    /// Writes the next event; false at the end, or where the answer breaks.
    fn next(&mut self, out: &mut Vec<u8>) -> bool {
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
        if self.pace.crlf {
            crlf(out, from);
        }
        true
    }

    fn ping_is_due(&self) -> bool {
        self.pace.ping_every.is_some_and(|every| self.since_ping == every) && !matches!(self.at, At::End)
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
        let Some(Fault { how: Break::Event(refusal), .. }) = &self.fault else { return false };
        let from = out.len();
        self.wire.write(Event::Error(refusal.error(self.wire.protocol)), out);
        self.fault = None;
        if self.pace.crlf {
            crlf(out, from);
        }
        true
    }

    /// Writes the event at hand (some protocols have none) and goes on; false at the end.
    fn advance(&mut self, out: &mut Vec<u8>) -> bool {
        let (wire, answer) = (&self.wire, &self.answer);
        let block = |at| if at < answer.blocks.len() { At::Open(at) } else { At::Finish };
        self.at = match self.at {
            At::Start => {
                wire.write(Event::Start(answer), out);
                block(0)
            }
            At::Open(at) => {
                let open = &answer.blocks[at];
                wire.write(Event::Open(at, open), out);
                if matches!(open.kind, Kind::Redacted | Kind::Native(_)) { At::Close(at) } else { At::Delta(at, 0) }
            }
            At::Delta(at, from) if from < answer.blocks[at].said.bytes() => {
                let to = self.delta_end(at, from);
                let open = &answer.blocks[at];
                wire.write(Event::Delta(at, open, &open.said.piece(from, to)), out);
                At::Delta(at, to)
            }
            At::Delta(at, _) => At::Sign(at),
            At::Sign(at) => {
                if let Kind::Thinking { signature: Some(signature) } = &answer.blocks[at].kind {
                    wire.write(Event::Sign(at, signature), out);
                }
                At::Close(at)
            }
            At::Close(at) => {
                wire.write(Event::Close(at), out);
                block(at + 1)
            }
            At::Finish => {
                wire.write(Event::Finish(answer), out);
                At::Usage
            }
            At::Usage => {
                wire.write(Event::Usage(answer), out);
                At::Done
            }
            At::Done => {
                wire.write(Event::Done, out);
                At::End
            }
            At::End => return false,
        };
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

/// Line ends of the event that begins at `from`; JSON holds none of its own.
fn crlf(out: &mut Vec<u8>, from: usize) {
    let event = out.split_off(from);
    for byte in event {
        if byte == b'\n' {
            out.push(b'\r');
        }
        out.push(byte);
    }
}

/// What an answer's body is made of.
pub enum Source {
    Events(Box<Player>),
    Whole(Bytes),
}

/// A body that hyper reads frame by frame.
pub struct Play {
    source: Source,
    pace: Pace,
    fault: Option<(Option<usize>, Break)>,
    /// Bytes taken from the source and not handed over yet.
    ready: Bytes,
    taken: usize,
    /// The source has no more.
    dry: bool,
    /// Hand the turn back once, so that what was given is written out.
    flush: bool,
    sleep: Option<Pin<Box<Sleep>>>,
    gauge: Arc<Gauge>,
    entry: Entry,
    whole_bytes: Option<u64>,
}

/// The script breaks the answer off here.
#[derive(Debug)]
pub struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the script breaks the answer off here")
    }
}

impl std::error::Error for Cut {}

impl Play {
    pub fn new(source: Source, pace: Pace, fault: Option<Fault>, gauge: Arc<Gauge>, entry: Entry) -> Play {
        let whole_bytes = match &source {
            Source::Whole(bytes) => Some(bytes.len() as u64),
            Source::Events(_) => None,
        };
        let fault = fault.and_then(|fault| match (fault.how, fault.at) {
            (Break::Event(_), _) => None,
            (how, Place::Bytes(bytes)) => Some((Some(bytes), how)),
            // A whole answer has no events: it breaks in the middle.
            (how, Place::Events(_) | Place::Block { .. }) => Some((whole_bytes.map(|bytes| bytes as usize / 2), how)),
            (how, Place::BeforeAnswer) => Some((Some(0), how)),
        });
        let ready = Bytes::new();
        let mut play = Play {
            source,
            pace,
            fault,
            ready,
            taken: 0,
            dry: false,
            flush: false,
            sleep: None,
            gauge,
            entry,
            whole_bytes,
        };
        if whole_bytes == Some(0) && play.fault.is_none() {
            // Nobody reads an empty body, so nobody else would note its end.
            play.dry = true;
            play.entry.finish();
        }
        play
    }

    /// Takes the next bytes from the source: one event with a gap after it, or as many as make a frame.
    fn fill(&mut self) {
        match &mut self.source {
            Source::Whole(bytes) => {
                self.ready = std::mem::take(bytes);
                self.dry = true;
            }
            Source::Events(player) => {
                let mut out = Vec::with_capacity(if self.pace.gap_ms > 0 { 512 } else { FRAME_BYTES + 512 });
                while out.len() < FRAME_BYTES {
                    if !player.next(&mut out) {
                        self.dry = true;
                        break;
                    }
                    if self.pace.gap_ms > 0 {
                        break;
                    }
                }
                self.ready = Bytes::from(out);
            }
        }
        if let Some((Some(limit), _)) = &self.fault {
            let left = limit.saturating_sub(self.taken);
            if self.ready.len() >= left {
                self.ready.truncate(left);
                self.dry = true;
            }
        }
        self.taken += self.ready.len();
    }

    /// A frame of what is ready, and the pause after it.
    fn frame(&mut self) -> Bytes {
        let size = self.pace.split.unwrap_or(usize::MAX).min(self.ready.len());
        let frame = self.ready.split_to(size);
        self.entry.sent(frame.len());
        if self.is_over() {
            self.entry.finish();
        } else if self.ready.is_empty() && self.pace.gap_ms > 0 && !self.dry {
            self.sleep = Some(Box::pin(tokio::time::sleep(Duration::from_millis(self.pace.gap_ms))));
        } else {
            self.flush = self.pace.split.is_some() || self.dry;
        }
        frame
    }

    /// Everything is handed over, and nothing is to break.
    fn is_over(&self) -> bool {
        self.dry && self.ready.is_empty() && self.fault.is_none()
    }

    /// What comes after the last byte of an answer that breaks.
    fn break_off(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let Some((_, how)) = &self.fault else { return Poll::Ready(None) };
        if matches!(how, Break::Hang) {
            return Poll::Pending;
        }
        if self.gauge.blocked.load(Relaxed) {
            self.sleep = Some(Box::pin(tokio::time::sleep(Duration::from_millis(CUT_POLL_MS))));
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.gauge.reset.store(matches!(how, Break::Reset), Relaxed);
        Poll::Ready(Some(Err(Cut)))
    }
}

impl Body for Play {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let me = &mut *self;
        if let Some(sleep) = &mut me.sleep {
            std::task::ready!(sleep.as_mut().poll(cx));
            me.sleep = None;
        }
        if std::mem::take(&mut me.flush) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if me.ready.is_empty() && !me.dry {
            me.fill();
            // The head, too, must be out before the answer breaks.
            me.flush = me.ready.is_empty() && me.dry && me.fault.is_some();
        }
        if me.ready.is_empty() {
            if std::mem::take(&mut me.flush) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if me.is_over() {
                me.entry.finish();
            }
            return me.break_off(cx);
        }
        Poll::Ready(Some(Ok(Frame::data(me.frame()))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        match self.whole_bytes {
            Some(bytes) => SizeHint::with_exact(bytes),
            None => SizeHint::default(),
        }
    }
}

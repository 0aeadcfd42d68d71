//! An answer on its way: its bytes at their pace, to where they break.

use crate::log::Entry;
use crate::player::Player;
use crate::script::{Break, Fault, Pace, Place};
use crate::socket::Gauge;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body::{Body, Frame, SizeHint};
use std::fmt;
use std::io::Write;
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

/// What an answer's body is made of.
pub enum Source {
    Events(Box<Player>, Option<Gzip>),
    Whole(Bytes),
}

/// Compresses a stream, each event so that it can be read at once.
pub struct Gzip(GzEncoder<Vec<u8>>);

impl Gzip {
    pub fn new() -> Gzip {
        Gzip(GzEncoder::new(Vec::new(), Compression::fast()))
    }

    /// Puts what begins at `from` in its compressed form.
    fn event(&mut self, out: &mut Vec<u8>, from: usize) {
        // Writing to memory cannot fail.
        let _ = self.0.write_all(&out[from..]).and_then(|()| self.0.flush());
        out.truncate(from);
        out.append(self.0.get_mut());
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let _ = self.0.try_finish();
        out.append(self.0.get_mut());
    }

    /// The compressed form of a whole body.
    pub fn whole(body: &[u8]) -> Bytes {
        let (mut gzip, mut out) = (Gzip::new(), body.to_vec());
        gzip.event(&mut out, 0);
        gzip.end(&mut out);
        out.into()
    }
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

fn pause(ms: u64) -> Pin<Box<Sleep>> {
    Box::pin(tokio::time::sleep(Duration::from_millis(ms)))
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
            Source::Events(..) => None,
        };
        let fault = fault.and_then(|fault| match (fault.how, fault.at) {
            (Break::Event(_), _) => None,
            (how, Place::Bytes(bytes)) => Some((Some(bytes), how)),
            // A whole answer has no events: it breaks in the middle.
            (how, Place::Events(_) | Place::Block { .. }) => Some((whole_bytes.map(|bytes| bytes as usize / 2), how)),
            (how, Place::BeforeAnswer) => Some((Some(0), how)),
        });
        let ready = Bytes::new();
        let sleep = (pace.body_delay_ms > 0).then(|| pause(pace.body_delay_ms));
        let mut play =
            Play { source, pace, fault, ready, taken: 0, dry: false, flush: false, sleep, gauge, entry, whole_bytes };
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
            Source::Events(player, gzip) => {
                let mut out = Vec::with_capacity(if self.pace.gap_ms > 0 { 512 } else { FRAME_BYTES + 512 });
                while out.len() < FRAME_BYTES && !self.dry {
                    let from = out.len();
                    self.dry = !player.next(&mut out);
                    if let Some(gzip) = gzip.as_mut().filter(|_| out.len() > from) {
                        gzip.event(&mut out, from);
                    }
                    if self.pace.gap_ms > 0 {
                        break;
                    }
                }
                if let Some(gzip) = gzip.as_mut().filter(|_| self.dry && self.fault.is_none()) {
                    gzip.end(&mut out);
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
        } else if self.pace.gap_ms > 0 && self.is_between() {
            self.sleep = Some(pause(self.pace.gap_ms));
        } else {
            self.flush = self.pace.split.is_some() || self.dry;
        }
        frame
    }

    /// What was handed over ends an event or, with `split`, a piece, and more is to come.
    fn is_between(&self) -> bool {
        match self.ready.is_empty() {
            true => !self.dry,
            false => self.pace.split.is_some(),
        }
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
            self.sleep = Some(pause(CUT_POLL_MS));
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

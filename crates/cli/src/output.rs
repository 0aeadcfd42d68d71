//! What a headless run prints.

use crate::args::Format;
use crate::desk::Desk;
use crate::heard::Heard;
use crate::printer::Printer;
use crate::terminal::{Look, Shade, harmless, plain_json};
use crate::view::{Piece, Taste, View};
use crate::words;
use serde_json::json;
use std::io::{self, Write};
use windlass_kernel::{End, Event, ReachedCap, Record, SessionId, Step, StopReason};
use windlass_runtime::Frame;

pub enum Output {
    Text(Box<Text>),
    Json,
    Events,
}

/// How a run is over.
#[derive(Clone, Copy)]
pub enum How {
    /// As the tally says.
    Ended,
    /// The turn waits at a cap.
    Paused(ReachedCap),
}

/// The model's words on stdout, all the rest on stderr.
pub struct Text {
    view: View,
    printer: Printer,
    /// Of what is not the answer.
    look: Look,
    /// A person watches stdout: words are shown as they come. Else stdout is for whoever takes the answer, and gets
    /// the final text alone; what is said on the way there goes to stderr.
    live: bool,
    said: String,
}

impl Output {
    pub fn new(format: Format, desk: &Desk) -> Output {
        let (stdout, stderr) = (desk.environment.stdout, desk.environment.stderr);
        match format {
            Format::Json => Output::Json,
            Format::Events => Output::Events,
            Format::Text => Output::text(desk, stderr, stdout.terminal, Printer::headless(stderr)),
        }
    }

    /// Everything on stdout, as it comes: for somebody who watches.
    pub fn shown(desk: &Desk) -> Output {
        let stdout = desk.environment.stdout;
        Output::text(desk, stdout, true, Printer::chat(stdout))
    }

    fn text(desk: &Desk, look: Look, live: bool, printer: Printer) -> Output {
        let (verbose, thinking) = (desk.settings.verbose, desk.settings.show_thinking);
        let view = View::new(Taste { look, verbose, thinking, deltas: live });
        Output::Text(Box::new(Text { view, printer, look, live, said: String::new() }))
    }

    pub fn is_text(&self) -> bool {
        matches!(self, Output::Text(_))
    }

    pub fn frame(&mut self, frame: &Frame) -> io::Result<()> {
        match (self, frame) {
            (Output::Text(text), frame) => text.frame(frame),
            (Output::Events, Frame::Record(record)) => event(record),
            _ => Ok(()),
        }
    }

    /// The end of the run.
    pub fn close(&mut self, session: SessionId, heard: &Heard, how: How) -> io::Result<()> {
        match self {
            Output::Events => Ok(()),
            Output::Json => object(session, heard, how),
            Output::Text(text) => text.close(session, heard),
        }
    }

    pub fn spins(&self) -> bool {
        matches!(self, Output::Text(text) if text.look.colours && text.view.doing().is_some())
    }

    pub fn spin(&mut self) -> io::Result<()> {
        match self {
            Output::Text(text) => text.view.doing().map_or(Ok(()), |doing| text.printer.spin(&doing)),
            _ => Ok(()),
        }
    }
}

/// A record exactly as it is stored, and at once.
fn event(record: &Record) -> io::Result<()> {
    let line = serde_json::to_string(record)? + "\n";
    let mut stdout = io::stdout().lock();
    stdout.write_all(plain_json(&line).as_bytes())?;
    stdout.flush()
}

fn object(session: SessionId, heard: &Heard, how: How) -> io::Result<()> {
    let tally = &heard.tally;
    let end = match how {
        How::Ended => json!(tally.end),
        How::Paused(ReachedCap { scope, cap, spent }) => {
            json!({"type": "paused", "scope": scope, "cap": cap, "spent": spent})
        }
    };
    let mut object = json!({
        "session": session,
        "text": heard.answer(),
        "end": end,
        "models": heard.models,
        "model_calls": tally.model_calls,
        "tool_runs": tally.tool_runs,
        "usage": tally.usage,
        "cost_usd": tally.cost_micro_usd.map(|micro| micro as f64 / 1e6),
        "estimated": tally.estimated,
        "took_ms": tally.took_ms,
    });
    if let Some(text) = heard.broken_off() {
        object["broken_off"] = json!(text);
    }
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", plain_json(&object.to_string()))?;
    stdout.flush()
}

impl Text {
    fn frame(&mut self, frame: &Frame) -> io::Result<()> {
        match frame {
            Frame::Record(record) if !self.live => self.on_the_way(record)?,
            _ => {}
        }
        let pieces = self.view.frame(frame);
        if self.live {
            return self.printer.show(&pieces);
        }
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.said.push_str(&text),
                Piece::Thinking(text) => self.printer.line(&self.look.paint(Shade::Dim, text.trim_end()))?,
                Piece::Line(line) => self.printer.line(&line)?,
                Piece::End => {}
            }
        }
        Ok(())
    }

    /// Words that turn out not to be the answer are progress.
    fn on_the_way(&mut self, record: &Record) -> io::Result<()> {
        let over = match &record.event {
            Event::ModelFinished { stop, .. } => *stop == StopReason::ToolUse,
            Event::Began { step: Step::CallModel } => true,
            Event::ModelFailed { .. } | Event::ModelCancelled { .. } | Event::StopBlocked { .. } => true,
            Event::TurnFinished { end: End::InvalidAnswer { .. } | End::Interrupted, .. } => true,
            _ => false,
        };
        if over { self.progress() } else { Ok(()) }
    }

    fn progress(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.said).trim() {
            "" => Ok(()),
            words => self.printer.line(&self.look.paint(Shade::Dim, words)),
        }
    }

    fn close(&mut self, session: SessionId, heard: &Heard) -> io::Result<()> {
        self.printer.end_line()?;
        let (last, text) = (format!("{}, session {session}", words::summary(&heard.tally)), heard.final_text());
        if text.is_empty() {
            self.progress()?;
        }
        let answered = if self.live { Ok(()) } else { answer(&harmless(text)) };
        self.printer.line(&self.look.paint(Shade::Dim, &last))?;
        answered
    }
}

fn answer(text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        stdout.write_all(b"\n")?;
    }
    stdout.flush()
}

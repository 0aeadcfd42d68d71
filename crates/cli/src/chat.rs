//! The line chat: prompts and answers typed line by line, everything that happens shown as it comes.

mod caps;
mod sessions;

use crate::desk::{Desk, Open, Which, failed_send};
use crate::exit::{Code, Ended, Failure};
use crate::headless::SPIN_EVERY;
use crate::keyboard;
use crate::printer::Printer;
use crate::question::{Reading, Waiting};
use crate::signals::{Asked, Signals};
use crate::terminal::{Look, Shade, harmless, one_line};
use crate::view::{Taste, View};
use crate::{cap, clock, signals, words};
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};
use windlass::Prompt;
use windlass_kernel::*;
use windlass_prompt::{Slash, parse_slash};
use windlass_runtime::{Follower, Frame, Handle};
use windlass_store::SessionFilter;

/// Two Ctrl-C within this time leave.
const TWICE_WITHIN: Duration = Duration::from_secs(2);
/// How long a turn that is called back may take to end when the chat is left.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);
/// Sessions that `/resume` lists.
const LISTED: usize = 10;

const HELP: &str = "\
  what you type goes to the model; a line that ends with \\ goes on in the next
  /clear             forget what was said so far
  /compact [WORDS]   sum up what was said so far
  /history           show what was said so far
  /resume [ID]       list the sessions of this folder, or go on with one
  /model NAME        speak with another model, as PROVIDER/NAME
  help, /help        this
  exit, quit         leave; the session is kept
  Ctrl-C interrupts, twice leaves";

/// Whether the chat goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    GoOn,
    Leave(Code),
}

struct Chat {
    desk: Desk,
    look: Look,
    printer: Printer,
    /// Opened with the first prompt: who only looks in leaves no empty session behind.
    open: Option<Following>,
    view: View,
    questions: VecDeque<Waiting>,
    /// The cap that the turn waits at.
    cap: Option<ReachedCap>,
    tally: Tally,
    busy: bool,
    /// What is to be typed now has been said.
    prompted: bool,
    /// Nothing more will be typed.
    over: bool,
    interrupted_at: Option<Instant>,
}

struct Following {
    handle: Handle,
    follower: Follower,
}

pub async fn run(desk: Desk, which: Which) -> Ended {
    let mut signals = Signals::listen()?;
    let mut typed = keyboard::lines();
    let look = desk.environment.stdout;
    let mut chat = Chat {
        look,
        printer: Printer::chat(look),
        open: None,
        view: View::default(),
        questions: VecDeque::new(),
        cap: None,
        tally: Tally::default(),
        busy: false,
        prompted: false,
        over: false,
        interrupted_at: None,
        desk,
    };
    if which == Which::New {
        // What is missing is said before anything is typed.
        let (_, model) = chat.desk.agent(true)?;
        chat.greet(&model).map_err(closed)?;
    } else {
        chat.take_up(&which).await?;
    }
    let code = chat.talk(&mut signals, &mut typed).await;
    chat.leave().await;
    code
}

/// Nobody reads the chat any more: it ends, and says nothing.
fn closed(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::new(Code::Interrupted, ""),
        _ => Failure::new(Code::Failed, format!("stdout can't be written: {error}")),
    }
}

impl Chat {
    async fn talk(&mut self, signals: &mut Signals, typed: &mut tokio::sync::mpsc::Receiver<String>) -> Ended {
        let mut ticker = tokio::time::interval(SPIN_EVERY);
        loop {
            self.invite().map_err(closed)?;
            if self.over && !self.busy {
                return Ok(Code::Done);
            }
            if self.over
                && let Some(code) = self.parked().map_err(closed)?
            {
                return Ok(code);
            }
            // A person may type ahead; lines from a pipe wait for their turn.
            let listens = !self.over && (self.desk.environment.stdin_is_terminal || !self.busy || self.asks());
            let then = tokio::select! {
                frame = next(&mut self.open) => match frame {
                    Some(Ok(frame)) => self.frame(&frame).await?,
                    Some(Err(error)) => return Err(failed_send(error)),
                    None => return Err(Failure::new(Code::Store, "the session was closed from elsewhere")),
                },
                line = typed.recv(), if listens => match line {
                    Some(line) => self.line(&line).await?,
                    None => self.hang_up().await?,
                },
                asked = signals.next() => self.interrupt(asked).await?,
                _ = ticker.tick(), if self.busy && self.look.colours && !self.asks() => {
                    let doing = self.view.doing();
                    doing.map_or(Ok(()), |doing| self.printer.spin(&doing)).map_err(closed)?;
                    Then::GoOn
                }
            };
            if let Then::Leave(code) = then {
                return Ok(code);
            }
        }
    }

    fn greet(&mut self, model: &str) -> io::Result<()> {
        let text = format!("windlass {}, {model}; help says what there is, exit leaves", env!("CARGO_PKG_VERSION"));
        self.printer.line(&self.look.paint(Shade::Dim, &harmless(&text)))?;
        for note in self.desk.notes() {
            self.printer.line(&self.look.paint(Shade::Yellow, &note))?;
        }
        Ok(())
    }

    fn taste(&self) -> Taste {
        let settings = &self.desk.settings;
        Taste { look: self.look, verbose: settings.verbose, thinking: settings.show_thinking, deltas: true }
    }

    /// Says what is to be typed now, once.
    fn invite(&mut self) -> io::Result<()> {
        if self.prompted || self.over {
            return Ok(());
        }
        self.prompted = true;
        match self.questions.front() {
            Some(waiting) => {
                let shown =
                    waiting.shown(&self.view.call(&waiting.call), &self.desk.folder.display().to_string(), self.look);
                self.printer.line(&shown)?;
                self.printer.ask(&waiting.choices())
            }
            None if self.cap.is_some() => self.ask_for_more(),
            None if self.busy => {
                self.prompted = false;
                Ok(())
            }
            None if self.desk.environment.stdin_is_terminal => self.printer.ask("> "),
            None => Ok(()),
        }
    }

    fn say(&mut self, text: &str) -> Result<Then, Failure> {
        self.prompted = false;
        self.printer.line(text).map_err(closed)?;
        Ok(Then::GoOn)
    }

    fn complain(&mut self, text: &str) -> Result<Then, Failure> {
        let text = self.look.paint(Shade::Red, &harmless(text)).into_owned();
        self.say(&text)
    }
}

/// The next frame of the open session; never, if none is open.
async fn next(open: &mut Option<Following>) -> Option<Result<Frame, windlass_runtime::SendError>> {
    match open {
        Some(open) => open.follower.next().await,
        None => std::future::pending().await,
    }
}

/// What happens in the session.
impl Chat {
    async fn frame(&mut self, frame: &Frame) -> Result<Then, Failure> {
        let pieces = self.view.frame(frame);
        if !pieces.is_empty() {
            self.prompted = false;
            self.printer.show(&pieces).map_err(closed)?;
        }
        if let Frame::Record(record) = frame {
            self.record(record).await?;
        }
        Ok(Then::GoOn)
    }

    async fn record(&mut self, record: &Record) -> Result<(), Failure> {
        if matches!(record.event, Event::Prompted(_)) && self.tally.end.is_some() {
            self.tally = Tally::default();
        }
        self.tally.add(record);
        match &record.event {
            Event::Began { step: Step::Pause { cap } } => {
                self.cap = Some(*cap);
                self.prompted = false;
            }
            Event::Prompted(_) | Event::CompactionAsked { .. } => self.busy = true,
            Event::Began { step: Step::CallModel } => {
                self.busy = true;
                self.prompted &= self.cap.take().is_none();
            }
            // One that was open when the session was taken up is known.
            Event::Asked { call, .. } if self.questions.iter().any(|waiting| waiting.call == *call) => {}
            Event::Asked { call, question } => {
                let question = question.clone();
                self.questions.push_back(Waiting { call: call.clone(), question });
                self.prompted = self.questions.len() > 1 && self.prompted;
                if self.over {
                    self.answer_for_nobody().await?;
                }
            }
            Event::Answered(answer) => self.withdraw(&answer.call),
            Event::ToolFinished(finished) => self.withdraw(&finished.call),
            Event::TurnFinished { .. } => {
                self.questions.clear();
                self.cap = None;
                let line = self.look.paint(Shade::Dim, &words::summary(&self.tally)).into_owned();
                self.say(&line)?;
                self.tally = Tally::default();
                self.settle().await?;
            }
            Event::Compacted { .. } | Event::CompactionFailed { .. } | Event::Cleared { .. } => self.settle().await?,
            _ => {}
        }
        Ok(())
    }

    /// A question that was answered, here or elsewhere, is no longer put.
    fn withdraw(&mut self, call: &CallId) {
        let before = self.questions.len();
        self.questions.retain(|waiting| waiting.call != *call);
        self.prompted &= self.questions.len() == before;
    }

    /// Whether something is still to be done: a prompt that was typed meanwhile opens a turn of its own.
    async fn settle(&mut self) -> Result<(), Failure> {
        let Some(open) = &self.open else { return Ok(()) };
        self.busy = !open.handle.state().await.map_err(failed_send)?.is_idle();
        self.prompted = false;
        Ok(())
    }
}

/// What is typed.
impl Chat {
    async fn line(&mut self, line: &str) -> Result<Then, Failure> {
        self.interrupted_at = None;
        // What was typed ended the line on the screen.
        if let Some(cap) = self.cap.filter(|_| self.prompted && self.questions.is_empty()) {
            return self.answer_cap(&cap, line).await;
        }
        if let Some(waiting) = self.questions.front().filter(|_| self.prompted) {
            let approval = waiting.question.kind == QuestionKind::Approval;
            if approval && matches!(line.trim(), "exit" | "quit") {
                return Ok(Then::Leave(Code::Done));
            }
            return match waiting.read(line) {
                Reading::Answer(answer) => self.answer(answer).await,
                Reading::Unclear(why) => self.complain(&why),
            };
        }
        self.prompted = false;
        match line.trim() {
            "" => return Ok(Then::GoOn),
            "exit" | "quit" => return Ok(Then::Leave(Code::Done)),
            "help" => return self.say(HELP),
            _ => {}
        }
        match parse_slash(line.trim()) {
            Slash::FrontEnd { name, arguments } => self.command(&name, &arguments).await,
            Slash::Unknown { name, near } => {
                let hint = near.map_or("/help lists those there are".into(), |near| format!("did you mean /{near}?"));
                self.complain(&format!("there is no command /{name}: {hint}"))
            }
            Slash::Clear | Slash::Compact { .. } if self.open.is_none() => self.say("  nothing was said yet"),
            Slash::Clear | Slash::Compact { .. } | Slash::NotACommand => self.prompt(line.trim()).await,
        }
    }

    async fn command(&mut self, name: &str, arguments: &str) -> Result<Then, Failure> {
        match name {
            "exit" | "quit" => Ok(Then::Leave(Code::Done)),
            "history" => self.history().await,
            "resume" if arguments.is_empty() => self.list().await,
            "resume" if self.busy => self.complain("the session is in the middle of a turn: press Ctrl-C first"),
            "resume" => self.attempt(&Which::Id(arguments.to_owned())).await,
            "model" => self.change_model(arguments).await,
            _ => self.say(HELP),
        }
    }

    async fn prompt(&mut self, text: &str) -> Result<Then, Failure> {
        if self.open.is_none() {
            let Open { session, before } = self.desk.open(&Which::New, true).await?;
            self.follow(session.handle().clone(), before).await?;
        }
        let Some(open) = &self.open else { return Ok(Then::GoOn) };
        let was_busy = self.busy;
        match signals::send(&open.handle, Prompt::new(text).origin(Origin::Terminal)).await? {
            Ok(_) => {
                self.busy = true;
                if was_busy {
                    let look = self.look;
                    return self.say(&look.paint(Shade::Dim, "  (the model sees it at its next step)"));
                }
                Ok(Then::GoOn)
            }
            Err(windlass_runtime::SendError::Rejected(why)) => self.complain(&why.to_string()),
            Err(error) => Err(failed_send(error)),
        }
    }

    async fn answer(&mut self, answer: Box<Answered>) -> Result<Then, Failure> {
        let Some(open) = &self.open else { return Ok(Then::GoOn) };
        let call = answer.call.clone();
        match open.handle.send(Command::Answer(answer)).await {
            Ok(_) => self.withdraw(&call),
            Err(windlass_runtime::SendError::Rejected(why)) => {
                // What may not be answered so still waits for another answer.
                if !matches!(why, Rejected::WrongAnswer { .. }) {
                    self.withdraw(&call);
                }
                return self.complain(&why.to_string());
            }
            Err(error) => return Err(failed_send(error)),
        }
        Ok(Then::GoOn)
    }

    /// Stdin has ended: what is under way ends, and nobody answers its questions.
    async fn hang_up(&mut self) -> Result<Then, Failure> {
        self.over = true;
        self.answer_for_nobody().await?;
        Ok(Then::GoOn)
    }

    async fn answer_for_nobody(&mut self) -> Result<(), Failure> {
        while let Some(waiting) = self.questions.front().cloned() {
            self.answer(waiting.nobody()).await?;
        }
        Ok(())
    }

    /// Ctrl-C once interrupts and keeps the session, twice leaves.
    async fn interrupt(&mut self, asked: Asked) -> Result<Then, Failure> {
        let twice = self.interrupted_at.replace(Instant::now()).is_some_and(|at| at.elapsed() < TWICE_WITHIN);
        if asked == Asked::Terminate || twice {
            return Ok(Then::Leave(Code::Interrupted));
        }
        match &self.open {
            Some(open) if self.busy => {
                // Refused only where nothing is left to interrupt.
                let _ = open.handle.send(Command::Interrupt { by: "ctrl-c".into() }).await;
                Ok(Then::GoOn)
            }
            _ => self.say("\n  Ctrl-C once more leaves, and so does exit"),
        }
    }
}

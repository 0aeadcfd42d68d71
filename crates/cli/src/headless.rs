//! One prompt without a person: run to the end of its turn, printed as text, as one object, or event by event.

use crate::args::Ask;
use crate::desk::{Desk, Open, Which, failed_send};
use crate::exit::{Code, Ended, Failure, code_of, explain};
use crate::heard::Heard;
use crate::output::{How, Output};
use crate::signals::{Asked, Signals};
use crate::{cap, signals, terminal};
use std::io;
use std::time::Duration;
use windlass::Prompt;
use windlass_kernel::{Command, End, Event, ReachedCap, Record, Seq, State, Step};
use windlass_runtime::{Follower, Frame, Handle};

/// How often a spinner turns.
pub const SPIN_EVERY: Duration = Duration::from_millis(100);
/// Records looked through for the end of a turn that went on as its session was taken up.
const NEWS: usize = 1000;
/// How long a session that is told to stop for the second time may take to lie down.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

pub async fn run(desk: Desk, ask: &Ask, prompt: Option<Prompt>) -> Ended {
    let output = Output::new(ask.output_format.unwrap_or_default(), &desk);
    carry_out(desk, &which(ask), prompt, output).await
}

/// Runs a prompt to the end of its turn, and lays the session down.
pub async fn carry_out(mut desk: Desk, which: &Which, prompt: Option<Prompt>, mut output: Output) -> Ended {
    let mut signals = Signals::listen()?;
    let Open { session, before } = desk.open(which, false).await?;
    for note in desk.notes() {
        terminal::tell(&format!("windlass: {note}"));
    }
    let handle = session.handle().clone();
    let follower = handle.follow(before.next());
    let ended = match begin(&desk, &handle, prompt, before).await {
        Ok(Begun { since, waits, wants_json }) => {
            let heard = Heard::new(wants_json);
            Run { handle: handle.clone(), since, waits, heard, resumed: before > Seq(0), interrupts: 0 }
                .follow(follower, &mut output, &mut signals)
                .await
        }
        Err(failure) => Err(failure),
    };
    handle.close().await;
    let (over, heard) = ended?;
    let how = match &over {
        Over::Paused(cap) => How::Paused(*cap),
        _ => How::Ended,
    };
    match output.close(session.id(), &heard, how) {
        // Whoever closed our output wants to hear no more.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(unwritable(&error)),
        _ => {}
    }
    Ok(match over {
        Over::Turn(end) => {
            if let Some(why) = explain(&end).filter(|_| !output.is_text()) {
                terminal::tell(&format!("windlass: {}", terminal::harmless(&why)));
            }
            code_of(&end)
        }
        Over::Paused(cap) => {
            terminal::tell(&format!("windlass: {}", cap::explain(&cap, session.id(), &desk.flags)));
            Code::Limit
        }
        Over::Command => Code::Done,
        Over::CommandFailed => Code::Failed,
        Over::Unread | Over::Left => Code::Interrupted,
    })
}

fn unwritable(error: &io::Error) -> Failure {
    Failure::new(Code::Failed, format!("stdout can't be written: {error}; the session is kept, and -c goes on with it"))
}

pub fn which(ask: &Ask) -> Which {
    match &ask.resume {
        Some(id) => Which::Id(id.clone()),
        None if ask.go_on => Which::Newest,
        None => Which::New,
    }
}

/// What was submitted.
struct Begun {
    /// It stands here in the log.
    since: Seq,
    /// The turn waits at a cap, and nothing behind this event will happen by itself.
    waits: Option<Seq>,
    /// The turn that is under way is to end with JSON.
    wants_json: bool,
}

async fn begin(desk: &Desk, handle: &Handle, prompt: Option<Prompt>, before: Seq) -> Result<Begun, Failure> {
    let since = submit(desk, handle, prompt, before).await?;
    let state = handle.state().await.map_err(failed_send)?;
    Ok(Begun { since, waits: state.paused().map(|_| state.head), wants_json: wants_json(&state) })
}

fn wants_json(state: &State) -> bool {
    let turn = state.turn.iter().any(|turn| turn.output_schema.is_some());
    turn || state.pending.iter().any(|input| input.output_schema.is_some())
}

/// Submits the prompt; without one, what was under way when the session was left goes on.
async fn submit(desk: &Desk, handle: &Handle, prompt: Option<Prompt>, before: Seq) -> Result<Seq, Failure> {
    if let Some(prompt) = prompt {
        return signals::send(handle, prompt).await?.map_err(failed_send);
    }
    let state = handle.state().await.map_err(failed_send)?;
    // It may have come to its end already.
    let news = desk.store.read(handle.session(), before.next(), NEWS).await?;
    let ended = news.iter().any(|record| matches!(record.event, Event::TurnFinished { .. }));
    if state.is_idle() && !ended {
        return Err(Failure::usage(format!(
            "nothing is under way in session {}: say what is to be done, as in -p \"…\"",
            handle.session()
        )));
    }
    Ok(before.next())
}

/// How a run came to its end.
enum Over {
    Turn(End),
    /// The turn waits at a cap.
    Paused(ReachedCap),
    /// A command that needs no model, or no turn.
    Command,
    CommandFailed,
    /// Nobody reads what is printed.
    Unread,
    /// Told to leave at once.
    Left,
}

struct Run {
    handle: Handle,
    /// What was submitted stands here in the log.
    since: Seq,
    waits: Option<Seq>,
    heard: Heard,
    resumed: bool,
    interrupts: u32,
}

impl Run {
    async fn follow(
        mut self,
        mut follower: Follower,
        output: &mut Output,
        signals: &mut Signals,
    ) -> Result<(Over, Heard), Failure> {
        let mut ticker = tokio::time::interval(SPIN_EVERY);
        loop {
            let frame = tokio::select! {
                frame = follower.next() => frame,
                asked = signals.next() => {
                    if self.interrupt(asked).await {
                        return Ok((Over::Left, self.heard));
                    }
                    continue;
                }
                _ = ticker.tick(), if output.spins() => {
                    let _ = output.spin();
                    continue;
                }
            };
            let closed = || Failure::new(Code::Failed, "the session was closed before the turn ended");
            let frame = frame.ok_or_else(closed)?.map_err(failed_send)?;
            if let Err(error) = output.frame(&frame) {
                let over = self.unwritten(error).await?;
                return Ok((over, self.heard));
            }
            let Frame::Record(record) = &frame else { continue };
            if record.seq >= self.since {
                self.heard.add(record);
            }
            if let Some(over) = self.over(record).await? {
                return Ok((over, self.heard));
            }
        }
    }

    /// Whether what was submitted is done with this record.
    async fn over(&self, record: &Record) -> Result<Option<Over>, Failure> {
        if record.seq < self.since {
            return Ok(None);
        }
        Ok(match &record.event {
            _ if self.waits == Some(record.seq) => self.paused().await?,
            Event::Began { step: Step::Pause { .. } } => self.paused().await?,
            Event::Cleared { .. } => Some(Over::Command),
            Event::Compacted { .. } if self.is_idle().await? => Some(Over::Command),
            Event::CompactionFailed { .. } if self.is_idle().await? => Some(Over::CommandFailed),
            Event::TurnFinished { end, .. } => {
                // Of a session that was taken up, this may be the end of the turn before.
                let more = self.resumed && self.interrupts == 0 && !self.is_idle().await?;
                (!more).then(|| Over::Turn(end.clone()))
            }
            _ => None,
        })
    }

    /// Whether the turn waits at a cap still: a new day may have begun meanwhile.
    async fn paused(&self) -> Result<Option<Over>, Failure> {
        Ok(self.handle.state().await.map_err(failed_send)?.paused().map(Over::Paused))
    }

    async fn is_idle(&self) -> Result<bool, Failure> {
        Ok(self.handle.state().await.map_err(failed_send)?.is_idle())
    }

    /// The first time the turn is interrupted; the second time everything is left as it is. True: leave.
    async fn interrupt(&mut self, asked: Asked) -> bool {
        self.interrupts += 1;
        if self.interrupts > 1 {
            let _ = tokio::time::timeout(LEAVE_WITHIN, self.handle.close()).await;
            return true;
        }
        let by = match asked {
            Asked::Interrupt => "ctrl-c",
            Asked::Terminate => "signal",
        };
        // Refused only where nothing is left to interrupt.
        let _ = self.handle.send(Command::Interrupt { by: by.into() }).await;
        false
    }

    async fn unwritten(&mut self, error: io::Error) -> Result<Over, Failure> {
        let _ = self.handle.send(Command::Interrupt { by: "closed output".into() }).await;
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Ok(Over::Unread);
        }
        Err(unwritable(&error))
    }
}

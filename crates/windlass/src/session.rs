//! One conversation with an agent.

use crate::{Answer, Prompt, RunError};
use futures_core::Stream;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use uuid::Uuid;
use windlass_kernel::{End, Event, InputId, ReachedCap, Record, Seq, SessionId, Step, Tally};
use windlass_runtime::{Frame, Handle, SendError};

/// A session: history, file state, denials and totals live over all its prompts.
#[derive(Clone)]
pub struct Session {
    handle: Handle,
    new_id: Arc<dyn Fn() -> Uuid + Send + Sync>,
}

/// The frames of one turn: its `Prompted` first, its `TurnFinished` last. A slash command that the session carries out
/// has no turn: its frames are those of the command. [`Turn::finish`] counts what was read before it, too.
pub struct Turn {
    frames: BoxStream<'static, Result<Frame, SendError>>,
    tally: Tally,
    /// What the first record shows: a command that the session carried out, and what came of it.
    command: Option<Carried>,
    /// The cap that the turn waits at.
    paused: Option<ReachedCap>,
}

/// How far a command has come that needs no turn.
enum Carried {
    /// It is a turn after all.
    No,
    Out(Option<Result<(), String>>),
}

impl Session {
    pub(crate) fn new(handle: Handle, new_id: Arc<dyn Fn() -> Uuid + Send + Sync>) -> Session {
        Session { handle, new_id }
    }

    pub fn id(&self) -> SessionId {
        self.handle.session()
    }

    /// The session's two verbs themselves: `send` and `follow`.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Submits a prompt; once it is durable, gives the frames of its turn.
    pub async fn submit(&self, prompt: impl Into<Prompt>) -> Result<Turn, SendError> {
        let (command, blobs) = prompt.into().into_command(|| InputId((self.new_id)()));
        let seq = self.handle.send_with(command, blobs).await?;
        let mut turn = Turn::of(&self.handle, seq, Until::Submitted);
        // Of a session that waits already, no further event tells that it does.
        turn.paused = self.handle.state().await?.paused();
        Ok(turn)
    }

    /// Submits a prompt and waits for the end of its turn.
    pub async fn run(&self, prompt: impl Into<Prompt>) -> Result<Answer, RunError> {
        self.submit(prompt).await?.finish().await
    }

    /// The frames of the turn that is open, from `from` on: what a resumed session goes on with.
    pub fn rejoin(&self, from: Seq) -> Turn {
        Turn::of(&self.handle, from, Until::TurnFinished)
    }
}

/// What a turn's stream waits for.
#[derive(Clone, Copy)]
enum Until {
    /// Nothing has been seen yet: the first record says what was submitted.
    Submitted,
    /// The model has not been shown the prompt yet: the end of an earlier turn is not this one's.
    Shown,
    TurnFinished,
    Compacted,
}

impl Turn {
    fn of(handle: &Handle, from: Seq, until: Until) -> Turn {
        let open = Some((handle.follow(from), handle.clone(), until));
        let frames = futures_util::stream::unfold(open, |open| async {
            let (mut follower, handle, until) = open?;
            let frame = follower.next().await?;
            let more = match &frame {
                Ok(Frame::Record(record)) => until.after(record, &handle).await,
                Ok(Frame::Delta(_)) => Some(until),
                Err(_) => None,
            };
            Some((frame, more.map(|until| (follower, handle, until))))
        });
        let command = (!matches!(until, Until::Submitted)).then_some(Carried::No);
        Turn { frames: frames.boxed(), tally: Tally::default(), command, paused: None }
    }

    /// Waits for the end of the turn. A command that was carried out is `Done`, with no text. A turn that reaches a cap is
    /// an error here: it waits, and [`Session::rejoin`] follows it once the cap is raised.
    pub async fn finish(mut self) -> Result<Answer, RunError> {
        while let Some(frame) = self.next().await {
            frame?;
            if let Some(cap) = self.paused {
                return Err(RunError::Paused(cap));
            }
        }
        let Turn { tally, command, .. } = self;
        let end = match command {
            Some(Carried::Out(Some(Ok(())))) => End::Done,
            Some(Carried::Out(Some(Err(message)))) => return Err(RunError::NotCompacted(message)),
            _ => tally.end.clone().ok_or(RunError::Closed)?,
        };
        Ok(Answer { text: tally.text.clone(), end, tally })
    }

    fn note(&mut self, record: &Record) {
        self.tally.add(record);
        if let Event::Began { step: Step::Pause { cap } } = &record.event {
            self.paused = Some(*cap);
        }
        let is_command = matches!(record.event, Event::Cleared { .. } | Event::CompactionAsked { .. });
        let command = self.command.get_or_insert(if is_command { Carried::Out(None) } else { Carried::No });
        if let Carried::Out(out) = command {
            match &record.event {
                Event::Cleared { .. } | Event::Compacted { .. } => *out = Some(Ok(())),
                Event::CompactionFailed { message, .. } => *out = Some(Err(message.clone())),
                _ => {}
            }
        }
    }
}

impl Until {
    /// What is waited for after `record`; none: nothing more.
    async fn after(self, record: &Record, handle: &Handle) -> Option<Until> {
        match (self, &record.event) {
            // Commands that need no turn end where they are done.
            (Until::Submitted, Event::Cleared { .. }) => None,
            (Until::Submitted, Event::CompactionAsked { .. }) => Some(Until::Compacted),
            (Until::Submitted, _) => Some(Until::Shown),
            (Until::Compacted, Event::Compacted { .. }) => None,
            // One that may do better is made again.
            (Until::Compacted, Event::CompactionFailed { .. }) => {
                let state = handle.state_at(record.seq).await.ok()?;
                state.compaction_asked.is_some().then_some(self)
            }
            (Until::Shown, Event::Began { step: Step::CallModel }) => Some(Until::TurnFinished),
            // A limit or an interrupt may stand before the model is asked at all; then no turn follows to show it in. As
            // it was then: by now, the turn that followed may be over as well.
            (Until::Shown, Event::TurnFinished { .. }) => {
                let state = handle.state_at(record.seq).await.ok()?;
                state.turn.is_some().then_some(self)
            }
            (Until::TurnFinished, Event::TurnFinished { .. }) => None,
            _ => Some(self),
        }
    }
}

impl Stream for Turn {
    type Item = Result<Frame, SendError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.frames.poll_next_unpin(context);
        if let Poll::Ready(Some(Ok(Frame::Record(record)))) = &next {
            self.note(record);
        }
        next
    }
}

//! One conversation with an agent.

use crate::{Answer, Prompt, RunError};
use futures_core::Stream;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use uuid::Uuid;
use windlass_kernel::{Event, InputId, Seq, SessionId, Step, Tally};
use windlass_runtime::{Follower, Frame, Handle, SendError};

/// A session: history, file state, denials and totals live over all its prompts.
#[derive(Clone)]
pub struct Session {
    handle: Handle,
    new_id: Arc<dyn Fn() -> Uuid + Send + Sync>,
}

/// The frames of one turn: its `Prompted` first, its `TurnFinished` last.
pub struct Turn(BoxStream<'static, Result<Frame, SendError>>);

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
        Ok(Turn::of(self.handle.follow(seq), Until::Shown))
    }

    /// Submits a prompt and waits for the end of its turn.
    pub async fn run(&self, prompt: impl Into<Prompt>) -> Result<Answer, RunError> {
        self.submit(prompt).await?.finish().await
    }

    /// The frames of the turn that is open, from `from` on: what a resumed session goes on with.
    pub fn rejoin(&self, from: Seq) -> Turn {
        Turn::of(self.handle.follow(from), Until::TurnFinished)
    }
}

/// What a turn's stream waits for.
#[derive(Clone, Copy)]
enum Until {
    /// The model has not been shown the prompt yet: the end of an earlier turn is not this one's.
    Shown,
    TurnFinished,
    Compacted,
}

impl Turn {
    fn of(follower: Follower, until: Until) -> Turn {
        let frames = futures_util::stream::unfold(Some((follower, until)), |open| async {
            let (mut follower, until) = open?;
            let frame = follower.next().await?;
            let more = match &frame {
                Ok(Frame::Record(record)) => until.after(&record.event),
                Ok(Frame::Delta(_)) => Some(until),
                Err(_) => None,
            };
            Some((frame, more.map(|until| (follower, until))))
        });
        Turn(frames.boxed())
    }

    /// Waits for the end of the turn.
    pub async fn finish(mut self) -> Result<Answer, RunError> {
        let mut tally = Tally::default();
        while let Some(frame) = self.0.next().await {
            if let Frame::Record(record) = frame? {
                tally.add(&record);
            }
        }
        let end = tally.end.clone().ok_or(RunError::Closed)?;
        Ok(Answer { text: tally.text.clone(), end, tally })
    }
}

impl Until {
    /// What is waited for after `event`; none: nothing more.
    fn after(self, event: &Event) -> Option<Until> {
        match (self, event) {
            // Commands that need no turn end where they are done.
            (Until::Shown, Event::Cleared { .. }) => None,
            (Until::Shown, Event::CompactionAsked { .. }) => Some(Until::Compacted),
            (Until::Compacted, Event::Compacted { .. } | Event::CompactionFailed { .. }) => None,
            (Until::Shown, Event::Began { step: Step::CallModel }) => Some(Until::TurnFinished),
            (Until::TurnFinished, Event::TurnFinished { .. }) => None,
            _ => Some(self),
        }
    }
}

impl Stream for Turn {
    type Item = Result<Frame, SendError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(context)
    }
}

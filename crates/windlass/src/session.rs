//! One conversation with an agent.

use crate::{Answer, Prompt, RunError};
use futures_core::Stream;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use uuid::Uuid;
use windlass_kernel::{Event, InputId, Seq, SessionId, Tally};
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
        Ok(Turn::of(self.handle.follow(seq)))
    }

    /// Submits a prompt and waits for the end of its turn.
    pub async fn run(&self, prompt: impl Into<Prompt>) -> Result<Answer, RunError> {
        self.submit(prompt).await?.finish().await
    }

    /// The frames of the turn that is open, from `from` on: what a resumed session goes on with.
    pub fn rejoin(&self, from: Seq) -> Turn {
        Turn::of(self.handle.follow(from))
    }
}

impl Turn {
    fn of(follower: Follower) -> Turn {
        let frames = futures_util::stream::unfold(Some(follower), |follower| async {
            let mut follower = follower?;
            let frame = follower.next().await?;
            let last = match &frame {
                Ok(Frame::Record(record)) => {
                    // A command that needs no model ends its own turn.
                    matches!(record.event, Event::TurnFinished { .. } | Event::Cleared { .. })
                }
                Ok(Frame::Delta(_)) => false,
                Err(_) => true,
            };
            Some((frame, (!last).then_some(follower)))
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

impl Stream for Turn {
    type Item = Result<Frame, SendError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(context)
    }
}

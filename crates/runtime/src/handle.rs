//! What every front end holds: two verbs, `send` and `follow`.

use crate::{Frame, replay};
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};
use tokio::sync::{mpsc, oneshot};
use windlass_kernel::*;
use windlass_store::{Store, StoreError};

/// Records a follower reads from the store at a time.
const PAGE: usize = 512;

/// A running session. Cloned freely; when the last one is gone the session lies down, to be resumed at will.
#[derive(Clone)]
pub struct Handle {
    pub(crate) session: SessionId,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) inbox: mpsc::Sender<Envelope>,
    pub(crate) over: Arc<OnceLock<SendError>>,
}

/// The way back to who asked for something.
pub(crate) type Reply = oneshot::Sender<Result<Seq, Rejected>>;

pub(crate) enum Envelope {
    Wish { command: Command, blobs: Vec<(BlobRef, Bytes)>, reply: Reply },
    Follow { reply: oneshot::Sender<Followed> },
    Look { reply: oneshot::Sender<Box<State>> },
    Close { reply: oneshot::Sender<()> },
}

pub(crate) struct Followed {
    pub head: Seq,
    pub open: Vec<Frame>,
    pub live: mpsc::Receiver<Frame>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum SendError {
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// The store failed: what was not acknowledged did not happen.
    #[error("{0}")]
    Failed(Arc<StoreError>),
    /// The session's loop itself failed; what was acknowledged is stored.
    #[error("the session broke off: {0}; what was acknowledged is stored, resume it to go on")]
    Broke(String),
    #[error("the session is closed: resume it first")]
    Closed,
}

impl Handle {
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Asks for something; the place in the log is known once it is durable.
    pub async fn send(&self, command: Command) -> Result<Seq, SendError> {
        self.send_with(command, vec![]).await
    }

    /// The same, with the bytes that blocks of the command refer to.
    pub async fn send_with(&self, command: Command, blobs: Vec<(BlobRef, Bytes)>) -> Result<Seq, SendError> {
        Ok(self.ask(|reply| Envelope::Wish { command, blobs, reply }).await??)
    }

    /// Everything from event `from` on: what is stored, then what happens.
    pub fn follow(&self, from: Seq) -> Follower {
        let next = Seq(from.0.max(1));
        Follower {
            handle: self.clone(),
            next,
            upto: Seq(0),
            told: HashMap::new(),
            ready: VecDeque::new(),
            late: vec![],
            live: None,
            over: None,
        }
    }

    /// The state as of everything stored.
    pub async fn state(&self) -> Result<State, SendError> {
        Ok(*self.ask(|reply| Envelope::Look { reply }).await?)
    }

    /// The state as it was once event `seq` had happened, folded from the log.
    pub async fn state_at(&self, seq: Seq) -> Result<State, SendError> {
        let state = replay(&*self.store, self.session, Some(seq)).await;
        state.map_err(|error| SendError::Failed(Arc::new(error)))
    }

    /// Lays the session down: rooms are called back, the lease is given up.
    pub async fn close(&self) {
        let _ = self.ask(|reply| Envelope::Close { reply }).await;
    }

    async fn ask<T>(&self, envelope: impl FnOnce(oneshot::Sender<T>) -> Envelope) -> Result<T, SendError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.inbox.send(envelope(reply)).await;
        match sent {
            Ok(()) => answer.await.map_err(|_| self.why_over()),
            Err(_) => Err(self.why_over()),
        }
    }

    fn why_over(&self) -> SendError {
        self.over.get().cloned().unwrap_or(SendError::Closed)
    }
}

/// A reader of a session that misses nothing stored, and repeats nothing told.
pub struct Follower {
    handle: Handle,
    /// The next record to give.
    next: Seq,
    /// Records up to here are to be read from the store.
    upto: Seq,
    /// Bytes given of each open block.
    told: HashMap<(Seq, u32), usize>,
    ready: VecDeque<Frame>,
    /// Open blocks, to be given after the stored records.
    late: Vec<Frame>,
    live: Option<mpsc::Receiver<Frame>>,
    /// The session is over: what is stored is all there will be, then this.
    over: Option<SendError>,
}

impl Follower {
    /// The next frame; none when the session is closed, an error when its store failed.
    pub async fn next(&mut self) -> Option<Result<Frame, SendError>> {
        loop {
            if self.ready.is_empty()
                && self.next <= self.upto
                && let Err(error) = self.read_page().await
            {
                return Some(Err(error));
            }
            while let Some(frame) = self.ready.pop_front() {
                if let Some(frame) = self.fresh(frame) {
                    return Some(Ok(frame));
                }
            }
            if self.next <= self.upto {
                continue;
            }
            if !self.late.is_empty() {
                self.ready.extend(self.late.drain(..));
                continue;
            }
            if let Some(over) = self.over.take() {
                self.upto = Seq(0);
                return (!matches!(over, SendError::Closed)).then_some(Err(over));
            }
            let Some(live) = &mut self.live else {
                self.subscribe().await;
                continue;
            };
            match live.recv().await {
                Some(frame) => self.ready.push_back(frame),
                // Too slow, or the session is over: what was missed is in the store, and the loop tells where it stands.
                None => self.live = None,
            }
        }
    }

    async fn subscribe(&mut self) {
        match self.handle.ask(|reply| Envelope::Follow { reply }).await {
            Ok(followed) => {
                self.upto = followed.head;
                self.late = followed.open;
                self.live = Some(followed.live);
            }
            Err(over) => {
                self.upto = Seq(u64::MAX);
                self.over = Some(over);
            }
        }
    }

    /// Gets the next page of stored records ready.
    async fn read_page(&mut self) -> Result<(), SendError> {
        let limit = PAGE.min((self.upto.0 - self.next.0).saturating_add(1) as usize);
        let read = self.handle.store.read(self.handle.session, self.next, limit).await;
        let records = read.map_err(|error| SendError::Failed(Arc::new(error)))?;
        if records.is_empty() {
            self.upto = Seq(self.next.0 - 1);
        }
        self.ready.extend(records.into_iter().map(|record| Frame::Record(Arc::new(record))));
        Ok(())
    }

    /// The frame without what was given before; none if nothing is left of it.
    fn fresh(&mut self, frame: Frame) -> Option<Frame> {
        match frame {
            Frame::Record(record) => {
                if record.seq < self.next {
                    return None;
                }
                self.next = record.seq.next();
                self.told.retain(|(work, _), _| !ends(&record.event, *work));
                Some(Frame::Record(record))
            }
            Frame::Delta(delta) => {
                let told = self.told.entry((delta.work, delta.index)).or_insert(delta.offset);
                let known = told.saturating_sub(delta.offset);
                *told = (*told).max(delta.offset + delta.text.len());
                match known {
                    0 => Some(Frame::Delta(delta)),
                    _ if known >= delta.text.len() => None,
                    _ => {
                        let mut rest = (*delta).clone();
                        rest.offset += known;
                        rest.text = rest.text.split_off(known);
                        Some(Frame::Delta(Arc::new(rest)))
                    }
                }
            }
        }
    }
}

fn ends(event: &Event, work: Seq) -> bool {
    match event {
        Event::ModelFinished { work: of, .. }
        | Event::ModelFailed { work: of, .. }
        | Event::ModelCancelled { work: of, .. } => *of == work,
        Event::ToolFinished(finished) => finished.work == work,
        _ => false,
    }
}

//! What a component prints: the first part is kept, the rest is let go or stops it.

use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

/// Bytes taken at once.
const PERMIT_BYTES: usize = 64 << 10;

/// Where stdout or stderr goes; clones write to the same.
#[derive(Clone)]
pub(crate) struct Sink {
    limit_bytes: usize,
    beyond: Beyond,
    kept: Arc<Mutex<Kept>>,
}

/// What happens to bytes beyond the limit.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Beyond {
    Dropped,
    /// The component is stopped.
    Stops,
}

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    over: bool,
}

impl Sink {
    pub fn new(limit_bytes: usize, beyond: Beyond) -> Sink {
        Sink { limit_bytes, beyond, kept: Arc::default() }
    }

    /// What was kept, and whether there was more.
    pub fn take(&self) -> (Vec<u8>, bool) {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        (kept.bytes, kept.over)
    }

    /// Keeps what there is room for; false if the component is to stop.
    fn put(&self, bytes: &[u8]) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = self.limit_bytes - kept.bytes.len();
        kept.over |= bytes.len() > room;
        kept.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        !(kept.over && self.beyond == Beyond::Stops)
    }
}

#[async_trait]
impl Pollable for Sink {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for Sink {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if self.put(&bytes) { Ok(()) } else { Err(StreamError::trap("too much output")) }
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT_BYTES)
    }
}

impl AsyncWrite for Sink {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let taken = if self.put(bytes) { Ok(bytes.len()) } else { Err(io::ErrorKind::BrokenPipe.into()) };
        Poll::Ready(taken)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl IsTerminal for Sink {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Sink {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

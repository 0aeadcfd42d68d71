//! A connection's socket, with what an answer must know of it to break off at an exact byte.

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use tokio::net::TcpStream;

/// Shared by a connection's socket and its answers.
#[derive(Default)]
pub struct Gauge {
    /// The peer reads slowly: written bytes still wait in the server.
    pub blocked: AtomicBool,
    /// The connection is to end by a reset.
    pub reset: AtomicBool,
}

pub struct Socket {
    inner: TokioIo<TcpStream>,
    gauge: Arc<Gauge>,
}

impl Socket {
    pub fn new(stream: TcpStream, gauge: Arc<Gauge>) -> Socket {
        // A small event must not wait for the acknowledgement of the one before it. A socket that does not take the
        // option still works.
        let _ = stream.set_nodelay(true);
        Socket { inner: TokioIo::new(stream), gauge }
    }

    fn note<T>(&self, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.gauge.blocked.store(poll.is_pending(), Relaxed);
        poll
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.gauge.reset.load(Relaxed) {
            // With a linger of zero, closing sends a reset.
            let _ = self.inner.inner().set_zero_linger();
        }
    }
}

impl Read for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl Write for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.note(poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.note(poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

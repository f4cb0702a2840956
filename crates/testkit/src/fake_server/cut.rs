//! A connection that can be cut after a number of written bytes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// How many bytes may still be written; `u64::MAX` is without end.
#[derive(Debug, Clone)]
pub(super) struct Budget(Arc<AtomicU64>);

impl Budget {
    pub(super) fn endless() -> Self {
        Self(Arc::new(AtomicU64::new(u64::MAX)))
    }

    /// Cuts the connection after this many further bytes.
    pub(super) fn cut_after(&self, bytes: u64) {
        self.0.store(bytes, Ordering::SeqCst);
    }
}

pub(super) struct Cut {
    stream: TcpStream,
    budget: Budget,
}

impl Cut {
    pub(super) fn new(stream: TcpStream, budget: Budget) -> Self {
        Self { stream, budget }
    }
}

impl AsyncRead for Cut {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Cut {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let left = self.budget.0.load(Ordering::SeqCst);
        if left == u64::MAX {
            return Pin::new(&mut self.stream).poll_write(context, bytes);
        }
        let length = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if length == 0 {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let written = Pin::new(&mut self.stream).poll_write(context, &bytes[..length]);
        if let Poll::Ready(Ok(count)) = &written {
            self.budget.0.fetch_sub(u64::try_from(*count).unwrap_or(left), Ordering::SeqCst);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

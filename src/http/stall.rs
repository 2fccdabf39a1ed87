//! Ends a connection whose client does not read its response.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Longest time in which a client reads no byte of a response: longer than a short network failure,
/// and a tenth of the time that the connection could otherwise hold the response.
const STALL_MAX: Duration = Duration::from_secs(30);

/// A stream whose writes fail once the other end has read nothing for too long.
#[derive(Debug)]
pub struct StallGuard<S> {
    stream: S,
    within: Duration,
    /// Ends once the other end has read nothing for `within`; `None` while no write waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> StallGuard<S> {
    /// A guard whose writes fail after [`STALL_MAX`].
    pub fn new(stream: S) -> StallGuard<S> {
        StallGuard {
            stream,
            within: STALL_MAX,
            stalled: None,
        }
    }

    /// Fails if a write has waited for too long.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        write: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if write.is_ready() {
            self.stalled = None;
            return write;
        }
        let within = self.within;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(within)));
        let late = || io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing");
        stalled.as_mut().poll(context).map(|()| Err(late()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, write)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.watch(context, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::time::Instant;

    /// A client that takes a byte at a time, and lets its writer wait `waits` times for each.
    struct Client {
        waits: usize,
        left: usize,
    }

    impl AsyncWrite for Client {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            _: &[u8],
        ) -> Poll<io::Result<usize>> {
            if self.left == 0 {
                self.left = self.waits;
                return Poll::Ready(Ok(1));
            }
            self.left -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// How the first failing write fails; `None` if none fails within some time.
    async fn failure(waits: usize) -> Option<io::ErrorKind> {
        let mut guard = StallGuard {
            within: Duration::from_millis(100),
            ..StallGuard::new(Client { waits, left: waits })
        };
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(400) {
            let write =
                |context: &mut Context<'_>| Pin::new(&mut guard).poll_write(context, b"response");
            if let Err(error) = poll_fn(write).await {
                return Some(error.kind());
            }
            tokio::task::yield_now().await;
        }
        None
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_given_up_and_a_slow_one_is_not() {
        assert_eq!(failure(usize::MAX).await, Some(io::ErrorKind::TimedOut));
        assert_eq!(failure(1).await, None);
    }
}

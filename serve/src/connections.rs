//! Connections: how many, and how slow a client may be.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, Sleep};

use crate::state::AppState;

/// Bytes of the head of a request.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// What a client takes at least in a second, once it has let the server wait for `slow_client_timeout` in all. The memory of an answer
/// is not held for longer than this takes.
const MIN_BYTES_PER_SECOND: f64 = 65_536.0;
/// How long the end waits for answers that are being sent.
const END_TIME: Duration = Duration::from_secs(5);
/// The pause after the system could not accept a connection, as when there are no descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// What a client is told for whom there is no connection left.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n";

/// Where clients come in.
pub(crate) enum Listening {
    Tcp(TcpListener),
    #[cfg(feature = "tls")]
    Tls(TcpListener, tokio_rustls::TlsAcceptor),
    #[cfg(unix)]
    Socket(crate::socket::SocketListener),
}

/// A client that has come.
enum Accepted {
    Tcp(TcpStream),
    #[cfg(feature = "tls")]
    Tls(TcpStream, tokio_rustls::TlsAcceptor),
    #[cfg(unix)]
    Socket(tokio::net::UnixStream),
}

impl Listening {
    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Listening::Tcp(listener) => listener.accept().await.map(|(stream, _)| Accepted::Tcp(stream)),
            #[cfg(feature = "tls")]
            Listening::Tls(listener, acceptor) => {
                let accepted = listener.accept().await;
                accepted.map(|(stream, _)| Accepted::Tls(stream, acceptor.clone()))
            }
            #[cfg(unix)]
            Listening::Socket(listener) => listener.accept().await.map(Accepted::Socket),
        }
    }
}

impl Accepted {
    /// Tells a client that there is no connection left. One that has TLS cannot be told.
    async fn refuse(self) {
        if let Accepted::Tcp(stream) = self {
            let _ = tokio::time::timeout(ACCEPT_PAUSE, stream.writable()).await;
            let _ = stream.try_write(FULL);
        }
    }

    /// Answers a client until it goes, or the server ends.
    async fn answer(self, router: Router, time: Duration, watcher: Watcher) {
        match self {
            Accepted::Tcp(stream) => {
                let _ = stream.set_nodelay(true);
                answer_on(stream, router, time, watcher).await;
            }
            #[cfg(feature = "tls")]
            Accepted::Tls(stream, acceptor) => {
                let _ = stream.set_nodelay(true);
                if let Ok(Ok(stream)) = tokio::time::timeout(time, acceptor.accept(stream)).await {
                    answer_on(stream, router, time, watcher).await;
                }
            }
            #[cfg(unix)]
            Accepted::Socket(stream) => answer_on(stream, router, time, watcher).await,
        }
    }
}

async fn answer_on<S>(stream: S, router: Router, time: Duration, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(time)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(
            TokioIo::new(TimedStream { stream, stalls: StallBudget::new(time), deadline: None }),
            TowerToHyperService::new(router),
        );
    // A client that went away is no error.
    let _ = watcher.watch(connection).await;
}

/// Answers clients until `stop` says so.
pub(crate) async fn serve(listening: Listening, router: Router, state: Arc<AppState>, mut stop: watch::Receiver<bool>) {
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(state.limits.max_connections));
    loop {
        let accepted = tokio::select! {
            accepted = listening.accept() => accepted,
            () = ended(&mut stop) => break,
        };
        let Ok(accepted) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            state.metrics.refused_connections.fetch_add(1, Ordering::Relaxed);
            accepted.refuse().await;
            continue;
        };
        let (state, router, watcher) = (state.clone(), router.clone(), graceful.watcher());
        state.metrics.connections.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            accepted.answer(router, state.limits.slow_client_timeout, watcher).await;
            state.metrics.connections.fetch_sub(1, Ordering::Relaxed);
            drop(place);
        });
    }
    drop(listening);
    let _ = tokio::time::timeout(END_TIME, graceful.shutdown()).await;
}

/// Waits until the server is told to end.
async fn ended(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// How long a client has let the server wait with what is sent to it. It may do so for a time; what it takes gives time back.
#[derive(Debug)]
struct StallBudget {
    limit: Duration,
    used: Duration,
    stalled_at: Option<Instant>,
}

impl StallBudget {
    fn new(limit: Duration) -> Self {
        StallBudget { limit, used: Duration::ZERO, stalled_at: None }
    }

    /// The client takes nothing now. Returns when it has to have taken something.
    fn stall(&mut self, now: Instant) -> Instant {
        *self.stalled_at.get_or_insert(now) + self.limit.saturating_sub(self.used)
    }

    /// The client has taken so many bytes. Returns whether it was too slow.
    fn take(&mut self, now: Instant, bytes: usize) -> bool {
        if let Some(at) = self.stalled_at.take() {
            self.used += now.saturating_duration_since(at);
        }
        let worth = Duration::from_secs_f64(bytes as f64 / MIN_BYTES_PER_SECOND);
        self.used = self.used.saturating_sub(worth);
        self.used > self.limit
    }
}

/// A connection whose client has to take what is sent, at some rate.
struct TimedStream<S> {
    stream: S,
    stalls: StallBudget,
    /// When the client has to have taken something.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> TimedStream<S> {
    /// What a write came to, unless the client is too slow.
    fn timed(&mut self, context: &mut Context<'_>, done: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let too_slow = || Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        if let Poll::Ready(written) = done {
            self.deadline = None;
            let bytes = *written.as_ref().unwrap_or(&0);
            return if self.stalls.take(Instant::now(), bytes) { too_slow() } else { Poll::Ready(written) };
        }
        let end = self.stalls.stall(Instant::now());
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        match deadline.as_mut().poll(context) {
            Poll::Ready(()) => too_slow(),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(context, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.timed(context, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_takes_little_at_a_time_is_too_slow_in_the_end() {
        let (mut now, mut stalls) = (Instant::now(), StallBudget::new(Duration::from_secs(30)));
        let mut wait_and_take = |seconds: u64, bytes: usize| {
            let end = stalls.stall(now);
            now += Duration::from_secs(seconds);
            (now > end, stalls.take(now, bytes))
        };
        // 64 KiB a second for an hour, in steps that the system makes of it.
        assert!((0..360).all(|_| wait_and_take(10, 655_360) == (false, false)));
        // A byte in ten seconds.
        assert_eq!([(); 3].map(|()| wait_and_take(10, 1)), [(false, false); 3]);
        assert_eq!(wait_and_take(10, 1), (true, true));
    }
}

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
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, Sleep};

use crate::state::AppState;

/// Bytes of the head of a request.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// How long the end waits for answers that are being sent.
const END_TIME: Duration = Duration::from_secs(5);
/// The pause after the system could not accept a connection, as when there are no descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// What a client is told for whom there is no connection left.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n";

/// Answers clients until `stop` says so.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    state: Arc<AppState>,
    mut stop: watch::Receiver<bool>,
) {
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(state.limits.max_connections));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ended(&mut stop) => break,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            state.metrics.refused_connections.fetch_add(1, Ordering::Relaxed);
            let _ = tokio::time::timeout(ACCEPT_PAUSE, stream.writable()).await;
            let _ = stream.try_write(FULL);
            continue;
        };
        let _ = stream.set_nodelay(true);
        let client_time = state.limits.client_time;
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(client_time)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(
                TokioIo::new(TimedStream { stream, time: client_time, deadline: None }),
                TowerToHyperService::new(router.clone()),
            );
        let connection = graceful.watch(connection);
        let state = state.clone();
        state.metrics.connections.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            // A client that went away is no error.
            let _ = connection.await;
            state.metrics.connections.fetch_sub(1, Ordering::Relaxed);
            drop(place);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(END_TIME, graceful.shutdown()).await;
}

/// Waits until the server is told to end.
async fn ended(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// A connection whose client has to take what is sent within a time.
struct TimedStream {
    stream: TcpStream,
    time: Duration,
    /// When the client has to have taken something.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl TimedStream {
    /// What a write came to, unless the client takes nothing for too long.
    fn timed<T>(&mut self, context: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.deadline = None;
            return done;
        }
        let time = self.time;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + time)));
        match deadline.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buf)
    }
}

impl AsyncWrite for TimedStream {
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

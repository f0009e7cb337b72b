//! Requests by HTTP/1.1, over connections that are kept. Every wait has an end, and every answer a largest size.

mod connection;
mod error;
mod runtime;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response};
use parking_lot::Mutex;

use crate::location::ServedLocation;
use crate::protocol::{CONTENT_TYPE, FAULT_HEADER};
pub(crate) use connection::TlsSettings;
pub(crate) use error::HttpError;
use error::failure;
pub(crate) use runtime::spawn;

/// Connections that are kept for the next requests.
const MAX_IDLE_CONNECTIONS: usize = 8;
/// Most bytes of the body of an error.
const MAX_ERROR_BYTES: usize = 16 << 10;
/// The longest time of a connection's beginning.
const MAX_CONNECT_TIME: Duration = Duration::from_secs(10);

/// A server, and how it is asked.
#[derive(Debug)]
pub(crate) struct HttpClient {
    server: ServedLocation,
    authorization: Option<HeaderValue>,
    timeout: Duration,
    tls: TlsSettings,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
    bytes_read: AtomicU64,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub status: u16,
    /// Whether the body is a message of the protocol.
    pub is_message: bool,
    /// The kind of an error.
    pub fault: Option<String>,
    pub body: Vec<u8>,
}

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) struct HttpRequest {
    pub path: String,
    pub body: Bytes,
    /// Most bytes of the answer.
    pub limit: usize,
}

/// An answer that is waited for.
#[derive(Debug)]
pub(crate) struct PendingAnswer(Receiver<Result<HttpAnswer, HttpError>>);

impl PendingAnswer {
    pub fn wait(self) -> Result<HttpAnswer, HttpError> {
        self.0
            .recv()
            .unwrap_or_else(|_| Err(HttpError::Unreachable("the request has ended without a result".to_owned())))
    }
}

impl HttpClient {
    pub fn new(
        server: ServedLocation,
        authorization: Option<HeaderValue>,
        timeout: Duration,
        tls: TlsSettings,
    ) -> Self {
        let (idle, bytes_read) = Default::default();
        HttpClient { server, authorization, timeout, tls, idle, bytes_read }
    }

    /// Bytes of all answers.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Begins a request.
    pub fn start(self: &Arc<Self>, request: HttpRequest) -> PendingAnswer {
        let (sender, receiver) = sync_channel(1);
        let client = self.clone();
        let failed = sender.clone();
        let started = spawn(async move {
            let _ = sender.send(client.send(request).await);
        });
        if let Err(error) = started {
            let _ = failed.send(Err(HttpError::Unreachable(error.to_string())));
        }
        PendingAnswer(receiver)
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpAnswer, HttpError> {
        // A connection that was kept may have been closed meanwhile; then nothing was asked yet.
        loop {
            let kept = self.idle.lock().pop();
            let Some(mut connection) = kept else { break };
            if connection.ready().await.is_err() {
                continue;
            }
            match self.send_on(connection, &request).await {
                Err(HttpError::Unreachable(_)) => {}
                answer => return answer,
            }
        }
        let connection = self.connect().await?;
        self.send_on(connection, &request).await
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, HttpError> {
        let limit = self.timeout.min(MAX_CONNECT_TIME);
        let connected = tokio::time::timeout(limit, connection::connect(&self.server, &self.tls)).await;
        connected.unwrap_or_else(|_| Err(HttpError::Unreachable(format!("no connection within {limit:?}"))))
    }

    fn request(&self, method: &str, path: &str) -> hyper::http::request::Builder {
        let builder = Request::builder().method(method).uri(path).header(header::HOST, &self.server.authority);
        match &self.authorization {
            Some(value) => builder.header(header::AUTHORIZATION, value),
            None => builder,
        }
    }

    async fn head_of(
        &self,
        connection: &mut SendRequest<Full<Bytes>>,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, HttpError> {
        let sent = tokio::time::timeout(self.timeout, connection.send_request(request)).await;
        sent.map_err(|_| self.too_slow())?.map_err(|error| failure(&error))
    }

    async fn send_on(
        &self,
        mut connection: SendRequest<Full<Bytes>>,
        request: &HttpRequest,
    ) -> Result<HttpAnswer, HttpError> {
        let built = self.request("POST", &request.path).header(header::CONTENT_TYPE, CONTENT_TYPE);
        let built = built.body(Full::new(request.body.clone()));
        let built = built.map_err(|error| HttpError::Unreachable(error.to_string()))?;
        let mut response = self.head_of(&mut connection, built).await?;
        let text = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let status = response.status().as_u16();
        let is_message = status == 200 && text(header::CONTENT_TYPE.as_str()).as_deref() == Some(CONTENT_TYPE);
        let fault = text(FAULT_HEADER);
        let limit = if is_message { request.limit } else { MAX_ERROR_BYTES };
        let mut body = Vec::new();
        while let Some(part) = self.next_body_bytes(&mut response).await? {
            let room = limit.saturating_sub(body.len());
            if part.len() > room && is_message {
                return Err(HttpError::TooLarge(limit));
            }
            body.extend_from_slice(&part[..part.len().min(room)]);
        }
        self.bytes_read.fetch_add(body.len() as u64, Ordering::Relaxed);
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE_CONNECTIONS {
            idle.push(connection);
        }
        Ok(HttpAnswer { status, is_message, fault, body })
    }

    fn too_slow(&self) -> HttpError {
        HttpError::Unreachable(format!("nothing came within {:?}", self.timeout))
    }

    /// The next bytes of a body; `None` at its end.
    pub async fn next_body_bytes(&self, response: &mut Response<Incoming>) -> Result<Option<Bytes>, HttpError> {
        loop {
            let frame = tokio::time::timeout(self.timeout, response.body_mut().frame()).await;
            match frame.map_err(|_| self.too_slow())? {
                None => return Ok(None),
                Some(Err(error)) => return Err(failure(&error)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// An answer without an end, on a connection of its own.
    pub async fn open_event_stream(
        &self,
        path: &str,
        last_event: Option<&str>,
    ) -> Result<(SendRequest<Full<Bytes>>, Response<Incoming>), HttpError> {
        let mut connection = self.connect().await?;
        let mut request = self.request("GET", path);
        if let Some(id) = last_event {
            request = request.header("last-event-id", id);
        }
        let request = request.body(Full::default()).map_err(|error| HttpError::Unreachable(error.to_string()))?;
        let response = self.head_of(&mut connection, request).await?;
        Ok((connection, response))
    }
}

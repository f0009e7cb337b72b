//! Requests for one file, which are made again while that may help.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use h5live_format::Record;

use crate::error::{Result, ServedError};
use crate::http::{HttpAnswer, HttpClient, HttpError, HttpRequest, PendingAnswer};
use crate::location::percent_encode;
use crate::protocol::{self, BASE_PATH, ServedErrorKind};

/// The first pause before a request is made again, and the longest one.
const MIN_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// Bytes of an answer that are no elements.
const ANSWER_OVERHEAD_BYTES: usize = 8 << 20;

/// Requests for one file.
#[derive(Debug)]
pub(crate) struct ServedClient {
    http: Arc<HttpClient>,
    /// The file, as the server names it.
    file: String,
    /// Most bytes of an answer.
    max_answer: usize,
    /// How long a server is tried again.
    reconnect: Duration,
    retries: AtomicU64,
}

/// An answer that is waited for, and how to ask again.
#[derive(Debug)]
pub(crate) struct PendingCall {
    request: HttpRequest,
    pending: PendingAnswer,
}

impl ServedClient {
    pub fn new(http: HttpClient, file: &str, max_answer_data_bytes: u64, max_retry_time: Duration) -> Self {
        let max_answer =
            usize::try_from(max_answer_data_bytes).unwrap_or(usize::MAX).saturating_add(ANSWER_OVERHEAD_BYTES);
        let (http, file) = (Arc::new(http), percent_encode(file));
        ServedClient { http, file, max_answer, reconnect: max_retry_time, retries: AtomicU64::new(0) }
    }

    pub fn http(&self) -> &Arc<HttpClient> {
        &self.http
    }

    /// Requests that were made again.
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// The address of the events of the file.
    pub fn events_path(&self) -> String {
        format!("/events?path=/&file={}", self.file)
    }

    /// Asks, and asks again while the server cannot be reached or has no room.
    ///
    /// # Errors
    /// What remains.
    pub fn call_with_retry<A: Record + Default>(&self, operation: &str, request: &mut impl Record) -> Result<A> {
        self.finish(self.start(operation, request)?, self.reconnect)
    }

    /// As [`ServedClient::call_with_retry`], trying again for so long at most.
    pub fn call_with_max_retry_time<A: Record + Default>(
        &self,
        operation: &str,
        request: &mut impl Record,
        max_retry_time: Duration,
    ) -> Result<A> {
        self.finish(self.start(operation, request)?, max_retry_time)
    }

    /// Begins to ask.
    pub fn start(&self, operation: &str, request: &mut impl Record) -> Result<PendingCall> {
        let body = protocol::encode_message(request);
        let body = body.map_err(|cause| ServedError::Request { cause })?;
        let path = format!("{BASE_PATH}/{operation}?file={}", self.file);
        let request = HttpRequest { path, body: body.into(), limit: self.max_answer };
        let pending = self.http.start(request.clone());
        Ok(PendingCall { request, pending })
    }

    /// Waits for what was asked, and asks again for a while if the connection is lost.
    pub fn wait_with_retry<A: Record + Default>(&self, call: PendingCall) -> Result<A> {
        self.finish(call, self.reconnect)
    }

    fn finish<A: Record + Default>(&self, call: PendingCall, patience: Duration) -> Result<A> {
        let begun = Instant::now();
        let PendingCall { request, mut pending } = call;
        let mut pause = MIN_PAUSE;
        loop {
            let answer = pending.wait().map_err(http_error);
            match answer.and_then(|answer| read(&answer)) {
                Err(error) if error.is_transient() && begun.elapsed() < patience => {
                    thread::sleep(pause);
                    pause = (pause * 2).min(MAX_PAUSE);
                    self.retries.fetch_add(1, Ordering::Relaxed);
                    pending = self.http.start(request.clone());
                }
                done => return done,
            }
        }
    }
}

fn http_error(error: HttpError) -> ServedError {
    match error {
        HttpError::Unreachable(cause) => ServedError::Unreachable { cause },
        HttpError::NotHttp(what) => ServedError::NotOurs { what },
        HttpError::TooLarge(limit) => ServedError::TooLarge { limit },
    }
}

fn read<A: Record + Default>(answer: &HttpAnswer) -> Result<A> {
    if answer.is_message {
        return protocol::decode_message(&answer.body).map_err(|cause| ServedError::Message { cause });
    }
    let message = message_of(&answer.body);
    let kind = answer.fault.as_deref().and_then(ServedErrorKind::from_header_word);
    Err(match (answer.status, kind, message) {
        (_, Some(ServedErrorKind::NoFile), _) => ServedError::NoFile,
        (_, Some(ServedErrorKind::Replaced), _) => ServedError::Replaced,
        (_, Some(ServedErrorKind::InUse), Some(message)) => ServedError::InUse { message },
        (_, Some(ServedErrorKind::NotThisFormat), Some(message)) => ServedError::NotThisFormat { message },
        (_, Some(ServedErrorKind::Unsupported), _) => {
            ServedError::Model(h5live_model::Error::Unsupported("what the server was asked for"))
        }
        (401, ..) => ServedError::Unauthorized,
        (421, ..) => ServedError::Misdirected,
        (403, _, Some(message)) => ServedError::Denied { message },
        (408 | 429 | 502 | 503 | 504, _, message) => {
            ServedError::Busy { message: message.unwrap_or_else(|| format!("status {}", answer.status)) }
        }
        (413 | 422 | 500 | 501, _, Some(message)) | (404, Some(_), Some(message)) => ServedError::Refused { message },
        (status, ..) => ServedError::NotOurs { what: format!("status {status}") },
    })
}

/// The sentence of an error in JSON; `None` if it has none.
fn message_of(body: &[u8]) -> Option<String> {
    let json: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some(json.get("message")?.as_str()?.chars().take(500).collect())
}

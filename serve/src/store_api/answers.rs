//! Messages to clients, and what went wrong.

use axum::http::StatusCode;
use h5live_format::Record;
use h5live_served::protocol::{self, CONTENT_TYPE, ServedErrorKind};

use crate::answer::Answer;
use crate::fault::Fault;
use crate::state::AppState;

/// The message of a request.
pub(super) fn message<R: Record + Default>(body: &[u8]) -> Result<R, Fault> {
    let message = protocol::decode_message(body);
    message.map_err(|error| Fault::unprocessable(format!("The body is no message of this protocol: {error}")))
}

/// An answer with a message.
pub(super) fn answer<R: Record>(state: &AppState, message: &mut R) -> Result<Answer, Fault> {
    let bytes = protocol::encode_message(message);
    let bytes = bytes.map_err(|error| {
        Fault::new(StatusCode::NOT_IMPLEMENTED, format!("The answer does not fit the protocol: {error}"))
            .with_kind(ServedErrorKind::Unsupported)
    })?;
    let memory = state.memory.reserve(bytes.len() as u64)?;
    Ok(Answer { memory: Some(memory), ..Answer::new(CONTENT_TYPE, bytes) })
}

/// Bytes of a message; 0 if it does not fit the protocol.
pub(super) fn encoded_len_or_zero<R: Record>(message: &mut R) -> usize {
    protocol::encode_message(message).map_or(0, |bytes| bytes.len())
}

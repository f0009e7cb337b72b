//! Answers in JSON, and errors in HSDS's words.

use axum::http::StatusCode;
use serde_json::Value as Json;

use crate::answer::Answer;
use crate::fault::Fault;

/// The type of answers in JSON.
pub(super) const JSON_TYPE: &str = "application/json; charset=utf-8";

pub(super) fn json_answer(value: &Json) -> Answer {
    Answer::new(JSON_TYPE, value.to_string().into_bytes())
}

/// The request makes no sense.
pub(super) fn bad_request(message: impl Into<String>) -> Fault {
    Fault::new(StatusCode::BAD_REQUEST, message)
}

pub(super) fn not_found(message: impl Into<String>) -> Fault {
    Fault::new(StatusCode::NOT_FOUND, message)
}

/// HSDS does this, and this server does not.
pub(super) fn not_implemented(message: impl Into<String>) -> Fault {
    Fault::new(StatusCode::NOT_IMPLEMENTED, message)
}

pub(super) fn too_many(limit: usize) -> Fault {
    Fault::new(StatusCode::PAYLOAD_TOO_LARGE, format!("The file has more than {limit} objects: follow its links"))
}

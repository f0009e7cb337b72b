//! Bodies of requests.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};

use crate::fault::Fault;
use crate::pool::MemoryReservation;
use crate::state::AppState;

/// Bytes of the body of a request.
const MAX_BODY_BYTES: u64 = 4 << 20;
/// Bytes of memory that a byte of a body may take when it is read.
const BODY_FACTOR: u64 = 16;

/// The body of a request, with the memory that reading it takes. A client has a limited time to send it.
///
/// # Errors
/// If it is too long, or comes too slowly.
pub(crate) async fn read(
    state: &AppState,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Vec<u8>, MemoryReservation), Fault> {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let length = length.ok_or_else(|| Fault::new(StatusCode::LENGTH_REQUIRED, "A body needs its Content-Length"))?;
    if length > MAX_BODY_BYTES {
        let message = format!("A body may have {MAX_BODY_BYTES} bytes");
        return Err(Fault::new(StatusCode::PAYLOAD_TOO_LARGE, message));
    }
    let memory = state.memory.reserve(length.saturating_mul(BODY_FACTOR))?;
    let read =
        tokio::time::timeout(state.limits.slow_client_timeout, axum::body::to_bytes(body, MAX_BODY_BYTES as usize));
    match read.await {
        Ok(Ok(bytes)) => Ok((bytes.into(), memory)),
        Ok(Err(_)) => Err(Fault::new(StatusCode::BAD_REQUEST, "The body could not be read")),
        Err(_) => Err(Fault::new(StatusCode::REQUEST_TIMEOUT, "The body came too slowly")),
    }
}

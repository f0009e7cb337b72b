//! What h5live's own client asks for: the objects and the stored chunks of a file, by their identities.
//!
//! The messages are those of `h5live_served::protocol`. A request is for a file (`?file=`), and for the file that was at
//! this name when the client opened it: if another one has its place, the answer says so.

mod chunks;
mod objects;
mod opened;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use axum::routing::{MethodRouter, post};
use h5live::model::{Error as ModelError, StoreErrorKind};
use h5live_format::Record;
use h5live_served::protocol::{self, CONTENT_TYPE, FaultKind};

use crate::answer::Answer;
use crate::body;
use crate::fault::Fault;
use crate::query::Query;
use crate::state::AppState;
use opened::Opened;

/// The routes, below the path of the protocol's version.
pub(crate) fn routes() -> Router<Arc<AppState>> {
    Router::new()
        .route("/session", of(objects::session))
        .route("/objects", of(objects::objects))
        .route("/links", of(objects::links))
        .route("/attributes", of(objects::attributes))
        .route("/referent", of(objects::referent))
        .route("/blobs", of(objects::blobs))
        .route("/chunks", of(chunks::chunks))
        .route("/index", of(chunks::index))
}

/// What answers a request for a file.
type Work = fn(&AppState, &Opened, &[u8]) -> Result<Answer, Fault>;

fn of(work: Work) -> MethodRouter<Arc<AppState>> {
    post(move |State(state): State<Arc<AppState>>, request: Request| respond(state, request, work))
}

async fn respond(state: Arc<AppState>, request: Request, work: Work) -> Response<Body> {
    let (head, body) = request.into_parts();
    let (body, memory) = match body::read(&state, &head.headers, body).await {
        Ok(read) => read,
        Err(fault) => return fault.into_response(),
    };
    let query = Query::of(&head.uri);
    let shared = state.clone();
    let done = state.pool.run(move || {
        let _memory = memory;
        let opened = Opened::of(&shared, query.require("file")?)?;
        work(&shared, &opened, &body)
    });
    match done.await {
        Ok(answer) => answer.into_response(&head.headers),
        Err(fault) => state.told(fault).into_response(),
    }
}

/// The message of a request.
fn message<R: Record + Default>(body: &[u8]) -> Result<R, Fault> {
    let message = protocol::decode_message(body);
    message.map_err(|error| Fault::argument(format!("The body is no message of this protocol: {error}")))
}

/// An answer with a message.
fn answer<R: Record>(state: &AppState, message: &mut R) -> Result<Answer, Fault> {
    let bytes = protocol::encode_message(message);
    let bytes = bytes.map_err(|error| {
        Fault::new(StatusCode::NOT_IMPLEMENTED, format!("The answer does not fit the protocol: {error}"))
            .of_kind(FaultKind::Unsupported)
    })?;
    let memory = state.memory.reserve(bytes.len() as u64)?;
    Ok(Answer { memory: Some(memory), ..Answer::new(CONTENT_TYPE, bytes) })
}

/// What went wrong in a store.
fn store_fault(error: &ModelError) -> Fault {
    let text = error.to_string();
    match error {
        ModelError::NoObject(_) | ModelError::NotFound(_) => {
            Fault::new(StatusCode::NOT_FOUND, text).of_kind(FaultKind::NoObject)
        }
        ModelError::WrongKind { .. } => Fault::argument(text).of_kind(FaultKind::WrongKind),
        ModelError::Invalid(_) => Fault::argument(text),
        ModelError::Unsupported(_) => Fault::new(StatusCode::NOT_IMPLEMENTED, text).of_kind(FaultKind::Unsupported),
        ModelError::Allocation(_) => Fault::new(StatusCode::PAYLOAD_TOO_LARGE, text),
        ModelError::Moved => Fault::busy("The writer moves the chunk again and again: ask again"),
        _ => match error.store_kind() {
            Some(StoreErrorKind::Denied) => Fault::denied(),
            Some(
                StoreErrorKind::Changed(_)
                | StoreErrorKind::Unfinished
                | StoreErrorKind::Unreachable
                | StoreErrorKind::InUse(_),
            ) => Fault::busy(text),
            // An identity that a client makes up may lead to bytes that are no object.
            _ => Fault::argument(text),
        },
    }
}

/// Bytes of a message; 0 if it does not fit the protocol.
fn encoded_bytes<R: Record>(message: &mut R) -> usize {
    protocol::encode_message(message).map_or(0, |bytes| bytes.len())
}

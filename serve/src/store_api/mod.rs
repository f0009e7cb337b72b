//! What h5live's own client asks for: the objects and the stored chunks of a file, by their identities.
//!
//! The messages are those of `h5live_served::protocol`. A request is for a file (`?file=`), and for the file that was at
//! this name when the client opened it: if another one has its place, the answer says so.

mod answers;
mod chunks;
mod objects;
mod opened;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use axum::routing::{MethodRouter, post};

use crate::answer::Answer;
use crate::body;
use crate::fault::Fault;
use crate::query::Query;
use crate::state::AppState;
use opened::OpenedFile;

/// The routes, below the path of the protocol's version.
pub(crate) fn routes() -> Router<Arc<AppState>> {
    Router::new()
        .route("/session", of(objects::session))
        .route("/objects", of(objects::objects))
        .route("/links", of(objects::links))
        .route("/attributes", of(objects::attributes))
        .route("/referent", of(objects::referent))
        .route("/reference", of(objects::reference))
        .route("/blobs", of(objects::blobs))
        .route("/chunks", of(chunks::chunks))
        .route("/index", of(chunks::index))
}

/// What answers a request for a file.
type Work = fn(&AppState, &OpenedFile, &[u8]) -> Result<Answer, Fault>;

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
        let opened = OpenedFile::open(&shared, query.require("file")?)?;
        work(&shared, &opened, &body)
    });
    match done.await {
        Ok(answer) => answer.into_conditional_response(&head.headers),
        Err(fault) => state.redact_served_paths(fault).into_response(),
    }
}

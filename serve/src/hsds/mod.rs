//! HSDS's REST API for reading: what h5pyd and other clients of HSDS ask for. Domains are the served files and folders.

mod attribute_json;
mod call;
mod domain_answers;
mod element_bytes;
mod element_pack;
mod element_query;
mod element_select;
mod element_text;
mod faults;
mod glob;
mod hdf5_json_type;
mod json_members;
mod link_json;
mod named_entries;
mod object_answers;
mod object_ids;
mod object_json;
mod object_parts;
mod object_times;
mod opened_domain;
mod paging;
mod path_walk;
mod value_answer;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{Method, Response, StatusCode};
use axum::routing::{MethodRouter, get, post};

use crate::answer::Answer;
use crate::body;
use crate::fault::Fault;
use crate::query::Query;
use crate::state::AppState;
use call::Call;
use h5live::model::ObjectKind;

/// What answers a request.
type Work = fn(&AppState, &Call) -> Result<Answer, Fault>;

/// Whether a request for `/` is one for HSDS: whether it names a domain.
pub(crate) fn names_domain(request: &Request) -> bool {
    call::domain_of(&Query::of(request.uri()), request.headers()).is_some()
}

/// `GET /` with a domain.
pub(crate) async fn root(state: Arc<AppState>, request: Request) -> Response<Body> {
    respond(state, request, HashMap::new(), domain_answers::domain).await
}

/// `POST /`, which also reads.
pub(crate) async fn post_root(state: Arc<AppState>, request: Request) -> Response<Body> {
    respond(state, request, HashMap::new(), domain_answers::objects_at).await
}

/// The routes, but for `/`.
pub(crate) fn routes() -> Router<Arc<AppState>> {
    let mut router = Router::new()
        .route("/about", read(domain_answers::about))
        .route("/info", read(domain_answers::info))
        .route("/domains", read(domain_answers::domains))
        .route("/acls", read(domain_answers::acls))
        .route("/acls/{id}", read(domain_answers::acls))
        .route("/groups/{id}/links", read(object_answers::links).merge(read_body(object_answers::links_named)))
        .route("/groups/{id}/links/{name}", read(object_answers::link))
        .route("/datasets/{id}/shape", read(object_answers::shape))
        .route("/datasets/{id}/type", read(object_answers::dataset_type))
        .route("/datasets/{id}/value", read(object_answers::value).merge(read_body(object_answers::value_posted)))
        .route("/datasets/{id}/query", read(object_answers::query));
    let collections: [(&str, Work, Work); 3] = [
        (
            "groups",
            |s, c| domain_answers::list_objects(s, c, ObjectKind::Group),
            |s, c| object_answers::object(s, c, ObjectKind::Group),
        ),
        (
            "datasets",
            |s, c| domain_answers::list_objects(s, c, ObjectKind::Dataset),
            |s, c| object_answers::object(s, c, ObjectKind::Dataset),
        ),
        (
            "datatypes",
            |s, c| domain_answers::list_objects(s, c, ObjectKind::Datatype),
            |s, c| object_answers::object(s, c, ObjectKind::Datatype),
        ),
    ];
    for (name, all, one) in collections {
        router = router
            .route(&format!("/{name}"), read(all))
            .route(&format!("/{name}/"), read(one))
            .route(&format!("/{name}/{{id}}"), read(one))
            .route(
                &format!("/{name}/{{id}}/attributes"),
                read(object_answers::attributes).merge(read_body(object_answers::attributes_named)),
            )
            .route(&format!("/{name}/{{id}}/attributes/{{name}}"), read(object_answers::attribute))
            .route(&format!("/{name}/{{id}}/attributes/{{name}}/value"), read(object_answers::attribute_value));
    }
    router
}

type Parts = Path<HashMap<String, String>>;

fn read(work: Work) -> MethodRouter<Arc<AppState>> {
    get(move |State(state): State<Arc<AppState>>, Path(parts): Parts, request: Request| {
        respond(state, request, parts, work)
    })
}

fn read_body(work: Work) -> MethodRouter<Arc<AppState>> {
    post(move |State(state): State<Arc<AppState>>, Path(parts): Parts, request: Request| {
        respond(state, request, parts, work)
    })
}

async fn respond(
    state: Arc<AppState>,
    request: Request,
    mut parts: HashMap<String, String>,
    work: Work,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let (body, memory) = match head.method == Method::POST {
        true => match body::read(&state, &head.headers, body).await {
            Ok((body, memory)) => (body, Some(memory)),
            Err(fault) => return fault.into_response(),
        },
        false => (Vec::new(), None),
    };
    let mut call = Call::new(&head.uri, &head.headers, body);
    (call.id, call.name) = (parts.remove("id"), parts.remove("name"));
    let shared = state.clone();
    let done = state.pool.run(move || {
        let _memory = memory;
        work(&shared, &call)
    });
    match done.await {
        Ok(answer) => answer.into_conditional_response(&head.headers),
        // HSDS has one status for all requests that make no sense.
        Err(fault) if fault.status == StatusCode::UNPROCESSABLE_ENTITY => {
            state.redact_served_paths(Fault { status: StatusCode::BAD_REQUEST, ..fault }).into_response()
        }
        Err(fault) => state.redact_served_paths(fault).into_response(),
    }
}

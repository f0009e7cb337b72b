//! HSDS's REST API for reading: what h5pyd and other clients of HSDS ask for. Domains are the served files and folders.

mod attribute_json;
mod call;
mod domain_answers;
mod element_bytes;
mod element_pack;
mod element_query;
mod element_select;
mod element_text;
mod glob;
mod json_members;
mod link_json;
mod object_answers;
mod object_ids;
mod object_json;
mod object_parts;
mod object_times;
mod opened_domain;
mod paging;
mod path_walk;
mod shown_type;
mod value_answer;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{Method, Response, StatusCode};
use axum::routing::{MethodRouter, get, post};
use serde_json::Value as Json;

use crate::answer::Answer;
use crate::body;
use crate::fault::Fault;
use crate::query::Query;
use crate::state::AppState;
use call::Call;
use h5live::model::ObjectKind;

/// What answers a request.
type Work = fn(&AppState, &Call) -> Result<Answer, Fault>;

/// The type of answers in JSON.
const JSON_TYPE: &str = "application/json; charset=utf-8";

fn json_answer(value: &Json) -> Answer {
    Answer::new(JSON_TYPE, value.to_string().into_bytes())
}

/// The request makes no sense.
fn bad_request(message: impl Into<String>) -> Fault {
    Fault::new(StatusCode::BAD_REQUEST, message)
}

fn not_found(message: impl Into<String>) -> Fault {
    Fault::new(StatusCode::NOT_FOUND, message)
}

/// HSDS does this, and this server does not.
fn not_implemented(message: impl Into<String>) -> Fault {
    Fault::new(StatusCode::NOT_IMPLEMENTED, message)
}

fn too_many(limit: usize) -> Fault {
    Fault::new(StatusCode::PAYLOAD_TOO_LARGE, format!("The file has more than {limit} objects: follow its links"))
}

/// What went wrong in a store, without the name of the object.
fn store_fault(error: &h5live::model::Error) -> Fault {
    Fault::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

/// Whether a request for `/` is one for HSDS: whether it names a domain.
pub(crate) fn is_wanted(request: &Request) -> bool {
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
            |s, c| domain_answers::collection(s, c, ObjectKind::Group),
            |s, c| object_answers::object(s, c, ObjectKind::Group),
        ),
        (
            "datasets",
            |s, c| domain_answers::collection(s, c, ObjectKind::Dataset),
            |s, c| object_answers::object(s, c, ObjectKind::Dataset),
        ),
        (
            "datatypes",
            |s, c| domain_answers::collection(s, c, ObjectKind::Datatype),
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
        Ok(answer) => answer.into_response(&head.headers),
        // HSDS has one status for all requests that make no sense.
        Err(fault) if fault.status == StatusCode::UNPROCESSABLE_ENTITY => {
            state.told(Fault { status: StatusCode::BAD_REQUEST, ..fault }).into_response()
        }
        Err(fault) => state.told(fault).into_response(),
    }
}

/// Objects, and the names that are asked for of each; all of them for `None`.
type NamedEntries = Vec<(String, Option<Vec<String>>)>;

/// What the body of a request for several entries asks for: `names` of the object of the address, or of `objects`.
fn named_entries(call: &Call, names: &str, objects: &str) -> Result<NamedEntries, Fault> {
    let body = call.json_body()?;
    let texts = |json: &Json, of: &str| {
        let list = json.as_array().and_then(|list| list.iter().map(|name| name.as_str().map(str::to_owned)).collect());
        list.ok_or_else(|| bad_request(format!("expected list for {of}")))
    };
    let given: Option<Vec<String>> = body.get(names).map(|json| texts(json, names)).transpose()?;
    match (body.get(objects), given) {
        (None, None) => Err(bad_request(format!("expected body to contain one of {names}, {objects} keys"))),
        (None, given) => Ok(vec![(call.id()?.to_owned(), given)]),
        (Some(Json::Object(_)), Some(_)) => {
            Err(bad_request(format!("{names} must not be provided if {objects} is a dict")))
        }
        (Some(Json::Object(map)), None) => {
            map.iter().map(|(id, list)| Ok((id.clone(), Some(texts(list, names)?)))).collect()
        }
        (Some(list), given) => Ok(texts(list, objects)?.into_iter().map(|id| (id, given.clone())).collect()),
    }
}

/// A list, or for several objects a list for each.
fn entries_text(
    name: &str,
    entries: &NamedEntries,
    mut each: impl FnMut(&str, &Option<Vec<String>>) -> Result<String, Fault>,
) -> Result<String, Fault> {
    let mut json = json_members::JsonMembers::default();
    match &entries[..] {
        [] => return Err(bad_request("no ids specified")),
        [(id, names)] => json.set_text(name, &each(id, names)?),
        several => {
            let mut by_id = json_members::JsonMembers::default();
            for (id, names) in several {
                by_id.set_text(id, &each(id, names)?);
            }
            json.set_text(name, &by_id.finish());
        }
    }
    Ok(json.finish())
}

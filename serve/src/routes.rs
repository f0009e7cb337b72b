//! Which function answers which request.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::IntoResponse;
use axum::routing::get;

use crate::answer::Answer;
use crate::config::LogFormat;
use crate::fault::Fault;
use crate::query::Query;
use crate::state::AppState;
use crate::{auth, cors, grove, hsds, listing, metrics_text, openapi, page, search, store_api, subscribe};

type Shared = State<Arc<AppState>>;

/// What may be loaded by the page: what this server has, and pictures that the page itself makes. `ndarray`, which h5web
/// uses, makes functions of texts of its own ('unsafe-eval').
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; script-src 'self' 'unsafe-eval'; style-src 'self' \
     'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self' blob:; worker-src 'self' blob:; object-src 'none'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/// All routes. h5grove's and HSDS's are at the root, where h5web and h5pyd look for them, and
/// below `/grove` and `/hsds`.
pub(crate) fn router(state: Arc<AppState>) -> Router {
    let grove = Router::new()
        .route("/meta", get(|State(s): Shared, r: Request| read(s, r, grove::meta)))
        .route("/attr", get(|State(s): Shared, r: Request| read(s, r, grove::attr)))
        .route("/data", get(|State(s): Shared, r: Request| read(s, r, grove::data)))
        .route("/stats", get(|State(s): Shared, r: Request| read(s, r, grove::stats)))
        .route("/paths", get(|State(s): Shared, r: Request| read(s, r, grove::paths)));
    Router::new()
        .route("/", get(root).post(post_root))
        .route("/healthz", get(|| async { "ok" }))
        .route("/metrics", get(|State(state): Shared| async move { metrics_text::text(&state) }))
        .route("/openapi.json", get(|State(s): Shared, r: Request| read(s, r, described)))
        .route("/api/files", get(|State(s): Shared, r: Request| read(s, r, files)))
        .route("/api/search", get(|State(s): Shared, r: Request| read(s, r, found)))
        .route("/events", get(subscribe::subscribe))
        .route(
            "/assets/{name}",
            get(|Path(name): Path<String>, r: Request| async move { page::asset(&name, r.headers()) }),
        )
        .merge(grove.clone())
        .nest("/grove", grove)
        .merge(hsds::routes())
        .nest("/hsds", hsds::routes())
        .nest(h5live_served::protocol::BASE_PATH, store_api::routes())
        .route("/hsds/", get(root).post(post_root))
        .route("/grove", get(|| async { "ok" }))
        .route("/grove/", get(|| async { "ok" }))
        .fallback(|| async { Fault::new(StatusCode::NOT_FOUND, "There is nothing at this address").into_response() })
        .method_not_allowed_fallback(|| async {
            Fault::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "This server only reads: GET and HEAD, and POST where HSDS and h5live read by it",
            )
            .into_response()
        })
        .layer(middleware::from_fn_with_state(state.clone(), auth::check))
        .layer(middleware::from_fn_with_state(state.clone(), cors::check))
        .layer(middleware::from_fn_with_state(state.clone(), finish))
        .with_state(state)
}

/// A domain of HSDS for who names one, the page for a browser, and h5grove's word for all others.
async fn root(State(state): Shared, request: Request) -> Response<Body> {
    if hsds::names_domain(&request) {
        return hsds::root(state, request).await;
    }
    match page::wants_html(request.headers()) {
        true => page::index(request.headers()),
        false => "ok".into_response(),
    }
}

async fn post_root(State(state): Shared, request: Request) -> Response<Body> {
    hsds::post_root(state, request).await
}

/// Reads something for a client, where reading may block.
async fn read(
    state: Arc<AppState>,
    request: Request,
    work: fn(&AppState, &Query) -> Result<Answer, Fault>,
) -> Response<Body> {
    let query = Query::of(request.uri());
    let shared = state.clone();
    match state.pool.run(move || work(&shared, &query)).await {
        Ok(answer) => answer.into_conditional_response(request.headers()),
        Err(fault) => state.redact_served_paths(fault).into_response(),
    }
}

fn files(state: &AppState, query: &Query) -> Result<Answer, Fault> {
    Ok(Answer::json(&listing::list(state, query.get("folder").unwrap_or_default())?))
}

fn described(_: &AppState, _: &Query) -> Result<Answer, Fault> {
    Ok(Answer::json(&openapi::document()))
}

fn found(state: &AppState, query: &Query) -> Result<Answer, Fault> {
    Ok(Answer::json(&search::search(state, query)?))
}

/// Counts and logs an answer, and adds what browsers are to be told with each.
async fn finish(State(state): Shared, request: Request, next: Next) -> Response<Body> {
    let begun = Instant::now();
    let line = state.log.map(|format| (format, request.method().clone(), request.uri().clone()));
    let mut response = next.run(request).await;
    let took = begun.elapsed();
    state.metrics.record_answer(response.status().as_u16(), took);
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY));
    if let Some((format, method, uri)) = line {
        let status = response.status().as_u16();
        // Not the query as a whole: it may have the token.
        let query = Query::of(&uri);
        let [file, path] = ["file", "path"].map(|name| query.get(name).unwrap_or_default().to_owned());
        let micros = took.as_micros() as u64;
        match format {
            LogFormat::Text => eprintln!("{method} {} {file:?} {path:?} {status} {micros} us", uri.path()),
            LogFormat::Json => eprintln!(
                "{}",
                serde_json::json!({
                    "method": method.as_str(), "route": uri.path(), "file": file, "path": path,
                    "status": status, "microseconds": micros,
                })
            ),
        }
    }
    response
}

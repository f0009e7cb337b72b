//! Pages of other origins that may read what is served: those that are named, and no others.
//!
//! A browser lets a page of another origin read an answer only if the answer names that origin. Such a page has to show the
//! token itself: the cookie of this server's page is not sent for it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use axum::middleware::Next;

use crate::state::AppState;

/// Headers of requests that such a page may set.
const REQUEST_HEADERS: &str = "accept, authorization, content-type, if-none-match, last-event-id, x-hdf-domain";
/// Headers of answers that it may read.
const ANSWER_HEADERS: &str = "etag, h5live-publication, h5live-fault, retry-after";
/// How long a browser remembers what it was told (seconds).
const MAX_AGE: &str = "600";

/// The origin of the page that asks, if it was named.
fn named_origin(state: &AppState, headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    let is_named = |named: &String| named.as_bytes() == origin.as_bytes();
    state.allowed_origins.iter().any(is_named).then(|| origin.clone())
}

/// Answers the question of a browser whether a page may ask, and lets pages of named origins read answers.
pub(crate) async fn check(State(state): State<Arc<AppState>>, request: Request, next: Next) -> Response<Body> {
    let Some(origin) = named_origin(&state, request.headers()) else {
        return next.run(request).await;
    };
    let is_question = request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
        && state.access.is_host_allowed(request.headers());
    let mut response = match is_question {
        true => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            let headers = response.headers_mut();
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, POST"));
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(REQUEST_HEADERS));
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
            response
        }
        false => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(ANSWER_HEADERS));
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    response
}

/// Whether a text is an origin, as browsers write it: a scheme, a host, and a port if it is not the scheme's.
pub(crate) fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let is_host = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._:[]".contains(c);
    matches!(scheme, "http" | "https") && !host.is_empty() && host.chars().all(is_host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_have_a_scheme_and_a_host_and_nothing_else() {
        assert!(["http://localhost:3000", "https://lab.example", "http://[::1]:80"].into_iter().all(is_origin));
        let wrong =
            ["*", "null", "https://", "lab.example", "https://a/b", "https://a/", "file://x", "https://A", "a://b"];
        assert!(!wrong.into_iter().any(is_origin));
    }
}

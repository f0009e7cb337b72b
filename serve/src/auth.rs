//! The check of each request.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use axum::middleware::Next;

use crate::fault::Fault;
use crate::page;
use crate::query::Query;
use crate::state::AppState;

/// Lets through who may ask.
pub(crate) async fn check(State(state): State<Arc<AppState>>, request: Request, next: Next) -> Response<Body> {
    let access = &state.access;
    if !access.is_host_allowed(request.headers()) {
        return Fault::new(
            StatusCode::MISDIRECTED_REQUEST,
            "This server is not called so: use the address that it printed",
        )
        .into_response();
    }
    if request.uri().path() == "/healthz" {
        return next.run(request).await;
    }
    let query = Query::of(request.uri());
    if !access.is_authorized(request.headers(), &query).await {
        return match page::wants_html(request.headers()) {
            true => page::without_token(access.has_users()),
            false => Fault::new(
                StatusCode::UNAUTHORIZED,
                "The token is missing or wrong: it is in the address that the server printed",
            )
            .into_response(),
        };
    }
    match access.redirect_token_to_cookie(&request, &query) {
        Some(redirect) => redirect,
        None => next.run(request).await,
    }
}

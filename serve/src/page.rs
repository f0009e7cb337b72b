//! The page, as `make page` has built it from `web/`.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use bytes::Bytes;

use crate::etag;
use crate::fault::Fault;

/// The parts of the page, compressed with gzip: the name, the type, the bytes.
const PARTS: [(&str, &str, &[u8]); 4] = [
    ("index.html", "text/html; charset=utf-8", include_bytes!("../page/index.html.gz")),
    ("page.js", "text/javascript; charset=utf-8", include_bytes!("../page/page.js.gz")),
    ("page.css", "text/css; charset=utf-8", include_bytes!("../page/page.css.gz")),
    ("licenses.txt", "text/plain; charset=utf-8", include_bytes!("../page/licenses.txt.gz")),
];

/// What a browser without the token sees.
const WITHOUT_TOKEN: &str = "<!doctype html><meta charset=utf-8><title>h5live</title>\
    <p>This page needs the token of its server. Open the address that <code>h5live serve</code> has printed.";

/// Whether a client wants a page and no data.
pub(crate) fn wants_html(headers: &HeaderMap) -> bool {
    headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains("text/html"))
}

/// The page itself.
pub(crate) fn index(headers: &HeaderMap) -> Response<Body> {
    asset("index.html", headers)
}

/// A part of the page.
pub(crate) fn asset(name: &str, headers: &HeaderMap) -> Response<Body> {
    let Some((_, content_type, bytes)) = PARTS.into_iter().find(|(of, _, _)| *of == name) else {
        return Fault::new(StatusCode::NOT_FOUND, "There is nothing at this address").into_response();
    };
    let etag = etag::etag_of(content_type, bytes);
    let is_known = etag::client_has(headers, &etag);
    let mut response = Response::new(if is_known { Body::empty() } else { Body::from(Bytes::from_static(bytes)) });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let all = response.headers_mut();
    all.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    // Every browser can undo it.
    all.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    all.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Some(etag) = etag::header_value(&etag) {
        all.insert(header::ETAG, etag);
    }
    response
}

/// What a browser without the token is told. It asks for a name and a password, if there are users.
pub(crate) fn without_token(has_users: bool) -> Response<Body> {
    let mut response = Response::new(Body::from(WITHOUT_TOKEN));
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, html);
    if has_users {
        let ask = HeaderValue::from_static("Basic realm=\"h5live\", charset=\"UTF-8\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, ask);
    }
    response
}

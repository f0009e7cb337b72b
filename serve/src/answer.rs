//! What a request is answered with.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use crate::etag;
use crate::pool::MemoryReservation;
use crate::stream::AnswerBody;

/// The type of answers in JSON.
pub(crate) const JSON: &str = "application/json";

/// The header with the number of the writer's publication, where the file has one.
const PUBLICATION: &str = "h5live-publication";

/// What a request is answered with.
#[derive(Debug)]
pub(crate) struct Answer {
    pub content_type: &'static str,
    /// The name under which a browser saves it.
    pub file_name: Option<&'static str>,
    pub bytes: Vec<u8>,
    pub memory: Option<MemoryReservation>,
    /// What the writer had published when it was read, if the file says it.
    pub publication: Option<u64>,
}

impl Answer {
    pub fn new(content_type: &'static str, bytes: Vec<u8>) -> Self {
        Answer { content_type, file_name: None, bytes, memory: None, publication: None }
    }

    pub fn json(value: &serde_json::Value) -> Self {
        Answer::new(JSON, value.to_string().into_bytes())
    }

    /// The answer to a client that sent these headers: without a body, if the client has it.
    pub fn into_conditional_response(self, request: &HeaderMap) -> Response<Body> {
        let etag = etag::etag_of(self.content_type, &self.bytes);
        let is_known = etag::client_has(request, &etag);
        let mut response = match is_known {
            true => Response::new(Body::empty()),
            false => Response::new(Body::new(AnswerBody { bytes: self.bytes.into(), memory: self.memory })),
        };
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        if let Some(etag) = etag::header_value(&etag) {
            headers.insert(header::ETAG, etag);
        }
        let disposition = self.file_name.map(|name| format!("attachment; filename=\"{name}\""));
        if let Some(value) = disposition.and_then(|text| HeaderValue::from_str(&text).ok()) {
            headers.insert(header::CONTENT_DISPOSITION, value);
        }
        if let Some(publication) = self.publication {
            headers.insert(PUBLICATION, publication.into());
        }
        response
    }
}

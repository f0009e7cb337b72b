//! What went wrong with a request, as the client is told.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use h5live::model::Error as ModelError;
use h5live::{Error, ErrorKind, OpenError, StoreErrorKind};
use h5live_served::protocol::{FAULT_HEADER, ServedErrorKind};
use serde_json::json;

/// What went wrong with a request: the status, and a sentence. h5grove's words are kept where a client looks for them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Fault {
    pub status: StatusCode,
    pub message: String,
    /// Whether it may go better in a moment.
    pub is_transient: bool,
    /// What h5live's own client is told.
    pub kind: Option<ServedErrorKind>,
}

impl Fault {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Fault { status, message: message.into(), is_transient: false, kind: None }
    }

    /// The request itself makes no sense.
    pub fn unprocessable(message: impl Into<String>) -> Self {
        Fault::new(StatusCode::UNPROCESSABLE_ENTITY, message)
    }

    /// The same, of this kind.
    #[must_use]
    pub fn with_kind(self, kind: ServedErrorKind) -> Self {
        Fault { kind: Some(kind), ..self }
    }

    /// There is no such file, or none that is served.
    pub fn file_not_found() -> Self {
        Fault::new(StatusCode::NOT_FOUND, "File not found!").with_kind(ServedErrorKind::NoFile)
    }

    /// The system does not let this server read it.
    pub fn file_permission_denied() -> Self {
        Fault::new(StatusCode::FORBIDDEN, "Cannot read file: Permission denied!")
    }

    /// The server has no room for the request now.
    pub fn busy(message: impl Into<String>) -> Self {
        Fault { is_transient: true, ..Fault::new(StatusCode::SERVICE_UNAVAILABLE, message) }
    }

    /// The answer would be larger than one may be.
    pub fn answer_too_large(bytes: u64, limit: u64) -> Self {
        let message = format!(
            "The answer would have {bytes} bytes, and one may have {limit}: select a part of the dataset (selection=...)"
        );
        Fault::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    /// Nothing is at a path of a file.
    pub fn path_not_found(path: &str, file: &str) -> Self {
        Fault::new(StatusCode::NOT_FOUND, format!("{path} is not a valid path in {file}"))
    }

    /// What went wrong in a store, which knows no paths.
    pub fn of_store(error: &ModelError) -> Self {
        let text = error.to_string();
        match error {
            ModelError::NoObject(_) | ModelError::NotFound(_) => {
                Fault::new(StatusCode::NOT_FOUND, text).with_kind(ServedErrorKind::NoObject)
            }
            ModelError::WrongKind { .. } => Fault::unprocessable(text).with_kind(ServedErrorKind::WrongKind),
            ModelError::Invalid(_) => Fault::unprocessable(text),
            ModelError::Unsupported(_) => {
                Fault::new(StatusCode::NOT_IMPLEMENTED, text).with_kind(ServedErrorKind::Unsupported)
            }
            ModelError::Allocation(_) => Fault::new(StatusCode::PAYLOAD_TOO_LARGE, text),
            ModelError::Moved => Fault::busy("The writer moves the chunk again and again: ask again"),
            _ => of_store_kind(error.store_error_kind(), text),
        }
    }

    /// The answer to the client.
    pub fn into_response(self) -> Response<Body> {
        let body = json!({ "message": self.message }).to_string();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(kind) = self.kind {
            headers.insert(FAULT_HEADER, HeaderValue::from_static(kind.header_word()));
        }
        if self.is_transient {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// What an error of the library is for a client.
impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        of_error(&error, &format!("{error:#}"))
    }
}

fn of_error(error: &Error, text: &str) -> Fault {
    if error.is_over_max_allocation() {
        return Fault::new(StatusCode::PAYLOAD_TOO_LARGE, text);
    }
    if error.is_in_use() {
        return Fault::busy(text).with_kind(ServedErrorKind::InUse);
    }
    match error.kind() {
        // A path that goes on behind what is no group.
        ErrorKind::Store(h5live::model::Error::WrongKind { .. }) => return Fault::new(StatusCode::NOT_FOUND, text),
        ErrorKind::Selection(_) => return Fault::unprocessable(text),
        ErrorKind::RawFilesRefused => {
            return Fault::new(StatusCode::FORBIDDEN, text).with_kind(ServedErrorKind::RawFilesRefused);
        }
        ErrorKind::Open(open) => return of_open_error(open, text),
        // It is the fault of what this file leads to, not of the name that the client gave.
        ErrorKind::OtherFile(other) => {
            return match of_error(other, text) {
                fault if fault.status == StatusCode::NOT_FOUND => Fault::new(StatusCode::FORBIDDEN, text),
                fault => Fault { message: text.to_owned(), ..fault },
            };
        }
        _ => {}
    }
    if error.is_not_found_in_file() {
        return Fault::new(StatusCode::NOT_FOUND, text);
    }
    of_store_kind(error.store_error_kind(), text)
}

/// What a failure of a store is for a client.
fn of_store_kind(kind: Option<&StoreErrorKind>, text: impl Into<String>) -> Fault {
    match kind {
        Some(StoreErrorKind::NotFound) => Fault::new(StatusCode::NOT_FOUND, text),
        Some(StoreErrorKind::PermissionDenied) => Fault::file_permission_denied(),
        Some(
            StoreErrorKind::Changed(_) | StoreErrorKind::Torn | StoreErrorKind::Unreachable | StoreErrorKind::InUse(_),
        ) => Fault::busy(text),
        Some(StoreErrorKind::Io | StoreErrorKind::StorageFull) => Fault::new(StatusCode::INTERNAL_SERVER_ERROR, text),
        // The file is damaged, or needs a filter that is not there, or a client has made up an identity.
        _ => Fault::unprocessable(text),
    }
}

/// Why a file could not be opened.
fn of_open_error(error: &OpenError, text: &str) -> Fault {
    match error {
        OpenError::LinkRefused { .. } => Fault::new(StatusCode::FORBIDDEN, text),
        OpenError::Store(error) => match error.store_error_kind() {
            Some(StoreErrorKind::NotFound) => Fault::file_not_found(),
            Some(StoreErrorKind::PermissionDenied) => Fault::file_permission_denied(),
            Some(StoreErrorKind::NotThisFormat) => Fault::unprocessable(text).with_kind(ServedErrorKind::NotThisFormat),
            Some(StoreErrorKind::InUse(_)) => Fault::busy(text).with_kind(ServedErrorKind::InUse),
            Some(StoreErrorKind::Torn | StoreErrorKind::Changed(_)) => Fault::busy(text),
            // Clients ask again for minutes after an error of the server.
            Some(StoreErrorKind::Damaged) => Fault::unprocessable(text),
            _ => Fault::new(StatusCode::INTERNAL_SERVER_ERROR, text),
        },
        _ => Fault::unprocessable(text),
    }
}

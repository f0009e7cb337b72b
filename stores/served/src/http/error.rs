//! Why there is no answer.

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("{0}")]
    Unreachable(String),
    #[error("what it says is no HTTP: {0}")]
    NotHttp(String),
    #[error("more than {0} bytes")]
    TooLarge(usize),
}

/// What went wrong on a connection.
pub(super) fn failure(error: &hyper::Error) -> HttpError {
    match error.is_parse() {
        true => HttpError::NotHttp(error.to_string()),
        false => HttpError::Unreachable(format!("the connection has ended: {error}")),
    }
}

//! Failures of SlateDB and of object stores, as errors of engines.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;

use h5live_objects::{ObjectError, strip_url_queries};
use slatedb::{CloseReason, ErrorKind};

use crate::engine::EngineError;

/// What failed, and where.
#[derive(Debug)]
struct PlacedFailure {
    location: Arc<str>,
    cause: String,
}

impl fmt::Display for PlacedFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.cause)
    }
}

impl StdError for PlacedFailure {}

/// Makes errors that name the location of a store.
#[derive(Debug, Clone)]
pub struct LocationErrorMapper(pub Arc<str>);

impl LocationErrorMapper {
    /// An error of SlateDB. `context` says what was tried.
    pub fn slate_error(&self, context: &'static str) -> impl FnOnce(slatedb::Error) -> EngineError {
        let failures = self.clone();
        move |error| match error.kind() {
            ErrorKind::Closed(CloseReason::Fenced) => EngineError::Fenced(format!(
                "{}: what was committed before is kept, and this session writes nothing more",
                failures.0
            )),
            _ => failures.placed(context, &error),
        }
    }

    /// An error of an object store. `context` says what was tried.
    pub fn object_store_error(&self, context: &'static str) -> impl FnOnce(object_store::Error) -> EngineError {
        let failures = self.clone();
        move |error| failures.placed(context, &error)
    }

    /// An error of the client of an object store. `context` says what was tried.
    pub fn object_store_client_error(&self, context: &'static str) -> impl FnOnce(ObjectError) -> EngineError {
        let failures = self.clone();
        move |error| failures.placed(context, &error)
    }

    /// An error of the system. `context` says what was tried.
    pub fn io_error(&self, context: &'static str) -> impl FnOnce(io::Error) -> EngineError {
        let failures = self.clone();
        move |error| failures.placed(context, &error)
    }

    fn placed(&self, context: &'static str, error: &(dyn StdError + 'static)) -> EngineError {
        let cause = strip_url_queries(&error.to_string());
        let source = io::Error::new(system_kind(error), PlacedFailure { location: self.0.clone(), cause });
        EngineError::io(context)(source)
    }
}

/// All errors of a chain, the outermost first.
fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    let source = |error: &&'a (dyn StdError + 'static)| -> Option<&'a (dyn StdError + 'static)> { (*error).source() };
    std::iter::successors(Some(error), source)
}

/// An error of a type, as it is or shared.
fn as_type<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    error.downcast_ref::<T>().or_else(|| error.downcast_ref::<Arc<T>>().map(|shared| &**shared))
}

/// The kind of system error that is nearest to the cause.
fn system_kind(error: &(dyn StdError + 'static)) -> io::ErrorKind {
    let kinds = chain(error).filter_map(|error| {
        if let Some(error) = as_type::<io::Error>(error) {
            return Some(error.kind()).filter(|kind| *kind != io::ErrorKind::Other);
        }
        match as_type::<object_store::Error>(error)? {
            object_store::Error::NotFound { .. } => Some(io::ErrorKind::NotFound),
            object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
                Some(io::ErrorKind::PermissionDenied)
            }
            _ => None,
        }
    });
    kinds.last().unwrap_or(io::ErrorKind::Other)
}

/// Whether SlateDB found no such object.
pub fn is_not_found(error: &slatedb::Error) -> bool {
    chain(error).any(|error| matches!(as_type(error), Some(object_store::Error::NotFound { .. })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures() -> LocationErrorMapper {
        LocationErrorMapper("s3://bucket/run".into())
    }

    #[test]
    fn an_error_names_the_location_and_the_cause_and_no_secret() {
        let source = "error sending request for url (https://host/a?sig=SECRET): refused".into();
        let error = object_store::Error::Generic { store: "S3", source };
        let text = failures().object_store_error("the store cannot be read")(error).to_string();
        assert!(text.starts_with("the store cannot be read: s3://bucket/run: "), "{text}");
        assert!(text.contains("(https://host/a): refused") && !text.contains("SECRET"), "{text}");
    }

    #[test]
    fn a_writer_that_was_replaced_is_told_so() {
        let error = slatedb::Error::closed("detected newer DB client".to_owned(), CloseReason::Fenced);
        let error = failures().slate_error("nothing is written")(error);
        assert!(matches!(&error, EngineError::Fenced(text) if text.starts_with("s3://bucket/run: ")), "{error}");
    }

    #[test]
    fn a_full_disk_and_a_refusal_are_known() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let error = object_store::Error::Generic { store: "LocalFileSystem", source: Box::new(full) };
        let error = slatedb::Error::unavailable("io".to_owned()).with_source(Box::new(Arc::new(error)));
        assert!(matches!(failures().slate_error("nothing is written")(error), EngineError::Full(_)));
        let denied = object_store::Error::PermissionDenied { path: "a".to_owned(), source: "no".into() };
        let error = failures().object_store_error("nothing is read")(denied);
        assert_eq!(error.kind(), h5live_model::StoreErrorKind::PermissionDenied);
        let missing = object_store::Error::NotFound { path: "a".to_owned(), source: "no".into() };
        assert!(is_not_found(&slatedb::Error::data("io".to_owned()).with_source(Box::new(Arc::new(missing)))));
    }
}

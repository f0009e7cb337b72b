//! Errors of object stores, each with the name of the object.

use std::io;

use h5live_model::{Error as ModelError, ForeignFileChange, Retry, StoreError, StoreErrorKind};

/// A result of the client.
pub type Result<T> = std::result::Result<T, ObjectError>;

/// Why an object store could not do what was asked.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}{}{}", before_colon(object_display_name), kind.text(), with_colon(cause))]
pub struct ObjectError {
    /// What is wrong.
    pub kind: ObjectErrorKind,
    /// The object, or the place of objects, as `s3://bucket/key`; empty if whoever shows the error names it.
    pub object_display_name: String,
    /// What the object store, or the system, says of it; empty if nothing.
    pub cause: String,
}

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObjectErrorKind {
    /// There is no such object.
    NotThere,
    /// The credentials are missing, or do not allow it.
    Denied,
    /// The object is not the one that the condition of the request names.
    Changed,
    /// An object that was to be made is there already.
    Exists,
    /// The server did not answer, or answered that it could not, as often as it was asked.
    Unavailable,
    /// There is no room.
    Full,
    /// The object store cannot do this.
    Unsupported,
    /// The name, an option or an argument cannot be.
    InvalidInput,
    /// Reading or writing failed in another way.
    Other,
}

impl ObjectErrorKind {
    fn text(self) -> &'static str {
        match self {
            ObjectErrorKind::NotThere => "there is no such object",
            ObjectErrorKind::Denied => "access is denied",
            ObjectErrorKind::Changed => "the object has been replaced or deleted",
            ObjectErrorKind::Exists => "the object exists already",
            ObjectErrorKind::Unavailable => "the object store cannot be reached",
            ObjectErrorKind::Full => "there is no room",
            ObjectErrorKind::Unsupported => "the object store cannot do this",
            ObjectErrorKind::InvalidInput => "this cannot be",
            ObjectErrorKind::Other => "the object store has failed",
        }
    }
}

fn before_colon(object: &str) -> String {
    if object.is_empty() { String::new() } else { format!("{object}: ") }
}

fn with_colon(cause: &str) -> String {
    if cause.is_empty() { String::new() } else { format!(": {cause}") }
}

impl ObjectError {
    /// An error of this kind. `cause` says more; it may be empty.
    pub fn new(kind: ObjectErrorKind, object: impl Into<String>, cause: impl Into<String>) -> Self {
        ObjectError { kind, object_display_name: object.into(), cause: strip_url_queries(&cause.into()) }
    }

    /// The error of a library about an object. `attempts` says how often it was tried.
    pub(crate) fn of_library(object: &str, error: &object_store::Error, attempts: u32) -> Self {
        use object_store::Error as E;
        let kind = match error {
            E::NotFound { .. } => ObjectErrorKind::NotThere,
            E::PermissionDenied { .. } | E::Unauthenticated { .. } => ObjectErrorKind::Denied,
            E::Precondition { .. } | E::NotModified { .. } => ObjectErrorKind::Changed,
            E::AlreadyExists { .. } => ObjectErrorKind::Exists,
            E::NotSupported { .. } | E::NotImplemented { .. } => ObjectErrorKind::Unsupported,
            E::InvalidPath { .. } | E::UnknownConfigurationKey { .. } => ObjectErrorKind::InvalidInput,
            _ => kind_of_chain(error),
        };
        let mut cause = crate::cause::cause_text(error);
        if crate::cause::is_credential_lookup_failure(error) {
            return ObjectError::new(ObjectErrorKind::Denied, object, format!("{NO_CREDENTIALS}: {cause}"));
        }
        if attempts > 1 {
            cause = format!("{cause} ({attempts} attempts)");
        }
        ObjectError::new(kind, object, cause)
    }

    /// The same, for somebody who names the object: its name is left out if it is this one, with a query or without.
    #[must_use]
    pub fn omit_object_if_named(self, name: &str) -> Self {
        let is_named = name.split('?').next() == Some(&self.object_display_name);
        if is_named { ObjectError { object_display_name: String::new(), ..self } } else { self }
    }

    /// Whether the same request may succeed if it is made again.
    pub fn is_transient(&self) -> bool {
        self.kind == ObjectErrorKind::Unavailable
    }
}

/// What is said if nobody has given credentials.
const NO_CREDENTIALS: &str = "the environment has no credentials (as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY); anonymous=yes asks without any";

/// The kind of an error that the library does not tell apart.
fn kind_of_chain(error: &object_store::Error) -> ObjectErrorKind {
    if crate::cause::is_transient(error) {
        return ObjectErrorKind::Unavailable;
    }
    if crate::cause::is_not_implemented(error) {
        return ObjectErrorKind::Unsupported;
    }
    let system = crate::cause::chain(error).filter_map(|error| error.downcast_ref::<io::Error>()).last();
    match system.map(io::Error::kind) {
        Some(io::ErrorKind::NotFound) => ObjectErrorKind::NotThere,
        Some(io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => ObjectErrorKind::Denied,
        Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge) => {
            ObjectErrorKind::Full
        }
        _ => ObjectErrorKind::Other,
    }
}

impl From<&ObjectError> for StoreErrorKind {
    fn from(error: &ObjectError) -> Self {
        match error.kind {
            ObjectErrorKind::NotThere => StoreErrorKind::NotFound,
            ObjectErrorKind::Denied => StoreErrorKind::PermissionDenied,
            ObjectErrorKind::Changed => StoreErrorKind::Changed(ForeignFileChange::Replaced),
            ObjectErrorKind::Exists => StoreErrorKind::AlreadyExists,
            ObjectErrorKind::Unavailable => StoreErrorKind::Unreachable,
            ObjectErrorKind::Full => StoreErrorKind::StorageFull,
            ObjectErrorKind::Unsupported | ObjectErrorKind::InvalidInput | ObjectErrorKind::Other => StoreErrorKind::Io,
        }
    }
}

impl From<ObjectError> for StoreError {
    fn from(error: ObjectError) -> Self {
        let retry = if error.is_transient() { Retry::Exhausted } else { Retry::Never };
        StoreError::new(StoreErrorKind::from(&error), error).with_retry(retry)
    }
}

impl From<ObjectError> for ModelError {
    fn from(error: ObjectError) -> Self {
        StoreError::from(error).into()
    }
}

impl From<ObjectError> for io::Error {
    /// For what reads and writes bytes. A [`StoreError`] is inside, so that its kind is not lost.
    fn from(error: ObjectError) -> Self {
        io::Error::other(StoreError::from(error))
    }
}

/// A text without the queries of URLs: they may have signatures and keys.
pub fn strip_url_queries(text: &str) -> String {
    let ends_word = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '(' | ')' | '<' | '>' | ',');
    let word = |word: &str| match (word.contains("://"), word.split_once('?')) {
        (true, Some((before, _))) => format!(
            "{before}{}",
            word.chars().next_back().filter(|c| ends_word(*c)).map(String::from).unwrap_or_default()
        ),
        _ => word.to_owned(),
    };
    text.split_inclusive(ends_word).map(word).collect()
}

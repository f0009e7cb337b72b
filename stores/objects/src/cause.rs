//! What the library's errors say: whether to try again, and the cause in one line.

use std::error::Error as StdError;
use std::io;

use crate::server_text::xml_error_or_text;
#[cfg(feature = "cloud")]
use crate::transport::HttpErrorResponse;

/// All errors of a chain, the outermost first.
pub fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    let source = |error: &&'a (dyn StdError + 'static)| -> Option<&'a (dyn StdError + 'static)> { (*error).source() };
    std::iter::successors(Some(error), source)
}

/// Whether the same request may succeed if it is made again: the connection failed or broke, there was no answer in
/// time, or the server said that it could not now.
pub fn is_transient(error: &object_store::Error) -> bool {
    if !matches!(error, object_store::Error::Generic { .. }) || is_credential_lookup_failure(error) {
        return false;
    }
    chain(error).any(|error| {
        if error.is::<AttemptTimedOutAfterSecs>() || error.is::<BodyLengthMismatch>() {
            return true;
        }
        #[cfg(feature = "cloud")]
        if let Some(answer) = error.downcast_ref::<HttpErrorResponse>() {
            return answer.is_transient();
        }
        #[cfg(feature = "cloud")]
        if let Some(error) = error.downcast_ref::<object_store::client::HttpError>() {
            use object_store::client::HttpErrorKind as K;
            let is_answer = chain(error).any(|error| error.is::<HttpErrorResponse>());
            // A body that is shorter than it should be is one that cannot be decoded.
            return !is_answer && !matches!(error.kind(), K::Unknown);
        }
        error.downcast_ref::<io::Error>().is_some_and(|error| {
            use io::ErrorKind as K;
            matches!(
                error.kind(),
                K::ConnectionReset
                    | K::ConnectionAborted
                    | K::ConnectionRefused
                    | K::TimedOut
                    | K::UnexpectedEof
                    | K::Interrupted
                    | K::BrokenPipe
            )
        })
    })
}

/// Whether the server has answered that it does not know such requests.
pub fn is_not_implemented(error: &object_store::Error) -> bool {
    #[cfg(feature = "cloud")]
    if chain(error)
        .any(|error| error.downcast_ref::<HttpErrorResponse>().is_some_and(HttpErrorResponse::is_not_implemented))
    {
        return true;
    }
    matches!(error, object_store::Error::NotImplemented { .. })
}

/// What addresses of the services have that give credentials to virtual machines: of Amazon, Google and Azure.
const METADATA_SERVICES: [&str; 4] =
    ["/latest/api/token", "/latest/meta-data", "/computeMetadata/", "/metadata/identity"];

/// Whether no credentials were given, so that those of a virtual machine were asked for, and there are none.
pub fn is_credential_lookup_failure(error: &object_store::Error) -> bool {
    chain(error).any(|error| {
        let text = error.to_string();
        METADATA_SERVICES.iter().any(|part| text.contains(part))
    })
}

/// The cause in one line.
pub fn cause_text(error: &object_store::Error) -> String {
    #[cfg(feature = "cloud")]
    if let Some(answer) = chain(error).find_map(|error| error.downcast_ref::<HttpErrorResponse>()) {
        return answer.to_string();
    }
    let outer = match error {
        object_store::Error::Generic { source, .. }
        | object_store::Error::NotFound { source, .. }
        | object_store::Error::PermissionDenied { source, .. }
        | object_store::Error::Unauthenticated { source, .. }
        | object_store::Error::NotSupported { source } => source.to_string(),
        object_store::Error::Precondition { .. }
        | object_store::Error::AlreadyExists { .. }
        | object_store::Error::NotModified { .. } => return String::new(),
        other => other.to_string(),
    };
    let mut text = xml_error_or_text(&outer);
    // The library leaves out what the innermost says: "Connection refused", for example.
    if let Some(last) = chain(error).last().map(ToString::to_string).filter(|last| !outer.contains(last.as_str())) {
        text = format!("{text}: {last}");
    }
    plain_text(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A text of the library in words that say what to do, for what users come upon.
fn plain_text(text: &str) -> String {
    if text.contains("URL scheme is not allowed") {
        return "its address begins with http://, so requests would not be encrypted: allow_http=yes allows that"
            .to_owned();
    }
    // The name of the server follows, or nothing.
    if text.contains("Range request not supported by") {
        return "the server does not give ranges of files; copy the whole file to this machine".to_owned();
    }
    text.to_owned()
}

/// There was no answer within the time of an attempt.
#[derive(Debug, thiserror::Error)]
#[error("no answer in {0} s")]
pub struct AttemptTimedOutAfterSecs(pub u64);

/// A body has other bytes than were announced or asked for.
#[derive(Debug, thiserror::Error)]
#[error("{found} bytes came where {expected} were due")]
pub struct BodyLengthMismatch {
    /// Bytes that came.
    pub found: u64,
    /// Bytes that were due.
    pub expected: u64,
}

/// An error of the library with this cause.
pub fn object_store_error(cause: impl StdError + Send + Sync + 'static) -> object_store::Error {
    object_store::Error::Generic { store: "object store", source: Box::new(cause) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_library_that_users_come_upon_say_what_to_do() {
        let of = |text: &str| cause_text(&object_store_error(io::Error::other(text.to_owned())));
        assert!(of("builder error for url (http://host/): URL scheme is not allowed").contains("allow_http=yes"));
        assert!(of("Range request not supported by ").contains("does not give ranges"));
        assert_eq!(of("anything else"), "anything else");
    }
}

//! Randomness of the system.

use h5live_model::Result;

use crate::error::HsdsError;

/// A random number.
///
/// # Errors
/// [`HsdsError::Io`] if the system has none.
pub fn random() -> Result<u64> {
    getrandom::u64().map_err(|error| {
        let source = std::io::Error::other(error.to_string());
        HsdsError::Io { key: "a random number".to_owned(), source }.into()
    })
}

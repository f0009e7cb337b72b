//! Randomness of the system.

use std::io;

use h5live_model::{Error as ModelError, OpenError, StoreErrorKind};

/// A number that no other session has.
///
/// # Errors
/// [`OpenError::Store`] if the system has no randomness.
pub fn random() -> Result<u64, OpenError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| {
        OpenError::Store(ModelError::store(StoreErrorKind::Io, io::Error::other(error.to_string())))
    })?;
    Ok(u64::from_le_bytes(bytes))
}

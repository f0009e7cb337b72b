//! A location picks the store. No other file of this crate names one.

use std::path::Path;
use std::sync::Arc;

use h5live_model::Objects;

use crate::{OpenError, Options};

/// Opens the store at a location.
pub(crate) fn open(location: &Path, options: &Options) -> Result<Arc<dyn Objects>, OpenError> {
    let _ = (location, options);
    Err(OpenError::Mode("opening a native file"))
}

//! Sources of virtual datasets that are not there.

use std::fmt;
use std::sync::Arc;

/// What reading a virtual dataset does where a source is not there. A source that is there and cannot be read is always an
/// error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum MissingSourcePolicy {
    /// Its elements are fill values, as in libhdf5. [`Options::on_missing_source`](crate::Options::on_missing_source) hears
    /// of it.
    #[default]
    Fill,
    /// [`ErrorKind::MissingSource`](crate::ErrorKind::MissingSource).
    Error,
}

/// A source of a virtual dataset that was to be read and is not there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MissingSource {
    /// The file with the virtual dataset.
    pub virtual_dataset_file: String,
    /// The path of the virtual dataset.
    pub virtual_dataset_path: String,
    /// The file of the source, as the virtual dataset names it.
    pub source_file: String,
    /// The path of the source in its file.
    pub source_path: String,
}

impl fmt::Display for MissingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MissingSource { virtual_dataset_file: file, virtual_dataset_path: path, source_file, source_path } = self;
        write!(
            f,
            "{file}: {path}: the source {source_path:?} in {source_file:?} is not there: its elements are fill values"
        )
    }
}

/// What hears of sources that are not there.
#[derive(Clone)]
pub(crate) struct MissingSourceHook(pub(crate) Arc<dyn Fn(&MissingSource) + Send + Sync>);

impl fmt::Debug for MissingSourceHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MissingSourceHook")
    }
}

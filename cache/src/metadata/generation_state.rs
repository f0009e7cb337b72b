//! The state of the generations of a file.

use h5live_format::{GenerationWord, RedoRecord};
use parking_lot::Mutex;

/// The state of the generations of a file. Only flushes change it, so loom does not explore it.
#[derive(Debug, Default)]
pub(crate) struct GenerationPublisher(pub(super) Mutex<PublishedGeneration>);

#[derive(Debug, Default)]
pub(super) struct PublishedGeneration {
    /// The word in the file; `None` if nobody follows by it.
    pub(super) current: Option<GenerationWord>,
    /// The redo record to which the word leads.
    pub(super) record: RedoRecord,
}

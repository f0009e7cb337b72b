//! Who writes a file.

use h5live::{FileDiagnosis, FileOpenState, Options};
use serde_json::{Value as Json, json};

use crate::catalog::Place;

/// Whether somebody writes a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WriterState {
    /// Nobody does.
    Closed,
    /// Processes that do, as far as the system names them.
    Writing(Vec<String>),
    /// Its writer died.
    Died,
    /// It is marked as being written, and the system does not tell whether it is.
    Unknown,
    /// There is no such file any more.
    Gone,
}

impl WriterState {
    /// The state of what is at a place, as it announces it itself.
    pub fn of(place: &Place, options: &Options) -> Self {
        match options.diagnose(&place.location) {
            Ok(FileDiagnosis { open_state: condition, .. }) => match condition {
                FileOpenState::OpenForWriting { holders, .. } => {
                    WriterState::Writing(holders.iter().map(ToString::to_string).collect())
                }
                FileOpenState::Abandoned { .. } => WriterState::Died,
                FileOpenState::OpenOrAbandoned { .. } => WriterState::Unknown,
                _ => WriterState::Closed,
            },
            Err(_) if place.path.as_ref().is_some_and(|path| !path.exists()) => WriterState::Gone,
            Err(_) => WriterState::Closed,
        }
    }

    /// For clients: a word, and who writes.
    pub fn json(&self) -> Json {
        match self {
            WriterState::Closed => json!({ "state": "closed" }),
            WriterState::Writing(holders) => json!({ "state": "writing", "processes": holders }),
            WriterState::Died => json!({ "state": "died" }),
            WriterState::Unknown => json!({ "state": "unknown" }),
            WriterState::Gone => json!({ "state": "gone" }),
        }
    }
}

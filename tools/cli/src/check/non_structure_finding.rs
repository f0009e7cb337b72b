//! What is wrong with something that lies in a native file and is no structure of HDF5: a map, a log.

use std::error::Error;
use std::fmt;

use h5live::model::StoreFinding;

/// A part of a file that is damaged.
pub struct NonStructureFinding {
    /// The path of the object that it belongs to, if it belongs to one.
    pub object_path: Option<String>,
    /// A word for the kind of fault, for programs.
    pub fault_kind: &'static str,
    /// What is wrong.
    pub cause: String,
}

impl NonStructureFinding {
    /// What the check of a log has found.
    pub fn from_log_finding(found: &StoreFinding) -> Self {
        let mut cause = found.cause.to_string();
        let mut source = found.cause.source();
        while let Some(error) = source {
            let text = error.to_string();
            // Some errors say what is below them.
            if !cause.contains(&text) {
                cause = format!("{cause}: {text}");
            }
            source = Error::source(error);
        }
        NonStructureFinding { object_path: found.path.clone(), fault_kind: found.kind, cause }
    }
}

impl fmt::Display for NonStructureFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.object_path {
            Some(path) => write!(f, "{path}: {}", self.cause),
            None => write!(f, "{}", self.cause),
        }
    }
}

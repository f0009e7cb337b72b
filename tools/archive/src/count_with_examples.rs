//! Entries of one sort: how many, and the first ones.

use crate::shown_name::escaped;

/// Names that are kept as examples.
const MAX_EXAMPLES: usize = 10;

/// Things of one sort: how many, and the first ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountWithExamples {
    /// How many there are.
    pub count: u64,
    /// The paths of the first ones.
    pub examples: Vec<String>,
}

impl CountWithExamples {
    /// Adds an entry with this path.
    pub(crate) fn add(&mut self, path: &[u8]) {
        self.count += 1;
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.push(escaped(path));
        }
    }
}

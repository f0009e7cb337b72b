//! The trace of a writer: the operations on a file, in order.

mod file;
mod strace;

use std::io;

use h5live_cache::replay_operations;

pub use h5live_cache::StorageOp;

pub use file::TraceFileError;
pub(crate) use file::{TraceRecord, read_record, write_record};
pub use strace::StraceError;

/// A file, and the operations on it from then on.
///
/// A *prefix* of a trace is a number of its operations, counted from the first. It stands for the file after them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    base: Vec<u8>,
    operations: Vec<StorageOp>,
}

impl Trace {
    /// The operations that were done to a file that held `base`.
    pub fn new(base: Vec<u8>, operations: Vec<StorageOp>) -> Self {
        Trace { base, operations }
    }

    /// The bytes of the file before the first operation.
    pub fn base(&self) -> &[u8] {
        &self.base
    }

    /// The operations.
    pub fn operations(&self) -> &[StorageOp] {
        &self.operations
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// The bytes of the file after `prefix` operations.
    ///
    /// # Errors
    /// When they would not fit in memory.
    pub fn image_after(&self, prefix: usize) -> io::Result<Vec<u8>> {
        let mut image = self.base.clone();
        replay_operations(&mut image, self.operations.iter().take(prefix))?;
        Ok(image)
    }

    /// The same trace, ended after `prefix` operations.
    #[must_use]
    pub fn truncated(&self, prefix: usize) -> Trace {
        Trace { base: self.base.clone(), operations: self.operations.iter().take(prefix).cloned().collect() }
    }

    /// The remarks `word N`, as pairs of the prefix that they end, and N.
    pub fn numbered_marks(&self, word: &str) -> Vec<(usize, u64)> {
        let number = |operation: &StorageOp| match operation {
            StorageOp::Mark(text) => {
                let (found, number) = text.split_once(' ')?;
                if found == word { number.parse().ok() } else { None }
            }
            _ => None,
        };
        let numbered = self.operations.iter().enumerate();
        numbered.filter_map(|(at, operation)| Some((at + 1, number(operation)?))).collect()
    }

    /// The prefix that ends with the first remark of exactly `text`.
    pub fn prefix_ending_with_mark(&self, text: &str) -> Option<usize> {
        let is = |operation: &StorageOp| matches!(operation, StorageOp::Mark(found) if found == text);
        self.operations.iter().position(is).map(|at| at + 1)
    }
}

/// A number that remarks state again and again, looked up by prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarkValues(Vec<(usize, u64)>);

impl MarkValues {
    /// The remarks `word N` of a trace.
    pub fn new(trace: &Trace, word: &str) -> Self {
        MarkValues(trace.numbered_marks(word))
    }

    /// The numbers that were stated after `after_prefix` operations, and within `last_prefix`.
    pub fn values_between(&self, after_prefix: usize, last_prefix: usize) -> impl Iterator<Item = u64> {
        self.0.iter().filter(move |(at, _)| *at > after_prefix && *at <= last_prefix).map(|(_, number)| *number)
    }

    /// The number that was stated last within `prefix` operations.
    pub fn last_value_at(&self, prefix: usize) -> Option<u64> {
        let after = self.0.partition_point(|(at, _)| *at <= prefix);
        self.0.get(after.checked_sub(1)?).map(|(_, number)| *number)
    }
}

#[cfg(test)]
mod tests;

//! States whose values end with checksums.

use std::sync::Arc;

use h5live_model::FileBackedBytes;

use super::{EngineError, KeySpan, Result, View};
use crate::layout::{CHECKSUM_BYTES, EngineKey, checked_value};

/// What is done with checksums that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumPolicy {
    /// A value that is not what its checksum says is an error.
    Verify,
    /// They are passed by: somebody else has verified them, or says of each value what is wrong.
    Skip,
}

/// A state whose values end with checksums, seen without them.
#[derive(Debug)]
pub struct ChecksumStrippingView {
    inner: Arc<dyn View>,
    how: ChecksumPolicy,
}

impl ChecksumStrippingView {
    /// The values of a state without their checksums.
    pub fn new(inner: Arc<dyn View>, policy: ChecksumPolicy) -> Self {
        ChecksumStrippingView { inner, how: policy }
    }

    fn value<'b>(&self, key: &[u8], stored: &'b [u8]) -> Result<&'b [u8]> {
        match self.how {
            ChecksumPolicy::Verify => {
                checked_value(key, stored).ok_or_else(|| EngineError::Checksum(EngineKey::describe_key(key)))
            }
            ChecksumPolicy::Skip => {
                Ok(stored.split_last_chunk::<CHECKSUM_BYTES>().map(|(value, _)| value).unwrap_or_default())
            }
        }
    }
}

impl View for ChecksumStrippingView {
    fn version(&self) -> u64 {
        self.inner.version()
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let mut failure = None;
        let is_there = self.inner.get(key, &mut |stored| match self.value(key, stored) {
            Ok(value) => found(value),
            Err(error) => failure = Some(error),
        })?;
        failure.map_or(Ok(is_there), Err)
    }

    fn has(&self, key: &[u8]) -> Result<bool> {
        self.inner.has(key)
    }

    fn scan(&self, range: &KeySpan, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let mut failure = None;
        self.inner.scan(range, &mut |key, stored| match self.value(key, stored) {
            Ok(value) => each(key, value),
            Err(error) => {
                failure = Some(error);
                false
            }
        })?;
        failure.map_or(Ok(()), Err)
    }

    fn share_value_prefix(&self, key: &[u8], len: u64) -> Result<Option<FileBackedBytes>> {
        let mut value_len = 0;
        self.get(key, &mut |value| value_len = value.len() as u64)?;
        if value_len >= len { self.inner.share_value_prefix(key, len) } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use h5live_model::PublishLevel;

    use super::*;
    use crate::engine::{EditBatch, Engine, MemoryEngine};
    use crate::layout::checksum;

    #[test]
    fn a_value_that_is_not_what_was_written_is_an_error_and_is_read_where_checksums_are_passed_by() {
        assert_eq!(checksum(b"123", b"456789"), 0xe306_9283u32.to_le_bytes(), "as RFC 3720 has it");
        let engine = MemoryEngine::new();
        let mut edits = EditBatch::new();
        edits.put(b"a", vec![1; 100]);
        edits.put(b"b", Vec::new());
        edits.delete(b"c");
        edits.add_checksums();
        edits.put(b"short", vec![1]);
        let flipped = checksum(b"x", &[1; 9]);
        edits.put(b"x", [&[1; 8][..], &[3], &flipped].concat());
        edits.put(b"y", [&[1; 9][..], &flipped].concat());
        engine.commit(&edits, PublishLevel::Visible).unwrap();
        let verified = ChecksumStrippingView::new(engine.view().unwrap(), ChecksumPolicy::Verify);
        let mut values = Vec::new();
        for key in [b"a", b"b"] {
            assert!(verified.get(key, &mut |value| values.push(value.len())).unwrap());
        }
        assert_eq!(values, [100, 0]);
        for key in [&b"short"[..], b"x", b"y"] {
            let found = verified.get(key, &mut |_| panic!("no value is handed on"));
            assert!(matches!(found, Err(EngineError::Checksum(_))), "{key:?}: {found:?}");
            assert!(verified.scan(&KeySpan::prefix(key), &mut |_, _| panic!("no value is handed on")).is_err());
            assert!(verified.share_value_prefix(key, 1).is_err());
            assert!(verified.has(key).unwrap(), "whether it is there is not a question of its value");
        }
        let passed_by = ChecksumStrippingView::new(engine.view().unwrap(), ChecksumPolicy::Skip);
        let mut lens = Vec::new();
        let each = &mut |_: &[u8], value: &[u8]| {
            lens.push(value.len());
            true
        };
        passed_by.scan(&KeySpan::all(), each).unwrap();
        assert_eq!(lens, [100, 0, 0, 9, 9]);
    }

    #[test]
    fn edits_are_without_checksums_again_after_a_commit_that_failed() {
        let mut edits = EditBatch::new();
        edits.put(b"a", vec![1, 2]);
        let bytes = edits.memory_bytes();
        edits.add_checksums();
        assert_eq!(edits.get(b"a").unwrap().unwrap().len(), 6);
        edits.remove_checksums();
        assert_eq!((edits.get(b"a"), edits.memory_bytes()), (Some(Some(&[1, 2][..])), bytes));
    }
}

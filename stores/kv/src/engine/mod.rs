//! Ordered keys and values, in which the records of a container are kept.
//!
//! An [`Engine`] has one committed state at a time. A [`View`] is one of these states, and stays as it is. Edits become
//! the next state by one atomic commit: whoever looks sees all of them or none.

mod checksums;
mod edits;
mod error;
#[cfg(feature = "lmdb")]
mod lmdb;
mod long_key_check;
mod long_keys;
mod memory;
#[cfg(feature = "slatedb")]
mod slate;
mod snapshot;
mod sync_policy;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use h5live_model::{Publish, SharedBytes, WatchEvent};

use crate::layout::KeyRange;

pub use checksums::{ChecksumUse, ChecksummedView};
pub use edits::Edits;
pub use error::EngineError;
#[cfg(feature = "lmdb")]
pub use lmdb::{DurableState, LmdbEngine, LmdbOptions, LmdbReader, LmdbStat, PageFault, StoreClaim};
pub use long_key_check::LongKeyFault;
pub use long_keys::{LongKeys, LongKeysState};
pub use memory::{MemoryEngine, MemoryView};
#[cfg(feature = "slatedb")]
pub use slate::{SlateEngine, SlateLocation, SlateOptions};
pub use snapshot::Snapshot;
pub use sync_policy::SyncPolicy;

/// A result of an engine.
pub type Result<T> = std::result::Result<T, EngineError>;

/// Keys from `start` on, up to but not including `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySpan {
    /// The first key that may be in it.
    pub start: Vec<u8>,
    /// The first key behind it; `None` for all keys from `start` on.
    pub end: Option<Vec<u8>>,
}

impl KeySpan {
    /// All keys.
    pub fn all() -> Self {
        KeySpan { start: Vec::new(), end: None }
    }

    /// All keys that begin with these bytes.
    pub fn prefix(prefix: &[u8]) -> Self {
        KeySpan { start: prefix.to_vec(), end: successor(prefix) }
    }

    /// The part of it that lies behind a key.
    #[must_use]
    pub fn after(&self, key: &[u8]) -> Self {
        let mut start = key.to_vec();
        start.push(0);
        KeySpan { start: start.max(self.start.clone()), end: self.end.clone() }
    }

    /// Whether a key is in it.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= &*self.start && self.end.as_deref().is_none_or(|end| key < end)
    }

    /// Whether no key can be in it.
    pub fn is_empty(&self) -> bool {
        self.end.as_deref().is_some_and(|end| end <= &*self.start)
    }
}

impl From<&KeyRange> for KeySpan {
    fn from(range: &KeyRange) -> Self {
        KeySpan { start: range.start.as_bytes().to_vec(), end: Some(range.end.as_bytes().to_vec()) }
    }
}

/// The first key behind all that begin with `prefix`; `None` if there is none.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let (_, kept) = (prefix.get(last + 1..)?, prefix.get(..=last)?);
    let mut end = kept.to_vec();
    end.last_mut().map(|byte| *byte += 1)?;
    Some(end)
}

/// A store of ordered keys that many processes read while one writes.
pub trait Engine: Send + Sync + fmt::Debug {
    /// The state of the newest commit.
    ///
    /// # Errors
    /// [`EngineError::Io`] and others, if it cannot be read.
    fn view(&self) -> Result<Arc<dyn View>>;

    /// The number of the newest commit. Numbers only grow.
    ///
    /// # Errors
    /// As [`Engine::view`].
    fn version(&self) -> Result<u64>;

    /// Makes edits the next state, all at once. Nothing happens if it fails.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if the engine was opened for reading, [`EngineError::Full`] if there is no room,
    /// [`EngineError::Fenced`] if another writer has taken over, [`EngineError::KeyTooLong`].
    fn commit(&self, edits: &Edits, publish: Publish) -> Result<()>;

    /// Most bytes of a key.
    fn max_key_bytes(&self) -> usize;

    /// Whether a process has the engine open for writing, this one included.
    ///
    /// # Errors
    /// As [`Engine::view`].
    fn has_writer(&self) -> Result<bool>;

    /// Watches for commits from now on.
    ///
    /// # Errors
    /// As [`Engine::view`].
    fn watch(&self) -> Result<Box<dyn EngineWatch>>;

    /// Ends the session; a second call does nothing. Views may end with it.
    ///
    /// # Errors
    /// As [`Engine::commit`].
    fn close(&self) -> Result<()>;
}

/// One committed state of an engine. It stays as it is, whatever is committed later.
pub trait View: Send + Sync + fmt::Debug {
    /// The number of the commit that made it.
    fn version(&self) -> u64;

    /// Calls `found` with the value of a key, and says whether there is one.
    ///
    /// # Errors
    /// [`EngineError::Io`] and others, if it cannot be read.
    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Calls `each` with the keys of a range and their values, in order, until it returns `false`. `each` must not call
    /// the view.
    ///
    /// # Errors
    /// As [`View::get`].
    fn scan(&self, range: &KeySpan, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()>;

    /// The first `len` bytes of the value of a key where the engine has them; `None` if there are not so many, or the
    /// engine cannot share them.
    ///
    /// # Errors
    /// As [`View::get`].
    fn share(&self, key: &[u8], len: u64) -> Result<Option<SharedBytes>>;
}

/// Waits for commits. [`Engine::watch`] makes it.
pub trait EngineWatch: Send + fmt::Debug {
    /// Waits for a commit since the watch was made, or since the last wait ended, at most so long. A wait may also end
    /// without one.
    ///
    /// # Errors
    /// As [`Engine::view`].
    fn wait(&mut self, timeout: Duration) -> Result<WatchEvent>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_has_the_keys_that_begin_with_it() {
        let range = KeySpan::prefix(&[1, 255]);
        assert_eq!(range.end, Some(vec![2]));
        assert!(range.contains(&[1, 255]) && range.contains(&[1, 255, 255, 255]));
        assert!(!range.contains(&[1, 254, 255]) && !range.contains(&[2]));
        assert_eq!(KeySpan::prefix(&[255, 255]).end, None);
        assert_eq!(KeySpan::prefix(&[]), KeySpan::all());
    }

    #[test]
    fn what_lies_behind_a_key_does_not_have_it() {
        let range = KeySpan::prefix(&[1]).after(&[1, 2]);
        assert!(!range.contains(&[1, 2]) && range.contains(&[1, 2, 0]) && range.contains(&[1, 3]));
        assert!(!range.is_empty() && range.after(&[2]).is_empty());
        assert_eq!(KeySpan::prefix(&[1]).after(&[0]), KeySpan::prefix(&[1]));
    }
}

//! Ordered keys and values, in which the records of a container are kept.
//!
//! An [`Engine`] has one committed state at a time. A [`View`] is one of these states, and stays as it is. Edits become
//! the next state by one atomic commit: whoever looks sees all of them or none.

mod checksums;
mod deferred_key_count;
mod edits;
mod error;
mod key_span;
#[cfg(feature = "lmdb")]
mod lmdb;
mod long_key_check;
mod long_keys;
mod memory;
#[cfg(feature = "slatedb")]
mod slate;
mod sync_policy;
mod view_with_edits;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use h5live_model::{FileBackedBytes, PublishLevel, WatchEvent};

pub use checksums::{ChecksumPolicy, ChecksumStrippingView};
pub use deferred_key_count::{DeferredKeyCount, KeyCountRecord, KeyCounter};
pub use edits::EditBatch;
pub use error::EngineError;
pub use key_span::KeySpan;
#[cfg(feature = "lmdb")]
pub use lmdb::{DamagedPage, DurableState, LmdbEngine, LmdbOptions, LmdbReaderEntry, LmdbStat, WriterLock};
pub use long_key_check::LongKeyFault;
pub use long_keys::{LongKeyEngine, LongKeyViewPair};
pub use memory::{MemoryEngine, MemoryView};
#[cfg(feature = "slatedb")]
pub use slate::{SlateEngine, SlateLocation, SlateOptions};
pub use sync_policy::SyncPolicy;
pub use view_with_edits::ViewWithEdits;

/// A result of an engine.
pub type Result<T> = std::result::Result<T, EngineError>;

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
    fn newest_version(&self) -> Result<u64>;

    /// Makes edits the next state, all at once, with the numbers of keys that they leave to it
    /// ([`EditBatch::key_count_records`]). Nothing happens if it fails.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if the engine was opened for reading, [`EngineError::Full`] if there is no room,
    /// [`EngineError::Fenced`] if another writer has taken over, [`EngineError::KeyTooLong`].
    fn commit(&self, edits: &EditBatch, publish: PublishLevel) -> Result<()>;

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

    /// Whether a key has a value, which is not looked at.
    ///
    /// # Errors
    /// As [`View::get`].
    fn has(&self, key: &[u8]) -> Result<bool> {
        self.get(key, &mut |_| {})
    }

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
    fn share_value_prefix(&self, key: &[u8], len: u64) -> Result<Option<FileBackedBytes>>;
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

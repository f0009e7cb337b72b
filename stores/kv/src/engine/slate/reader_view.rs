//! One state, as a reader sees it: tables that stay, and writes of the log up to a number over them.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use h5live_model::FileBackedBytes;

use super::scan::{RangeReader, ScanBatch, bounds, scan_options};
use super::session::SlateSession;
use super::tables_with_wal_tail::TablesWithWalTail;
use crate::engine::{KeySpan, Result, View};

/// Writes of the log that a scan takes at a time behind the last key of the tables.
const REST_KEYS: usize = 1024;
const CONTEXT: &str = "the key-value store cannot be read";

/// One state.
pub struct ReaderView {
    pub session: Arc<SlateSession>,
    pub state: TablesWithWalTail,
}

impl fmt::Debug for ReaderView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderView").field("version", &self.state.last_sequence).finish_non_exhaustive()
    }
}

/// Where a scan is.
struct ScanPosition {
    /// The last key that is done.
    done: Option<Bytes>,
    start: Bytes,
    end: Option<Bytes>,
}

impl ScanPosition {
    fn start(&self) -> Bound<&[u8]> {
        match &self.done {
            Some(done) => Bound::Excluded(done),
            None => Bound::Included(&self.start),
        }
    }

    fn end(&self) -> Bound<&[u8]> {
        self.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded)
    }
}

impl ReaderView {
    /// Merges keys of the tables with the writes up to the last of these keys. Returns whether the scan goes on.
    fn merge(&self, at: &mut ScanPosition, piece: &ScanBatch, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> bool {
        let Some(last) = piece.pairs.last() else { return true };
        let end = Bound::Included(&*last.key);
        let written = self.state.memtable.range(at.start(), end, self.state.last_sequence, usize::MAX);
        let mut written = written.iter().peekable();
        for pair in &piece.pairs {
            while let Some((key, value)) = written.next_if(|(key, _)| *key < pair.key) {
                if value.as_ref().is_some_and(|value| !each(key, value)) {
                    return false;
                }
            }
            let goes_on = match written.next_if(|(key, _)| *key == pair.key) {
                Some((_, Some(value))) => each(&pair.key, value),
                Some((_, None)) => true,
                None => each(&pair.key, &pair.value),
            };
            if !goes_on {
                return false;
            }
        }
        at.done = Some(last.key.clone());
        true
    }

    /// The writes behind the last key of the tables.
    fn scan_rest(&self, at: &mut ScanPosition, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) {
        loop {
            let rest = self.state.memtable.range(at.start(), at.end(), self.state.last_sequence, REST_KEYS);
            let Some((last, _)) = rest.last() else { return };
            at.done = Some(last.clone());
            for (key, value) in &rest {
                if value.as_ref().is_some_and(|value| !each(key, value)) {
                    return;
                }
            }
        }
    }
}

impl View for ReaderView {
    fn version(&self) -> u64 {
        self.state.last_sequence
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = match self.state.memtable.get(key, self.state.last_sequence) {
            Some(written) => written,
            None => {
                let (tables, key) = (self.state.tables.clone(), Bytes::copy_from_slice(key));
                self.session.block_on_slate(CONTEXT, async move { tables.tables.get(key).await })?
            }
        };
        value.iter().for_each(|value| found(value));
        Ok(value.is_some())
    }

    fn scan(&self, range: &KeySpan, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let mut at = ScanPosition {
            done: None,
            start: Bytes::copy_from_slice(&range.start),
            end: range.end.as_deref().map(Bytes::copy_from_slice),
        };
        let (tables, range) = (self.state.tables.clone(), bounds(range));
        let work = async move {
            let keys = tables.tables.scan_with_options(range, &scan_options()).await?;
            RangeReader::new(keys).next_batch().await
        };
        let (mut keys, mut piece) = self.session.block_on_slate(CONTEXT, work)?;
        loop {
            if !self.merge(&mut at, &piece, each) {
                return Ok(());
            }
            if piece.is_last {
                self.scan_rest(&mut at, each);
                return Ok(());
            }
            (keys, piece) = self.session.block_on_slate(CONTEXT, keys.next_batch())?;
        }
    }

    fn share_value_prefix(&self, _: &[u8], _: u64) -> Result<Option<FileBackedBytes>> {
        Ok(None)
    }
}

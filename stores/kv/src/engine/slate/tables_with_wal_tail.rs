//! The end of the write-ahead log, as a reader takes it up file by file.

use std::sync::Arc;

use futures::future::join_all;
use slatedb::{ValueDeletable, WalReader};

use super::location_error_mapper::is_not_found;
use super::memtable::{LoggedWrite, Memtable};
use super::pinned::PinnedTables;

/// Most files of the log that are read at a time.
const MAX_PARALLEL_FILES: u64 = 16;

/// The newest state that a reader knows: tables, and writes of the log that they do not have.
///
/// Each file of the log has whole batches. A state with all writes up to the last one of a file has no batch in part.
#[derive(Clone)]
pub struct TablesWithWalTail {
    pub tables: Arc<PinnedTables>,
    pub memtable: Arc<Memtable>,
    /// The last file of the log that was read.
    pub last_included_wal_file: u64,
    /// The number of the last write.
    pub last_sequence: u64,
}

impl TablesWithWalTail {
    /// The state of the tables.
    pub fn with_empty_tail(tables: PinnedTables) -> Self {
        TablesWithWalTail {
            memtable: Arc::default(),
            last_included_wal_file: tables.last_wal_file_in_tables,
            last_sequence: tables.last_sequence,
            tables: Arc::new(tables),
        }
    }

    /// The same state over newer tables, without the writes that these have.
    #[must_use]
    pub fn rebase_onto(&self, tables: PinnedTables) -> Self {
        TablesWithWalTail {
            memtable: Arc::new(self.memtable.after(tables.last_sequence)),
            last_included_wal_file: self.last_included_wal_file.max(tables.last_wal_file_in_tables),
            last_sequence: self.last_sequence.max(tables.last_sequence),
            tables: Arc::new(tables),
        }
    }

    /// Takes up all files that follow. After a failure it has those before the failure.
    pub async fn replay_new_files(&mut self, log: &WalReader) -> Result<(), slatedb::Error> {
        let mut window = 1;
        loop {
            let files = (1..=window)
                .map(|ahead| read_file(log, self.last_included_wal_file + ahead, self.tables.last_sequence));
            for file in join_all(files).await {
                let Some(writes) = file? else { return Ok(()) };
                self.last_sequence = writes.iter().map(|write| write.sequence).fold(self.last_sequence, u64::max);
                self.memtable.insert(writes);
                self.last_included_wal_file += 1;
            }
            window = (window * 2).min(MAX_PARALLEL_FILES);
        }
    }
}

/// The writes of a file of the log behind a sequence number; `None` if there is no such file yet.
async fn read_file(log: &WalReader, id: u64, after: u64) -> Result<Option<Vec<LoggedWrite>>, slatedb::Error> {
    let mut entries = match log.get(id).iterator().await {
        Ok(entries) => entries,
        Err(error) if is_not_found(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut writes = Vec::new();
    while let Some(entry) = entries.next().await? {
        let value = match entry.value {
            ValueDeletable::Value(value) | ValueDeletable::Merge(value) => Some(value),
            ValueDeletable::Tombstone => None,
        };
        if entry.seq > after {
            writes.push(LoggedWrite { key: entry.key, sequence: entry.seq, value });
        }
    }
    Ok(Some(writes))
}

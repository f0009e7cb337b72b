//! How much room an LMDB store takes, and who reads it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use h5live_model::FileHolderProcess;

use super::LmdbEngine;
use super::environment::Environment;
use super::files::{DATA_FILE, LOCK_FILE};
use super::lmdb_checkpoint::{DurableState, LmdbCheckpoint};
use crate::engine::{EngineError, Result};

/// Bytes of an entry of LMDB's table of readers: a line of the processor's cache.
const READER_BYTES: u64 = 64;
/// Where the number of entries that were ever used is in LMDB's table of readers (bytes).
const USED_READERS_AT: u64 = 16;
/// The meta pages.
const META_PAGES: u64 = 2;

/// A process that reads a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LmdbReaderEntry {
    /// The process.
    pub pid: u32,
    /// The number of the commit whose state it reads; `None` if it has the store open, and reads nothing at the moment.
    pub pinned_commit: Option<u64>,
}

/// How much room an LMDB store takes, and who uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LmdbStat {
    /// The number of the newest commit.
    pub newest_commit: u64,
    /// Who has it open for writing, where the system names it; `None` if nobody has.
    pub writers_if_locked: Option<Vec<FileHolderProcess>>,
    /// Most bytes that the store can have as this process has opened it.
    pub map_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of a page.
    pub page_size: u64,
    /// Pages that were ever used.
    pub ever_used_pages: u64,
    /// Pages with keys and values, and the two meta pages.
    pub used_pages: u64,
    /// The other processes that have it open for reading.
    pub other_readers: Vec<LmdbReaderEntry>,
    /// Entries of processes that have died, which were removed when the store was opened.
    pub dead_readers_removed_at_open: u64,
    /// The state that a power failure leaves; `None` if no state is kept.
    pub durable_state: Option<DurableState>,
}

impl LmdbEngine {
    /// How much room the store takes, and who uses it.
    ///
    /// # Errors
    /// [`EngineError`] if a file cannot be read.
    pub fn stat(&self) -> Result<LmdbStat> {
        let env = self.environment.env();
        let (info, stat) = (env.info(), env.stat());
        let data = fs::metadata(self.folder.join(DATA_FILE)).map_err(EngineError::io("the store cannot be read"))?;
        let in_tree = stat.branch_pages + stat.leaf_pages + stat.overflow_pages;
        Ok(LmdbStat {
            newest_commit: info.last_txn_id as u64,
            writers_if_locked: LmdbEngine::writers_if_locked(&self.folder)?,
            map_bytes: info.map_size as u64,
            file_bytes: data.len(),
            page_size: u64::from(stat.page_size),
            ever_used_pages: info.last_page_number as u64 + 1,
            used_pages: in_tree as u64 + META_PAGES,
            other_readers: readers(&self.folder, &self.environment)?,
            dead_readers_removed_at_open: self.dead_readers,
            durable_state: LmdbCheckpoint::durable_state(&self.folder)?,
        })
    }
}

impl LmdbStat {
    /// Pages that later commits use again, with those in which LMDB lists them.
    pub fn free_pages(&self) -> u64 {
        self.ever_used_pages.saturating_sub(self.used_pages)
    }
}

/// The readers of other processes in LMDB's table, which is a header and the entries: the number of the state (8 bytes;
/// all bits are set if there is none), and the process (4 bytes; 0: the entry is free).
fn readers(folder: &Path, environment: &Environment) -> Result<Vec<LmdbReaderEntry>> {
    let context = "the table of readers cannot be read";
    if !environment.uses_reader_table() {
        return Ok(Vec::new());
    }
    let table = File::open(folder.join(LOCK_FILE)).map_err(EngineError::io(context))?;
    let bytes = table.metadata().map_err(EngineError::io(context))?.len();
    let max_readers = u64::from(environment.env().info().maximum_number_of_readers);
    let header = bytes.checked_sub(max_readers * READER_BYTES).ok_or(EngineError::Damaged("its table of readers"))?;
    let mut used = [0; 4];
    table.read_exact_at(&mut used, USED_READERS_AT).map_err(EngineError::io(context))?;
    let mut found = Vec::new();
    for number in 0..u64::from(u32::from_ne_bytes(used)).min(max_readers) {
        let mut entry = [0; 12];
        table.read_exact_at(&mut entry, header + number * READER_BYTES).map_err(EngineError::io(context))?;
        let (Some(version), Some(pid)) = (entry.first_chunk(), entry.last_chunk()) else { continue };
        let (version, pid) = (u64::from_ne_bytes(*version), u32::from_ne_bytes(*pid));
        if pid != 0 && pid != std::process::id() {
            found.push(LmdbReaderEntry { pid, pinned_commit: Some(version).filter(|version| *version != u64::MAX) });
        }
    }
    Ok(found)
}

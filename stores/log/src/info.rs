//! What is known of a log, for people.

use std::sync::Arc;

use h5live_model::{AllocationLimit, Store};

use crate::error::{LogError, Result};
use crate::index_table::SavedIndexTable;
use crate::layout::LogLayout;
use crate::log_file::LogFile;
use crate::multi_writer_files::MultiWriterFiles;
use crate::opening::open_or_create_log;
use crate::options::Log;
use crate::session::{LogOpenRequest, LogSession};

/// A log: how much of what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogInfo {
    /// Its layout.
    pub layout: LogLayout,
    /// How many datasets were ever made.
    pub created_dataset_count: u64,
    /// The files that have logs: the main file, and the subfiles of writers that have joined.
    pub files: Vec<LogFileInfo>,
    /// How many entries there are.
    pub entry_count: u64,
    /// Bytes of their data.
    pub data_bytes: u64,
}

/// The log of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFileInfo {
    /// For each log dataset, bytes of entries in it, and bytes that it has room for.
    pub used_bytes_and_capacities: Vec<(u64, u64)>,
    /// Bytes of the log that are in the index table; `None` if there is no table.
    pub indexed_bytes: Option<u64>,
}

impl LogFileInfo {
    /// Bytes of entries.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes_and_capacities.iter().map(|(used, _)| used).sum()
    }
}

impl LogInfo {
    /// The log in an open file, and in its subfiles. All of its entries are looked at.
    ///
    /// # Errors
    /// If there is none, or it is damaged; errors of the stores beneath.
    pub fn read(
        file: Arc<dyn Store>,
        subfiles: Option<Arc<dyn MultiWriterFiles>>,
        max_allocation: AllocationLimit,
    ) -> Result<Self> {
        if !LogSession::is_log_file(&*file)? {
            return Err(LogError::NoLog.into());
        }
        let options = Log { rebuild_index: true, ..Log::default() };
        let how = LogOpenRequest { max_allocation, ..LogOpenRequest::new(options) };
        let session = open_or_create_log(file, subfiles, how)?;
        let datasets = session.created_dataset_count();
        let state = session.state();
        let file_info = |file: &LogFile| {
            let saved = match session.layout {
                LogLayout::H5live => SavedIndexTable::open(&*file.store, file.log_group, max_allocation)?,
                LogLayout::LogVol => None,
            };
            Ok(LogFileInfo {
                used_bytes_and_capacities: file.log.used_bytes_and_capacities(),
                indexed_bytes: saved.map(|saved| saved.indexed_bytes),
            })
        };
        Ok(LogInfo {
            layout: session.layout,
            created_dataset_count: datasets,
            files: state.files().iter().map(file_info).collect::<Result<_>>()?,
            entry_count: state.entry_count_outside_tables(),
            data_bytes: state.data_bytes_outside_tables(),
        })
    }
}

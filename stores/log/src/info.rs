//! What is known of a log, for people.

use std::sync::Arc;

use h5live_model::{AllocationLimit, NoFilters, Store};

use crate::error::{LogError, Result};
use crate::index_table::SavedTable;
use crate::names::LOG_GROUP;
use crate::options::Log;
use crate::session::LogSession;

/// A log: how much of what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogInfo {
    /// The version of its layout.
    pub layout: i64,
    /// How many datasets were ever made.
    pub datasets: u64,
    /// For each log dataset, bytes of entries in it, and bytes that it has room for.
    pub log_datasets: Vec<(u64, u64)>,
    /// How many entries there are.
    pub entries: u64,
    /// Bytes of their data.
    pub data_bytes: u64,
    /// Bytes of the log that are in the index table; `None` if there is no table.
    pub indexed_bytes: Option<u64>,
}

impl LogInfo {
    /// The log in an open file. All of its entries are looked at.
    ///
    /// # Errors
    /// If there is none, or it is damaged; errors of the store beneath.
    pub fn read(file: Arc<dyn Store>, max_allocation: AllocationLimit) -> Result<Self> {
        if !LogSession::has_log(&*file)? {
            return Err(LogError::Missing(format!("group {LOG_GROUP:?}")).into());
        }
        let options = Log { rebuild_index: true, ..Log::default() };
        let session = LogSession::open(file, options, Arc::new(NoFilters), max_allocation)?;
        let (datasets, group) = (session.dataset_count(), session.group());
        let saved = SavedTable::open(&*session.inner, group)?;
        let state = session.state();
        Ok(LogInfo {
            layout: crate::LAYOUT,
            datasets,
            log_datasets: state.log.sizes(),
            entries: state.entries(),
            data_bytes: state.data_bytes(),
            indexed_bytes: saved.map(|saved| saved.covers),
        })
    }
}

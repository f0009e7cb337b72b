//! What all requests share.

use std::sync::Arc;

use crate::access::Access;
use crate::catalog::Catalog;
use crate::config::{LogFormat, ServerLimits};
use crate::fault::Fault;
use crate::metrics::Metrics;
use crate::pool::{MemoryBudget, ReadPool};
use crate::sessions::FileSessions;
use crate::watches::Watches;

/// What all requests share.
#[derive(Debug)]
pub(crate) struct AppState {
    pub catalog: Catalog,
    pub sessions: Arc<FileSessions>,
    pub pool: ReadPool,
    pub memory: Arc<MemoryBudget>,
    pub watches: Watches,
    pub access: Access,
    pub allowed_origins: Vec<String>,
    pub limits: ServerLimits,
    pub metrics: Metrics,
    pub log: Option<LogFormat>,
    /// When the server began (seconds since 1970).
    pub started_at: u64,
}

impl AppState {
    /// A fault as clients are told: without the paths of this machine.
    pub fn redact_served_paths(&self, fault: Fault) -> Fault {
        Fault { message: self.catalog.folders().redact_folder_paths(&fault.message), ..fault }
    }
}

//! How a log is opened.

use std::sync::Arc;

use h5live_model::{AllocationLimit, FilterEngine, NoFilters};

use crate::mutant::LogMutant;
use crate::options::Log;

/// How a log is opened.
#[derive(Debug, Clone)]
pub struct LogOpenRequest {
    /// Its options.
    pub options: Log,
    /// What undoes the filters of entries.
    pub filter_engine: Arc<dyn FilterEngine>,
    /// Most bytes that are allocated for an entry that is decoded as a whole, and for what a file states.
    pub max_allocation: AllocationLimit,
    /// The rule that is not kept; only the model checker sets it.
    #[doc(hidden)]
    pub mutant: LogMutant,
}

impl LogOpenRequest {
    /// With these options; nothing is decoded, and allocations have the default bound.
    pub fn new(options: Log) -> Self {
        LogOpenRequest {
            options,
            filter_engine: Arc::new(NoFilters),
            max_allocation: AllocationLimit::default(),
            mutant: LogMutant::None,
        }
    }
}

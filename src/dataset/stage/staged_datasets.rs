//! Which datasets of a file have something staged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use h5live_model::ObjectId;
use parking_lot::{Mutex, MutexGuard};

use crate::memory_budget::MemoryBudget;

/// The datasets of a file with staged elements. A flush visits these, not all open datasets.
pub(crate) type StagedDatasets = Arc<StagedList>;

/// A list of datasets with staged elements, and whether more may be staged.
#[derive(Debug, Default)]
pub(crate) struct StagedList {
    listed: Mutex<Vec<ObjectId>>,
    is_closing: AtomicBool,
    /// The memory for staged elements, if it is limited.
    pub(crate) budget: Option<Arc<MemoryBudget>>,
}

impl StagedList {
    /// An empty list of a file whose staged elements take of this budget.
    pub(crate) fn new(budget: Option<Arc<MemoryBudget>>) -> Self {
        StagedList { budget, ..StagedList::default() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<ObjectId>> {
        self.listed.lock()
    }

    /// From now on, whoever takes the lock of a writer is refused. Who has it already is to be waited for
    /// ([`DatasetCore::wait_for_writer`](crate::dataset::DatasetCore::wait_for_writer)).
    pub(crate) fn begin_closing(&self) {
        self.is_closing.store(true, Ordering::Release);
    }

    #[inline]
    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }
}

//! The part of a dataset's state that stages: what waits to be stored, and who may change it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use h5live_model::ObjectId;
use parking_lot::{Mutex, MutexGuard};

use super::staged_data::StagedData;
use super::staged_datasets::StagedDatasets;
use crate::error::ErrorKind;

/// What waits to be stored, and who may change it.
#[derive(Debug)]
pub(crate) struct StageState {
    /// Held by the one that changes elements or the extent.
    writer_lock: Mutex<()>,
    data: Mutex<StagedData>,
    /// Whether the store gathers writes until they are published. Then nothing is staged here.
    pub(crate) is_staged_by_store: bool,
    /// Bytes that may be staged, unless the memory of all datasets is used up.
    append_buffer_bytes: usize,
    /// The list of datasets with staged elements, and whether this one is in it.
    staged_datasets: StagedDatasets,
    is_registered: AtomicBool,
    /// Staged bytes, as the budget counts them.
    counted_bytes: AtomicUsize,
}

impl Drop for StageState {
    fn drop(&mut self) {
        if let Some(budget) = &self.staged_datasets.budget {
            budget.adjust_staged_bytes(*self.counted_bytes.get_mut(), 0);
        }
    }
}

impl StageState {
    pub(crate) fn new(is_staged_by_store: bool, append_buffer_bytes: usize, staged_datasets: StagedDatasets) -> Self {
        StageState {
            writer_lock: Mutex::new(()),
            data: Mutex::default(),
            is_staged_by_store,
            append_buffer_bytes,
            staged_datasets,
            is_registered: AtomicBool::new(false),
            counted_bytes: AtomicUsize::new(0),
        }
    }

    /// Bytes that may be staged; none while the memory of all datasets is used up.
    #[inline]
    pub(crate) fn allowed_bytes(&self) -> usize {
        match &self.staged_datasets.budget {
            Some(budget) if budget.is_staging_full() => {
                budget.record_early_store();
                0
            }
            _ => self.append_buffer_bytes,
        }
    }

    /// Tells the budget how much is staged now. The caller holds the writer's lock.
    #[inline]
    pub(crate) fn update_staged_budget(&self) {
        if let Some(budget) = &self.staged_datasets.budget {
            let now = self.lock().memory_bytes();
            budget.adjust_staged_bytes(self.counted_bytes.swap(now, Ordering::AcqRel), now);
        }
    }

    /// Waits for the one that changes elements or the extent now. Nobody else does until the guard is dropped.
    #[inline]
    pub(crate) fn lock_writer(&self) -> MutexGuard<'_, ()> {
        self.writer_lock.lock()
    }

    /// What is staged. Reads need it, too, so nobody waits for the store while the guard lives.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, StagedData> {
        self.data.lock()
    }

    /// Whether something is staged that the store does not have.
    #[inline]
    pub(crate) fn is_dirty(&self) -> bool {
        self.lock().is_dirty()
    }

    /// Refuses to stage anything once the file is being closed: it would be lost. The caller holds the writer's lock.
    #[inline]
    pub(crate) fn check_not_closing(&self) -> Result<(), ErrorKind> {
        match self.staged_datasets.is_closing() {
            true => Err(h5live_model::Error::Closed.into()),
            false => Ok(()),
        }
    }

    /// Adds this dataset, which is `id`, to the list that the next flush of the file visits. The caller holds the
    /// writer's lock.
    #[inline]
    pub(crate) fn register(&self, id: impl FnOnce() -> ObjectId) {
        // A flush that takes it from the list unlists it before it looks at the staged elements.
        let is_registered = self.is_registered.load(Ordering::Acquire);
        if !is_registered && self.is_dirty() && !self.is_registered.swap(true, Ordering::AcqRel) {
            self.staged_datasets.lock().push(id());
        }
    }

    /// The caller has taken this dataset from the list.
    pub(crate) fn unregister(&self) {
        self.is_registered.store(false, Ordering::Release);
    }
}

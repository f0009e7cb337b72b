//! The part of a dataset's state that publishes: its place in an order, and which of its rows others see.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::publish_order::PublishOrder;

/// The place of a dataset in an order of publications, and which of its rows others see.
#[derive(Debug)]
pub(crate) struct PublishState<T> {
    /// Its place among the datasets whose rows are seen in an order.
    pub(crate) order: PublishOrder<T>,
    /// Where the rows end that are known to be published.
    published_end: AtomicU64,
    /// Rows appended since the last time that everything was written out.
    rows_since_write_out: AtomicU64,
    /// The path under which the dataset was opened that was written first. Errors of a later flush name it.
    path: Mutex<Option<Arc<str>>>,
}

impl<T> PublishState<T> {
    /// Of a dataset of so many rows, all of which are published.
    pub(crate) fn new(rows: u64) -> Self {
        PublishState {
            order: PublishOrder::default(),
            published_end: AtomicU64::new(rows),
            rows_since_write_out: AtomicU64::new(0),
            path: Mutex::default(),
        }
    }

    /// Notes that the first `rows` rows are published.
    pub(crate) fn raise_published_end(&self, rows: u64) {
        self.published_end.fetch_max(rows, Ordering::AcqRel);
    }

    /// Where the rows end that are known to be published.
    pub(crate) fn published_end(&self) -> u64 {
        self.published_end.load(Ordering::Acquire)
    }

    /// Counts appended rows. Returns how many are not written out.
    pub(crate) fn count_rows(&self, rows: u64) -> u64 {
        self.rows_since_write_out.fetch_add(rows, Ordering::AcqRel).saturating_add(rows)
    }

    /// All rows are about to be written out, or are.
    pub(super) fn restart_row_count(&self) {
        self.rows_since_write_out.store(0, Ordering::Release);
    }

    /// Notes by which path the dataset is written.
    pub(crate) fn note_path(&self, path: &str) {
        let mut known = self.path.lock();
        if known.is_none() {
            *known = Some(path.into());
        }
    }

    /// The path by which it was written.
    pub(crate) fn path(&self) -> Option<Arc<str>> {
        self.path.lock().clone()
    }
}

//! What a recording says on standard error while it goes on.

use h5live_recorder::{RecordNotice, RecordObserver, RefusedRow};
use indicatif::ProgressBar;

use crate::output::eprint_prefixed;
use crate::progress;

/// Rows that are named one by one; of the rest only the number is told.
const MAX_NAMED_ROWS: u64 = 10;

/// Shows the number of rows, and tells what is decided and refused.
pub struct RecordProgressPrinter<'a> {
    /// The path of the dataset.
    path: &'a str,
    bar: ProgressBar,
    refused: u64,
}

impl<'a> RecordProgressPrinter<'a> {
    /// Of a recording into the dataset at `dataset_path`.
    pub fn new(dataset_path: &'a str) -> Self {
        RecordProgressPrinter { path: dataset_path, bar: progress::counter("row"), refused: 0 }
    }

    /// Takes the number of rows away.
    pub fn finish_and_clear(self) {
        self.bar.finish_and_clear();
    }
}

impl RecordObserver for RecordProgressPrinter<'_> {
    fn notice(&mut self, notice: &RecordNotice) {
        eprint_prefixed(format_args!("{}: {notice}", self.path));
    }

    fn row_accepted(&mut self) {
        self.bar.inc(1);
    }

    fn row_skipped_or_rejected(&mut self, row: &RefusedRow) {
        self.refused += 1;
        if self.refused <= MAX_NAMED_ROWS {
            eprint_prefixed(format_args!("standard input: {row}"));
        }
    }
}

//! The options that only a log has.

use std::time::Duration;

use h5live_model::settings;

use crate::encode::EntryFilter;
use crate::layout::LogLayout;

settings! {
    connector "log";
    /// The options of a file with a log.
    pub struct Log {
        /// Bytes of writes that are gathered in memory before they go to the file, where nobody sees them before the flush.
        ///
        /// As many again are in memory while they are written. More is slower: what is written should still be in a cache of
        /// the processor.
        staging: u64 = 1 << 20,
        /// The least bytes that a new log dataset has room for.
        min_log_size: u64 = 1 << 20,
        /// The most bytes that a new log dataset has room for, if a flush has no more.
        max_log_size: u64 = 1 << 30,
        /// Through which filter the data of entries goes, where that makes it smaller. Points never do.
        filter: EntryFilter = EntryFilter::OfDataset,
        /// Whether the session writes beside others: into a subfile of its own, as one of many writers.
        ///
        /// Creating the file then makes it only if it is not there.
        join: bool = false,
        /// How long a writer that has joined waits for others that create objects, or take a number for a batch.
        patience: Duration = Duration::from_secs(30),
        /// The layout of a new log. A log that is there keeps its own.
        layout: LogLayout = LogLayout::H5live,
        /// Whether the index table is made anew from the entries, instead of being read.
        rebuild_index: bool = false,
    }
}

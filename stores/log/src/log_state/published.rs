//! What other writers have published: it is read file by file, and counts batch by batch.
//!
//! A batch may follow from batches of other files: rows are appended behind those of other writers. The files are read one after
//! the other, so a batch of a later one may follow from a batch of an earlier one that was published after that file was read.
//! Taken up alone, it would leave a hole. Therefore batches wait, until those before them in the order are known.

use std::collections::VecDeque;

use h5live_model::AllocationLimit;

use super::{LogState, check_rank};
use crate::error::Result;
use crate::index_table::IndexTableRow;
use crate::log_file::LogFile;
use crate::logged_dataset::LoggedDataset;
use crate::mutant::LogMutant;

impl LogState {
    /// Adds the file with the next number, and reads what is published in its log if the state has that of others.
    ///
    /// # Errors
    /// As [`LogState::open`].
    pub fn add_file(&mut self, file: LogFile, limit: AllocationLimit) -> Result<()> {
        match self.knows_others {
            true => self.add_and_read(file, limit),
            false => {
                self.files.push(file);
                Ok(())
            }
        }
    }

    /// Adds the file with the next number, and reads what is published in its log. The session appends to it.
    ///
    /// # Errors
    /// As [`LogState::open`].
    pub fn add_own_file(&mut self, file: LogFile, limit: AllocationLimit) -> Result<()> {
        self.own = self.files.len();
        self.add_and_read(file, limit)
    }

    fn add_and_read(&mut self, file: LogFile, limit: AllocationLimit) -> Result<()> {
        debug_assert_eq!(file.number as usize, self.files.len());
        // What is known of datasets does not have the table of this file.
        let loaded: Vec<_> = self.datasets.iter().map(|(number, dataset)| (*number, dataset.index.rank())).collect();
        for (number, rank) in loaded {
            let mut saved = Vec::new();
            file.for_each_table_entry(number, &mut |found, row| {
                check_rank(number, found, rank)?;
                saved.push(row);
                Ok(())
            })?;
            let dataset = self.datasets.entry(number).or_insert_with(|| LoggedDataset::new(rank));
            for row in saved {
                dataset.push(row);
            }
        }
        self.files.push(file);
        self.read_batches(self.files.len() - 1, limit)
    }

    /// Reads what others have published since: in all files but the own one, if the session writes, and those of which
    /// `last_batch_orders` says that the last batch is known
    /// ([`MultiWriterFiles::last_batch_orders`](crate::multi_writer_files::MultiWriterFiles::last_batch_orders)).
    ///
    /// # Errors
    /// As [`LogState::open`].
    pub fn queue_published_batches(
        &mut self,
        skip_own_file: bool,
        last_batch_orders: &[Option<u64>],
        limit: AllocationLimit,
    ) -> Result<()> {
        for number in 0..self.files.len() {
            let is_own = skip_own_file && number == self.own;
            let is_known = last_batch_orders.get(number) == Some(&Some(self.files[number].last_batch_order));
            if !is_own && !is_known && self.files[number].detect_unread_entries()? {
                self.read_batches(number, limit)?;
            }
        }
        self.knows_others = true;
        Ok(())
    }

    /// Reads the batches of a file that are published and not known. They wait.
    pub(super) fn read_batches(&mut self, number: usize, limit: AllocationLimit) -> Result<()> {
        let (files, waiting) = (&mut self.files, &mut self.waiting);
        files[number].read_new_batches(limit, |batch| {
            waiting.push(batch);
            Ok(())
        })
    }

    /// The number of batches that wait and have an order up to `last`.
    pub fn waiting_batch_count_up_to(&self, last: u64) -> usize {
        self.waiting.iter().filter(|batch| batch.order <= last).count()
    }

    /// The highest order of a batch that waits; `None` if there is none.
    pub fn last_waiting_order(&self) -> Option<u64> {
        self.waiting.iter().map(|batch| batch.order).max()
    }

    /// Has the batches count that wait and have an order up to `last`. After an error, those that do not count yet wait on.
    ///
    /// # Errors
    /// As [`LogState::open`].
    pub fn apply_waiting_up_to(&mut self, last: u64) -> Result<()> {
        let mut ready: VecDeque<_> = self.waiting.extract_if(.., |batch| batch.order <= last).collect();
        let mut taken = Ok(());
        while let Some(batch) = ready.front_mut() {
            let count = batch.ranks_and_entries.iter().position(|(rank, row)| {
                let order = if self.mutant.violates(LogMutant::IgnoredOrders) { 0 } else { row.batch_order };
                taken = self.push(*rank, IndexTableRow { batch_order: order, ..row.clone() }).map(drop);
                taken.is_err()
            });
            if let Some(count) = count {
                batch.ranks_and_entries.drain(..count);
                break;
            }
            ready.pop_front();
        }
        self.waiting.extend(ready);
        taken
    }

    /// Has all batches count that wait.
    ///
    /// # Errors
    /// As [`LogState::open`].
    pub fn apply_all_waiting(&mut self) -> Result<()> {
        self.apply_waiting_up_to(u64::MAX)
    }
}

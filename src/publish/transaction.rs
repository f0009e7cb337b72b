//! Transactions: appends that others see in their order.

use h5live_model::ObjectId;

use crate::{Dataset, ErrorKind, File, H5Write, Result};

/// Appends to datasets of one file that are published together, made by [`File::transaction`].
#[derive(Debug)]
pub struct AppendTransaction<'a> {
    file: &'a File,
    steps: Vec<TransactionStep>,
}

#[derive(Debug)]
struct TransactionStep {
    dataset: Dataset,
    /// The encoded rows.
    rows: Vec<u8>,
}

impl AppendTransaction<'_> {
    /// Appends rows, as [`Dataset::append`] does, when the transaction ends.
    ///
    /// # Errors
    /// As [`Dataset::append`]; [`ErrorKind::InvalidPublishOrder`] if the dataset is of another file.
    pub fn append<T: H5Write>(&mut self, dataset: &Dataset, values: &[T]) -> Result<()> {
        let rows = dataset.encode_rows(values)?;
        self.append_raw(dataset, &rows)
    }

    /// Appends rows of elements in the file's type, without conversion, when the transaction ends.
    ///
    /// # Errors
    /// As [`AppendTransaction::append`].
    pub fn append_raw(&mut self, dataset: &Dataset, rows: &[u8]) -> Result<()> {
        if !std::sync::Arc::ptr_eq(dataset.file().shared(), self.file.shared()) {
            return Err(self
                .file
                .error(Some(dataset.path()), ErrorKind::InvalidPublishOrder("they are in different files")));
        }
        dataset.file().shared().blobs.note_stored_elements(&dataset.datatype()?);
        dataset.check_rows(rows)?;
        match self.steps.last_mut().filter(|last| last.dataset.id() == dataset.id()) {
            Some(last) => last.rows.extend_from_slice(rows),
            None => self.steps.push(TransactionStep { dataset: dataset.clone(), rows: rows.into() }),
        }
        Ok(())
    }

    /// Publishes the steps: those of different datasets by one flush, in which each waits for the one before it.
    fn commit(self) -> Result<()> {
        let mut rest = &self.steps[..];
        while !rest.is_empty() {
            let (run, later) = rest.split_at(count_distinct(rest.iter().map(|step| step.dataset.id())));
            run.iter().try_for_each(|step| step.dataset.append_unpublished_rows(&step.rows))?;
            for (n, step) in run.iter().enumerate() {
                if let Some(before) = n.checked_sub(1).and_then(|n| run.get(n)) {
                    step.dataset.order_commit_after(before.dataset.id())?;
                }
                step.dataset.write_out()?;
            }
            run.last().map_or(Ok(()), |last| last.dataset.publish())?;
            rest = later;
        }
        self.file.shared().count_publication()
    }
}

/// The number of elements before one that was there already.
fn count_distinct(ids: impl Iterator<Item = ObjectId>) -> usize {
    let mut seen = Vec::new();
    ids.take_while(|id| {
        !seen.contains(id) && {
            seen.push(*id);
            true
        }
    })
    .count()
}

impl File {
    /// Appends to several datasets, and publishes the appends as one. The appends take place when `build` returns. If
    /// `build` returns an error, nothing is appended.
    ///
    /// At each moment, also after a sudden end of this process, other processes see the first appends up to some point.
    /// They never see an append without all appends before it. A reader that wants whole transactions looks first at
    /// the dataset that was appended to last, or waits for the [publication counter](File::wait_for_publication). Then
    /// it looks at the other datasets. Each append that goes back to an earlier dataset costs one more flush.
    ///
    /// ```
    /// # let file = h5live::File::in_memory();
    /// # let frames = file.new_dataset::<u16>().unlimited_rows(&[2, 2]).create("frames")?;
    /// # let times = file.new_dataset::<f64>().unlimited_rows(&[]).create("times")?;
    /// file.transaction(|tx| {
    ///     tx.append(&frames, &[1u16, 2, 3, 4])?;
    ///     tx.append(&times, &[0.1])
    /// })?;
    /// assert_eq!((frames.shape()?[0], times.shape()?[0]), (1, 1));
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `build`; as [`File::flush`], after which the appends may be published in part, the earlier ones.
    pub fn transaction<T>(&self, build: impl FnOnce(&mut AppendTransaction<'_>) -> Result<T>) -> Result<T> {
        let mut transaction = AppendTransaction { file: self, steps: Vec::new() };
        let built = build(&mut transaction)?;
        let shared = self.shared();
        shared.publisher.take_deferred_error()?;
        let _only = shared.publisher.lock_publishing();
        transaction.commit()?;
        Ok(built)
    }
}

//! Iterators over new rows of a dataset, as a writer publishes them.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use h5live_model::{DatasetSpec, Layout, Selection, Watch, WatchEvent};

use crate::dataset::Dataset;
use crate::liveness_check::{LivenessCheck, MAX_WAIT};
use crate::{H5Type, Result};

/// Elements of one batch (bytes in memory), unless a row is larger.
const MAX_BATCH_BYTES: usize = 8 << 20;
/// The longest wait at a time for a virtual dataset, which shows the rows of other files, before it is looked whether
/// the writer still lives.
const MAX_VIRTUAL_WAIT: Duration = Duration::from_millis(20);
/// The same for a follower that never sleeps.
const BUSY_POLL_WAIT: Duration = Duration::from_millis(5);
/// A follower that never sleeps reads the last row once more after this many looks in vain...
const POLLS_BEFORE_WARMUP: u32 = 64;
/// ...if the row has at most this many bytes in memory.
const MAX_WARMUP_BYTES: usize = 4 << 10;

/// Batches of rows that a writer publishes. [`Dataset::follow`] makes it.
///
/// Each item has whole rows, in order, and no row twice. The iterator waits for new rows. It ends when the writer has
/// closed the file and all rows were returned, or when the timeout is over without a new row. If the file is deleted,
/// replaced or truncated while it is being written, the last item is an error that says so
/// ([`Error::file_change`](crate::Error::file_change)). It comes after all rows that could still be read.
///
/// For a virtual dataset, all of this holds for its own file and the files of its sources. The iterator ends when none
/// of them is being written ([`Dataset::is_live`]). It waits for rows of a source whose writer lets nobody read it yet.
#[derive(Debug)]
pub struct DatasetFollower<T> {
    dataset: Dataset,
    /// The dimension along which the dataset grows.
    axis: usize,
    /// The first row that was not delivered.
    next: u64,
    timeout: Option<Duration>,
    batch_rows: Option<u64>,
    sleeps: bool,
    watch: Option<Box<dyn Watch>>,
    liveness: LivenessCheck,
    failed: bool,
    /// Whether the writer was gone when it was last looked for.
    writer_is_gone: bool,
    is_over: bool,
    values: PhantomData<fn() -> T>,
}

impl<T: H5Type> DatasetFollower<T> {
    pub(super) fn new(dataset: Dataset) -> Self {
        DatasetFollower {
            axis: dataset.growing_axis().unwrap_or(0),
            dataset,
            next: 0,
            timeout: None,
            batch_rows: None,
            sleeps: true,
            watch: None,
            liveness: LivenessCheck::default(),
            failed: false,
            writer_is_gone: false,
            is_over: false,
            values: PhantomData,
        }
    }

    /// Starts with row `row` instead of the first.
    pub fn start_row(mut self, row: u64) -> Self {
        self.next = row;
        self
    }

    /// Starts with the rows that come after those that are there now.
    ///
    /// # Errors
    /// As [`Dataset::refresh`].
    pub fn skip_existing(mut self) -> Result<Self> {
        self.dataset.refresh()?;
        self.next = self.rows()?;
        Ok(self)
    }

    /// Ends the iterator when no new row has come for this long. Without a timeout, it ends only when the writer does.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// At most this many rows in a batch.
    pub fn max_batch_rows(mut self, rows: u64) -> Self {
        self.batch_rows = Some(rows.max(1));
        self
    }

    /// Looks all the time instead of sleeping. This uses a whole processor, and shows rows some tens of microseconds
    /// earlier.
    pub fn busy_poll(mut self) -> Self {
        self.sleeps = false;
        self
    }

    /// One row at a time instead of batches.
    pub fn into_rows(self) -> RowIter<T> {
        RowIter { follow: self, ready: VecDeque::new() }
    }

    /// The first row that was not delivered.
    pub fn next_row(&self) -> u64 {
        self.next
    }

    /// Waits for new rows no longer than this, and returns which there are: at most as many as
    /// [`DatasetFollower::max_batch_rows`] says, none if nothing came. They are not read, and count as followed. Afterwards
    /// [`DatasetFollower::is_over`] says whether more can come.
    ///
    /// A caller that must look at other things meanwhile waits so in short turns.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let file = h5live::File::in_memory();
    /// let data = file.new_dataset::<u8>().unlimited_rows(&[]).create("data")?;
    /// data.append(&[1, 2, 3])?;
    /// let mut follower = data.follow::<u8>();
    /// assert_eq!(follower.poll_rows(Duration::ZERO)?, Some(0..3));
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// As those of the iterator.
    pub fn poll_rows(&mut self, max_wait: Duration) -> Result<Option<Range<u64>>> {
        let timeout = self.timeout.replace(max_wait);
        let known = self.rows().ok().filter(|rows| *rows > self.next);
        let found = known.map_or_else(|| self.wait_for_rows(), |rows| Ok(Some(rows)));
        self.timeout = timeout;
        if let Some(rows) = found? {
            let first = self.next;
            self.next = rows.min(first.saturating_add(self.batch_rows.unwrap_or(u64::MAX)));
            return Ok(Some(first..self.next));
        }
        // What was published before the writer went is found by one more look.
        self.is_over = self.writer_is_gone;
        self.writer_is_gone = self.writer_is_gone || !self.is_live()?;
        Ok(None)
    }

    /// Whether [`DatasetFollower::poll_rows`] has found that the writer is gone, and that there are no more rows.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The dimension along which rows are added.
    pub fn axis(&self) -> usize {
        self.axis
    }

    fn rows(&self) -> Result<u64> {
        Ok(self.dataset.shape()?.get(self.axis).copied().unwrap_or(0))
    }

    fn row_elements(&self) -> Result<u64> {
        let shape = self.dataset.shape()?;
        let others = shape.iter().enumerate().filter(|(dim, _)| *dim != self.axis);
        Ok(others.map(|(_, n)| *n).fold(1, u64::saturating_mul))
    }

    /// Waits for rows; `None` at the end.
    fn wait_for_rows(&mut self) -> Result<Option<u64>> {
        let until = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let longest = match self.dataset.spec()?.layout {
            Layout::Virtual(_) => MAX_VIRTUAL_WAIT,
            _ => MAX_WAIT,
        };
        let mut last = self.liveness.claim_due_check(&self.dataset.file().shared().found_live) && !self.is_live()?;
        loop {
            let looked = self.dataset.refresh().and_then(|_| self.rows());
            match (looked, self.liveness.pending_error.take_if(|_| last)) {
                (Ok(rows), ending) if rows > self.next => {
                    self.liveness.pending_error = ending.or(self.liveness.pending_error.take());
                    return Ok(Some(rows));
                }
                (_, Some(ending)) => return Err(ending),
                (looked, None) => drop(looked?),
            }
            if last {
                return Ok(None);
            }
            if !self.sleeps {
                last = !self.poll_until(until)?;
                continue;
            }
            let dataset = &self.dataset;
            let Some(watch) = &mut self.watch else {
                // Made before the look after which it is waited for more.
                let watch = dataset.file().store().watch(&[dataset.id()]);
                self.watch = Some(dataset.with_error_path(|| Ok(watch?))?);
                last = !self.is_live()?;
                continue;
            };
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let woken = dataset.with_error_path(|| Ok(watch.wait(left.unwrap_or(longest).min(longest))?))?;
            let over = until.is_some_and(|until| Instant::now() >= until);
            // What is published before the end is still seen.
            last = over || woken != WatchEvent::Changed && !self.is_live()?;
        }
    }

    /// Looks for rows until there are some, or it is time to see whether the writer still lives. Returns whether there
    /// may be more: the writer lives, and it is not `until`.
    fn poll_until(&mut self, until: Option<Instant>) -> Result<bool> {
        let pause = Instant::now() + BUSY_POLL_WAIT;
        let end = until.map_or(pause, |until| until.min(pause));
        for look in 1_u32.. {
            if Instant::now() >= end {
                break;
            }
            self.dataset.refresh()?;
            if self.rows()? > self.next {
                return Ok(true);
            }
            if look.is_multiple_of(POLLS_BEFORE_WARMUP) {
                self.warm_caches();
            }
            std::hint::spin_loop();
        }
        Ok(until.is_none_or(|until| end < until) && self.is_live()?)
    }

    /// Whether a writer may still be at work on the file, or a source, which is what its path leads to.
    fn is_live(&mut self) -> Result<bool> {
        self.liveness.defer_file_change_error(self.dataset.is_live())
    }

    /// Reads the last row once more, so that the code and data of a read stay in the processor's caches until the next
    /// row comes.
    fn warm_caches(&self) {
        let is_short = |row: usize| row <= MAX_WARMUP_BYTES;
        let is_plain = |spec: &DatasetSpec| spec.filters.is_empty() && !matches!(spec.layout, Layout::Virtual(_));
        if let Some(last) = self.next.checked_sub(1)
            && self.row_bytes().is_ok_and(is_short)
            && self.dataset.spec().is_ok_and(|spec| is_plain(&spec))
        {
            // If it cannot be read, nor can the next one.
            let _last: Result<Vec<T>> = self.read(last, 1);
        }
    }

    fn row_bytes(&self) -> Result<usize> {
        let elements = usize::try_from(self.row_elements()?).unwrap_or(usize::MAX);
        Ok(elements.saturating_mul(size_of::<T>()))
    }

    fn read(&self, first: u64, count: u64) -> Result<Vec<T>> {
        let shape = self.dataset.shape()?;
        let (mut start, mut counts) = (vec![0; shape.len()], shape);
        start[self.axis] = first;
        counts[self.axis] = count;
        self.dataset.read_slice(Selection::block(&start, &counts))
    }

    fn read_batch(&mut self, rows: u64) -> Result<Vec<T>> {
        let fit = (MAX_BATCH_BYTES / self.row_bytes()?.max(1)).max(1) as u64;
        let count = (rows - self.next).min(self.batch_rows.unwrap_or(fit));
        let values = self.read(self.next, count)?;
        self.next += count;
        Ok(values)
    }
}

impl<T: H5Type> DatasetFollower<T> {
    /// Reads rows of those before `rows`. If the first of them is in a source that its writer lets nobody read yet, waits for
    /// it; `None` if the timeout is over before.
    fn read_released(&mut self, rows: u64) -> Result<Option<Vec<T>>> {
        let until = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut end = rows;
        loop {
            match self.read_batch(end) {
                Err(error) if error.is_in_use() => {}
                batch => return batch.map(Some),
            }
            if end - self.next > 1 {
                end = self.next + (end - self.next) / 2;
                continue;
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(None);
            }
            thread::sleep(if self.sleeps { MAX_VIRTUAL_WAIT } else { BUSY_POLL_WAIT });
            end = rows;
        }
    }
}

impl<T: H5Type> Iterator for DatasetFollower<T> {
    type Item = Result<Vec<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let known = self.rows().ok().filter(|rows| *rows > self.next);
        let rows = known.map_or_else(|| self.wait_for_rows(), |rows| Ok(Some(rows)));
        let batch = rows.and_then(|rows| rows.map_or(Ok(None), |rows| self.read_released(rows)));
        self.failed = batch.is_err();
        batch.transpose()
    }
}

/// Single rows that a writer publishes, made by [`DatasetFollower::into_rows`].
#[derive(Debug)]
pub struct RowIter<T> {
    follow: DatasetFollower<T>,
    ready: VecDeque<Vec<T>>,
}

impl<T: H5Type> Iterator for RowIter<T> {
    type Item = Result<Vec<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() {
            let batch = match self.follow.next()? {
                Ok(batch) => batch,
                Err(error) => return Some(Err(error)),
            };
            let row = match self.follow.row_elements() {
                Ok(row) => usize::try_from(row).unwrap_or(usize::MAX).max(1),
                Err(error) => return Some(Err(error)),
            };
            self.ready.extend(batch.chunks(row).map(<[T]>::to_vec));
        }
        self.ready.pop_front().map(Ok)
    }
}

//! Publishing: what makes changes visible to other processes, in which order, when, and how lastingly.

mod counter;
mod shared_work;
mod ticker;
mod transaction;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use self::counter::Counter;
use self::shared_work::SharedWork;
use self::ticker::Ticker;
pub use self::transaction::Transaction;
use crate::file::Shared;
use crate::{Dataset, Error, ErrorKind, File, Result};

/// When a file publishes by itself, for [`Options::publish_every`](crate::Options::publish_every).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Every {
    /// A dataset is flushed when so many rows were appended to it since it last was.
    Rows(u64),
    /// The file is flushed when this time is over, if there is anything to publish.
    Time(Duration),
}

impl From<Duration> for Every {
    fn from(time: Duration) -> Self {
        Every::Time(time)
    }
}

/// What of a session serves publishing.
#[derive(Debug, Default)]
pub(crate) struct Publisher {
    /// Held by the flush or the transaction that is under way.
    only: Mutex<()>,
    /// Counts publications, if somebody wants that.
    counter: OnceLock<Counter>,
    durable: SharedWork,
    syncs: SharedWork,
    ticker: Mutex<Option<Ticker>>,
    /// What went wrong in the background.
    deferred: Mutex<Option<Error>>,
    closed: AtomicBool,
}

impl Publisher {
    pub(crate) fn only(&self) -> MutexGuard<'_, ()> {
        self.only.lock()
    }

    /// Ends what goes on in the background; whether the session was still open.
    pub(crate) fn close(&self) -> bool {
        *self.ticker.lock() = None;
        !self.closed.swap(true, Ordering::AcqRel)
    }

    fn defer(&self, error: Error) {
        self.deferred.lock().get_or_insert(error);
    }

    /// The error that something in the background has met since the last call.
    pub(crate) fn take_deferred(&self) -> Result<()> {
        self.deferred.lock().take().map_or(Ok(()), Err)
    }
}

impl Shared {
    /// Writes out what is staged of all datasets, and tells the store the extents.
    pub(crate) fn write_out(&self) -> Result<()> {
        self.for_each_staged(|core| core.write_out_if_there(self)).map_err(|failure| failure.named(&self.name, None))
    }

    fn error(&self, error: h5live_model::Error) -> Error {
        Error::new(&self.name, None, error)
    }

    /// Publishes everything. The caller holds [`Publisher::only`].
    pub(crate) fn publish(self: &Arc<Self>) -> Result<()> {
        self.write_out()?;
        self.store.flush().map_err(|error| self.error(error))?;
        self.count()
    }

    /// Whether this session counts publications.
    pub(crate) fn counts(&self) -> bool {
        self.options.publications.is_some() && self.options.mode.writes()
    }

    /// Counts a publication, after everything of it.
    fn count(self: &Arc<Self>) -> Result<()> {
        match self.counter()? {
            Some(counter) => counter.count(&*self.store).map_err(|error| self.error(error)),
            None => Ok(()),
        }
    }

    /// The counter of publications, if there is to be one.
    fn counter(self: &Arc<Self>) -> Result<Option<&Counter>> {
        let Some(path) = self.options.publications.as_deref().filter(|_| self.counts()) else { return Ok(None) };
        if let Some(counter) = self.publisher.counter.get() {
            return Ok(Some(counter));
        }
        let file = File::from_shared(self.clone());
        let group = match file.group(path) {
            Err(error) if error.is_not_found() => file.create_group(path)?,
            found => found?,
        };
        let counter = Counter::begin(&*self.store, group.id()).map_err(|error| self.error(error))?;
        Ok(Some(self.publisher.counter.get_or_init(|| counter)))
    }

    /// Publishes what is left before the session ends, if publications are counted.
    pub(crate) fn count_last(self: &Arc<Self>) -> Result<()> {
        if !self.counts() || self.publisher.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let _only = self.publisher.only();
        if self.has_staged() || self.store.is_dirty() { self.publish() } else { Ok(()) }
    }

    /// Starts what the options ask for in the background.
    pub(crate) fn begin_publishing(self: &Arc<Self>) {
        if let Some(every) = self.options.publish_time.filter(|_| self.options.mode.writes()) {
            match Ticker::start(self, every) {
                Ok(ticker) => *self.publisher.ticker.lock() = Some(ticker),
                Err(error) => self.publisher.defer(Error::new(&self.name, None, ErrorKind::Thread(error))),
            }
        }
    }
}

impl File {
    /// Makes the counter of publications, if there is to be one.
    pub(crate) fn begin_counting(&self) -> Result<()> {
        self.shared().counter().map(drop)
    }

    /// Writes out everything, and makes it visible to other processes of this machine, data before what leads to it.
    /// What is visible outlasts the end of this process, also a sudden one, but not a power failure.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if a write fails; what was flushed before stays readable.
    pub fn flush(&self) -> Result<()> {
        let shared = self.shared();
        shared.publisher.take_deferred()?;
        let _only = shared.publisher.only();
        shared.publish()
    }

    /// As [`File::flush`], and returns when all of it will outlast a power failure. From the first call on, every flush
    /// orders what it writes (with a barrier of the system, which takes about as long as the disk needs) so that what
    /// was durable stays so.
    ///
    /// Threads that call it at the same time share the work.
    ///
    /// # Errors
    /// As [`File::flush`].
    pub fn flush_durable(&self) -> Result<()> {
        let shared = self.shared();
        shared.publisher.take_deferred()?;
        shared.publisher.durable.have_done(|| {
            {
                let _only = shared.publisher.only();
                shared.publish()?;
            }
            // Others publish while this waits for the disk.
            shared.store.flush_durable(None).map_err(|error| shared.error(error))
        })
    }
}

impl Dataset {
    /// Writes out what was appended and written to this dataset, and makes it visible to other processes: elements
    /// first, then what leads to them, then the extent. What was flushed of datasets that it is
    /// [published after](Dataset::publish_after) comes before it.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) or [`ErrorKind::Filter`](crate::ErrorKind::Filter) if a write
    /// fails; what was flushed before stays readable.
    pub fn flush(&self) -> Result<()> {
        let shared = self.file().shared();
        shared.publisher.take_deferred()?;
        let _only = shared.publisher.only();
        self.publish()?;
        shared.count()
    }

    /// As [`Dataset::flush`], and returns when all of it will outlast a power failure, as [`File::flush_durable`] does
    /// for everything. A new dataset is found after a power failure once its group is durable: after the file was.
    ///
    /// # Errors
    /// As [`Dataset::flush`].
    pub fn flush_durable(&self) -> Result<()> {
        self.flush()?;
        let shared = self.file().shared();
        let sync = || shared.store.flush_durable(Some(self.id())).map_err(|error| shared.error(error));
        shared.publisher.syncs.have_done(sync)
    }

    /// Has rows of this dataset seen only after everything that was appended to `earlier` before them: time stamps, say,
    /// after the frames to which they belong. It holds for as long as the file is open, at each moment, and after the
    /// death of this process.
    ///
    /// Who follows both takes a look at this dataset first ([`Dataset::refresh`], or a batch of [`Dataset::follow`]) and
    /// then at `earlier`, which has all rows that belong to it then, and maybe more.
    ///
    /// ```
    /// # let file = h5live::File::in_memory();
    /// let frames = file.new_dataset::<u16>().growing(&[2, 2]).create("frames")?;
    /// let times = file.new_dataset::<f64>().growing(&[]).create("times")?;
    /// times.publish_after(&frames)?;
    /// frames.append(&[1u16, 2, 3, 4])?;
    /// times.append(&[0.1])?;
    /// times.flush()?; // the frame is there now, too
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) if `earlier` is itself published after this dataset, or is of
    /// another file.
    pub fn publish_after(&self, earlier: &Dataset) -> Result<()> {
        if !Arc::ptr_eq(self.file().shared(), earlier.file().shared()) {
            return Err(self.file().error(Some(self.path()), ErrorKind::Order("they are in different files")));
        }
        self.come_after(earlier)
    }
}

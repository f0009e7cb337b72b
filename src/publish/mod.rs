//! Publishing: what makes changes visible to other processes, in which order, when, and how lastingly.
//!
//! Here is the publication of the file, with all its datasets. That of one dataset is in `src/dataset/publish`.

mod interval;
mod publication_counter;
mod publisher;
mod shared_run;
mod timer;
mod transaction;
mod wait;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use h5live_model::{Error as ModelError, ObjectId, ObjectScope, PublishLevel};

pub use self::interval::PublishInterval;
use self::publication_counter::PublicationCounter;
pub(crate) use self::publisher::Publisher;
pub(crate) use self::timer::HandleGate;
use self::timer::PublishTimer;
pub use self::transaction::AppendTransaction;
use crate::file_shared::FileShared;
use crate::{Error, ErrorKind, File, Result, path};

impl FileShared {
    /// Hands the staged elements and extents of all datasets to the store.
    pub(crate) fn write_out(&self) -> Result<()> {
        self.for_each_staged(|core| {
            core.write_out_if_exists(self).map_err(|failure| failure.with_path(&self.name, core.path().as_deref()))
        })
    }

    /// Hands staged elements with variable-length data to the store, as far as it takes them. It deletes such data with its
    /// dataset, and knows only what it has. What fails here is still staged: the next flush tells of it.
    pub(crate) fn write_out_variable_length(&self) {
        let staged = self.staged.lock().clone();
        for core in staged.into_iter().filter_map(|id| self.cached_core(id)) {
            if core.has_variable_length_data() && !core.is_deleted() {
                let _ = core.write_out(self);
            }
        }
    }

    /// Puts the chunks through their filters that are not full, and are stored without.
    fn filter_growing_chunks(&self) -> Result<()> {
        let cores = self.dataset_cache.lock().cached_datasets();
        cores.into_iter().filter(|core| core.has_unfiltered_chunks() && !core.is_deleted()).try_for_each(|core| {
            core.ok_if_deleted(core.filter_growing_chunks(self))
                .map_err(|failure| failure.with_path(&self.name, core.path().as_deref()))
        })
    }

    fn error(&self, error: ModelError) -> Error {
        Error::new(&self.name, None, error)
    }

    /// Commits what was changed. A session that only reads has nothing to commit.
    pub(crate) fn commit(&self, scope: ObjectScope<'_>, publish: PublishLevel) -> Result<()> {
        let committed = match self.store.writer() {
            Err(ModelError::ReadOnly) => Ok(()),
            writer => writer.and_then(|writer| writer.commit(scope, publish)),
        };
        committed.map_err(|error| self.error(error))
    }

    /// Whether something was changed that is not committed, staged or not.
    pub(crate) fn is_dirty(&self) -> bool {
        self.has_staged() || self.store.writer().is_ok_and(|writer| writer.is_dirty())
    }

    /// Publishes everything. The caller holds [`Publisher::lock_publishing`].
    pub(crate) fn publish(self: &Arc<Self>) -> Result<()> {
        let published = self.write_out().and_then(|()| self.commit(ObjectScope::All, PublishLevel::Visible));
        published.map_err(|error| error.with_unpublished(|| self.unpublished_rows()))?;
        self.mark_all_published();
        self.count_publication()
    }

    /// Publishes one object that has nothing staged here.
    pub(crate) fn publish_object(self: &Arc<Self>, id: ObjectId, publish: PublishLevel) -> Result<()> {
        self.publisher.take_deferred_error()?;
        let _only = self.publisher.lock_publishing();
        self.commit(ObjectScope::Objects(&[id]), publish)?;
        self.count_publication()
    }

    /// Whether this session counts publications.
    pub(crate) fn has_counter(&self) -> bool {
        self.options.publications.is_some() && self.options.mode.writes()
    }

    /// Counts a publication, after everything of it.
    pub(crate) fn count_publication(self: &Arc<Self>) -> Result<()> {
        match self.counter()? {
            Some(counter) => counter.increment_and_publish(&*self.store).map_err(|error| self.error(error)),
            None => Ok(()),
        }
    }

    /// The counter of publications, if the options ask for one.
    fn counter(self: &Arc<Self>) -> Result<Option<&PublicationCounter>> {
        let Some(path) = self.options.publications.as_deref().filter(|_| self.has_counter()) else { return Ok(None) };
        if let Some(counter) = self.publisher.counter.get() {
            return Ok(Some(counter));
        }
        let file = File::from_shared(self.clone());
        let group = path::find_or_create_group(&file, path)?;
        let counter = PublicationCounter::resume_or_create(&*self.store, group).map_err(|error| self.error(error))?;
        Ok(Some(self.publisher.counter.get_or_init(|| counter)))
    }

    /// Publishes the rest before the session ends, if publications are counted.
    pub(crate) fn publish_final(self: &Arc<Self>) -> Result<()> {
        if !self.has_counter() || self.publisher.is_closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let _only = self.publisher.lock_publishing();
        if self.is_dirty() { self.publish() } else { Ok(()) }
    }

    /// Starts what the options ask for in the background.
    pub(crate) fn begin_publishing(self: &Arc<Self>) {
        if let Some(every) = self.options.publish_time.filter(|_| self.options.mode.writes()) {
            let (file, gate) = (Arc::downgrade(self), self.handle_gate.clone());
            let publish = move || {
                gate.run(|| publish_changes(&file));
                file.strong_count() > 0
            };
            match PublishTimer::start(every, publish) {
                Ok(ticker) => *self.publisher.ticker.lock() = Some(ticker),
                Err(error) => {
                    self.publisher.defer_error(Error::new(&self.name, None, ErrorKind::PublishThreadSpawn(error)))
                }
            }
        }
    }

    /// Flushes the other files in which elements of virtual datasets of this one were written. If one fails, it and the
    /// rest are flushed by the next call.
    pub(crate) fn flush_written_files(&self, flush: impl Fn(&File) -> Result<()>) -> Result<()> {
        // Taken out, because the sources of a virtual dataset in the other file may be in this one.
        let mut written = std::mem::take(&mut *self.written_files.lock()).into_iter();
        while let Some(other) = written.next() {
            if let Err(error) = flush(&File::from_shared(other.shared().clone())) {
                self.written_files.lock().extend(std::iter::once(other).chain(written));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Publishes the rest, and ends the session.
    fn close(&self) -> Result<()> {
        let close = || self.store.close().map_err(|error| Error::new(&self.name, None, error));
        if !self.publisher.close() {
            return close();
        }
        self.changes.drain_and_close();
        let flushed = self.flush_written_files(File::flush);
        let _only = self.publisher.lock_publishing();
        // What was accepted until here is written out; what comes later is refused.
        self.staged.begin_closing();
        let cached = self.dataset_cache.lock().cached_datasets();
        cached.iter().for_each(|core| core.wait_for_writer());
        drop(cached);
        let written = flushed.and(self.write_out()).and(self.filter_growing_chunks());
        // What is committed is published, whatever else the end of the session needs.
        let is_dirty = self.store.writer().is_ok_and(|writer| writer.is_dirty());
        let written =
            written.and_then(|()| if is_dirty { self.commit(ObjectScope::All, PublishLevel::Visible) } else { Ok(()) });
        let written = written.inspect(|()| self.mark_all_published());
        // It is closed in any case.
        let closed = written.and(close());
        let closed = closed.map_err(|error| error.with_unpublished(|| self.unpublished_rows()));
        self.dataset_cache.lock().clear();
        self.kept_open.lock().clear();
        self.publisher.take_deferred_error().and(closed)
    }
}

impl Drop for FileShared {
    /// Closes the file without reporting errors. Call [`File::close`] to get them.
    fn drop(&mut self) {
        let _ = self.close();
    }
}

/// Publishes new data, if the file is still open.
fn publish_changes(file: &Weak<FileShared>) {
    let Some(shared) = file.upgrade() else { return };
    let _only = shared.publisher.lock_publishing();
    if shared.is_dirty()
        && let Err(error) = shared.publish()
        && !matches!(error.kind(), ErrorKind::Store(ModelError::Closed))
    {
        shared.publisher.defer_error(error);
    }
}

impl File {
    /// Creates the counter of publications, if the options ask for one.
    pub(crate) fn begin_counting(&self) -> Result<()> {
        self.shared().counter().map(drop)
    }

    /// Writes everything, and makes it visible to other processes of this machine: data first, then the structures that
    /// lead to it. Visible data survives the death of this process, but not a power failure.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if a write fails; what was flushed before stays readable.
    pub fn flush(&self) -> Result<()> {
        let shared = self.shared();
        shared.flush_written_files(File::flush)?;
        shared.publisher.take_deferred_error()?;
        let _only = shared.publisher.lock_publishing();
        shared.publish()
    }

    /// As [`File::flush`]. When it returns, everything also survives a power failure. From the first call on, every
    /// flush of this session orders its writes so that durable data stays durable. For this it waits for the disk once
    /// or twice; three times if it overwrites raw data that others may be reading.
    ///
    /// Threads that call it at the same time share the work.
    ///
    /// # Errors
    /// As [`File::flush`].
    pub fn flush_durable(&self) -> Result<()> {
        let shared = self.shared();
        shared.flush_written_files(File::flush_durable)?;
        shared.publisher.take_deferred_error()?;
        shared.publisher.durable_flushes.run_shared(|| {
            {
                let _only = shared.publisher.lock_publishing();
                shared.publish()?;
            }
            // Others publish while this waits for the disk.
            shared.commit(ObjectScope::All, PublishLevel::Durable)
        })
    }

    /// Lets other processes read the file while this one goes on writing. Flushes everything that was written so far.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the file, or something in it, cannot be read while it is being written.
    pub fn start_swmr(&self) -> Result<()> {
        self.shared().publisher.take_deferred_error()?;
        let _only = self.shared().publisher.lock_publishing();
        self.shared().write_out()?;
        self.store().writer().and_then(|writer| writer.start_swmr()).map_err(|error| self.error(None, error))
    }

    /// Flushes, and ends the session for every clone. A second call does nothing.
    ///
    /// # Errors
    /// As [`File::flush`].
    pub fn close(&self) -> Result<()> {
        let counted = self.shared().publish_final();
        self.shared().close().and(counted)
    }
}

//! Waiting for publications, by their counter.

use std::time::{Duration, Instant};

use h5live_model::{Error as ModelError, ObjectId, WatchEvent};

use super::publication_counter::{self, NAME};
use crate::{File, Result, path};

/// The longest wait before it is looked whether the writer still lives.
const MAX_WAIT: Duration = Duration::from_secs(1);

impl File {
    /// The group that has the counter.
    fn counter_group(&self) -> Result<ObjectId> {
        let path = self.shared().options.publications.as_deref().unwrap_or("/");
        Ok(path::find_group(self, path)?.id)
    }

    /// The number of publications of a writer with a [publication counter](crate::Options::publication_counter). Each
    /// flush and each transaction counts. A reader that looks later (see [`Dataset::refresh`](crate::Dataset::refresh))
    /// sees everything of these publications, and maybe some of later ones.
    ///
    /// # Errors
    /// [`model::Error::NotFound`](ModelError::NotFound) if the writer does not count.
    pub fn publication_count(&self) -> Result<u64> {
        let group = self.counter_group()?;
        self.publication_of(group)
    }

    fn publication_of(&self, group: ObjectId) -> Result<u64> {
        let found = publication_counter::read_count(self.store(), group)
            .and_then(|count| count.ok_or_else(|| ModelError::NotFound(NAME.into())));
        found.map_err(|error| self.error(None, error))
    }

    /// Waits until the writer has published at least `publication` times, the writer has closed the file, or the time
    /// is over. Returns the number of publications then. See [`File::publication_count`].
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// let file = h5live::File::options().swmr_read().open("run.h5")?;
    /// let (frames, times) = (file.dataset("frames")?, file.dataset("times")?);
    /// let mut seen = file.publication_count()?;
    /// loop {
    ///     // In this order: the counter first, then what it counts.
    ///     let now = file.wait_for_publication(seen + 1, Duration::from_secs(10))?;
    ///     if now == seen {
    ///         break;
    ///     }
    ///     seen = now;
    ///     times.refresh()?;
    ///     frames.refresh()?;
    ///     println!("{} frames, {} times", frames.shape()?[0], times.shape()?[0]);
    /// }
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`File::publication_count`].
    pub fn wait_for_publication(&self, publication: u64, timeout: Duration) -> Result<u64> {
        let until = Instant::now().checked_add(timeout);
        let group = self.counter_group()?;
        let mut watch = self.store().watch(&[group]).map_err(|error| self.error(None, error))?;
        let mut last = !self.is_live()?;
        loop {
            let now = self.publication_of(group)?;
            if now >= publication || last {
                return Ok(now);
            }
            let left = until.map_or(MAX_WAIT, |until| until.saturating_duration_since(Instant::now()));
            let woken = watch.wait(left.min(MAX_WAIT)).map_err(|error| self.error(None, error))?;
            let over = until.is_some_and(|until| Instant::now() >= until);
            // Publications before the end are still seen.
            last = over || woken != WatchEvent::Changed && !self.is_live()?;
        }
    }
}

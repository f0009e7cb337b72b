//! A session that writes beside others, into a subfile of its own.

use std::sync::Arc;

use h5live_model::{Error, Layout, Mode, ObjectScope, PublishLevel, Result, Store};
use parking_lot::RwLockWriteGuard;

use super::{LogOpenRequest, LogSession};
use crate::anchor::AnchorDataset;
use crate::index_table::UNENDED_BATCH_ORDER;
use crate::log_state::LogState;
use crate::multi_writer_files::{AppendLock, MainFileUse, MultiWriterFiles};
use crate::subfile_opener::{has_live_writer, into_model_error, subfile_count};

impl LogSession {
    /// A session that writes beside others. It appends to the subfile with the number `own`, which `state` has; `inner`
    /// is the main file, to be followed.
    ///
    /// # Errors
    /// If the log is damaged; errors of the store beneath.
    pub fn joined(
        inner: Arc<dyn Store>,
        files: Arc<dyn MultiWriterFiles>,
        state: LogState,
        how: LogOpenRequest,
    ) -> Result<Self> {
        let mut session = LogSession::new(inner, Some(files), state, how)?;
        session.info.mode = Mode::SwmrWrite;
        session.info.capabilities.supports_live_reads = true;
        session.has_joined = true;
        Ok(session)
    }

    /// Takes up what other writers have published since, if what they have written says what a dataset is like. A writer
    /// that never reads does not read their logs: it needs the present extent of chunked datasets that it has not made, and
    /// nothing else of them.
    ///
    /// # Errors
    /// As [`LogSession::catch_up`].
    pub fn catch_up_if_needed(&self, anchor: &AnchorDataset) -> Result<()> {
        let is_resized = matches!(anchor.spec.layout, Layout::Chunked(_)) && !self.made.lock().contains(&anchor.number);
        if is_resized || self.state.read().has_read_all_files() {
            self.catch_up()?;
        }
        Ok(())
    }

    /// Publishes rows that were appended, before the extents of datasets become those that all writers have made: rows go
    /// behind those that there are only when they are published.
    ///
    /// # Errors
    /// As [`LogSession::commit`].
    pub fn commit_if_rows_appended(&self) -> Result<()> {
        let has_rows = self.has_joined && self.state.read().has_appended_rows();
        if has_rows { self.commit(PublishLevel::Visible) } else { Ok(()) }
    }

    /// Has this writer be the only one that appends until the batch is published, if it has rows to append: no other one
    /// gives its rows the same places. It knows then what the others have published.
    pub(super) fn lock_appends(&self) -> Result<Option<Box<dyn AppendLock>>> {
        if let Some(kept) = self.kept_places.lock().take() {
            return Ok(Some(kept));
        }
        let Some(files) = self.files.as_ref().filter(|_| self.has_joined && self.state.read().has_appended_rows())
        else {
            return Ok(None);
        };
        let lock = files.lock_appends().map_err(into_model_error)?;
        self.catch_up()?;
        Ok(Some(lock))
    }

    /// The order of the batch that is gathered, which is higher than all that the state knows, and the state.
    pub(super) fn next_order(&self) -> Result<(u64, RwLockWriteGuard<'_, LogState>)> {
        let Some(files) = self.files.as_ref().filter(|_| self.has_joined) else {
            let state = self.state.write();
            let order = state.last_batch_order().checked_add(1).filter(|order| *order < UNENDED_BATCH_ORDER);
            let order = order.ok_or_else(|| Error::Invalid("the log has the highest order of a batch".to_owned()))?;
            return Ok((order, state));
        };
        loop {
            let (own, last, knows_all) = {
                let state = self.state.read();
                (state.own_file().number, state.last_batch_order(), state.has_read_all_files())
            };
            let Some(order) = files.take_next_batch_order(own, last, knows_all).map_err(into_model_error)? else {
                self.catch_up()?;
                continue;
            };
            let state = self.state.write();
            // Otherwise a reading thread has taken up a later batch meanwhile.
            if order > state.last_batch_order() {
                return Ok((order, state));
            }
        }
    }

    /// Ends writing beside others. The last writer leaves the main file as one that nobody writes.
    pub(super) fn leave(&self) -> Result<()> {
        let Some(files) = &self.files else { return Ok(()) };
        let left = self.leave_files(&**files);
        files.release_presence();
        left
    }

    fn leave_files(&self, files: &dyn MultiWriterFiles) -> Result<()> {
        self.commit_entries(PublishLevel::Visible)?;
        if !self.changed_extents.lock().is_empty() {
            // Others may have changed them later.
            self.catch_up()?;
        }
        self.save_table()?;
        // Objects that never got a link are forgotten.
        drop(self.turn.lock().take());
        let mut lease = files.lease().map_err(into_model_error)?;
        let (own, subfile) = self.own_file();
        // Whoever joins finds this writer, or finds it gone.
        subfile.close()?;
        let group = self.state.read().main_log_group();
        self.inner.refresh(ObjectScope::Objects(&[group]))?;
        let count = subfile_count(&*self.inner, group)?;
        let is_in_use = |number: u32| has_live_writer(files.open_subfile(number, Mode::Read, false));
        // Writers often leave in the order in which they came: those that came next are still there.
        let usage =
            if (own + 1..=count).chain(1..own).any(is_in_use) { MainFileUse::Turn } else { MainFileUse::LastWriter };
        if usage == MainFileUse::LastWriter {
            for number in 1..=count {
                files
                    .open_subfile(number, Mode::SwmrWrite, false)
                    .and_then(|file| Ok(file.close()?))
                    .map_err(into_model_error)?;
            }
        }
        let main = lease.open_main_for_writing(usage).map_err(into_model_error)?;
        self.update_anchors(&*main)?;
        // Not before: meanwhile the file is in use.
        lease.close_main_and_release().map_err(into_model_error)
    }
}

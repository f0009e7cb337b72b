//! Taking up what other writers have published.

use h5live_model::{Mode, ObjectScope, Result};

use super::LogSession;
use crate::layout::LogLayout;
use crate::log_state::LogState;
use crate::subfile_opener::SubfileOpener;

impl LogSession {
    /// Takes up what other writers have published since.
    ///
    /// # Errors
    /// If the log is damaged; errors of the store beneath.
    pub fn catch_up(&self) -> Result<bool> {
        let follows = self.has_joined || self.info.mode == Mode::SwmrRead;
        if !follows || self.layout == LogLayout::LogVol {
            return Ok(false);
        }
        let mut state = self.state.write();
        // After an error, what was read waits until the files can be read.
        self.read_published(&mut state)?;
        let Some(last) = state.last_waiting_order() else { return Ok(false) };
        // Batches before these may have been published in files that were read earlier.
        let last = if state.files().len() > 1 { self.read_up_to(&mut state, last)? } else { last };
        state.apply_waiting_up_to(last)?;
        Ok(true)
    }

    /// Reads until no batch with an order up to `last` is new. There are few: each writer has at most one that it has not
    /// published. Returns the order up to which no batch is missing that comes before one that waits.
    fn read_up_to(&self, state: &mut LogState, last: u64) -> Result<u64> {
        loop {
            let before = [last, u64::MAX].map(|last| state.waiting_batch_count_up_to(last));
            self.read_published(state)?;
            match [last, u64::MAX].map(|last| state.waiting_batch_count_up_to(last)) {
                // Nobody publishes at this moment.
                after if after == before => return Ok(u64::MAX),
                [after, _] if after == before[0] => return Ok(last),
                _ => {}
            }
        }
    }

    /// Reads what others have published in all files, those that are new first.
    fn read_published(&self, state: &mut LogState) -> Result<()> {
        let group = state.main_log_group();
        // Before the files: what is published after this look has a higher number.
        let last_orders = self.files.as_ref().filter(|_| self.has_joined).map(|files| files.last_batch_orders());
        self.inner.refresh(ObjectScope::Objects(&[group]))?;
        let mut subfiles = SubfileOpener::for_following(self.files.as_deref());
        subfiles.add_unopened_subfiles(&*self.inner, group, state, self.max_allocation)?;
        state.queue_published_batches(self.has_joined, &last_orders.unwrap_or_default(), self.max_allocation)
    }
}

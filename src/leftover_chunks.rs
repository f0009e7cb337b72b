//! The repair of a file whose writer has died, and of the chunks that it has left without filters.

use h5live_model::{Location, ResolvedLocation};

use crate::recovery::diagnose_at;
use crate::{FileOpenState, Object, Options, RepairReport, Result, WalkItem};

impl Options {
    /// As [`repair`](crate::repair()), with these options.
    ///
    /// # Errors
    /// As [`repair`](crate::repair()).
    pub fn repair(&self, location: impl Into<Location>) -> Result<RepairReport> {
        let at = self.resolve_location(&location.into())?;
        let name = at.location().to_string();
        let repaired = self.repair_at(&at).map_err(|error| crate::Error::new(&name, None, error))?;
        if repaired.before.open_state != (FileOpenState::Abandoned { live: true }) {
            return Ok(repaired);
        }
        let left = self.filter_leftover_chunks(&at)?;
        let after = diagnose_at(&at).map_err(|error| crate::Error::new(&name, None, error))?;
        Ok(RepairReport { after, unrepaired: left, ..repaired })
    }

    /// Puts the chunks through their filters that a dead writer has left without, because they were not full. What cannot
    /// be read, or has filters that are not known here, is left as it is. Returns what that is, and why.
    fn filter_leftover_chunks(&self, at: &ResolvedLocation) -> Result<Vec<String>> {
        let file = self.clone().recover(false).write().open(at.location().clone())?;
        let mut left = Vec::new();
        for item in file.walk() {
            let done = item.and_then(|item| match item {
                WalkItem::Object(Object::Dataset(dataset)) => dataset.filter_leftover_chunks().map(drop),
                _ => Ok(()),
            });
            left.extend(done.err().map(|error| format!("{error:#}")));
        }
        file.close()?;
        Ok(left)
    }
}

//! The repair of a file whose writer has died, and of the chunks that it has left without filters.

use h5live_model::{Location, ResolvedLocation};

use crate::recovery::diagnose_at;
use crate::{FileCondition, Object, Options, Repair, Result, WalkItem};

impl Options {
    /// As [`repair`](crate::repair()), with these options.
    ///
    /// # Errors
    /// As [`repair`](crate::repair()).
    pub fn repair(&self, location: impl Into<Location>) -> Result<Repair> {
        let at = self.resolve(&location.into())?;
        let name = at.location().to_string();
        let repaired = self.repair_at(&at).map_err(|error| crate::Error::new(&name, None, error))?;
        if repaired.before.condition != (FileCondition::Abandoned { live: true }) {
            return Ok(repaired);
        }
        self.filter_leftover_chunks(&at)?;
        let after = diagnose_at(&at).map_err(|error| crate::Error::new(&name, None, error))?;
        Ok(Repair { after, ..repaired })
    }

    /// Puts the chunks through their filters that a dead writer has left without, because they were not full. What cannot
    /// be read, or has filters that are not known here, is left as it is.
    fn filter_leftover_chunks(&self, at: &ResolvedLocation) -> Result<()> {
        let file = self.clone().recover(false).write().open(at.location().clone())?;
        for item in file.walk() {
            if let Ok(WalkItem::Object(Object::Dataset(dataset))) = item {
                let _left = dataset.filter_leftover_chunks();
            }
        }
        file.close()
    }
}

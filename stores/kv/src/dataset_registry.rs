//! The datasets that a session has open: each once.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use h5live_model::{ObjectId, Result};

use crate::dataset::KvDataset;
use crate::last_decoded_spec::LastDecodedSpec;
use crate::primitive::Mutex;
use crate::session::KvSession;

/// Datasets after which those are forgotten that nobody has open any more; then each time their number has doubled.
const MIN_FORGOTTEN: usize = 64;

/// The datasets that a session has open.
#[derive(Debug, Default)]
pub struct DatasetRegistry(Mutex<OpenDatasets>);

#[derive(Debug, Default)]
struct OpenDatasets {
    by_id: HashMap<ObjectId, Weak<KvDataset>>,
    last_decoded: LastDecodedSpec,
}

impl DatasetRegistry {
    /// The dataset with this identity, as it is shared.
    ///
    /// # Errors
    /// [`h5live_model::Error::NoObject`], [`h5live_model::Error::WrongKind`], [`h5live_model::Error::Closed`].
    pub fn get_or_open(&self, session: &Arc<KvSession>, id: ObjectId) -> Result<Arc<KvDataset>> {
        session.check_open()?;
        let OpenDatasets { by_id, last_decoded } = &mut *self.0.lock();
        if let Some(dataset) = by_id.get(&id).and_then(Weak::upgrade) {
            return Ok(dataset);
        }
        let dataset = Arc::new(KvDataset::open(session, id, last_decoded)?);
        if by_id.len() >= MIN_FORGOTTEN && by_id.len().is_power_of_two() {
            by_id.retain(|_, dataset| dataset.strong_count() > 0);
        }
        by_id.insert(id, Arc::downgrade(&dataset));
        Ok(dataset)
    }

    /// The datasets that are open.
    pub fn all(&self) -> Vec<Arc<KvDataset>> {
        self.0.lock().by_id.values().filter_map(Weak::upgrade).collect()
    }
}

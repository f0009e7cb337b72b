//! The description of a dataset that a session has decoded last.

use std::sync::Arc;

use h5live_model::{DatasetSpec, Result};

use crate::layout::MetadataRecords;

/// The description that was decoded last, with its records. Datasets that are alike share one description.
#[derive(Debug, Default)]
pub struct LastDecodedSpec(Option<(MetadataRecords, Arc<DatasetSpec>)>);

impl LastDecodedSpec {
    /// The description of these records, which `decode` makes of them unless they were decoded last.
    ///
    /// # Errors
    /// Those of `decode`.
    pub fn get_or_decode(
        &mut self,
        records: MetadataRecords,
        decode: impl FnOnce(&MetadataRecords) -> Result<Arc<DatasetSpec>>,
    ) -> Result<Arc<DatasetSpec>> {
        if let Some((_, spec)) = self.0.as_ref().filter(|(last, _)| *last == records) {
            return Ok(spec.clone());
        }
        let spec = decode(&records)?;
        self.0 = Some((records, spec.clone()));
        Ok(spec)
    }
}

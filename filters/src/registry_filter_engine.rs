//! Filters for structures of a store that went through some.

use std::fmt;
use std::sync::Arc;

use h5live_model::{AllocationLimit, FilterEngine, FilterResult, FilterSpec, UnknownFilter, UnsupportedFilterData};

use crate::{Error, Pipeline, Registry};

/// Applies and undoes the filters of a registry, for stores and checkers, which know none.
#[derive(Clone)]
pub struct RegistryFilterEngine {
    registry: Arc<Registry>,
    limit: AllocationLimit,
}

impl RegistryFilterEngine {
    /// The filters of a registry. What they decode may have as many bytes as `limit` says.
    pub fn new(registry: Arc<Registry>, limit: AllocationLimit) -> Self {
        RegistryFilterEngine { registry, limit }
    }
}

impl fmt::Debug for RegistryFilterEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegistryFilterEngine")
    }
}

impl FilterEngine for RegistryFilterEngine {
    fn unfilter(
        &self,
        filters: &[FilterSpec],
        mask: u32,
        bytes: Vec<u8>,
        size: u64,
    ) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        let size = self.limit.check(size)?;
        let decoded = Pipeline::new(filters, &self.registry).and_then(|pipeline| pipeline.decode(mask, &bytes, size));
        decoded.map_err(|error| match error {
            Error::Unavailable { id, .. } => UnknownFilter(id).into(),
            error if error.is_unsupported_data_or_oom() => UnsupportedFilterData(error.into()).into(),
            error => error.into(),
        })
    }

    fn filter(&self, filters: &[FilterSpec], bytes: &[u8]) -> FilterResult {
        Ok(Pipeline::new(filters, &self.registry)?.encode(bytes)?)
    }
}

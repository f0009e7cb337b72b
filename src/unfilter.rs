//! Filters for structures of a store that went through some.

use std::sync::Arc;

use h5live_filters::{Error as FilterError, Pipeline, Registry};
use h5live_model::{AllocationLimit, FilterResult, FilterSpec, Unfilter, UnknownFilter, UnsupportedFilterData};

/// Applies and undoes the filters that a file was opened with.
#[derive(Clone)]
pub(crate) struct RegistryFilters {
    /// The filters.
    pub registry: Arc<Registry>,
    /// Most bytes of such a structure.
    pub limit: AllocationLimit,
}

impl std::fmt::Debug for RegistryFilters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Known")
    }
}

impl Unfilter for RegistryFilters {
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
            FilterError::Unavailable { id, .. } => UnknownFilter(id).into(),
            error if error.is_unsupported() => UnsupportedFilterData(error.into()).into(),
            error => error.into(),
        })
    }

    fn filter(&self, filters: &[FilterSpec], bytes: &[u8]) -> FilterResult {
        Ok(Pipeline::new(filters, &self.registry)?.encode(bytes)?)
    }
}

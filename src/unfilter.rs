//! Filters for structures of a store that went through some.

use std::sync::Arc;

use h5live_filters::{Pipeline, Registry};
use h5live_model::{FilterResult, FilterSpec, Unfilter};

/// Most bytes of such a structure.
const MAX_UNFILTERED_BYTES: u64 = 64 << 20;

/// Applies and undoes the filters that a file was opened with.
#[derive(Clone)]
pub(crate) struct RegistryFilters(pub Arc<Registry>);

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
        if size > MAX_UNFILTERED_BYTES {
            return Err(
                format!("a structure behind filters has at most {MAX_UNFILTERED_BYTES} bytes, and not {size}").into()
            );
        }
        Ok(Pipeline::new(filters, &self.0)?.decode(mask, &bytes, usize::try_from(size)?)?)
    }

    fn filter(&self, filters: &[FilterSpec], bytes: &[u8]) -> FilterResult {
        Ok(Pipeline::new(filters, &self.0)?.encode(bytes)?)
    }
}

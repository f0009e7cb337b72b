//! What tests of stores have in common.

use std::sync::Arc;

use h5live_filters::{Pipeline, Registry};
use h5live_hsds::HsdsOpenRequest;
use h5live_model::{AllocationLimit, FilterEngine, FilterResult, FilterSpec, Mode, ObjectSpec};

/// The filters of this project, below the seam.
#[derive(Debug)]
struct Filters;

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl FilterEngine for Filters {
    fn unfilter(&self, filters: &[FilterSpec], mask: u32, bytes: Vec<u8>, size: u64) -> Result<Vec<u8>, Failure> {
        Ok(Pipeline::new(filters, &Registry::default())?.decode(mask, &bytes, size as usize)?)
    }

    fn filter(&self, filters: &[FilterSpec], bytes: &[u8]) -> FilterResult {
        Ok(Pipeline::new(filters, &Registry::default())?.encode(bytes)?)
    }
}

/// Opens a domain like this.
pub fn request(mode: Mode, domain: &str) -> HsdsOpenRequest {
    HsdsOpenRequest {
        mode,
        root: ObjectSpec::group(),
        domain: domain.to_owned(),
        new_domain_owner: "test_user1".to_owned(),
        creates_draft: false,
        acl_user: None,
        shard_above: 0,
        cache_bytes: 128 << 20,
        max_allocation: AllocationLimit::default(),
        filter_engine: Arc::new(Filters),
    }
}

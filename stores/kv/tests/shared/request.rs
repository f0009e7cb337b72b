//! A request that opens a container.

use std::sync::Arc;

use h5live_kv::KvRequest;
use h5live_model::{AllocationLimit, Durability, Mode, NoFilters, ObjectSpec};

/// How a container is opened.
pub fn request(mode: Mode, durability: Durability, random: u64) -> KvRequest {
    KvRequest {
        mode,
        root: ObjectSpec::group(),
        durability,
        max_allocation: AllocationLimit::default(),
        unfilter: Arc::new(NoFilters),
        max_uncommitted: KvRequest::MAX_UNCOMMITTED,
        random,
        checksums: true,
    }
}

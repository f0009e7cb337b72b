//! A request that opens a container.

use std::sync::Arc;

use h5live_kv::KvOpenRequest;
use h5live_model::{AllocationLimit, DurabilitySupport, Mode, NoFilters, ObjectSpec};

/// How a container is opened.
pub fn request(mode: Mode, durability: DurabilitySupport, random: u64) -> KvOpenRequest {
    KvOpenRequest {
        mode,
        root: ObjectSpec::group(),
        durability,
        max_allocation: AllocationLimit::default(),
        filter_engine: Arc::new(NoFilters),
        max_uncommitted_bytes: KvOpenRequest::DEFAULT_MAX_UNCOMMITTED_BYTES,
        blob_id_seed: random,
        checksum_new_container: true,
    }
}

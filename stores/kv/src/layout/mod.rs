//! Keys and values of a container, without input or output. `docs/kv-layout.md` has the bytes.
//!
//! A container is a set of records. A record has an object, a *distribution key* (dkey) and an *attribute key* (akey),
//! as DAOS has them, and a value. [`RecordKey`] names the dkeys and akeys that the layout has. An engine of ordered keys
//! has one byte string instead of the three: [`EngineKey`]. [`key`] makes these keys and the ranges that scans need.
//! [`oid`] has the identities of objects.
//!
//! [`MetadataRecords`] and [`AttributeRecords`] make records of descriptions of objects and of attributes, and back. They
//! use [`encode`], which has what libhdf5 encodes, and [`value`], which has the rest.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

mod attribute_records;
mod auto_chunks;
mod checksum;
mod container;
pub mod encode;
mod engine_key;
mod error;
mod extras;
mod fields;
pub mod key;
mod map_dkey;
pub mod names;
mod object_records;
pub mod oid;
mod oid_allocator;
mod ordered;
mod record_key;
pub mod value;

pub use attribute_records::AttributeRecords;
pub use auto_chunks::large_contiguous_chunk_dims;
pub use checksum::{CHECKSUM_BYTES, checked_value, checksum};
pub use container::{ContainerId, container_id};
pub use engine_key::{EngineKey, EngineKeyRange};
pub use error::{RecordFormatError, Result};
pub use fields::{AttributeField, MetadataField};
pub use map_dkey::{map_dkey, map_key_of_dkey};
pub use object_records::{MetadataRecords, chunk_dims_if_large_contiguous};
pub use oid_allocator::{OidAllocator, OidCounter};
pub use record_key::{BlobId, RecordKey};

/// Bytes of a piece of a chunk without filters. The last piece of a chunk is shorter if the chunk ends in it.
pub const CHUNK_PIECE_BYTES: u64 = 64 << 10;

//! Objects of the schema and their bytes. Nothing here reads or writes anything.

#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod access;
mod attribute;
mod creation;
mod creation_order;
mod dataspace;
mod datatype;
mod document;
mod domain;
mod domain_path;
mod elements;
mod entries;
mod entry_storage;
mod error;
mod extras;
mod filters;
mod frame;
mod id;
mod json;
mod link;
mod references;
mod shard_id;
mod shards;
mod shown_selection;
mod value;

pub use access::{AccessRights, AclRight, DEFAULT_ACL_USER};
pub use attribute::{AttributeContent, DatatypeAndCommittedId};
pub use datatype::MODEL_VLEN_AND_REFERENCE_SIZES;
pub use document::ObjectDocument;
pub use domain::DomainDocument;
pub use domain_path::{OBJECTS_FOLDER, OWN_NAME_PREFIX, check_domain_path};
pub use elements::{ElementCodec, StoredTokenNumbers, VarLenContent, VarLenElementTable, VarLenToken};
pub use error::{LayoutError, Result};
pub use filters::ChunkEncoding;
pub use frame::{blosc_frame_data_len, blosc_frame_without_compression};
pub use id::{DOMAIN_FILE, DomainId, INFO_FILE, SUMMARY_FILES, chunk_of_key_suffix, chunk_of_name, kind, object_id};
pub use json::Members;
pub use references::{variable_length_reference_bytes, varlen_reference_from_bytes};
pub use shard_id::{LinksOrAttributes, ShardId};
pub use shards::{EntryQuery, ShardingThreshold, StagedShards};

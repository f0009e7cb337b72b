//! The object store: the HDF5 data model as objects, in the schema of the Highly Scalable Data Service (HSDS), so that the
//! service reads what h5live writes, and h5live what the service has written.
//!
//! [`layout`] describes the objects and their bytes; `docs/hsds-layout.md` says what is written byte by byte.
//! [`engine`] keeps objects. [`HsdsStore`] is a session on a domain, which is what HDF5 calls a file.
//!
//! Source: "Object Storage Schema for HDF5" (`specs/object-store-hsds.md` of the shared documents).

mod acl;
mod byte_bounded_fifo_cache;
mod check;
mod chunk_codec;
mod chunk_links;
#[cfg(feature = "clouds")]
mod cloud_connector;
#[cfg(feature = "clouds")]
mod cloud_options;
#[cfg(feature = "clouds")]
mod cloud_place;
mod commit;
mod connector;
mod dataset;
mod decoded_chunk_cache;
mod domains;
pub mod engine;
mod error;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod fuzz;
mod holders;
pub mod layout;
mod linked_hdf5_chunks;
mod lost_domains;
mod maintenance;
mod object_edits;
mod objects;
mod open_domain;
mod opened_stores;
mod options;
mod place;
mod random;
mod references;
mod run_length_token_map;
mod session;
mod shards;
mod small_chunk_read_ahead;
mod state;
mod store;
mod summary;
mod watch;

pub use acl::{read_visible_acl, set_user_access};
pub use check::HsdsFault;
pub use chunk_links::{NativeChunkFile, native_file_uri};
#[cfg(feature = "clouds")]
pub use cloud_connector::HsdsCloudConnector;
#[cfg(feature = "clouds")]
pub use cloud_options::HsdsCloud;
pub use connector::HsdsFolderConnector;
pub use domains::{
    DomainEntry, DomainEntryKind, DomainFolder, RemovedDomain, StoredSize, move_domain, remove_domain_or_empty_folder,
};
pub use error::HsdsError;
pub use lost_domains::{delete_lost_domains, find_lost_domains};
pub use opened_stores::LastOpenedStore;
pub use options::Hsds;
pub use session::HsdsOpenRequest;
pub use store::HsdsStore;

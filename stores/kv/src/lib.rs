//! The key-value store: the HDF5 data model as keys and values, laid out as the DAOS connector lays it out.
//!
//! [`layout`] says which keys and values a container has; `docs/kv-layout.md` describes them byte by byte. [`engine`]
//! keeps ordered keys and values, and makes changes of many of them at once. [`KvStore`] is a session on a container in
//! an engine.
//!
//! Source: "HDF5 DAOS VOL Connector Design" (`specs/kv-daos-vol.md` of the shared documents).

mod blob_ids;
mod check;
mod chunk_records;
#[cfg(feature = "lmdb")]
mod connector;
mod contiguous_cut;
mod creation_order;
mod dataset;
mod dataset_registry;
mod element_blobs;
pub mod engine;
mod error;
#[cfg(feature = "lmdb")]
mod folder_watch;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod fuzz;
mod last_decoded_spec;
pub mod layout;
#[cfg(feature = "lmdb")]
mod maintenance;
mod map_records;
mod map_spec_cache;
mod maps;
mod object_edits;
mod objects;
#[cfg(any(feature = "lmdb", feature = "slatedb"))]
mod open_session;
#[cfg(feature = "lmdb")]
mod options;
mod primitive;
#[cfg(any(feature = "lmdb", feature = "slatedb"))]
mod random;
mod session;
#[cfg(feature = "slatedb")]
mod slate_connector;
#[cfg(feature = "slatedb")]
mod slate_options;
#[cfg(feature = "lmdb")]
mod stat;
mod state;
mod store;
mod tracked_orders;
mod watch;

pub use check::{ChunkFault, CreationOrderFault, KvFault, check_container};
#[cfg(feature = "lmdb")]
pub use connector::LmdbConnector;
pub use engine::SyncPolicy;
#[cfg(feature = "lmdb")]
pub use engine::{DurableState, LmdbReaderEntry, LmdbStat, WriterLock};
pub use error::KvError;
#[cfg(feature = "lmdb")]
pub use options::Kv;
pub use session::KvOpenRequest;
#[cfg(feature = "slatedb")]
pub use slate_connector::SlateConnector;
#[cfg(feature = "slatedb")]
pub use slate_options::KvSlate;
#[cfg(feature = "lmdb")]
pub use stat::{KvStat, RecordKindStat};
pub use store::KvStore;

//! The log store: an HDF5 file in which the elements of datasets are appended to a log instead of being put in their
//! place.
//!
//! A [`LogConnector`] opens `log:run.h5`. The store is a layer on the store of native files. Groups, links, attributes
//! and committed datatypes are those of the file. A dataset is an [`anchor`], and its elements are in
//! entries ([`entry`]) of the log, which lies in log datasets ([`log_datasets`]). Where entries overlap, the later one counts.
//! The log may also lie in the file as the program Log VOL 1.4.0 has it ([`layout`]). `docs/log-format.md` describes both.
//!
//! Source: "Design of log VOL" (`specs/log-vol.md` of the shared documents).

pub mod anchor;
mod background_write;
mod blobs;
mod box_tree;
mod boxes;
mod check;
mod chunks;
mod connector;
mod copies;
mod coverage;
mod decoding_chunk_store;
mod encode;
pub mod entry;
mod entry_box_index;
mod entry_writer;
mod error;
mod gather;
mod index_table;
mod info;
mod joining;
pub mod layout;
mod leased_main_file;
pub mod local_multi_writer_files;
mod log_bytes;
pub mod log_datasets;
mod log_file;
mod log_state;
mod log_vol;
mod log_vol_anchor;
mod log_vol_entry;
mod log_vol_root_attribute;
mod log_vol_writer;
mod logged_dataset;
mod mapped_copies;
pub mod multi_writer_files;
mod mutant;
pub mod names;
mod opening;
mod options;
mod order_file;
mod parallel;
pub mod position;
mod row_shift;
mod session;
mod store;
mod strided_copy;
mod subfile_opener;
mod verify;
mod watch;
mod writer;

pub use connector::LogConnector;
pub use encode::EntryFilter;
pub use error::LogError;
pub use info::{LogFileInfo, LogInfo};
pub use layout::LogLayout;
pub use mutant::LogMutant;
pub use options::Log;
pub use session::LogOpenRequest;
pub use store::LogStore;

/// The version of the layout that this program writes.
pub const LAYOUT_VERSION: i64 = 1;

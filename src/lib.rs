//! HDF5 files that stay readable while they are being written.
//!
//! One process appends to a file, and others follow it, without talking to each other. The files are standard HDF5.
//!
//! ```
//! use h5live::File;
//!
//! let file = File::in_memory();
//! let log = file.new_dataset::<f64>().unlimited_rows(&[3]).create("log")?;
//! log.append(&[0.1, 0.2, 0.3])?;
//! log.append(&[1.1, 1.2, 1.3])?;
//! file.flush()?;
//! assert_eq!(log.shape()?, [2, 3]);
//! assert_eq!(log.read_slice::<f32>((.., 0))?, [0.1, 1.1]);
//! # Ok::<(), h5live::Error>(())
//! ```

#[cfg(test)]
extern crate self as h5live;

mod attribute;
mod convert;
mod copy;
mod dataset;
mod dataset_builder;
mod dataset_cache;
mod dimension_scales;
mod dims;
mod error;
mod file;
mod file_shared;
mod file_waiter;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod fuzz;
mod group;
mod group_builder;
mod group_follow;
mod link_rules;
mod linked_files;
mod liveness_check;
mod named_type;
#[cfg(feature = "ndarray")]
mod ndarray_support;
mod object;
mod open;
mod open_file;
mod options;
mod path;
mod publish;
mod recovery;
mod reference;
mod referent;
mod select;
mod types;
mod unfilter;
mod value;
mod walk;

pub use h5live_derive::H5Type;
pub use h5live_filters as filters;
pub use h5live_model as model;
pub use h5live_model::{
    ByteOrder, ConnectorRegistry, DatasetView, Datatype, Diagnosis, FileChange, FileCondition, Holder, Invariant,
    LibVer, Location, Mode, OpenError, Repair, Selection, Stats, StoreErrorKind, UNLIMITED, UnknownLibVer,
};

pub use attribute::{Attribute, AttributeBuilder};
pub use convert::{Conversion, ConvertError, InexactValue};
pub use copy::{Copier, CopyReport, FileNameUse, UnfitFillValue, UnverifiedChunks};
pub use dataset::{Dataset, DatasetFollower, SourceState};
pub use dataset_builder::DatasetBuilder;
pub use error::{Error, ErrorKind, Result, UnpublishedRows};
pub use file::File;
pub use file_waiter::{AwaitedChange, FileWaiter};
pub use group::Group;
pub use group_builder::GroupBuilder;
pub use group_follow::GroupFollower;
pub use link_rules::{Links, MAX_LINKS};
pub use named_type::NamedType;
pub use object::Object;
pub use open::{Locking, Native};
pub use options::Options;
pub use publish::{PublishInterval, Transaction};
pub use recovery::{diagnose, repair};
pub use reference::Reference;
pub use referent::ReferenceTarget;
pub use select::{Select, SelectDim};
pub use types::{FixedStr, H5Type, Heap};
pub use value::Value;
pub use walk::{Walk, WalkItem};

/// The items that the code written by `derive(H5Type)` uses.
#[doc(hidden)]
pub mod derived {
    pub use crate::convert::derive_support::*;
    pub use crate::types::{part, part_mut};
}

const _: () = {
    const fn shared_by_threads<T: Send + Sync>() {}
    shared_by_threads::<File>();
    shared_by_threads::<Group>();
    shared_by_threads::<Dataset>();
    shared_by_threads::<Attribute>();
    shared_by_threads::<Error>();
};

/// The examples of the README are tested with the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// So are the recipes of the guide.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../docs/guide/crash.md")]
    struct Crash;
    #[doc = include_str!("../docs/guide/detector-frames.md")]
    struct DetectorFrames;
    #[doc = include_str!("../docs/guide/durable.md")]
    struct Durable;
    #[doc = include_str!("../docs/guide/gui-thread.md")]
    struct GuiThread;
    #[doc = include_str!("../docs/guide/in-step.md")]
    struct InStep;
}

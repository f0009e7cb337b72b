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
//!
//! [`Select`] lists what selects elements: ranges and indices of any integer type, steps, points and masks. [`H5Type`]
//! lists the types of elements: numbers, `bool`, [`String`] (written from `&str`, too), arrays, `Vec`s, and structs and
//! enums that derive it. [`Value`] is an element of any type. [`Dataset::iter_chunks`] goes through data that is larger
//! than the memory.
//!
//! # Features
//!
//! `log` is on by default.
//!
//! | feature | what it adds |
//! |---|---|
//! | `log` | files with a log, to which many processes append: `log:run.h5` |
//! | `kv`, `kv-slatedb` | key-value stores: `kv:run`; `kv+s3://bucket/run` and others on object stores |
//! | `hsds`, `hsds-clouds` | objects in HSDS's schema: `hsds:run`; `hsds+s3://bucket/run` and others on object stores |
//! | `remote` | HDF5 files on object stores and web servers: `s3://bucket/run.h5`, `https://host/run.h5` |
//! | `served` | the files of an `h5live serve`: `h5live+http://host:port/run.h5` |
//! | `archive` | [`archive`]: training sets, archives of many files that are read at random |
//! | `ndarray` | `Dataset::read_array` and its kin: arrays of the crate `ndarray`, `s![..]` and arrays of `bool` as selections |
//! | `half` | `f16` and `bf16` of the crate `half` as elements |
//! | `serde` | `Dataset::read_rows`: rows as structs that derive `Deserialize`; `Serialize` of [`Value`] |
//!
//! With `ndarray`, arrays keep their shape, and single indices drop a dimension:
//!
//! ```
//! use h5live::File;
//! use ndarray::{Array1, Array2, Array3, s};
//!
//! let file = File::in_memory();
//! let frames = file.new_dataset::<u16>().unlimited_rows(&[3, 4]).create("frames")?;
//! for n in 0..5 {
//!     frames.append_array(&Array2::from_elem((3, 4), n))?;
//! }
//! let all: Array3<f32> = frames.read_array()?;
//! let frame: Array2<u16> = frames.read_array_slice(4)?;
//! let pixel: Array1<u16> = frames.read_array_slice((.., 0, 1))?;
//! let thumbnail: Array2<u16> = frames.read_array_slice(s![-1, ..;2, ..;2])?;
//! assert_eq!((all.dim(), frame.dim(), thumbnail.dim()), ((5, 3, 4), (3, 4), (2, 2)));
//! assert_eq!(pixel.to_vec(), [0, 1, 2, 3, 4]);
//! # Ok::<(), h5live::Error>(())
//! ```
//!
//! With `half`, floats of 16 bits take half the space, and are read as wider ones, too:
//!
//! ```
//! use h5live::File;
//! use half::{bf16, f16};
//!
//! let file = File::in_memory();
//! let weights = file.new_dataset::<f16>().shape(&[2]).create("weights")?;
//! weights.write(&[f16::from_f32(0.5), f16::ONE])?;
//! assert_eq!(weights.read::<f64>()?, [0.5, 1.0]);
//! assert_eq!(weights.read::<bf16>()?, [bf16::from_f32(0.5), bf16::ONE]);
//! # Ok::<(), h5live::Error>(())
//! ```
//!
//! # Builds for development
//!
//! Without optimisation, reading takes many times as long. This in the `Cargo.toml` of your program optimises h5live and
//! all other dependencies, but not your own code:
//!
//! ```toml
//! [profile.dev.package."*"]
//! opt-level = 3
//! ```

#![deny(missing_debug_implementations)]

#[cfg(any(test, feature = "archive"))]
extern crate self as h5live;

#[cfg(feature = "archive")]
pub mod archive;
mod attribute;
mod change_gate;
mod chunk_guess;
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
mod leftover_chunks;
mod link_rules;
mod linked_files;
mod liveness_check;
mod machine_memory;
mod map;
mod memory_budget;
mod missing_sources;
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
#[cfg(feature = "serde")]
mod serde_value;
mod superseded_blobs;
mod types;
mod value;
mod walk;

pub use h5live_derive::H5Type;
pub use h5live_filters as filters;
pub use h5live_model as model;
pub use h5live_model::{
    ByteOrder, ConnectorRegistry, DatasetView, DatasetViewPart, Datatype, FileDiagnosis, FileHolderProcess,
    FileOpenState, ForeignFileChange, Leak, LeakLocation, LibVer, Location, MapPrefetch, Mode, OpenError,
    ReclaimReport, RepairReport, Selection, Stats, StoreCheckOptions, StoreCheckReport, StoreErrorKind, StoreFinding,
    SwmrInvariant, UNLIMITED, UnknownLibVer,
};

pub use attribute::{Attribute, AttributeBuilder, AttributeValue};
pub use change_gate::OngoingWriteGuard;
pub use convert::{ConversionPolicy, ConvertError, InexactValue};
pub use copy::{
    Copier, CopyReport, DatasetInCopy, DroppedFillValue, LostMetadata, LostReferences, ObjectMetadataKind,
    ReferencedFileRole, SkippedItem, UndecodableChunks,
};
pub use dataset::{ChunkSelectionIter, Dataset, DatasetFollower, SourceState};
pub use dataset_builder::DatasetBuilder;
pub use error::{Error, ErrorKind, Result, UnpublishedRows};
pub use file::File;
pub use file_waiter::{AwaitedChange, FileWaiter};
pub use group::Group;
pub use group_builder::GroupBuilder;
pub use group_follow::GroupFollower;
pub use link_rules::{LinkedFilePolicy, MAX_SYMBOLIC_LINKS_PER_PATH};
pub use map::{EncodeAs, Map, MapBuilder, MapIter, MapLengthFollower, UntypedMap, UntypedMapPairs};
pub use missing_sources::{MissingSource, MissingSourcePolicy};
pub use named_type::NamedType;
pub use object::Object;
#[cfg(feature = "hsds")]
pub use open::Hsds;
#[cfg(feature = "hsds-clouds")]
pub use open::HsdsCloud;
#[cfg(feature = "kv")]
pub use open::Kv;
#[cfg(feature = "kv-slatedb")]
pub use open::KvSlate;
#[cfg(any(feature = "hsds-clouds", feature = "remote"))]
pub use open::ObjectOptions;
#[cfg(feature = "remote")]
pub use open::Remote;
#[cfg(feature = "served")]
pub use open::Served;
#[cfg(any(feature = "kv", feature = "kv-slatedb"))]
pub use open::SyncPolicy;
pub use open::{AllowedReaders, Locking, Native, max_file_capabilities};
#[cfg(feature = "log")]
pub use open::{EntryFilter, Log, LogLayout};
pub use options::Options;
pub use publish::{AppendTransaction, PublishInterval};
pub use recovery::{check, diagnose, repair, repair_and_reclaim_unreachable};
pub use reference::Reference;
pub use referent::ReferenceTarget;
pub use select::{DimSelection, ResolvedSelection, Select, SelectDim, SelectIndex};
#[cfg(feature = "serde")]
pub use serde_value::DeserializeError;
pub use types::{ConversionContext, FixedStr, H5Type, H5Write};
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

/// So are those of the text for users of Rust.
#[cfg(doctest)]
#[doc = include_str!("../docs/rust.md")]
struct InRust;

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
    #[cfg(feature = "log")]
    #[doc = include_str!("../docs/guide/many-writers.md")]
    struct ManyWriters;
    #[doc = include_str!("../docs/guide/maps.md")]
    struct Maps;
    #[doc = include_str!("../docs/guide/parts.md")]
    struct PartsOfLargeData;
    #[doc = include_str!("../docs/guide/rows.md")]
    struct StructsAsRows;
}

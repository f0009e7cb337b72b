//! The HDF5 data model, free of any storage format, the traits that a store implements, and the registry of connectors
//! that open stores by their location.
//!
//! Everything above these traits (selections, conversion, filters, fill values, iteration) is written
//! once; everything below them knows how one kind of store keeps groups, attributes and chunks.

mod allocation;
mod attribute;
mod chunk;
mod condition;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod connect;
mod dataspace;
mod datatype;
mod datatype_display;
#[cfg(test)]
mod display_tests;
mod error;
mod escape;
mod file_space;
mod filter_engine;
mod info;
mod invariant;
mod libver;
mod link;
mod map;
pub mod memory;
mod mode;
mod name;
mod object_id;
mod reclaim;
mod reference;
mod select;
mod selection;
mod settings;
mod spec;
mod stats;
mod store;
mod store_check;
mod vlen_and_reference_sizes;
mod watch;

pub use allocation::{AllocationError, AllocationLimit};
pub use attribute::AttributeData;
pub use chunk::{ChunkCoord, ChunkGrid, StoredChunk};
pub use condition::{FileDiagnosis, FileHolderProcess, FileOpenState, ForeignFileChange, RepairReport};
pub use connect::{
    Connector, ConnectorOptions, ConnectorRegistry, LinkedStoreRole, Location, LocationWatch, Maintenance, OpenError,
    OpenRequest, PathProbe, ResolvedLocation, SettingDescription, SettingError, SettingValue, StoreIdentity,
    TrustOrigin, Url, name_of_value, parse_setting, path_from_bytes, value_with_name,
};
pub use dataspace::{Dataspace, MAX_RANK, Shape, UNLIMITED};
pub use datatype::{
    ArrayType, BitfieldType, ByteOrder, CharacterSet, ComplexType, CompoundMember, CompoundType, Datatype, EnumMember,
    EnumType, FixedStringType, FloatType, IntegerType, Normalization, OpaqueType, Padding, ReferenceKind,
    ReferenceType, Sign, StringPadding, TimeType, VarLenKind, VarLenType,
};
pub use error::{Error, Result, Retry, StoreError, StoreErrorKind};
pub use escape::{escape, escape_with};
pub use file_space::{FileSpaceSettings, FileSpaceStrategy};
pub use filter_engine::{
    FilterEngine, FilterResult, NoFilters, UnknownFilter, UnsupportedFilterData, is_unfilter_limitation,
};
pub use info::{ObjectInfo, ObjectTimes};
pub use invariant::SwmrInvariant;
pub use libver::{LibVer, UnknownLibVer};
pub use link::{Link, LinkTarget};
pub use map::{MapKey, MapKeyBuf, MapSpec, OrderPreservingKeyCodec};
pub use mode::Mode;
pub use name::Name;
pub use object_id::ObjectId;
pub use reclaim::{Leak, LeakLocation, ReclaimReport};
pub use reference::{Referent, ReferentPart};
pub use select::{
    BoundSelection, ChunkSplit, ElementRun, SelectionError, StridedRuns, split_run_into_blocks, strided_runs_as_block,
};
pub use selection::{Block, DimIndices, Hyperslab, Selection};
pub use settings::Settings;
pub use spec::{
    AllocationTime, CreationOrder, DatasetSpec, ExternalPiece, Fill, FillTime, FillValue, FilterSpec, FilterSpecs,
    GroupSpec, Layout, LinkOrAttributeStorageSpec, ObjectKind, ObjectKindSpec, ObjectSpec, VirtualSource,
};
pub use stats::Stats;
pub use store::{
    Capabilities, ChunkBatch, ChunkBytes, ChunkEncodedBy, ChunkReadRequest, ChunkReadStrategy, ChunkSink, ChunkStore,
    ChunkWrite, ConsistencyScope, DurabilitySupport, EncodedKeyBounds, MapEdit, MapPrefetch, MapScan, MapStore,
    NewObject, ObjectInfoChange, ObjectScope, PartialWrites, PublishLevel, SessionInfo, SmallWritesStagedBy, Store,
    StoreFeatures, StoreSizeLimits, StoreWriter, WriterLiveness, check_block_in_chunk, read_blob, read_block_by_runs,
    read_chunks_sequentially,
};
pub use store::{DatasetView, DatasetViewPart, FileBackedBytes, MappedMemory};
pub use store_check::{StoreCheckOptions, StoreCheckReport, StoreFinding};
pub use vlen_and_reference_sizes::VlenAndReferenceSizes;
pub use watch::{Watch, WatchEvent};

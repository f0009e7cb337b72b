//! The faults that a container can have.

use h5live_model::ObjectId;

use crate::engine::LongKeyFault;
use crate::layout::{BlobId, RecordFormatError};

/// A fault of a container.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KvFault {
    /// A key of the engine that is none of the layout, or a value that cannot be decoded.
    #[error("{0}")]
    RecordFormat(RecordFormatError),
    /// A record that objects of this kind do not have.
    #[error("objects of its kind do not have the record {0}")]
    UnexpectedRecord(String),
    /// The description contradicts itself.
    #[error("{0}")]
    InconsistentSpec(String),
    /// The root group is not there.
    #[error("the root group is not there")]
    NoRoot,
    /// The record of the root group names another object.
    #[error("the root group is said to be object {0}")]
    WrongRoot(ObjectId),
    /// An index that nobody has reserved.
    #[error("its index is not below {next}, the first one that no writer has reserved")]
    UnreservedObjectIndex {
        /// The first index that is not reserved.
        next: u64,
    },
    /// Two objects have one index.
    #[error("object {0} has the same index")]
    ObjectIndexSharedWith(ObjectId),
    /// The number of links is wrong.
    #[error("it states {stated} hard links and uses, and has {found}")]
    RefCountMismatch {
        /// What the object states.
        stated: u64,
        /// Links and uses that were found.
        found: u64,
    },
    /// A link leads nowhere.
    #[error("its link {name:?} leads to object {target}, which is not there")]
    DanglingHardLink {
        /// The name of the link.
        name: String,
        /// The object.
        target: ObjectId,
    },
    /// A link has a position in the order of creation, or has none, and its group says otherwise.
    #[error("its link {0:?} has a position in the order of creation, or has none, and the group says otherwise")]
    LinkPositionTrackingMismatch(String),
    /// The committed datatype that is the type is not there.
    #[error("its type is the committed datatype {0}, which is not there")]
    NoCommittedDatatype(ObjectId),
    /// The committed datatype that is the type is another type.
    #[error("its type is not that of the committed datatype {0}")]
    CommittedDatatypeMismatch(ObjectId),
    /// An attribute cannot be decoded.
    #[error("its attribute {name:?}: {fault}")]
    AttributeFormat {
        /// The name.
        name: String,
        /// What is wrong.
        fault: RecordFormatError,
    },
    /// An attribute has a position in the order of creation, or has none, and its object says otherwise.
    #[error("its attribute {0:?} has a position in the order of creation, or has none, and the object says otherwise")]
    AttributePositionTrackingMismatch(String),
    /// The order of creation of links or attributes contradicts what is there.
    #[error("the creation order of its {of}: {fault}")]
    CreationOrder {
        /// Links or attributes.
        of: &'static str,
        /// What is wrong.
        fault: CreationOrderFault,
    },
    /// A record of a chunk is wrong.
    #[error("its chunk at {start:?}: {fault}")]
    Chunk {
        /// The first element (`[rank]`).
        start: Vec<u64>,
        /// What is wrong.
        fault: ChunkFault,
    },
    /// A pair of a map is wrong.
    #[error("its pair number {number}: {reason}")]
    InvalidMapPair {
        /// Its number in the order of keys.
        number: u64,
        /// What is wrong.
        reason: String,
    },
    /// The number of pairs of a map is wrong.
    #[error("it states {stated} pairs, and has {found}")]
    MapPairCountMismatch {
        /// What the map states.
        stated: u64,
        /// Pairs that were found.
        found: u64,
    },
    /// An element leads to a blob that is not there.
    #[error("an element leads to the variable-length data {0}, which is not there")]
    NoBlob(BlobId),
    /// A blob has another length than an element says.
    #[error("an element says that its variable-length data has {stated} bytes, and {blob} has {found}")]
    BlobLengthMismatch {
        /// The blob.
        blob: BlobId,
        /// What the element states (bytes).
        stated: u64,
        /// Bytes of the blob.
        found: u64,
    },
    /// A value does not have its checksum.
    #[error("the record {0} is damaged: its checksum is another one")]
    Checksum(String),
    /// A space of long keys is wrong.
    #[error("{0}")]
    LongKey(LongKeyFault),
}

/// A fault of the index by rank of an order of creation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CreationOrderFault {
    /// There is an index, and the object does not track the order.
    #[error("there are records of it, though it is not tracked")]
    IndexWithoutTracking,
    /// The number of names is wrong.
    #[error("{stated} are stated, and {found} are there")]
    StatedCountMismatch {
        /// What the record states.
        stated: u64,
        /// Links or attributes that were found.
        found: u64,
    },
    /// The index has another number of names than there are.
    #[error("the index has {indexed} of {found}")]
    IndexLengthMismatch {
        /// Names in the index.
        indexed: u64,
        /// Links or attributes that were found.
        found: u64,
    },
    /// A rank is missing.
    #[error("rank {0} is missing")]
    MissingRank(u64),
    /// A name leads nowhere.
    #[error("rank {rank} has the name {name:?}, which is not there")]
    DanglingName {
        /// The rank.
        rank: u64,
        /// The name.
        name: String,
    },
    /// Positions do not grow with ranks.
    #[error("rank {0} has a position that is not above the one before")]
    PositionNotAscendingAtRank(u64),
    /// A position is not below the next one.
    #[error("rank {rank} has the position {position}, and {next} is to be given next")]
    PositionNotBelowNext {
        /// The rank.
        rank: u64,
        /// The position.
        position: u64,
        /// The position that the next one gets.
        next: u64,
    },
    /// The index has another target than the link.
    #[error("rank {0} has another target than the link")]
    TargetMismatchAtRank(u64),
}

/// A fault of a record of a chunk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChunkFault {
    /// No chunk begins there.
    #[error("no chunk of the dataset begins there")]
    NotAChunkStart,
    /// It lies outside of the extent.
    #[error("it is outside of the extent {0:?}")]
    OutsideExtent(Vec<u64>),
    /// It is stored with filters, and the dataset has none, or the other way round.
    #[error("it is stored with filters, or without, and the dataset says otherwise")]
    FilteringMismatch,
    /// A piece lies behind the end of the chunk, or is longer than its part of the chunk.
    #[error("piece {piece} has {bytes} bytes, and may have {max}")]
    InvalidPieceLength {
        /// The number of the piece.
        piece: u32,
        /// Its bytes.
        bytes: u64,
        /// Most bytes that it may have.
        max: u64,
    },
    /// The first piece is missing.
    #[error("it has no piece 0")]
    NoFirstPiece,
    /// There is no mask of filters.
    #[error("it has no mask of filters")]
    NoFilterMask,
    /// The filters cannot be undone.
    #[error("its filters cannot be undone: {0}")]
    UnfilterFailed(String),
}

impl KvFault {
    /// A word for the kind of fault, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            KvFault::RecordFormat(_) => "record",
            KvFault::UnexpectedRecord(_) => "unexpected-record",
            KvFault::InconsistentSpec(_) => "description",
            KvFault::NoRoot | KvFault::WrongRoot(_) => "root",
            KvFault::UnreservedObjectIndex { .. } | KvFault::ObjectIndexSharedWith(_) => "index",
            KvFault::RefCountMismatch { .. } => "link-count",
            KvFault::DanglingHardLink { .. } => "dangling-link",
            KvFault::LinkPositionTrackingMismatch(_)
            | KvFault::AttributePositionTrackingMismatch(_)
            | KvFault::CreationOrder { .. } => "creation-order",
            KvFault::NoCommittedDatatype(_) | KvFault::CommittedDatatypeMismatch(_) => "committed-datatype",
            KvFault::AttributeFormat { .. } => "attribute",
            KvFault::Chunk { .. } => "chunk",
            KvFault::InvalidMapPair { .. } => "pair",
            KvFault::MapPairCountMismatch { .. } => "pair-count",
            KvFault::NoBlob(_) | KvFault::BlobLengthMismatch { .. } => "variable-length-data",
            KvFault::Checksum(_) => "checksum",
            KvFault::LongKey(_) => "long-key",
        }
    }
}

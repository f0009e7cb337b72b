//! What a session can do, as data.

use std::fmt;

/// What a session can do. The facade plans with it; conformance tests try each claim both ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// What of the data model it has.
    pub features: StoreFeatures,
    /// The parts of an unfiltered chunk that can be written by themselves.
    pub partial_writes: PartialWrites,
    /// Who gathers small writes until the commit.
    pub staging: SmallWritesStagedBy,
    /// Whether chunks cross the seam as filters left them.
    pub encoding: ChunkEncodedBy,
    /// How chunks are best read.
    pub reads: ChunkReadStrategy,
    /// What one commit shows at once.
    pub commit: ConsistencyScope,
    /// What a reader's view shows as of one moment.
    pub view: ConsistencyScope,
    /// Whether commits outlast a power failure.
    pub durability: DurabilitySupport,
    /// Whether others can read while a session writes.
    pub supports_live_reads: bool,
    /// What has a largest size.
    pub limits: StoreSizeLimits,
}

/// Which parts of an unfiltered chunk a store overwrites in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartialWrites {
    /// Runs of bytes that begin and end at multiples of so many bytes, or at the end of the chunk.
    Bytes {
        /// The multiple (bytes).
        multiple_of: u64,
    },
    /// Boxes of elements.
    ElementBlocks,
    /// None: a chunk is written as a whole.
    Whole,
}

/// Who gathers small writes until the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SmallWritesStagedBy {
    /// The facade: the store gets each chunk once, if it can.
    Caller,
    /// The store: it gets rows as they come, and shows them to its own session before the commit.
    Store,
}

/// In which form chunks cross the seam.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChunkEncodedBy {
    /// As the filters of the dataset left them.
    Pipeline,
    /// Decoded; the store encodes them in its own way.
    Store,
}

/// How chunks are best read. Where many are best read at once, many are best written at once, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChunkReadStrategy {
    /// One by one: a read costs little more than its bytes.
    Direct {
        /// Of raw data that is changed in place meanwhile, a read of so many bytes (from a multiple of this many on,
        /// counted from where the data begins) shows all as it was or all as it is. 0 if nothing is changed in place
        /// while this session reads.
        atomic_read_bytes: u64,
    },
    /// One by one, and of a chunk without filters a box of elements by one call
    /// ([`ChunkStore::read_block`](crate::ChunkStore::read_block)): each call looks for what has the elements. Nothing is
    /// changed in place while a session reads.
    ElementBlocks,
    /// Many at once: each read waits for a network.
    Batched {
        /// Reads that are best under way at a time.
        preferred_reads_in_flight: usize,
        /// Bytes between two pieces that are better read than left out.
        max_gap_bytes: u64,
    },
}

impl ChunkReadStrategy {
    /// Chunks that are best on their way at a time, to the store or from it.
    pub fn preferred_chunks_in_flight(self) -> usize {
        match self {
            ChunkReadStrategy::Direct { .. } | ChunkReadStrategy::ElementBlocks => 1,
            ChunkReadStrategy::Batched { preferred_reads_in_flight: in_flight, .. } => in_flight.max(1),
        }
    }
}

/// How much of a store belongs together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConsistencyScope {
    /// Each chunk by itself.
    Chunk,
    /// All of one object.
    Object,
    /// Everything.
    Store,
}

/// Whether what is committed outlasts a power failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DurabilitySupport {
    /// If that is asked for: [`PublishLevel::Durable`](crate::PublishLevel::Durable).
    OnRequest,
    /// Always.
    Always,
    /// Never: asking for it is [`Error::Unsupported`](crate::Error::Unsupported).
    Never,
}

/// The largest sizes that a store holds (bytes); `u64::MAX` where it has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StoreSizeLimits {
    /// A chunk, decoded or encoded.
    pub max_chunk_bytes: u64,
}

impl StoreSizeLimits {
    /// No limits.
    pub const NONE: StoreSizeLimits = StoreSizeLimits { max_chunk_bytes: u64::MAX };

    /// The same, with chunks of so many bytes at most.
    #[must_use]
    pub const fn with_max_chunk_bytes(self, bytes: u64) -> Self {
        StoreSizeLimits { max_chunk_bytes: bytes }
    }
}

/// A set of what a store has of the data model.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StoreFeatures(u32);

macro_rules! features {
    ($($(#[$doc:meta])* $constant:ident = $name:literal,)*) => {
        features!(@constants 0u32; $($(#[$doc])* $constant,)*);

        impl StoreFeatures {
            /// Each feature with its name.
            pub const NAMED: &'static [(StoreFeatures, &'static str)] = &[$((StoreFeatures::$constant, $name)),*];
        }
    };
    (@constants $bit:expr; $(#[$doc:meta])* $constant:ident, $($rest:tt)*) => {
        impl StoreFeatures {
            $(#[$doc])*
            pub const $constant: StoreFeatures = StoreFeatures(1 << ($bit));
        }
        features!(@constants $bit + 1; $($rest)*);
    };
    (@constants $bit:expr;) => {};
}

features! {
    /// An object may have several links, and no link at all once it is unlinked.
    HARD_LINKS = "hard links",
    /// Links to a path in the same store.
    SOFT_LINKS = "soft links",
    /// Links to a path in another store.
    EXTERNAL_LINKS = "external links",
    /// Links of a class that only their user knows.
    USER_LINKS = "user-defined links",
    /// Links take another name or group at once.
    RENAME = "renaming links",
    /// Objects without a link.
    UNLINKED = "objects without links",
    /// The order in which links and attributes were made.
    CREATION_ORDER = "creation order",
    /// When objects were touched.
    TIMES = "times",
    /// Comments on objects.
    COMMENTS = "comments",
    /// Datatypes as objects.
    COMMITTED_TYPES = "committed datatypes",
    /// Elements of variable length.
    VARIABLE_LENGTH = "variable-length data",
    /// References to objects.
    OBJECT_REFERENCES = "object references",
    /// References to regions.
    REGION_REFERENCES = "region references",
    /// References of the kinds of HDF5 1.12.
    STANDARD_REFERENCES = "HDF5 1.12 references",
    /// Datasets become smaller.
    SHRINK = "shrinking datasets",
    /// Datasets whose elements are in other datasets.
    VIRTUAL = "virtual datasets",
    /// Datasets whose elements are in raw files.
    EXTERNAL_FILES = "external raw files",
    /// Maps of keys to values.
    MAPS = "maps",
}

impl StoreFeatures {
    /// No features.
    pub const NONE: StoreFeatures = StoreFeatures(0);

    /// Those of both.
    #[must_use]
    pub const fn with(self, other: StoreFeatures) -> Self {
        StoreFeatures(self.0 | other.0)
    }

    /// Those that are not among `other`.
    #[must_use]
    pub const fn without(self, other: StoreFeatures) -> Self {
        StoreFeatures(self.0 & !other.0)
    }

    /// Whether all of `other` are among these.
    pub const fn has(self, other: StoreFeatures) -> bool {
        self.0 & other.0 == other.0
    }

    /// All that there are.
    pub const fn all() -> Self {
        StoreFeatures((1 << Self::NAMED.len()) - 1)
    }

    /// The names of these, in the order of [`StoreFeatures::NAMED`].
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMED.iter().filter(move |(feature, _)| self.has(*feature)).map(|(_, name)| *name)
    }
}

impl fmt::Debug for StoreFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_feature_has_a_bit_of_its_own_and_a_name() {
        let all = StoreFeatures::NAMED.iter().fold(StoreFeatures::NONE, |all, (feature, _)| {
            assert!(!all.has(*feature));
            all.with(*feature)
        });
        assert_eq!(all, StoreFeatures::all());
        assert_eq!(all.names().count(), StoreFeatures::NAMED.len());
        let some = StoreFeatures::TIMES.with(StoreFeatures::MAPS);
        assert_eq!(format!("{some:?}"), r#"{"times", "maps"}"#);
        assert!(!some.without(StoreFeatures::MAPS).has(some));
    }
}

//! The written values. Each value tells where it belongs.

use h5live_model::{ChunkCoord, StoredChunk};

/// A dataset of one number in each row, which tells the row and how often it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// Its name in the root group.
    pub name: &'static str,
    /// Rows of a chunk.
    pub chunk: u64,
    /// The first row that readers look at.
    pub first: u64,
    /// Whether there is a second dimension, of one element, that can grow as well.
    pub is_two_dimensional: bool,
    /// Whether the space of all chunks is allocated from the start.
    pub allocates_early: bool,
    /// Whether chunks are made ready before rows come to them.
    pub has_preallocated_chunks: bool,
    /// Whether a chunk goes through a filter when it is full: then a checksum of four bytes lies behind its rows.
    pub is_checksummed: bool,
    /// How it is written.
    pub kind: SeriesKind,
}

/// How a dataset is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesKind {
    /// Row after row, each once: counts in the trace are rows.
    Rows {
        /// Most rows that the dataset may have.
        max_rows: Option<u64>,
    },
    /// As rows, but now and then the last ones are cut off, and appended again: counts in the trace are rows.
    Cut {
        /// Most rows that the dataset may have.
        max_rows: Option<u64>,
    },
    /// All rows again and again: counts in the trace are versions, 0 being that nothing was written.
    Versions {
        /// The number of rows.
        rows: u64,
    },
    /// Chunk after chunk, each once and in part, in the order that is given: counts in the trace are chunks.
    Sparse {
        /// The number of rows.
        rows: u64,
        /// The chunks, in the order in which they are written.
        order: &'static [u64],
        /// The rows of each that are written, the first ones.
        part: u64,
        /// Whether there can never be more rows.
        fixed: bool,
    },
    /// All rows once, before anybody reads. Then the first and the last row of each chunk again and again, in place,
    /// because no index leads to another place. Counts in the trace are versions.
    InPlace {
        /// The number of rows.
        rows: u64,
        /// Whether there are no chunks; the sides of one are those of the dataset then.
        contiguous: bool,
    },
    /// As versions, in chunks that filters may make of any size.
    Filtered {
        /// The number of rows.
        rows: u64,
    },
}

impl Series {
    /// A dataset of rows that are appended, without limit, in chunks of `chunk`.
    pub fn rows(name: &'static str, chunk: u64) -> Self {
        Series {
            name,
            chunk,
            first: 0,
            is_two_dimensional: false,
            allocates_early: false,
            has_preallocated_chunks: false,
            is_checksummed: false,
            kind: SeriesKind::Rows { max_rows: None },
        }
    }

    /// The coordinate of a chunk.
    pub fn coord(&self, chunk: u64) -> ChunkCoord {
        if self.is_two_dimensional { ChunkCoord::new(&[chunk, 0]) } else { ChunkCoord::new(&[chunk]) }
    }

    /// The value of a row that has been written `version` times (from 1).
    pub fn value(&self, row: u64, version: u64) -> u64 {
        let name = self.name.bytes().fold(7, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        ((row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ name << 56) & !0xf | version & 0xf
    }

    /// The version of a row that holds `value`; `None` if it is none of its values.
    pub fn version(&self, row: u64, value: u64) -> Option<u64> {
        let version = value & 0xf;
        (version > 0 && self.value(row, version) == value).then_some(version)
    }

    /// How many rows there are when the trace counts `count`.
    pub fn extent(&self, count: u64) -> u64 {
        match self.kind {
            SeriesKind::Rows { .. } | SeriesKind::Cut { .. } => count,
            SeriesKind::Versions { rows }
            | SeriesKind::InPlace { rows, .. }
            | SeriesKind::Filtered { rows }
            | SeriesKind::Sparse { rows, .. } => rows,
        }
    }

    /// Whether rows can be appended.
    pub fn is_appendable(&self) -> bool {
        matches!(self.kind, SeriesKind::Rows { .. } | SeriesKind::Cut { .. })
    }

    /// The version that the rows of a chunk have at least when the trace counts `count`; 0 if the chunk need not be
    /// there.
    pub fn min_version(&self, chunk: u64, count: u64) -> u64 {
        match self.kind {
            SeriesKind::Rows { .. } | SeriesKind::Cut { .. } => 1,
            SeriesKind::Versions { .. } | SeriesKind::InPlace { .. } | SeriesKind::Filtered { .. } => count,
            SeriesKind::Sparse { order, .. } => {
                order.iter().take(count as usize).any(|written| *written == chunk).into()
            }
        }
    }

    /// Where the rows begin in a stored chunk (bytes): behind what the filter put there, if there is one, and before
    /// its checksum of four bytes.
    pub fn start_in(&self, chunk: &StoredChunk) -> u64 {
        match self.kind {
            SeriesKind::Filtered { .. } if chunk.filter_mask == 0 => chunk.size.saturating_sub(4 + 8 * self.chunk),
            _ => 0,
        }
    }

    /// Whether a row is ever written.
    pub fn is_written(&self, row: u64) -> bool {
        match self.kind {
            SeriesKind::Sparse { part, .. } => row % self.chunk < part,
            _ => true,
        }
    }

    /// Whether a row keeps its first value when its chunk is written again.
    pub fn is_constant(&self, row: u64) -> bool {
        matches!(self.kind, SeriesKind::InPlace { .. })
            && !matches!(row % self.chunk, n if n == 0 || n + 1 == self.chunk)
    }

    /// Whether the rows of a chunk that do not rest are of one version, always.
    pub fn has_uniform_version(&self) -> bool {
        matches!(self.kind, SeriesKind::InPlace { .. } | SeriesKind::Filtered { .. })
    }

    /// Whether nothing is written twice.
    pub fn has_one_version(&self) -> bool {
        !matches!(self.kind, SeriesKind::Versions { .. } | SeriesKind::InPlace { .. } | SeriesKind::Filtered { .. })
    }

    /// Most rows that there may ever be.
    pub fn max_rows(&self) -> u64 {
        match self.kind {
            SeriesKind::Rows { max_rows } | SeriesKind::Cut { max_rows } => max_rows.unwrap_or(u64::MAX),
            SeriesKind::Sparse { fixed: false, .. } => u64::MAX,
            SeriesKind::Versions { rows }
            | SeriesKind::InPlace { rows, .. }
            | SeriesKind::Filtered { rows }
            | SeriesKind::Sparse { rows, .. } => rows,
        }
    }
}

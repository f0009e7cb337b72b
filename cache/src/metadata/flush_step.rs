//! The steps of a flush.

use std::{fmt, sync::Arc};

use h5live_format::{Addr, GenerationWord, RedoRecord};

use super::entry_images::ImageRange;
use crate::{
    barrier_kind::BarrierKind,
    entry_id::EntryId,
    raw_data::{ChunkFlushWrite, MergedWrites},
};

/// One step of a flush.
#[non_exhaustive]
pub enum FlushStep {
    /// The file is made at least this long, in bytes from the base address.
    ExtendTo(u64),
    /// Everything before becomes durable.
    Barrier(BarrierKind),
    /// Write a redo record of the following changes in place, behind the announced end of file.
    WriteRedo {
        /// The record, with its address.
        record: RedoRecord,
        /// Whether raw data that readers may be reading is part of it.
        is_visible: bool,
    },
    /// Invalidate the redo record of an earlier flush: its bytes are in place.
    InvalidateEarlierRedo(Addr),
    /// As [`FlushStep::InvalidateEarlierRedo`], for a redo record of this flush.
    InvalidateOwnRedo(Addr),
    /// Before `end` is announced: the generation is shown there.
    WriteGenerationAtNewEof {
        /// In bytes from the base address.
        end: u64,
        /// The generation, which stays the same.
        generation: GenerationWord,
    },
    /// Another generation is shown.
    SetGeneration {
        /// Where.
        at: Addr,
        /// The generation.
        generation: GenerationWord,
    },
    /// Small pieces of new raw data, to which nothing leads yet, are written.
    BufferedRaw(BufferedWrites),
    /// Raw data is written, in any order.
    Raw(Vec<ChunkFlushWrite>),
    /// Write raw data over bytes that readers may be reading, each part after its own redo record.
    RawWithOwnRedo(Vec<ChunkFlushWrite>),
    /// The superblock is written.
    Superblock {
        /// Its address.
        at: Addr,
        /// Its bytes.
        bytes: Vec<u8>,
        /// The end of file that it announces, in bytes from the base address.
        end: u64,
    },
    /// An entry is written.
    Entry {
        /// Its identity.
        id: EntryId,
        /// Its address.
        at: Addr,
        /// The name of its type.
        name: &'static str,
        /// Its bytes.
        image: ImageRange,
        /// Whether the file leads to it already: it is changed in place.
        in_place: bool,
        /// Whether something must be written before it in the same flush.
        has_dependencies: bool,
    },
}

impl FlushStep {
    /// The address of an entry, in bytes from the base address.
    pub(super) fn offset(&self) -> Option<u64> {
        match self {
            FlushStep::Entry { at, .. } => at.get(),
            _ => None,
        }
    }

    /// The bytes of an entry.
    pub(super) fn image(&self) -> Option<&ImageRange> {
        match self {
            FlushStep::Entry { image, .. } => Some(image),
            _ => None,
        }
    }

    /// Where the entry is, if it is one that the file did not have.
    pub(super) fn new_entry_addr(&self) -> Option<Addr> {
        match self {
            FlushStep::Entry { at, in_place: false, .. } => Some(*at),
            _ => None,
        }
    }
}

impl fmt::Debug for FlushStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlushStep::ExtendTo(len) => write!(f, "extend to {len:#x}"),
            FlushStep::Barrier(kind) => write!(f, "barrier {kind:?}"),
            FlushStep::WriteRedo { record, .. } => {
                write!(f, "redo record at {}, {} writes", record.addr, record.writes.len())
            }
            FlushStep::InvalidateEarlierRedo(at) | FlushStep::InvalidateOwnRedo(at) => {
                write!(f, "forget the redo record at {at}")
            }
            FlushStep::WriteGenerationAtNewEof { end, generation } => {
                write!(f, "show {generation:?} at the end {end:#x}")
            }
            FlushStep::SetGeneration { generation, .. } => write!(f, "{generation:?}"),
            FlushStep::BufferedRaw(pieces) => write!(f, "{} bytes of new raw data", pieces.0.byte_count()),
            FlushStep::Raw(writes) | FlushStep::RawWithOwnRedo(writes) => {
                f.debug_list().entries(writes.iter().map(|write| write.chunk())).finish()
            }
            FlushStep::Superblock { end, .. } => write!(f, "announce {end:#x}"),
            FlushStep::Entry { id, at, name, image, .. } => {
                write!(f, "{name} {id:?} at {at}, {} bytes", image.byte_count())
            }
        }
    }
}

/// The pieces that [`Cache::write_or_enqueue_new_raw`](crate::Cache::write_or_enqueue_new_raw) has put into the write buffer.
pub struct BufferedWrites(pub(super) Arc<MergedWrites>);

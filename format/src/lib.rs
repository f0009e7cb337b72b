//! HDF5 bytes to structures and back: one description per structure drives decoder, encoder and describer.
//!
//! Nothing here reads or writes files. Every structure implements [`Record`]; [`decode`], [`encode`] and
//! [`describe`] drive it. Bytes come from anywhere, so nothing here may panic, whatever they are.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss
    )
)]

mod addr;
mod array_block;
mod btree1;
mod btree2;
mod cache_image;
mod checksum;
#[doc(hidden)]
pub mod checksum_override;
mod driver_info_block;
pub mod dump;
mod element_table;
mod error;
mod extensible_array;
mod fixed_array;
mod fractal_heap;
mod free_space;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod fuzz;
mod generation;
mod global_heap;
mod libver;
mod local_heap;
pub mod messages;
mod object_header;
mod patchable_image;
mod redo_record;
mod references;
mod selection;
mod seqlock;
mod shared_messages;
mod superblock;
mod symbol_table_entry;
mod symbol_table_node;
mod virtual_layout;
mod wire;

pub use addr::{Addr, Width, Widths};
pub use array_block::ArrayDataBlockPage;
pub use btree1::{Btree1ChunkKey, Btree1ChunkRank, Btree1GroupKey, Btree1Key, Btree1Node};
pub use btree2::{
    AttributeNameRecord, AttributeOrderRecord, Btree2ChildPointer, Btree2Geometry, Btree2Header, Btree2Internal,
    Btree2Leaf, Btree2Record, Btree2Records, ChunkRecord, FilteredChunkRecord, HugeDirectFilteredRecord,
    HugeDirectRecord, HugeIndirectFilteredRecord, HugeIndirectRecord, LinkNameRecord, LinkOrderRecord,
    compare_chunk_coord,
};
pub use cache_image::{CacheImage, CacheImageEntry};
pub use checksum::lookup3;
pub use driver_info_block::DriverInfoBlock;
pub use element_table::{AddrTable, ChunkEntryFormat, ChunkEntryTable, ChunkIndexEntry, PageBitmap};
pub use error::{DecodeError, EncodeError, Fault};
pub use extensible_array::{
    ExtensibleArrayDataBlock, ExtensibleArrayHeader, ExtensibleArrayIndexBlock, ExtensibleArrayParameters,
    ExtensibleArraySuperBlock,
};
pub use fixed_array::{FixedArrayDataBlock, FixedArrayHeader};
pub use fractal_heap::{
    DoublingTable, FractalHeapDirectBlock, FractalHeapFilterInfo, FractalHeapHeader, FractalHeapId,
    FractalHeapIdFormat, FractalHeapIndirectBlock, HeapBlockSlot, HeapObjectLocation,
};
pub use free_space::{
    FreeHeapBlockRun, FreeSection, FreeSpaceClient, FreeSpaceHeader, FreeSpaceSections, SameSizeSections,
};
pub use generation::GenerationWord;
pub use global_heap::{GlobalHeapCollection, GlobalHeapId, GlobalHeapObject};
pub use libver::{LibVer, StructureVersions};
pub use local_heap::{LocalHeapData, LocalHeapFreeRange, LocalHeapPrefix};
pub use object_header::{
    AttributePhaseChange, ContinuationChunk, FirstHeaderChunk, HeaderTimes, MessageBody, MessageFlags,
    ObjectHeaderPrefix, RawMessage,
};
pub use patchable_image::PatchableImage;
pub use redo_record::{RedoRecord, RedoWrite};
pub use references::{
    OldRegionReferenceBlob, ReferenceBlob, ReferenceElement, ReferenceValue, ReferencedPart, VarLenElement,
};
pub use selection::StoredSelection;
pub use seqlock::SeqlockCounter;
pub use shared_messages::{
    SharedMessageIndex, SharedMessageIndexKind, SharedMessageList, SharedMessageLocation, SharedMessageRecord,
    SharedMessageTable,
};
pub use superblock::{RootGroupLocation, StatusFlags, Superblock};
pub use symbol_table_entry::{SymbolTableEntry, SymbolTableScratchPad};
pub use symbol_table_node::SymbolTableNode;
pub use virtual_layout::{VirtualLayout, VirtualMapping};
pub use wire::{
    Decoder, Describer, Encoder, Field, Record, Result, Wire, append_encoded, decode, decode_prefix,
    decode_prefix_with, decode_with, describe, encode, encode_mut, encode_with_size_hint, encoded_len, with_encoded,
};

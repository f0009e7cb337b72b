//! How the elements of a dataset are laid out (format specification 4.0, IV.A.2.i).

use super::{Message, MessageType};
use crate::{Addr, ExtensibleArrayParameters, Fault, LibVer, Record, Result, Width, Wire};

/// The data layout message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LayoutMessage {
    /// 1 to 5.
    pub version: u8,
    /// Where the elements are.
    pub storage: LayoutClass,
}

/// Where the elements of a dataset are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayoutClass {
    /// In the message.
    Compact {
        /// The elements.
        data: Vec<u8>,
        /// Versions 1 and 2: dimensions that repeat the dataspace, truncated to 32 bits, and are ignored.
        dims: Vec<u32>,
    },
    /// In one run of bytes.
    Contiguous {
        /// The first byte; undefined if no space is allocated.
        addr: Addr,
        /// The number of bytes; in versions 1 and 2 it follows from datatype and dataspace, and is 0 here.
        size: u64,
        /// Versions 1 and 2: dimensions that repeat the dataspace, truncated to 32 bits, and are ignored.
        dims: Vec<u32>,
    },
    /// In chunks.
    Chunked(ChunkedStorage),
    /// In other datasets (versions 4 and 5).
    Virtual {
        /// The global heap collection that holds the mappings; undefined if there are none.
        heap: Addr,
        /// The object of the collection.
        index: u32,
    },
}

impl Default for LayoutClass {
    fn default() -> Self {
        LayoutClass::Contiguous { addr: Addr::UNDEFINED, size: 0, dims: Vec::new() }
    }
}

/// Chunks, and where they are looked up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChunkedStorage {
    /// The dimensions of a chunk (`[rank]`, elements).
    pub chunk_dims: Vec<u64>,
    /// Bytes of an element.
    pub element_size: u64,
    /// Whether chunks that reach over the extent are stored without filters (versions 4 and 5).
    pub unfiltered_partial_chunks: bool,
    /// The chunk index.
    pub index: ChunkIndexType,
    /// The root of the index, or the chunks themselves where there is none; undefined before there are chunks.
    pub addr: Addr,
}

impl ChunkedStorage {
    /// Bytes of a chunk before the filters, or `None` if they do not fit 64 bits.
    pub fn chunk_bytes(&self) -> Option<u64> {
        self.chunk_dims.iter().try_fold(self.element_size, |n, d| n.checked_mul(*d))
    }
}

/// The kind of chunk index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChunkIndexType {
    /// A version 1 B-tree (versions 1 to 3).
    #[default]
    Btree1,
    /// Nothing: the only chunk is at the address.
    Single {
        /// How the chunk is stored, if it went through filters.
        filtered: Option<SingleChunkFilterInfo>,
    },
    /// Nothing: all chunks lie behind one another.
    Implicit,
    /// A fixed array.
    FixedArray {
        /// Bits of the number of elements in a page.
        page_bits: u8,
    },
    /// An extensible array.
    ExtensibleArray(ExtensibleArrayParameters),
    /// A version 2 B-tree.
    Btree2 {
        /// Bytes of a node.
        node_size: u32,
        /// How full a node is when it is split (percent).
        split: u8,
        /// How full a node is when it is merged (percent).
        merge: u8,
    },
}

/// How the only chunk is stored when it went through filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SingleChunkFilterInfo {
    /// Stored bytes.
    pub size: u64,
    /// Bit `i` set: filter `i` was skipped.
    pub filter_mask: u32,
}

/// Most bytes of a chunk, but in layout messages of version 5.
pub const MAX_CHUNK_BYTES_BEFORE_V5: u64 = u32::MAX as u64;

/// Most dimensions of a chunk, that of the element size included.
const MAX_DIMS: u8 = 33;

const COMPACT: u8 = 0;
const CONTIGUOUS: u8 = 1;
const CHUNKED: u8 = 2;
const VIRTUAL: u8 = 3;
/// Of the drafts of a later HDF5: sparse data.
const STRUCTURED: u8 = 4;

const UNFILTERED_EDGES: u8 = 0x01;
const SINGLE_FILTERED: u8 = 0x02;

impl LayoutMessage {
    /// The message that a file of this profile holds. `filtered` says whether the dataset has filters.
    pub fn new(profile: LibVer, storage: LayoutClass, filtered: bool) -> Self {
        LayoutMessage { version: Self::version_for(profile, &storage, filtered), storage }
    }

    /// The version in which a file of this profile holds `storage`. `filtered` says whether the dataset has filters.
    pub fn version_for(profile: LibVer, storage: &LayoutClass, filtered: bool) -> u8 {
        match storage {
            LayoutClass::Compact { .. } | LayoutClass::Contiguous { .. } => 3,
            LayoutClass::Virtual { .. } => 4,
            LayoutClass::Chunked(chunks) => match chunks.index {
                ChunkIndexType::Btree1 => 3,
                _ if chunks.chunk_bytes().is_none_or(|bytes| bytes > MAX_CHUNK_BYTES_BEFORE_V5) => 5,
                ChunkIndexType::Implicit => 4,
                _ if filtered && profile >= LibVer::V200 => 5,
                _ => 4,
            },
        }
    }

    /// Whether other programs write chunks as large as these, where the message is of this version. Versions before 5
    /// could state larger ones, but no program takes them: nodes of version 1 B-trees, and filtered chunks, have 32
    /// bits for it.
    pub fn is_chunk_size_within_limit(&self) -> bool {
        let LayoutClass::Chunked(chunks) = &self.storage else { return true };
        let has_room = self.version >= 5 && chunks.index != ChunkIndexType::Btree1;
        has_room || chunks.chunk_bytes().is_some_and(|bytes| bytes <= MAX_CHUNK_BYTES_BEFORE_V5)
    }

    /// The elements in the bytes of a layout message, if it is that of a compact dataset and of version 3 or later.
    pub fn compact_elements_mut(body: &mut [u8]) -> Option<&mut [u8]> {
        let [3..=5, COMPACT, low, high, data @ ..] = body else { return None };
        data.get_mut(..u16::from_le_bytes([*low, *high]).into())
    }

    fn class_number(&self) -> u8 {
        match &self.storage {
            LayoutClass::Compact { .. } => COMPACT,
            LayoutClass::Contiguous { .. } => CONTIGUOUS,
            LayoutClass::Chunked(_) => CHUNKED,
            LayoutClass::Virtual { .. } => VIRTUAL,
        }
    }

    fn set_class(&mut self, w: &impl Wire, class: u8) -> Result<()> {
        if !w.is_decoding() || class == self.class_number() {
            return Ok(());
        }
        self.storage = match class {
            COMPACT => LayoutClass::Compact { data: Vec::new(), dims: Vec::new() },
            CONTIGUOUS => LayoutClass::default(),
            CHUNKED => LayoutClass::Chunked(ChunkedStorage::default()),
            VIRTUAL => LayoutClass::Virtual { heap: Addr::UNDEFINED, index: 0 },
            found => {
                let rule = match found {
                    STRUCTURED => {
                        "class 4 (structured chunks, for sparse data) is of later versions of HDF5, and not read"
                    }
                    _ => "a class is 0 (compact), 1 (contiguous), 2 (chunked) or 3 (virtual)",
                };
                return Err(w.fault("class", Fault::InvalidValue { found: found.into(), rule }));
            }
        };
        Ok(())
    }

    /// Versions 1 and 2.
    fn wire_old_versions(&mut self, w: &mut impl Wire) -> Result<()> {
        let dims = match &self.storage {
            LayoutClass::Compact { dims, .. } | LayoutClass::Contiguous { dims, .. } => dims.len(),
            LayoutClass::Chunked(chunks) => chunks.chunk_dims.len().saturating_add(1),
            LayoutClass::Virtual { .. } => 0,
        };
        let rank = w.derived_u8("dimensionality", u8::try_from(dims).unwrap_or(u8::MAX))?;
        w.require("dimensionality", rank > 0 && rank <= MAX_DIMS, rank.into(), "1 to 33")?;
        let class = w.derived_u8("class", self.class_number())?;
        w.require("class", class <= CHUNKED, class.into(), "compact, contiguous or chunked before version 4")?;
        self.set_class(w, class)?;
        w.reserved(5)?;
        match &mut self.storage {
            LayoutClass::Compact { data, dims } => {
                wire_ignored_dims(w, rank, dims)?;
                let size = w.derived_uint("size", Width::FOUR, data.len() as u64)?;
                let size = w.bounded_count("size", size, 1)?;
                w.bytes("data", size, data)
            }
            LayoutClass::Contiguous { addr, dims, .. } => {
                w.addr("address", addr)?;
                wire_ignored_dims(w, rank, dims)
            }
            LayoutClass::Chunked(chunks) => {
                w.addr("B-tree", &mut chunks.addr)?;
                chunks.wire_chunk_dims(w, rank, Width::FOUR)
            }
            LayoutClass::Virtual { .. } => Ok(()),
        }
    }

    /// Versions 3 to 5.
    fn wire_new_versions(&mut self, w: &mut impl Wire) -> Result<()> {
        let class = w.derived_u8("class", self.class_number())?;
        let version = self.version;
        w.require("class", class != VIRTUAL || version > 3, class.into(), "virtual storage needs version 4")?;
        self.set_class(w, class)?;
        match &mut self.storage {
            LayoutClass::Compact { data, .. } => {
                let size = super::count_u16(w, "size", data.len())?;
                let size = w.derived_u16("size", size)?;
                w.bytes("data", size.into(), data)
            }
            LayoutClass::Contiguous { addr, size, .. } => {
                w.addr("address", addr)?;
                w.length("size", size)
            }
            LayoutClass::Chunked(chunks) if version == 3 => {
                let rank = chunks.wire_rank(w)?;
                w.addr("B-tree", &mut chunks.addr)?;
                chunks.wire_chunk_dims(w, rank, Width::FOUR)
            }
            LayoutClass::Chunked(chunks) => chunks.wire_chunk_index(w),
            LayoutClass::Virtual { heap, index } => {
                w.addr("global heap", heap)?;
                w.u32("heap object", index)
            }
        }
    }
}

fn wire_ignored_dims(w: &mut impl Wire, rank: u8, dims: &mut Vec<u32>) -> Result<()> {
    dims.resize(rank.into(), 0);
    dims.iter_mut().try_for_each(|dim| w.u32("dimension", dim))
}

impl ChunkedStorage {
    fn wire_rank(&self, w: &mut impl Wire) -> Result<u8> {
        let rank = u8::try_from(self.chunk_dims.len().saturating_add(1)).unwrap_or(u8::MAX);
        let rank = w.derived_u8("dimensionality", rank)?;
        w.require("dimensionality", rank > 1 && rank <= MAX_DIMS, rank.into(), "2 to 33")?;
        Ok(rank)
    }

    /// `rank` dimensions. The last one is the size of an element.
    fn wire_chunk_dims(&mut self, w: &mut impl Wire, rank: u8, width: Width) -> Result<()> {
        w.require("dimensionality", rank > 1, rank.into(), "at least 2")?;
        self.chunk_dims.resize(usize::from(rank).saturating_sub(1), 0);
        for dim in self.chunk_dims.iter_mut().chain(std::iter::once(&mut self.element_size)) {
            w.uint("chunk dimension", width, dim)?;
            w.require("chunk dimension", *dim != 0, 0, "must not be 0")?;
        }
        Ok(())
    }

    fn flags(&self) -> u8 {
        let single = matches!(self.index, ChunkIndexType::Single { filtered: Some(_) });
        (if self.unfiltered_partial_chunks { UNFILTERED_EDGES } else { 0 }) | (if single { SINGLE_FILTERED } else { 0 })
    }

    fn index_type_number(index: &ChunkIndexType) -> u8 {
        match index {
            ChunkIndexType::Btree1 => 0,
            ChunkIndexType::Single { .. } => 1,
            ChunkIndexType::Implicit => 2,
            ChunkIndexType::FixedArray { .. } => 3,
            ChunkIndexType::ExtensibleArray(_) => 4,
            ChunkIndexType::Btree2 { .. } => 5,
        }
    }

    /// Versions 4 and 5.
    fn wire_chunk_index(&mut self, w: &mut impl Wire) -> Result<()> {
        let flags = w.derived_u8("flags", self.flags())?;
        w.require("flags", flags & !0x03 == 0, flags.into(), "only the flags 1 and 2 exist")?;
        self.unfiltered_partial_chunks = flags & UNFILTERED_EDGES != 0;
        let rank = self.wire_rank(w)?;
        let largest = self.chunk_dims.iter().copied().fold(self.element_size, u64::max);
        let width = w.derived_u8("dimension width", u8::try_from(Width::for_value(largest).bytes()).unwrap_or(8))?;
        let fault = Fault::InvalidValue { found: width.into(), rule: "1 to 8 bytes" };
        let width = Width::new(width).ok_or_else(|| w.fault("dimension width", fault))?;
        self.wire_chunk_dims(w, rank, width)?;
        let number = w.derived_u8("chunk index type", Self::index_type_number(&self.index))?;
        if w.is_decoding() {
            self.index = match number {
                1 => ChunkIndexType::Single {
                    filtered: (flags & SINGLE_FILTERED != 0).then(SingleChunkFilterInfo::default),
                },
                2 => ChunkIndexType::Implicit,
                3 => ChunkIndexType::FixedArray { page_bits: 0 },
                4 => ChunkIndexType::ExtensibleArray(ExtensibleArrayParameters::default()),
                5 => ChunkIndexType::Btree2 { node_size: 0, split: 0, merge: 0 },
                found => {
                    let rule = "a chunk index type is 1 to 5";
                    return Err(w.fault("chunk index type", Fault::InvalidValue { found: found.into(), rule }));
                }
            };
        }
        self.index.wire(w)?;
        w.addr("chunk index", &mut self.addr)
    }
}

impl ChunkIndexType {
    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        match self {
            ChunkIndexType::Btree1 => {
                let rule = "version 1 B-trees belong to layout versions 1 to 3";
                Err(w.fault("chunk index type", Fault::InvalidValue { found: 0, rule }))
            }
            ChunkIndexType::Single { filtered: None } | ChunkIndexType::Implicit => Ok(()),
            ChunkIndexType::Single { filtered: Some(chunk) } => {
                w.length("chunk size", &mut chunk.size)?;
                w.u32("filter mask", &mut chunk.filter_mask)
            }
            ChunkIndexType::FixedArray { page_bits } => {
                w.u8("page bits", page_bits)?;
                w.require("page bits", *page_bits != 0, 0, "must not be 0")
            }
            ChunkIndexType::ExtensibleArray(parameters) => {
                w.u8("bits of largest index", &mut parameters.element_index_bits)?;
                w.u8("elements in index block", &mut parameters.index_block_elements)?;
                w.u8("data blocks of first super block", &mut parameters.super_block_min_pointers)?;
                w.u8("elements of smallest data block", &mut parameters.data_block_min_elements)?;
                w.u8("page bits", &mut parameters.page_bits)?;
                let smallest = parameters
                    .element_index_bits
                    .min(parameters.index_block_elements)
                    .min(parameters.super_block_min_pointers);
                let smallest = smallest.min(parameters.data_block_min_elements).min(parameters.page_bits);
                w.require("extensible array parameters", smallest != 0, 0, "none is 0")
            }
            ChunkIndexType::Btree2 { node_size, split, merge } => {
                w.u32("node size", node_size)?;
                for (field, percent) in [("split percent", split), ("merge percent", merge)] {
                    w.u8(field, percent)?;
                    w.require(field, *percent > 0 && *percent <= 100, (*percent).into(), "1 to 100")?;
                }
                Ok(())
            }
        }
    }
}

impl Record for LayoutMessage {
    const NAME: &'static str = "data layout";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(1..=5, &mut self.version)?;
        if self.version < 3 { self.wire_old_versions(w) } else { self.wire_new_versions(w) }
    }
}

impl Message for LayoutMessage {
    const TYPE: MessageType = MessageType::LAYOUT;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Widths, decode, encode};

    fn chunked(index: ChunkIndexType) -> LayoutClass {
        LayoutClass::Chunked(ChunkedStorage {
            chunk_dims: vec![10, 300],
            element_size: 4,
            unfiltered_partial_chunks: index != ChunkIndexType::Btree1,
            index,
            addr: Addr::new(0x800),
        })
    }

    #[test]
    fn structured_chunks_are_refused_by_their_name() {
        for version in [4, 5] {
            let refused = decode::<LayoutMessage>(&[version, STRUCTURED, 0, 0, 0, 0, 0, 0, 0, 0], Widths::default());
            let said = refused.unwrap_err().to_string();
            assert!(said.contains("structured chunks, for sparse data"), "{said}");
        }
    }

    #[test]
    fn comes_back_from_bytes_in_every_version() {
        let mut messages = Vec::new();
        for version in 1..=5 {
            let dims = if version < 3 { vec![3, 8] } else { Vec::new() };
            let size = if version < 3 { 0 } else { 24 };
            messages.push((version, LayoutClass::Compact { data: vec![7; 5], dims: dims.clone() }));
            messages.push((version, LayoutClass::Contiguous { addr: Addr::new(9), size, dims }));
        }
        messages.extend((1..=3).map(|version| (version, chunked(ChunkIndexType::Btree1))));
        for index in [
            ChunkIndexType::Single { filtered: None },
            ChunkIndexType::Single { filtered: Some(SingleChunkFilterInfo { size: 77, filter_mask: 1 }) },
            ChunkIndexType::Implicit,
            ChunkIndexType::FixedArray { page_bits: 10 },
            ChunkIndexType::ExtensibleArray(ExtensibleArrayParameters::default()),
            ChunkIndexType::Btree2 { node_size: 2048, split: 100, merge: 40 },
        ] {
            messages.extend((4..=5).map(|version| (version, chunked(index))));
        }
        messages.push((4, LayoutClass::Virtual { heap: Addr::new(4096), index: 1 }));
        for (version, storage) in messages {
            let message = LayoutMessage { version, storage };
            let bytes = encode(&message, Widths::default()).unwrap();
            assert_eq!(decode::<LayoutMessage>(&bytes, Widths::default()).unwrap(), message);
        }
    }

    #[test]
    fn elements_of_compact_datasets_are_changed_where_they_are() {
        let dims = |version| if version < 3 { vec![2, 2] } else { Vec::new() };
        for version in 1..=5 {
            let compact = |data: &[u8]| LayoutClass::Compact { data: data.to_vec(), dims: dims(version) };
            let encoded = |storage| encode(&LayoutMessage { version, storage }, Widths::default()).unwrap();
            let mut bytes = encoded(compact(&[1, 2, 3, 4]));
            // Padding, as headers of version 1 have it.
            bytes.extend([0; 3]);
            let found = LayoutMessage::compact_elements_mut(&mut bytes).map(|data| data.copy_from_slice(&[5, 6, 7, 8]));
            assert_eq!(found.is_some(), version >= 3);
            if found.is_some() {
                assert_eq!(bytes[..bytes.len() - 3], encoded(compact(&[5, 6, 7, 8])));
                assert!(LayoutMessage::compact_elements_mut(&mut bytes[..7]).is_none());
            }
            let mut other = encoded(LayoutClass::Contiguous { addr: Addr::new(9), size: 0, dims: dims(version) });
            assert!(LayoutMessage::compact_elements_mut(&mut other).is_none());
        }
        assert!(LayoutMessage::compact_elements_mut(&mut []).is_none());
    }

    #[test]
    fn refuses_what_a_version_cannot_hold() {
        let virtual_storage = LayoutClass::Virtual { heap: Addr::new(1), index: 0 };
        for (version, storage) in
            [(3, virtual_storage.clone()), (1, virtual_storage), (4, chunked(ChunkIndexType::Btree1))]
        {
            assert!(encode(&LayoutMessage { version, storage }, Widths::default()).is_err());
        }
    }

    #[test]
    fn big_filtered_chunks_need_version_5() {
        let mut storage = chunked(ChunkIndexType::FixedArray { page_bits: 10 });
        assert_eq!(LayoutMessage::version_for(LibVer::V110, &storage, true), 4);
        assert_eq!(LayoutMessage::version_for(LibVer::V200, &storage, true), 5);
        assert_eq!(LayoutMessage::version_for(LibVer::V200, &storage, false), 4);
        if let LayoutClass::Chunked(chunks) = &mut storage {
            chunks.chunk_dims = vec![1 << 20, 1 << 12];
        }
        assert_eq!(LayoutMessage::version_for(LibVer::V110, &storage, false), 5);
    }
}

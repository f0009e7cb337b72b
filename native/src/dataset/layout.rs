//! Where the elements of one dataset are: in its header, in one run, or in chunks behind an index.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5live_cache::{ChunkProxy, DependencyKind, DependencyNode, EntryId};
use h5live_format::messages::{
    BtreeK, ChunkIndexType as IndexKind, ChunkedStorage, LayoutClass, LayoutMessage, MessageType, SingleChunkFilterInfo,
};
use h5live_format::{Addr, ChunkEntryFormat, ChunkIndexEntry};
use h5live_indexes::{
    Btree2Parameters, ChunkBtree1, ChunkBtree2, ChunkIndex, ExtensibleArray, FixedArray, ImplicitIndex, IndexAddrSlot,
    LinearChunkOrder,
};
use h5live_model::{ChunkCoord, ChunkGrid, DatasetSpec, Error as ModelError};

use super::external_raw_files::ExternalRawFiles;
use crate::header::CachedHeader;
use crate::object_headers::ObjectHeaders;
use crate::{Error, Result};

/// Where the elements are. Clones are the same place.
#[derive(Debug, Clone)]
pub(crate) enum NativeLayout {
    /// In the header; the bytes, if nobody changes them.
    Compact(Option<Vec<u8>>),
    /// In one run of bytes, to which the layout message leads: contiguous storage, or a single chunk.
    Single(Arc<LayoutRoot>, ChunkEntryFormat),
    /// In chunks.
    Chunked(Arc<dyn ChunkIndex>, Arc<LayoutRoot>, ChunkEntryFormat),
    /// In raw files.
    External(ExternalRawFiles),
    /// In other datasets, which are read above the seam.
    Virtual,
}

/// The layout message, as the way to chunks.
#[derive(Debug)]
pub(crate) struct LayoutRoot {
    headers: Arc<ObjectHeaders>,
    header_addr: Addr,
    index_addr: AtomicU64,
    filtered_single_chunk: parking_lot::Mutex<SingleChunkFilterInfo>,
    /// Whether all of the header is in its first chunk.
    is_single_chunk_header: bool,
    /// Whether a chunk can come to be elsewhere.
    can_move: bool,
    /// The parts of the header that state the extent and the layout. They wait for chunks and index.
    parents: CachedHeader,
}

impl LayoutRoot {
    /// Changes what the layout message says of the storage. Where the extent is stated in a later chunk of the header,
    /// which might be written before, it comes after this.
    fn update_message(&self, change: impl FnOnce(&mut LayoutClass)) -> Result<()> {
        let _lock = self.headers.lock_header(self.header_addr);
        let mut header = self.headers.load_header(self.header_addr)?;
        let mut layout = header.require_message::<LayoutMessage>("a dataset has a layout")?;
        change(&mut layout.storage);
        header.set_message(&layout)?;
        let [extent, layout] = Self::PARENT_MESSAGES;
        if let Some(node) = header.chunk_node_of(layout).filter(|_| header.may_be_written_before(extent, layout)) {
            // Where the extent has just gone to a chunk that must be there before the one that leads to it, readers
            // wait.
            let _circle = header.add_message_dependency(extent, node, DependencyKind::ObjectHeaderIndex);
        }
        Ok(())
    }

    fn index_addr(&self) -> Addr {
        Addr::new(self.index_addr.load(Ordering::Acquire))
    }

    /// The messages that state the extent and the places of the chunks.
    const PARENT_MESSAGES: [MessageType; 2] = [MessageType::DATASPACE, MessageType::LAYOUT];

    fn add_dependency(&self, child: &dyn DependencyNode, kind: DependencyKind) -> Result<()> {
        for kept in Self::PARENT_MESSAGES {
            self.parents.add_message_dependency(kept, child, kind)?;
        }
        Ok(())
    }
}

impl IndexAddrSlot for LayoutRoot {
    fn addr(&self) -> Addr {
        self.index_addr()
    }

    fn set_addr(&self, addr: Addr) -> h5live_indexes::Result<()> {
        let put = |storage: &mut LayoutClass| {
            if let LayoutClass::Chunked(chunks) = storage {
                chunks.addr = addr;
            }
        };
        match self.update_message(put) {
            Ok(()) => {
                self.index_addr.store(addr.get().unwrap_or(u64::MAX), Ordering::Release);
                Ok(())
            }
            Err(Error::Cache(error)) => Err(h5live_indexes::Error::Cache(error)),
            Err(Error::Index(error)) => Err(error),
            Err(_) => Err(h5live_indexes::Error::Contradiction {
                record: "object header",
                at: self.header_addr,
                other: "data layout message",
                rule: "a dataset has a layout",
            }),
        }
    }

    fn flush_parent_ids(&self) -> [Option<EntryId>; 2] {
        Self::PARENT_MESSAGES.map(|kind| self.parents.chunk_node_of(kind).map(DependencyNode::id))
    }

    fn depend_on(&self, child: &dyn DependencyNode) -> h5live_indexes::Result<()> {
        match self.add_dependency(child, DependencyKind::ObjectHeaderIndex) {
            Err(Error::Cache(error)) => Err(h5live_indexes::Error::Cache(error)),
            _ => Ok(()),
        }
    }
}

fn unsupported_error(what: &'static str) -> Error {
    Error::Model(ModelError::Unsupported(what))
}

/// What a layout needs to know of its file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LayoutContext<'a> {
    /// The way to the header with the layout message.
    pub headers: &'a Arc<ObjectHeaders>,
    /// The path of the file, beside which raw files are.
    pub path: &'a Path,
    /// The sizes of version 1 B-tree nodes.
    pub btree_k: BtreeK,
}

impl NativeLayout {
    /// The layout that a header states.
    ///
    /// # Errors
    /// If the header is damaged.
    pub fn new(
        context: LayoutContext<'_>,
        header: &CachedHeader,
        spec: &DatasetSpec,
        layout: &LayoutMessage,
    ) -> Result<Self> {
        let root = |addr: Addr, filtered| {
            Arc::new(LayoutRoot {
                headers: context.headers.clone(),
                header_addr: header.addr(),
                index_addr: AtomicU64::new(addr.get().unwrap_or(u64::MAX)),
                filtered_single_chunk: parking_lot::Mutex::new(filtered),
                is_single_chunk_header: header.is_single_chunk(),
                can_move: matches!(&layout.storage, LayoutClass::Chunked(chunks) if chunks.index != IndexKind::Implicit),
                parents: header.clone(),
            })
        };
        let chunks = match &layout.storage {
            LayoutClass::Compact { .. } => return Ok(NativeLayout::Compact(None)),
            LayoutClass::Contiguous { .. } if header.has_message(MessageType::EXTERNAL_FILES) => {
                return Ok(NativeLayout::External(ExternalRawFiles::new(
                    super::external_raw_files::external_pieces(header)?,
                    context.path,
                )));
            }
            LayoutClass::Contiguous { addr, .. } => {
                return Ok(NativeLayout::Single(
                    root(*addr, SingleChunkFilterInfo::default()),
                    ChunkEntryFormat::Unfiltered,
                ));
            }
            LayoutClass::Virtual { .. } => return Ok(NativeLayout::Virtual),
            LayoutClass::Chunked(chunks) => chunks,
        };
        let filtered = match chunks.index {
            IndexKind::Single { filtered } => filtered.unwrap_or_default(),
            _ => SingleChunkFilterInfo::default(),
        };
        NativeLayout::for_chunked(context.btree_k, header, spec, layout.version, chunks, root(chunks.addr, filtered))
    }

    /// The layout of chunks, whose index begins at `root`.
    fn for_chunked(
        btree_k: BtreeK,
        header: &CachedHeader,
        spec: &DatasetSpec,
        version: u8,
        chunks: &ChunkedStorage,
        root: Arc<LayoutRoot>,
    ) -> Result<Self> {
        let bytes = chunks.chunk_bytes().ok_or_else(|| header.damaged_error("a chunk has less than 2^64 bytes"))?;
        let format = match spec.filters.is_empty() {
            true => ChunkEntryFormat::Unfiltered,
            false => ChunkEntryFormat::filtered(bytes, version, header.widths().length),
        };
        let grid =
            ChunkGrid::new(&chunks.chunk_dims).ok_or_else(|| header.damaged_error("chunks have no dimension of 0"))?;
        let line = || {
            LinearChunkOrder::new(&grid, spec.dataspace.max_dims())
                .ok_or_else(|| header.damaged_error("chunks are of the dataset's rank"))
        };
        let metadata = header.metadata().clone();
        let index: Arc<dyn ChunkIndex> = match chunks.index {
            IndexKind::Single { .. } => return Ok(NativeLayout::Single(root, format)),
            IndexKind::FixedArray { page_bits } => {
                Arc::new(FixedArray::new(metadata, root.clone(), line()?, format, page_bits)?)
            }
            IndexKind::ExtensibleArray(parameters) => {
                Arc::new(ExtensibleArray::new(metadata, root.clone(), line()?, format, parameters)?)
            }
            IndexKind::Btree1 => {
                Arc::new(ChunkBtree1::new(metadata, root.clone(), grid, chunks.element_size, btree_k.chunk))
            }
            IndexKind::Implicit => Arc::new(ImplicitIndex::new(metadata, root.clone(), line()?, bytes)?),
            IndexKind::Btree2 { node_size, split, merge } => {
                let shape = Btree2Parameters { node_size, split, merge };
                Arc::new(ChunkBtree2::new(metadata, root.clone(), spec.dataspace.rank(), format, shape))
            }
        };
        Ok(NativeLayout::Chunked(index, root, format))
    }

    /// The format of the entries of the chunk index; `None` if the only chunk is stated in the header.
    pub fn chunk_entry_format(&self) -> Option<ChunkEntryFormat> {
        match self {
            NativeLayout::Single(_, format) | NativeLayout::Chunked(_, _, format) => Some(*format),
            _ => None,
        }
    }

    /// The header with the layout message, as it was read.
    pub fn header(&self) -> Option<&CachedHeader> {
        match self {
            NativeLayout::Single(root, _) | NativeLayout::Chunked(_, root, _) => Some(&root.parents),
            _ => None,
        }
    }

    /// Whether the first chunk of the header is all of it.
    pub fn has_header_without_continuation(&self) -> bool {
        match self {
            NativeLayout::Single(root, _) | NativeLayout::Chunked(_, root, _) => root.is_single_chunk_header,
            _ => false,
        }
    }

    /// Whether the dataset needs a chunk index and has none yet.
    pub fn lacks_chunk_index_yet(&self) -> bool {
        matches!(self, NativeLayout::Chunked(_, root, _) if !root.index_addr().is_defined())
    }

    /// Whether a chunk can come to be elsewhere.
    pub fn can_move_chunks(&self) -> bool {
        match self {
            NativeLayout::Single(root, _) | NativeLayout::Chunked(_, root, _) => root.can_move,
            _ => false,
        }
    }

    /// Refuses to write where elements are not in this file.
    pub fn check_not_virtual(&self) -> Result<()> {
        match self {
            NativeLayout::Virtual => Err(unsupported_error("writing to virtual datasets")),
            _ => Ok(()),
        }
    }

    pub fn locate_chunk(&self, coord: &ChunkCoord) -> Result<Option<ChunkIndexEntry>> {
        match self {
            NativeLayout::Compact(_) | NativeLayout::External(_) | NativeLayout::Virtual => Ok(None),
            NativeLayout::Single(root, _) => {
                let addr = root.index_addr();
                let filtered = *root.filtered_single_chunk.lock();
                let here = addr.is_defined() && coord.scaled().iter().all(|at| *at == 0);
                Ok(here.then_some(ChunkIndexEntry {
                    addr,
                    stored_size: filtered.size,
                    filter_mask: filtered.filter_mask,
                }))
            }
            NativeLayout::Chunked(index, ..) => Ok(index.get_chunk_entry(coord)?),
        }
    }

    /// Whether any of `count` chunks is stored: `first`, and those that follow it along the dimension `axis`.
    pub fn has_any_chunk_along_axis(&self, first: &ChunkCoord, axis: usize, count: u64) -> Result<bool> {
        match self {
            NativeLayout::Chunked(index, ..) => Ok(index.has_any_chunk_along_axis(first, axis, count)?),
            _ => Ok(self.locate_chunk(first)?.is_some()),
        }
    }

    pub fn set_chunk_entry(
        &self,
        coord: &ChunkCoord,
        entry: ChunkIndexEntry,
        proxy: Option<&ChunkProxy>,
    ) -> Result<()> {
        match self {
            NativeLayout::Compact(_) | NativeLayout::External(_) => Ok(()),
            NativeLayout::Virtual => self.check_not_virtual(),
            NativeLayout::Single(root, _) => {
                root.update_message(|storage| match storage {
                    LayoutClass::Contiguous { addr, .. } => *addr = entry.addr,
                    LayoutClass::Chunked(chunks) => {
                        chunks.addr = entry.addr;
                        if let IndexKind::Single { filtered: Some(chunk) } = &mut chunks.index {
                            *chunk = SingleChunkFilterInfo { size: entry.stored_size, filter_mask: entry.filter_mask };
                        }
                    }
                    _ => {}
                })?;
                *root.filtered_single_chunk.lock() =
                    SingleChunkFilterInfo { size: entry.stored_size, filter_mask: entry.filter_mask };
                root.index_addr.store(entry.addr.get().unwrap_or(u64::MAX), Ordering::Release);
                proxy.map_or(Ok(()), |proxy| root.add_dependency(proxy, DependencyKind::LayoutRaw))
            }
            NativeLayout::Chunked(index, ..) => Ok(index.set_chunk_entry(coord, entry, proxy)?),
        }
    }

    /// As [`set_chunk_entry`](Self::set_chunk_entry), and returns the previous entry.
    pub fn replace_chunk_entry(
        &self,
        coord: &ChunkCoord,
        entry: ChunkIndexEntry,
        proxy: Option<&ChunkProxy>,
    ) -> Result<Option<ChunkIndexEntry>> {
        if let NativeLayout::Chunked(index, ..) = self {
            return Ok(index.replace_chunk_entry(coord, entry, proxy)?);
        }
        let old = self.locate_chunk(coord)?;
        self.set_chunk_entry(coord, entry, proxy)?;
        Ok(old)
    }

    /// Whether the raw data of neighbouring chunks may wait as one: [`ChunkIndex::allows_shared_proxy`].
    pub fn allows_proxy_shared_by_chunks(&self) -> bool {
        matches!(self, NativeLayout::Chunked(index, ..) if index.allows_shared_proxy())
    }

    /// As [`set_chunk_entry`](Self::set_chunk_entry), for chunks without filters that follow each other along a dimension.
    pub fn set_entries_along_axis(
        &self,
        first: &ChunkCoord,
        axis: usize,
        chunk_addrs: &[Addr],
        proxy: Option<&ChunkProxy>,
    ) -> Result<()> {
        match self {
            NativeLayout::Chunked(index, ..) => {
                Ok(index.set_unfiltered_entries_along_axis(first, axis, chunk_addrs, proxy)?)
            }
            _ => Err(unsupported_error("a row of chunks where there is no index")),
        }
    }

    /// Forgets where a chunk is stored; `false` if the storage has no way to be without it.
    pub fn remove_chunk_entry(&self, coord: &ChunkCoord) -> Result<bool> {
        match self {
            NativeLayout::Single(..) => {
                self.set_chunk_entry(coord, ChunkIndexEntry::default(), None)?;
                Ok(true)
            }
            NativeLayout::Chunked(index, ..) => Ok(index.remove_chunk_entry(coord)?.is_some()),
            _ => Ok(false),
        }
    }

    /// Whether chunks can be taken out of the index. All chunks of an implicit index are there for good.
    pub fn can_remove_chunks(&self) -> bool {
        match self {
            NativeLayout::Single(..) => true,
            NativeLayout::Chunked(index, ..) => index.can_remove_chunks(),
            _ => false,
        }
    }

    /// Gives back the space of the index.
    pub fn delete_index(&self) -> Result<()> {
        match self {
            NativeLayout::Chunked(index, ..) => Ok(index.delete_index()?),
            _ => Ok(()),
        }
    }

    /// Whether the index counts its blocks wrong; with `repair`, it does not afterwards.
    pub fn find_or_fix_block_count_errors(&self, repair: bool) -> Result<bool> {
        match self {
            NativeLayout::Chunked(index, ..) => Ok(index.find_or_fix_block_count_errors(repair)?),
            _ => Ok(false),
        }
    }

    /// Makes the extent wait for raw data that is written into existing chunks.
    pub fn make_header_wait_for_raw_data(&self, proxy: &ChunkProxy) -> Result<()> {
        match self {
            NativeLayout::Single(root, _) | NativeLayout::Chunked(_, root, _) => {
                root.add_dependency(proxy, DependencyKind::LayoutRaw)
            }
            _ => Ok(()),
        }
    }

    pub fn for_each_chunk(&self, rank: usize, each: &mut dyn FnMut(ChunkCoord, ChunkIndexEntry) -> bool) -> Result<()> {
        match self {
            NativeLayout::Compact(_) | NativeLayout::External(_) | NativeLayout::Virtual => Ok(()),
            NativeLayout::Single(..) => {
                let coord = ChunkCoord::origin(rank);
                if let Some(element) = self.locate_chunk(&coord)? {
                    each(coord, element);
                }
                Ok(())
            }
            NativeLayout::Chunked(index, ..) => Ok(index.for_each_chunk(each)?),
        }
    }

    /// As [`for_each_chunk`](Self::for_each_chunk), also with chunks that a writer that died did not come to count.
    pub fn for_each_chunk_with_uncounted(
        &self,
        rank: usize,
        each: &mut dyn FnMut(ChunkCoord, ChunkIndexEntry) -> bool,
    ) -> Result<()> {
        match self {
            NativeLayout::Chunked(index, ..) => Ok(index.for_each_chunk_with_uncounted(each)?),
            _ => self.for_each_chunk(rank, each),
        }
    }
}

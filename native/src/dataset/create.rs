//! New datasets: their messages, and the storage that they have from the start.

use std::sync::Arc;
use std::time::Duration;

use h5live_cache::{DependencyKind, SpaceKind};
use h5live_format::messages::{
    ChunkIndexType as IndexKind, ChunkedStorage, DataspaceMessage, ExternalFileSlot, ExternalFiles, FillValueMessage,
    FilterPipelineMessage, LayoutClass, LayoutMessage, MAX_CHUNK_BYTES_BEFORE_V5, MessageType,
};
use h5live_format::{
    Addr, ExtensibleArrayParameters, LibVer, LocalHeapData, LocalHeapPrefix, MessageFlags, RawMessage, StoredSelection,
    StructureVersions, VirtualLayout, VirtualMapping, encode,
};
use h5live_model::{
    AllocationTime, ChunkGrid, DatasetSpec, Dataspace, ExternalPiece, Fill, FillTime, FillValue, Layout, ObjectSpec,
    Selection, UNLIMITED, VirtualSource,
};

use super::layout::NativeLayout;
use super::state::{DatasetState, NewDataset};
use crate::header::{CachedHeader, ReservedHeaderSpace};
use crate::session::NativeSession;
use crate::{Error, Result};

/// Most chunks of a dataset that has a fixed array. The array takes space for all chunks that the dataset can have (128
/// MiB and more). libhdf5 takes a fixed array for any number, and fails if it has too little memory. It reads and
/// writes a version 2 B-tree for datasets of any shape.
const MAX_FIXED_ARRAY_CHUNKS: u64 = 1 << 24;

/// The version 2 B-tree of chunks, as libhdf5 makes it.
const CHUNK_BTREE2: IndexKind = IndexKind::Btree2 { node_size: 2048, split: 100, merge: 40 };

/// Bytes of unused space in the header of a new dataset, for attributes.
const DATASET_ROOM_BYTES: usize = 160;

/// Bytes of the messages of a new dataset with a header of version 1, with unused space for attributes: the number of
/// libhdf5.
const V1_DATASET_ROOM: ReservedHeaderSpace = ReservedHeaderSpace::UpToTotal(256);

/// Most bytes of a compact dataset: its layout message must fit its size field.
const MAX_COMPACT_BYTES: u64 = 65_520;

/// Creates the header of a new dataset, and the storage that must exist from the start: all of it for a contiguous
/// dataset and for one without an index. The caller writes chunks that are allocated early. A compact dataset may get
/// its `elements`.
///
/// # Errors
/// If the description contradicts itself, if a file with these version bounds cannot hold the dataset, or if there is
/// no space.
pub(crate) fn create_dataset(
    session: &NativeSession,
    object: &ObjectSpec,
    spec: &DatasetSpec,
    elements: Option<&[u8]>,
) -> Result<CachedHeader> {
    let profile = session.profile;
    let storage = create_storage(session, spec, elements)?;
    let (described, mut messages) = spec_messages(session, spec)?;
    let mut names = None;
    if let Layout::External(pieces) = &spec.layout {
        let (message, heap, data) = create_external_file_list(session, pieces)?;
        names = Some((message.heap, heap, data));
        messages.push(session.encode_message(message, MessageFlags::CONSTANT)?);
    }
    let layout = LayoutMessage::new(profile, storage, !spec.filters.is_empty());
    messages.push(session.encode_message(layout, MessageFlags::default())?);
    let can_grow = spec.dataspace.dims() != spec.dataspace.max_dims();
    let prefix = session.new_header_prefix(object);
    let room = match prefix.version {
        1 => V1_DATASET_ROOM,
        // The extent and the checksum change together: beside each other, one short store changes both.
        _ if can_grow => {
            messages.rotate_left(1);
            ReservedHeaderSpace::BeforeLastMessage(DATASET_ROOM_BYTES)
        }
        _ => ReservedHeaderSpace::AtEnd(DATASET_ROOM_BYTES),
    };
    let header = session.create_header(object, prefix, messages, room)?;
    if let Some((at, heap, data)) = names {
        let (cache, owner) = (&session.cache, header.metadata().owner());
        let data = cache.insert_entry(heap.data, owner, data);
        let heap = cache.insert_entry(at, owner, heap);
        header.metadata().add_dependency(&heap, &data, DependencyKind::SymbolTable)?;
        header.add_message_dependency(MessageType::EXTERNAL_FILES, &heap, DependencyKind::SymbolTable)?;
    }
    session.global_heap.add_header_as_flush_parent(&header)?;
    session.count_datatype_use(&header, spec.committed_datatype)?;
    if spec.layout == Layout::Compact && spec.committed_datatype.is_none() {
        debug_assert_eq!(super::load::cached_spec(session, &header)?.0, described, "what is made is what is read");
        let header_len = header.chunk_ranges().next().map_or(0, |(_, len)| len);
        let (since, place) = (Duration::ZERO, NativeLayout::Compact(None));
        let state = DatasetState {
            read_since: since,
            spec: described,
            layout: place,
            too_short_layout_bytes: None,
            oversized_for_version: None,
            header_len,
            header_image: None,
        };
        session.datasets.cache_new_dataset_state(NewDataset { addr: header.addr(), state });
    }
    Ok(header)
}

/// A dataset as its header will describe it, and the messages for it, except the layout.
fn spec_messages(session: &NativeSession, spec: &DatasetSpec) -> Result<(Arc<DatasetSpec>, Vec<RawMessage>)> {
    let cache = &session.datasets.spec_messages;
    if let Some(known) = cache.find(spec) {
        return Ok(known);
    }
    let (profile, constant) = (session.profile, MessageFlags::CONSTANT);
    let dataspace = DataspaceMessage::new(profile, spec.dataspace.clone());
    let fill = FillValueMessage::new(profile, stored_fill(spec));
    let described = Arc::new(DatasetSpec { fill: fill.fill.clone(), ..spec.clone() });
    // The extent is the first.
    let mut messages = vec![
        session.encode_message(dataspace, MessageFlags::default())?,
        session.encode_datatype_message(&spec.datatype, spec.committed_datatype)?,
        session.encode_message(fill, constant)?,
    ];
    if !spec.filters.is_empty() {
        messages.push(session.encode_message(FilterPipelineMessage::new(profile, spec.filters.clone()), constant)?);
    }
    // Whether a committed datatype is one is to be found out each time.
    cache
        .set((spec.committed_datatype.is_none() && *described == *spec).then(|| (described.clone(), messages.clone())));
    Ok((described, messages))
}

/// The error of elements for an object that does not hold them in its header.
pub(crate) fn not_compact_error() -> Error {
    Error::invalid("only a compact dataset is made with its elements")
}

fn create_storage(session: &NativeSession, spec: &DatasetSpec, elements: Option<&[u8]>) -> Result<LayoutClass> {
    let bytes = spec.dataspace.element_count().and_then(|n| n.checked_mul(spec.datatype.size().into()));
    let bytes = bytes.ok_or_else(|| Error::invalid("a dataset has less than 2^64 bytes"))?;
    let fixed = spec.dataspace.dims() == spec.dataspace.max_dims();
    match &spec.layout {
        Layout::Chunked(_) | Layout::Virtual(_) | Layout::External(_) => {}
        _ if !fixed => return Err(Error::invalid("a dataset that can grow is stored in chunks")),
        _ => {}
    }
    if !spec.filters.is_empty() && !matches!(spec.layout, Layout::Chunked(_)) {
        return Err(Error::invalid("a dataset with filters is stored in chunks"));
    }
    match &spec.layout {
        Layout::Compact if bytes > MAX_COMPACT_BYTES => {
            Err(Error::invalid(format!("a compact dataset has at most {MAX_COMPACT_BYTES} bytes")))
        }
        Layout::Compact => {
            let data = match elements {
                Some(elements) if elements.len() as u64 == bytes => elements.to_vec(),
                Some(elements) => {
                    return Err(Error::invalid(format!("{} bytes are not a dataset of {bytes} bytes", elements.len())));
                }
                None => spec.repeated_fill_value(bytes as usize),
            };
            Ok(LayoutClass::Compact { data, dims: Vec::new() })
        }
        _ if elements.is_some() => Err(not_compact_error()),
        Layout::Contiguous => {
            let early = spec.fill.allocation == AllocationTime::Early && bytes > 0;
            let addr = if early { alloc_filled(session, spec, bytes)? } else { Addr::UNDEFINED };
            Ok(LayoutClass::Contiguous { addr, size: bytes, dims: Vec::new() })
        }
        Layout::External(_) => Ok(LayoutClass::Contiguous { addr: Addr::UNDEFINED, size: bytes, dims: Vec::new() }),
        Layout::Chunked(dims) => create_chunked_storage(session, spec, dims),
        Layout::Virtual(sources) => create_virtual_storage(session, spec, sources),
    }
}

/// The fill value message of the file. Elements of variable length are always filled. Otherwise, bytes that are left in
/// the space would be taken for addresses in a heap.
fn stored_fill(spec: &DatasetSpec) -> Fill {
    let mut fill = spec.fill.clone();
    if spec.datatype.has_vlen() && fill.time == FillTime::IfSet && fill.value == FillValue::Default {
        fill.time = FillTime::Allocation;
    }
    fill
}

/// Newly allocated space of `bytes` bytes, which holds fill values unless nobody wants them.
fn alloc_filled(session: &NativeSession, spec: &DatasetSpec, bytes: u64) -> Result<Addr> {
    match spec.fill.time {
        FillTime::Never => Ok(session.cache.space().alloc(bytes, SpaceKind::Raw)?),
        _ => session.alloc_filled_space(spec, bytes),
    }
}

fn create_chunked_storage(session: &NativeSession, spec: &DatasetSpec, dims: &[u64]) -> Result<LayoutClass> {
    let Dataspace::Simple(shape) = &spec.dataspace else {
        return Err(Error::invalid("only a dataset with dimensions is stored in chunks"));
    };
    let fits = dims.len() == shape.rank() && !dims.is_empty() && !dims.contains(&0);
    let below_max = dims.iter().zip(shape.max_dims()).all(|(dim, max)| dim <= max || shape.dims().contains(&0));
    if !fits || !below_max {
        return Err(Error::invalid(format!("chunks of {dims:?} do not fit a dataset of {:?}", shape.max_dims())));
    }
    let bytes = dims.iter().try_fold(u64::from(spec.datatype.size()), |n, dim| n.checked_mul(*dim));
    let bytes = bytes.ok_or_else(|| Error::invalid("a chunk has less than 2^64 bytes"))?;
    if bytes > MAX_CHUNK_BYTES_BEFORE_V5 && session.profile < LibVer::V200 {
        return Err(Error::invalid(format!(
            "a chunk of {bytes} bytes needs LibVer::V200: before, a chunk has at most {MAX_CHUNK_BYTES_BEFORE_V5} bytes"
        )));
    }
    let filtered = !spec.filters.is_empty();
    let mut addr = Addr::UNDEFINED;
    let index = match shape.unlimited_axes().count() {
        _ if !uses_version_4_indexes(session.profile, spec.unfiltered_partial_chunks, bytes) => IndexKind::Btree1,
        0 if shape.dims() == shape.max_dims() && shape.dims() == dims => {
            IndexKind::Single { filtered: filtered.then(Default::default) }
        }
        0 if !filtered && spec.fill.allocation == AllocationTime::Early => {
            let chunks = ChunkGrid::new(dims).and_then(|grid| {
                let mut counts =
                    shape.max_dims().iter().zip(grid.chunk_dims()).map(|(max, chunk)| max.div_ceil(*chunk));
                counts.try_fold(1u64, |n, count| n.checked_mul(count))
            });
            let bytes = chunks.and_then(|chunks| chunks.checked_mul(bytes));
            let bytes = bytes.ok_or_else(|| Error::invalid("a dataset has less than 2^64 bytes"))?;
            if bytes > 0 {
                addr = alloc_filled(session, spec, bytes)?;
            }
            IndexKind::Implicit
        }
        0 if !fits_fixed_array(dims, shape.max_dims()) => CHUNK_BTREE2,
        0 => IndexKind::FixedArray { page_bits: 10 },
        // An append writes, and sums up, a whole page: small ones cost little. A page must not be smaller than the
        // first data block below a super block.
        1 => IndexKind::ExtensibleArray(ExtensibleArrayParameters { page_bits: 6, ..Default::default() }),
        _ => CHUNK_BTREE2,
    };
    Ok(LayoutClass::Chunked(ChunkedStorage {
        chunk_dims: dims.to_vec(),
        element_size: spec.datatype.size().into(),
        unfiltered_partial_chunks: spec.unfiltered_partial_chunks,
        index,
        addr,
    }))
}

/// Whether a file of this profile holds chunk indexes other than version 1 B-trees.
fn uses_version_4_indexes(profile: LibVer, unfiltered_partial_chunks: bool, chunk_bytes: u64) -> bool {
    profile.prefers_version_4_chunk_indexes() || unfiltered_partial_chunks || chunk_bytes > MAX_CHUNK_BYTES_BEFORE_V5
}

/// Whether a fixed array has room for every chunk that the dataset can come to have.
fn fits_fixed_array(chunk: &[u64], max: &[u64]) -> bool {
    let counts = max.iter().zip(chunk).map(|(max, side)| max.div_ceil(*side));
    let chunks = counts.into_iter().try_fold(1u64, |n, count| n.checked_mul(count));
    chunks.is_some_and(|chunks| chunks <= MAX_FIXED_ARRAY_CHUNKS)
}

fn create_virtual_storage(
    session: &NativeSession,
    spec: &DatasetSpec,
    sources: &[VirtualSource],
) -> Result<LayoutClass> {
    if sources.is_empty() {
        return Ok(LayoutClass::Virtual { heap: Addr::UNDEFINED, index: 0 });
    }
    let (profile, widths) = (session.profile, session.cache.widths());
    let rank = spec.dataspace.rank();
    let mappings = sources.iter().map(|source| VirtualMapping {
        file: Arc::new(source.file.clone()),
        dataset: Arc::new(source.dataset.clone()),
        source: StoredSelection::new(profile, selection_rank(&source.source), source.source.clone()),
        target: StoredSelection::new(profile, rank, source.target.clone()),
    });
    let layout = VirtualLayout::new(profile, mappings.collect(), widths);
    let place = session.global_heap.write_object(&encode(&layout, widths)?)?;
    Ok(LayoutClass::Virtual { heap: place.collection, index: place.index })
}

/// The dimensions of a selection; selections of all elements or of none have none.
fn selection_rank(selection: &Selection) -> usize {
    match selection {
        Selection::Hyperslab(slab) => slab.start.len(),
        Selection::Blocks(blocks) => blocks.first().map_or(0, |block| block.start.len()),
        Selection::Points(points) => points.first().map_or(0, |point| point.len()),
        _ => 0,
    }
}

/// The message that names raw files, and the local heap with their names.
fn create_external_file_list(
    session: &NativeSession,
    pieces: &[ExternalPiece],
) -> Result<(ExternalFiles, LocalHeapPrefix, LocalHeapData)> {
    let open = pieces.iter().position(|piece| piece.size == UNLIMITED);
    if pieces.is_empty() || open.is_some_and(|at| at + 1 < pieces.len()) {
        return Err(Error::invalid("a dataset in raw files names some, and only the last of them has no end"));
    }
    let widths = session.cache.widths();
    // An offset of 0 stands for the empty string.
    let mut end = 8_u64;
    let mut files = Vec::with_capacity(pieces.len());
    for piece in pieces {
        files.push(ExternalFileSlot { name_offset: end, data_offset: piece.offset, data_size: piece.size });
        end += LocalHeapData::padded_string_len(&piece.name) as u64;
    }
    let mut data = LocalHeapData { bytes: vec![0; end as usize] };
    for (file, piece) in files.iter().zip(pieces) {
        if piece.name.is_empty() || !data.put_string(file.name_offset, &piece.name) {
            return Err(Error::invalid("a raw file has a name"));
        }
    }
    let space = session.cache.space();
    let heap = LocalHeapPrefix { data_size: end, free_list_head: None, data: space.alloc(end, SpaceKind::Metadata)? };
    let at = space.alloc(LocalHeapPrefix::prefix_size(widths) as u64, SpaceKind::Metadata)?;
    Ok((ExternalFiles { heap: at, slots: files }, heap, data))
}

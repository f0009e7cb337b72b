//! Datasets whose chunks stay in a native HDF5 file of the same bucket: the layouts `H5D_CONTIGUOUS_REF`, `H5D_CHUNKED_REF`
//! and `H5D_CHUNKED_REF_INDIRECT`, as `hsload --link` of the service writes them. [`crate::linked_hdf5_chunks`] reads them.

use std::collections::BTreeMap;

use h5live_format::Superblock;
use h5live_model::{
    ByteOrder, ChunkBatch, ChunkCoord, ChunkGrid, ChunkWrite, CompoundMember, CompoundType, DatasetSpec, Dataspace,
    Datatype, Error as ModelError, Layout, Location, NewObject, ObjectId, Result, Shape, Sign, Store, StoredChunk,
};
use serde_json::{Value, json};

use crate::connector;
use crate::engine::ObjectEngine;
use crate::error::{HsdsError, invalid_or_unsupported_error};
use crate::layout::{ElementCodec, ObjectDocument};
use crate::linked_hdf5_chunks::{CHUNK_TABLE_ENTRY_BYTES, DEFLATE, SHUFFLE};
use crate::store::HsdsStore;

/// Most chunks that a layout lists itself. More are in a table.
const MAX_LISTED_CHUNKS: usize = 100;
/// Most entries of a chunk of a table.
const MAX_ENTRIES_IN_CHUNK: u64 = 1 << 16;

/// Whether elements of a type refer to something.
fn has_references(datatype: &Datatype) -> bool {
    match datatype {
        Datatype::Reference(_) => true,
        Datatype::Compound(t) => t.members.iter().any(|member| has_references(&member.datatype)),
        Datatype::Array(t) => has_references(&t.base),
        Datatype::VarLen(t) => has_references(&t.base),
        Datatype::Enum(t) => has_references(&t.base),
        _ => false,
    }
}

/// Why a dataset of a native file cannot be one here whose chunks stay in that file.
fn obstacle(source: &DatasetSpec, linked: &DatasetSpec, chunks: &[StoredChunk]) -> Option<&'static str> {
    let codec = ElementCodec::new(&linked.datatype);
    let filters: Vec<u16> = source.filters.iter().map(|filter| filter.id).collect();
    let is_grid = |spec: &DatasetSpec| matches!(spec.layout, Layout::Contiguous | Layout::Chunked(_));
    if codec.has_variable_parts() {
        return Some("its elements have variable length");
    }
    if has_references(&source.datatype) {
        return Some("its elements are references");
    }
    if !codec.is_verbatim() || source.datatype != linked.datatype {
        return Some("its elements have gaps, or another form in an object store");
    }
    if !matches!(filters.as_slice(), [] | [SHUFFLE] | [DEFLATE] | [SHUFFLE, DEFLATE]) {
        return Some("HSDS undoes no filters in a native file but shuffling and deflate");
    }
    if source.filters != linked.filters || source.unfiltered_partial_chunks && !filters.is_empty() {
        return Some("its filters, or those of the chunks at its edges, are others");
    }
    if !is_grid(source)
        || source.grid_or_single_chunk() != linked.grid_or_single_chunk()
        || source.dataspace != linked.dataspace
    {
        return Some("it has no chunks of its own in the file, or others");
    }
    if source.dataspace.rank() == 0 {
        return Some("HSDS reads no scalar in a native file");
    }
    if chunks.iter().any(|chunk| chunk.file_offset.is_none_or(|at| at == 0)) {
        return Some("its elements have no place of their own in the file");
    }
    if chunks.iter().any(|chunk| chunk.filter_mask != 0) {
        return Some("a filter was skipped for some of its chunks");
    }
    let is_chunked = matches!(source.layout, Layout::Chunked(_));
    let is_large = |chunk: &StoredChunk| is_chunked && i32::try_from(chunk.size).is_err();
    chunks.iter().any(is_large).then_some("a chunk of it has 2 GiB or more")
}

/// The type of the entries of a table of chunks: a position and a size.
fn entry_type() -> Datatype {
    let member = |name: &str, size, offset| CompoundMember {
        name: name.into(),
        offset,
        datatype: Datatype::integer(size, ByteOrder::Little, Sign::Signed),
    };
    Datatype::Compound(CompoundType {
        size: CHUNK_TABLE_ENTRY_BYTES as u32,
        members: vec![member("offset", 8, 0), member("size", 4, 8)],
    })
}

/// Dimensions of the chunks of a table of this shape.
fn table_chunk_dims(counts: &[u64]) -> Vec<u64> {
    let mut left = MAX_ENTRIES_IN_CHUNK;
    let mut dims: Vec<u64> = counts
        .iter()
        .rev()
        .map(|count| {
            let dim = (*count).clamp(1, left.max(1));
            left /= dim;
            dim
        })
        .collect();
    dims.reverse();
    dims
}

/// The chunks of a table with an element for each chunk of the grid.
fn table_chunks(grid: &ChunkGrid, chunks: &[StoredChunk]) -> BTreeMap<ChunkCoord, Vec<u8>> {
    let elements = grid.chunk_element_count().and_then(|elements| usize::try_from(elements).ok()).unwrap_or_default();
    let mut found: BTreeMap<ChunkCoord, Vec<u8>> = BTreeMap::new();
    for chunk in chunks {
        let coord = grid.chunk_of(chunk.coord.scaled());
        let start = grid.start_of(&coord);
        let within = chunk.coord.scaled().iter().zip(&start).zip(grid.chunk_dims());
        let place = within.fold(0u64, |at, ((index, start), dim)| at * dim + (index - start)) as usize
            * CHUNK_TABLE_ENTRY_BYTES;
        let bytes = found.entry(coord).or_insert_with(|| vec![0; elements * CHUNK_TABLE_ENTRY_BYTES]);
        if let Some(entry) = bytes.get_mut(place..place + CHUNK_TABLE_ENTRY_BYTES) {
            let (offset, size) = entry.split_at_mut(8);
            offset.copy_from_slice(&chunk.file_offset.unwrap_or_default().to_le_bytes());
            size.copy_from_slice(&(chunk.size as u32).to_le_bytes());
        }
    }
    found
}

/// What documents of the domain at a location call a native file of the same bucket.
///
/// # Errors
/// [`HsdsError::FileNotInBucket`] if it is no such file.
pub fn native_file_uri(domain: &Location, file: &Location) -> Result<String> {
    let found = connector::file_uri(domain, file).or_else(|| cloud_file_uri(domain, file));
    found.ok_or_else(|| HsdsError::FileNotInBucket(file.to_string()).into())
}

/// A native file whose chunks datasets of a domain have. [`HsdsStore::probe_native_file`] makes it.
#[derive(Debug, Clone)]
pub struct NativeChunkFile {
    uri: String,
    /// Bytes before the superblock, from which positions count.
    base: u64,
}

impl NativeChunkFile {
    /// What documents call it.
    pub fn uri(&self) -> &str {
        &self.uri
    }
}

impl HsdsStore {
    /// The native file that documents call so ([`native_file_uri`]).
    ///
    /// # Errors
    /// [`HsdsError::NotHdf5File`] if it is not one; [`ModelError::Unsupported`] for a file of another bucket, and errors of
    /// reading it.
    pub fn probe_native_file(&self, uri: &str) -> Result<NativeChunkFile> {
        let signature = |at| self.session.engine.get_file_range(uri, at, Superblock::SIGNATURE.len() as u64);
        let mut found = signature(0)?;
        let mut places = Superblock::possible_offsets(u64::MAX);
        places.next();
        let mut base = 0;
        while found != Superblock::SIGNATURE {
            let next = places.next().and_then(|at| Some((at, signature(at).ok()?)));
            (base, found) = next.ok_or_else(|| HsdsError::NotHdf5File(uri.to_owned()))?;
        }
        Ok(NativeChunkFile { uri: uri.to_owned(), base })
    }

    /// Makes the elements of a new dataset those of a dataset in a native file, where they stay: `source` and `chunks` are
    /// its description and its chunks there. The file must not change any more. Without chunks, the dataset stays as it
    /// is.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] with the reason if the schema, or HSDS, cannot read such a dataset there; then nothing
    /// has changed.
    pub fn link_chunks(
        &self,
        id: ObjectId,
        source: &DatasetSpec,
        file: &NativeChunkFile,
        chunks: &[StoredChunk],
    ) -> Result<()> {
        let session = &self.session;
        let linked = session.dataset_spec(&*session.document(id)?)?;
        if let Some(obstacle) = obstacle(source, &linked, chunks) {
            return Err(ModelError::Unsupported(obstacle));
        }
        let in_file = |chunk: &StoredChunk| {
            let offset = chunk.file_offset.and_then(|at| at.checked_add(file.base));
            StoredChunk { file_offset: offset, ..chunk.clone() }
        };
        let chunks: Vec<StoredChunk> = chunks.iter().map(in_file).collect();
        let ([first, ..], file_uri) = (chunks.as_slice(), &file.uri) else { return Ok(()) };
        let place = |chunk: &StoredChunk| json!([chunk.file_offset, chunk.size]);
        let layout = match &linked.layout {
            Layout::Chunked(dims) if chunks.len() <= MAX_LISTED_CHUNKS => {
                let name = |coord: &ChunkCoord| coord.scaled().iter().map(u64::to_string).collect::<Vec<_>>().join("_");
                let listed: Value = chunks.iter().map(|chunk| (name(&chunk.coord), place(chunk))).collect();
                json!({"class": "H5D_CHUNKED_REF", "dims": dims, "file_uri": file_uri, "chunks": listed})
            }
            Layout::Chunked(dims) => {
                let table = session.domain.object_id_text(self.create_chunk_table(&linked, &chunks)?);
                json!({"class": "H5D_CHUNKED_REF_INDIRECT", "dims": dims, "file_uri": file_uri, "chunk_table": table})
            }
            _ => {
                let (offset, size) = (first.file_offset, linked.chunk_bytes_or_total());
                json!({"class": "H5D_CONTIGUOUS_REF", "file_uri": file_uri, "offset": offset, "size": size})
            }
        };
        let set = |document: &mut ObjectDocument| {
            document.set_linked_chunk_layout(layout.clone(), &source.filters).map_err(invalid_or_unsupported_error)
        };
        session.change_document(id, set)?;
        self.forget_dataset(id);
        Ok(())
    }

    /// Makes a dataset with the places of the chunks of another one. Nothing but that one leads to it.
    fn create_chunk_table(&self, linked: &DatasetSpec, chunks: &[StoredChunk]) -> Result<ObjectId> {
        let counts =
            linked.grid_or_single_chunk().map(|grid| grid.chunk_counts(linked.dataspace.dims())).unwrap_or_default();
        let spec = DatasetSpec {
            datatype: entry_type(),
            dataspace: Dataspace::Simple(Shape::fixed(&counts)),
            layout: Layout::Chunked(table_chunk_dims(&counts)),
            ..DatasetSpec::default()
        };
        let grid = spec.grid_or_single_chunk();
        let id = self.session.create_object(&NewObject::unlinked(&spec.into()))?;
        let entries = grid.map(|grid| table_chunks(&grid, chunks)).unwrap_or_default();
        let write = |(coord, bytes)| ChunkWrite::Whole { coord, filter_mask: 0, bytes };
        let writes: Vec<ChunkWrite<'_>> =
            entries.iter().map(|(coord, bytes): (_, &Vec<u8>)| write((coord, bytes))).collect();
        let batch = ChunkBatch { writes: &writes, extent: None, publish_after: &[], publish: None };
        self.dataset(id)?.write(&batch)?;
        self.session.state.write().add_references(id, 1);
        Ok(id)
    }
}

#[cfg(feature = "clouds")]
fn cloud_file_uri(domain: &Location, file: &Location) -> Option<String> {
    crate::cloud_connector::file_uri(domain, file)
}

#[cfg(not(feature = "clouds"))]
fn cloud_file_uri(_: &Location, _: &Location) -> Option<String> {
    None
}

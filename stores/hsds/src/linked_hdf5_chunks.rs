//! Chunks that lie in a native HDF5 file, which a dataset names: the layouts `H5D_CONTIGUOUS_REF`, `H5D_CHUNKED_REF` and
//! `H5D_CHUNKED_REF_INDIRECT`. [`crate::chunk_links`] makes them, and the service with `hsload --link`. Nobody writes them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use h5live_model::{
    ChunkCoord, ChunkGrid, ChunkStore, DatasetSpec, Error as ModelError, FilterEngine, FilterSpec, FilterSpecs,
    ObjectId, Result,
};
use serde_json::Value;

use crate::engine::ObjectEngine;
use crate::error::{HsdsError, damaged_object_error};
use crate::layout::{LayoutError, ObjectDocument, chunk_of_name};
use crate::session::HsdsSession;

/// The numbers of the filters that compress, and shuffle bytes.
pub const DEFLATE: u16 = 1;
pub const SHUFFLE: u16 = 2;
/// Bytes of an entry of a table of chunks: a position (i64) and a size (i32).
pub const CHUNK_TABLE_ENTRY_BYTES: usize = 12;

/// Where chunks lie.
#[derive(Debug)]
enum ChunkPlaces {
    /// All elements from here on, so many bytes.
    Whole(u64, u64),
    /// Each chunk by itself.
    Listed(HashMap<ChunkCoord, (u64, u64)>),
    /// In a dataset, with an entry for each chunk.
    Table(Arc<dyn ChunkStore>),
}

/// The chunks of a dataset in a native file.
#[derive(Debug)]
pub struct LinkedHdf5Chunks {
    file: String,
    places: ChunkPlaces,
    filters: FilterSpecs,
    unfilter: Arc<dyn FilterEngine>,
}

fn number(json: Option<&Value>) -> Option<u64> {
    json.and_then(Value::as_u64)
}

impl LinkedHdf5Chunks {
    /// The chunks of a dataset with this layout; `None` if they are objects. `open_chunk_table` opens the dataset that has a table of
    /// chunks.
    ///
    /// # Errors
    /// [`HsdsError::DamagedObject`], [`ModelError::Unsupported`].
    pub fn of_dataset(
        session: &Arc<HsdsSession>,
        document: &ObjectDocument,
        spec: &DatasetSpec,
        open_chunk_table: &dyn Fn(ObjectId) -> Result<Arc<dyn ChunkStore>>,
    ) -> Result<Option<Self>> {
        let Some(layout) = document.creation_layout() else { return Ok(None) };
        let class = layout.get("class").and_then(Value::as_str).unwrap_or_default();
        let bad = |member, expected| {
            damaged_object_error(&session.domain.document_key(document.id()))(LayoutError::MissingOrInvalidMember {
                member,
                expected,
            })
        };
        let places = match class {
            "H5D_CONTIGUOUS_REF" => {
                let (offset, size) = (number(layout.get("offset")), number(layout.get("size")));
                let place = offset.zip(size).ok_or_else(|| bad("offset", "a position in the file"))?;
                ChunkPlaces::Whole(place.0, place.1)
            }
            "H5D_CHUNKED_REF" => {
                let listed = layout.get("chunks").and_then(|chunks| listed(chunks, spec.dataspace.rank()));
                ChunkPlaces::Listed(listed.ok_or_else(|| bad("chunks", "a list of chunks"))?)
            }
            "H5D_CHUNKED_REF_INDIRECT" => {
                let table = layout.get("chunk_table").and_then(Value::as_str).unwrap_or_default();
                let id: ObjectId =
                    session.domain.parse_own_object_id(table).map_err(|_| bad("chunk_table", "a dataset"))?;
                check_table(session, document.id(), id)?;
                ChunkPlaces::Table(open_chunk_table(id)?)
            }
            _ => return Ok(None),
        };
        let file = layout.get("file_uri").and_then(Value::as_str);
        let file = file.ok_or(ModelError::Unsupported("a dataset whose chunks lie in several files"))?.to_owned();
        let size = spec.datatype.size();
        let with_params = |filter: &FilterSpec| match filter.id {
            SHUFFLE if filter.params.is_empty() => FilterSpec { params: vec![size], ..filter.clone() },
            _ => filter.clone(),
        };
        let filters = spec.filters.iter().map(with_params).collect();
        Ok(Some(LinkedHdf5Chunks { file, places, filters, unfilter: session.filter_engine.clone() }))
    }

    /// Where a chunk lies: a position and a size in the file.
    fn place(&self, grid: &ChunkGrid, extent: &[u64], coord: &ChunkCoord) -> Result<Option<(u64, u64)>> {
        let found = match &self.places {
            ChunkPlaces::Whole(offset, size) => Some((*offset, *size)),
            ChunkPlaces::Listed(chunks) => chunks.get(coord).copied(),
            ChunkPlaces::Table(table) => table_entry(table, &grid.chunk_counts(extent), coord)?,
        };
        Ok(found.filter(|(offset, size)| *offset > 0 && *size > 0))
    }

    /// The chunks that there are.
    ///
    /// # Errors
    /// [`ModelError::Store`] if the table of chunks cannot be read.
    pub fn coords(&self, spec: &DatasetSpec) -> Result<BTreeSet<ChunkCoord>> {
        Ok(match &self.places {
            ChunkPlaces::Whole(..) => BTreeSet::from([ChunkCoord::origin(spec.dataspace.rank())]),
            ChunkPlaces::Listed(chunks) => chunks.keys().cloned().collect(),
            ChunkPlaces::Table(table) => table_coords(table)?,
        })
    }

    /// The elements of a chunk; `None` if nobody wrote it.
    ///
    /// # Errors
    /// [`HsdsError::DamagedChunk`], and those of the engine.
    pub fn read_decoded_chunk(
        &self,
        session: &HsdsSession,
        spec: &DatasetSpec,
        coord: &ChunkCoord,
    ) -> Result<Option<Vec<u8>>> {
        let (Some(grid), Some(bytes)) = (spec.grid_or_single_chunk(), spec.chunk_bytes_or_total()) else {
            return Ok(None);
        };
        let Some((offset, size)) = self.place(&grid, spec.dataspace.dims(), coord)? else { return Ok(None) };
        session.max_allocation.check(size.max(bytes))?;
        let stored = session.engine.get_file_range(&self.file, offset, size)?;
        let wrong = |source: Box<dyn std::error::Error + Send + Sync>| {
            let key = format!("{} (bytes {offset} to {})", self.file, offset.saturating_add(size));
            ModelError::from(HsdsError::DamagedChunk { key, source })
        };
        let elements = match self.filters.is_empty() {
            true => stored,
            false => self.unfilter.unfilter(&self.filters, 0, stored, bytes).map_err(&wrong)?,
        };
        match elements.len() as u64 == bytes {
            true => Ok(Some(elements)),
            false => Err(wrong(LayoutError::LengthMismatch { expected: bytes as usize, found: elements.len() }.into())),
        }
    }
}

fn listed(chunks: &Value, rank: usize) -> Option<HashMap<ChunkCoord, (u64, u64)>> {
    let entry = |(name, place): (&String, &Value)| {
        Some((chunk_of_name(name, rank)?, (number(place.get(0))?, number(place.get(1))?)))
    };
    chunks.as_object()?.iter().map(entry).collect()
}

/// Refuses what is no table of the chunks of a dataset. A table has elements of its own, so that tables do not lead to
/// tables.
fn check_table(session: &HsdsSession, of: ObjectId, id: ObjectId) -> Result<()> {
    let document = session.document(id)?;
    let key = session.domain.document_key(of);
    let record = document.stored_dataset_spec().map_err(damaged_object_error(&key))?;
    match record.linked_chunk_layout_class.is_none() && record.spec.datatype.size() as usize == CHUNK_TABLE_ENTRY_BYTES
    {
        true => Ok(()),
        false => Err(ModelError::Unsupported("a table of chunks in another form")),
    }
}

/// The chunks with an entry in a table.
fn table_coords(table: &Arc<dyn ChunkStore>) -> Result<BTreeSet<ChunkCoord>> {
    let (mut stored, mut found) = (Vec::new(), BTreeSet::new());
    table.for_each_chunk(&mut |chunk| {
        stored.push(chunk);
        true
    })?;
    let Some(grid) = table.spec()?.grid_or_single_chunk() else { return Ok(found) };
    for chunk in stored {
        let mut entries = vec![0; usize::try_from(chunk.size).unwrap_or_default()];
        table.read(&chunk, 0, &mut entries)?;
        let start = grid.start_of(&chunk.coord);
        for (number, entry) in entries.chunks_exact(CHUNK_TABLE_ENTRY_BYTES).enumerate() {
            if entry.iter().any(|byte| *byte != 0) {
                let (mut coord, mut rest) = (start.to_vec(), number as u64);
                for (at, dim) in coord.iter_mut().zip(grid.chunk_dims()).rev() {
                    (*at, rest) = (at.saturating_add(rest % dim), rest / dim);
                }
                found.insert(ChunkCoord::new(&coord));
            }
        }
    }
    Ok(found)
}

/// The entry of a chunk in a table with an element for each chunk of a grid of so many.
fn table_entry(table: &Arc<dyn ChunkStore>, counts: &[u64], coord: &ChunkCoord) -> Result<Option<(u64, u64)>> {
    let spec = table.spec()?;
    let (Some(grid), true) = (spec.grid_or_single_chunk(), spec.dataspace.dims() == counts) else { return Ok(None) };
    let holder = grid.chunk_of(coord.scaled());
    let Some(chunk) = table.locate(&holder)? else { return Ok(None) };
    let start = grid.start_of(&holder);
    let within = coord.scaled().iter().zip(&start).zip(grid.chunk_dims());
    let place = within.fold(0u64, |at, ((index, start), dim)| at * dim + (index - start));
    let mut entry = [0; CHUNK_TABLE_ENTRY_BYTES];
    table.read(&chunk, place * CHUNK_TABLE_ENTRY_BYTES as u64, &mut entry)?;
    let (offset, size) = entry.split_at(8);
    let offset = offset.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes));
    let size = size.first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes));
    Ok(u64::try_from(offset).ok().zip(u64::try_from(size).ok()))
}

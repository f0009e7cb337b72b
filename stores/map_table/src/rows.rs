//! The rows of a table, in the chunks of its dataset.

use std::sync::Arc;

use h5live_model::{
    AllocationLimit, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Error, ObjectId, PartialWrites,
    PublishLevel, Result,
};

use crate::error::MapTableError;

/// How often a chunk is looked up again that was stored anew since.
const MAX_LOOKUPS: usize = 16;

/// The rows of a table.
#[derive(Debug)]
pub struct MapRowDataset {
    chunks: Arc<dyn ChunkStore>,
    row_bytes: u64,
    partial_writes: PartialWrites,
}

/// A run of rows within one chunk.
struct RowRun {
    coord: ChunkCoord,
    /// The first row, counted from the first of the chunk.
    start: u64,
    rows: u64,
    chunk_rows: u64,
}

impl MapRowDataset {
    /// The rows of a dataset of one dimension, in a store that takes such parts of chunks.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the dataset has filters.
    pub fn new(chunks: Arc<dyn ChunkStore>, partial_writes: PartialWrites) -> Result<Self> {
        let spec = chunks.spec()?;
        if !spec.filters.is_empty() {
            return Err(Error::Unsupported("a map whose table has filters (another program has packed it)"));
        }
        Ok(MapRowDataset { chunks, row_bytes: spec.datatype.size().max(1).into(), partial_writes })
    }

    /// The dataset.
    pub fn id(&self) -> ObjectId {
        self.chunks.id()
    }

    /// The number of rows.
    pub fn count(&self) -> Result<u64> {
        Ok(self.chunks.spec()?.dataspace.dims().first().copied().unwrap_or_default())
    }

    /// The run of at most `rows` rows from `first` on that lies in one chunk.
    fn run(spec: &DatasetSpec, first: u64, rows: u64) -> Result<RowRun> {
        let chunk_rows = spec.chunk_dims_or_extent().and_then(|dims| dims.first().copied()).unwrap_or_default();
        if chunk_rows == 0 {
            return Err(MapTableError::Malformed("its table has no chunks").into());
        }
        let start = first % chunk_rows;
        Ok(RowRun {
            coord: ChunkCoord::new(&[first / chunk_rows]),
            start,
            rows: rows.min(chunk_rows - start),
            chunk_rows,
        })
    }

    /// Appends rows to `into`.
    ///
    /// # Errors
    /// [`MapTableError::InvalidRow`] if nobody wrote a row.
    pub fn read(&self, first: u64, row_count: u64, into: &mut Vec<u8>) -> Result<()> {
        let spec = self.chunks.spec()?;
        let (mut at, end) = (first, first.saturating_add(row_count));
        while at < end {
            let run = Self::run(&spec, at, end - at)?;
            let mut bytes = AllocationLimit::default().zeroed(run.rows.saturating_mul(self.row_bytes))?;
            self.read_run(&run, at, &mut bytes)?;
            at += run.rows;
            match into.is_empty() {
                true => *into = bytes,
                false => into.extend_from_slice(&bytes),
            }
        }
        Ok(())
    }

    fn read_run(&self, run: &RowRun, first: u64, into: &mut [u8]) -> Result<()> {
        for _ in 0..MAX_LOOKUPS {
            let found = self.chunks.locate(&run.coord)?;
            let chunk = found.ok_or(MapTableError::InvalidRow { row: first, rule: "was never written" })?;
            match self.chunks.read_block(&chunk, &[run.start], &[run.rows], into) {
                Err(Error::Moved) => {}
                read => return read,
            }
        }
        Err(Error::Moved)
    }

    /// Reads part of a row, from `at` on (bytes).
    ///
    /// # Errors
    /// As [`MapRowDataset::read`].
    pub fn read_part(&self, row: u64, at: usize, into: &mut [u8]) -> Result<()> {
        let spec = self.chunks.spec()?;
        let run = Self::run(&spec, row, 1)?;
        let offset = (run.start.checked_mul(self.row_bytes)).and_then(|start| start.checked_add(at as u64));
        let offset = offset.ok_or(MapTableError::InvalidRow { row, rule: "is beyond its chunk" })?;
        for _ in 0..MAX_LOOKUPS {
            let found = self.chunks.locate(&run.coord)?;
            let chunk = found.ok_or(MapTableError::InvalidRow { row, rule: "was never written" })?;
            match self.chunks.read(&chunk, offset, into) {
                Err(Error::Moved) => {}
                read => return read,
            }
        }
        Err(Error::Moved)
    }

    /// Appends rows behind the first `first`, all of them below one extent.
    ///
    /// # Errors
    /// As [`ChunkStore::write`]. The same rows may be given again.
    pub fn append(&self, first: u64, rows: &[u8], publish: Option<PublishLevel>) -> Result<()> {
        let spec = self.chunks.spec()?;
        let count = rows.len() as u64 / self.row_bytes;
        let (mut runs, mut at, mut rest) = (Vec::new(), first, rows);
        while !rest.is_empty() {
            let run = Self::run(&spec, at, rest.len() as u64 / self.row_bytes)?;
            let (bytes, left) = rest.split_at((run.rows * self.row_bytes) as usize);
            let whole = self.whole_chunk(&run, bytes)?;
            at += run.rows;
            rest = left;
            runs.push((run, bytes, whole));
        }
        let starts: Vec<_> = runs.iter().map(|(run, ..)| ([run.start], [run.rows])).collect();
        let writes: Vec<_> = runs
            .iter()
            .zip(&starts)
            .map(|((run, bytes, whole), (start, count))| match (whole, self.partial_writes) {
                (Some(bytes), _) => ChunkWrite::Whole { coord: &run.coord, filter_mask: 0, bytes },
                (None, _) if run.rows == run.chunk_rows => {
                    ChunkWrite::Whole { coord: &run.coord, filter_mask: 0, bytes }
                }
                (None, PartialWrites::ElementBlocks) => {
                    ChunkWrite::ElementBlock { coord: &run.coord, start, count, bytes }
                }
                (None, _) => ChunkWrite::ByteRange {
                    coord: &run.coord,
                    byte_offset: run.start * self.row_bytes,
                    bytes,
                    unseen: false,
                },
            })
            .collect();
        self.chunks.write(&ChunkBatch { writes: &writes, extent: Some(&[first + count]), publish_after: &[], publish })
    }

    /// The whole chunk with new rows in it, if the store does not take a part of it.
    fn whole_chunk(&self, run: &RowRun, rows: &[u8]) -> Result<Option<Vec<u8>>> {
        let takes_parts =
            matches!(self.partial_writes, PartialWrites::Bytes { multiple_of: 1 } | PartialWrites::ElementBlocks);
        if takes_parts || run.rows == run.chunk_rows {
            return Ok(None);
        }
        let mut whole = AllocationLimit::default().zeroed(run.chunk_rows.saturating_mul(self.row_bytes))?;
        if let Some(chunk) = self.chunks.locate(&run.coord)? {
            self.chunks.read(&chunk, 0, &mut whole)?;
        }
        let at = (run.start * self.row_bytes) as usize;
        whole[at..at + rows.len()].copy_from_slice(rows);
        Ok(Some(whole))
    }
}

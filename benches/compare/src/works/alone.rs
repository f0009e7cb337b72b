//! A codec alone: the chunks of a file that is there, in memory, by as many threads as there are cores. No file is read
//! or written meanwhile, so that nobody who uses this codec can be faster.

use std::path::Path;

use h5live::File;
use h5live::filters::{Pipeline, Registry};
use rayon::prelude::*;

use crate::work::{Done, timed};
use crate::{Error, Result};

/// The filters of a dataset with all their parameters, and its chunks as they are stored, in their order.
pub struct Stored {
    pipeline: Pipeline,
    /// Mask and bytes.
    chunks: Vec<(u32, Vec<u8>)>,
}

impl Stored {
    pub fn of(path: &Path, name: &str) -> Result<Self> {
        let data = File::open(path)?.dataset(name)?;
        let pipeline = Pipeline::new(&data.spec()?.filters, &Registry::default()).map_err(failed)?;
        let mut chunks = data.stored_chunks()?;
        // The threads are there before the clock runs.
        rayon::broadcast(|_| ());
        chunks.sort_by(|a, b| a.coord.scaled().cmp(b.coord.scaled()));
        let chunks = chunks.iter().map(|chunk| Ok((chunk.filter_mask, data.read_chunk(chunk)?)));
        Ok(Stored { pipeline, chunks: chunks.collect::<Result<_>>()? })
    }

    /// Decodes the chunks, of `chunk` elements, one after the other.
    pub fn decode(&self, chunk: u64, values: &mut [i32]) -> Result<()> {
        values.chunks_mut(chunk as usize).zip(&self.chunks).try_for_each(|(into, (mask, stored))| {
            self.pipeline.decode_into(*mask, stored, bytemuck::cast_slice_mut(into)).map_err(failed)
        })
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Other(error.to_string())
}

/// Decodes the chunks, of `chunk` elements, into `values`.
pub fn decode(path: &Path, chunk: u64, values: &mut [i32]) -> Result<Done> {
    let Stored { pipeline, chunks } = Stored::of(path, "data")?;
    let bytes = values.len() as u64 * 4;
    let (done, ()) = timed(bytes, || {
        let pieces = values.par_chunks_mut(chunk as usize).zip(&chunks);
        pieces
            .try_for_each(|(into, (mask, stored))| pipeline.decode_into(*mask, stored, bytemuck::cast_slice_mut(into)))
            .map_err(failed)
    })?;
    Ok(done)
}

/// Encodes `values` in chunks of `chunk` elements, as those of the file are.
pub fn encode(path: &Path, chunk: u64, values: &[i32]) -> Result<Done> {
    let pipeline = Stored::of(path, "data")?.pipeline;
    let (done, ()) = timed(values.len() as u64 * 4, || {
        let pieces = values.par_chunks(chunk as usize);
        pieces
            .try_for_each_init(Vec::new, |stored, piece| {
                pipeline.encode_into(crate::work::bytes(piece), stored).map(drop)
            })
            .map_err(failed)
    })?;
    Ok(done)
}

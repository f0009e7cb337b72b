//! Blocks of elements, and which of them were written.

use h5live::model::{DatasetSpec, Layout, Selection, StoredChunk};

/// Most stored chunks of a dataset that are told from elements that nobody wrote.
const MAX_BLOCKS: usize = 1 << 20;

/// A block of elements.
#[derive(Clone)]
pub struct DatasetBlock {
    /// The first element, in each dimension.
    pub start: Vec<u64>,
    /// Elements in each dimension.
    pub count: Vec<u64>,
}

impl DatasetBlock {
    /// All elements of a dataset with these dimensions.
    pub fn all(dims: &[u64]) -> Self {
        DatasetBlock { start: vec![0; dims.len()], count: dims.to_vec() }
    }

    /// The blocks that were written in a dataset: its stored chunks, which `for_each_chunk` lists. All of it, if they are
    /// very many or not known.
    ///
    /// # Errors
    /// Those of `for_each_chunk`.
    pub fn list_written<E>(
        spec: &DatasetSpec,
        for_each_chunk: impl FnOnce(&mut dyn FnMut(StoredChunk) -> bool) -> Result<(), E>,
    ) -> Result<Vec<DatasetBlock>, E> {
        let all = DatasetBlock::all(spec.dataspace.dims());
        let (Some(grid), false) = (spec.grid_or_single_chunk(), matches!(spec.layout, Layout::Virtual(_))) else {
            return Ok(vec![all]);
        };
        let mut blocks = Vec::new();
        for_each_chunk(&mut |chunk| {
            blocks
                .push(DatasetBlock { start: grid.start_of(&chunk.coord).to_vec(), count: grid.chunk_dims().to_vec() });
            blocks.len() <= MAX_BLOCKS
        })?;
        Ok(if blocks.len() > MAX_BLOCKS { vec![all] } else { blocks })
    }

    /// The selection of these elements.
    pub fn selection(&self) -> Selection {
        if self.start.is_empty() { Selection::All } else { Selection::block(&self.start, &self.count) }
    }

    /// The number of elements.
    pub fn element_count(&self) -> u64 {
        self.count.iter().product()
    }

    /// Elements that are in another block too.
    pub fn shared_element_count(&self, other: &DatasetBlock) -> u64 {
        let ends = |start: &u64, count: &u64| start.saturating_add(*count);
        let dims = self.start.iter().zip(&self.count).zip(other.start.iter().zip(&other.count));
        let counts = dims.map(|((start, count), (other_start, other_count))| {
            let end = ends(start, count).min(ends(other_start, other_count));
            end.saturating_sub(*start.max(other_start))
        });
        counts.product()
    }

    /// Two halves, cut along the first dimension that can be cut: so the elements of each follow each other.
    pub fn halves(&self, chunk: &[u64]) -> Option<(DatasetBlock, DatasetBlock)> {
        let cut = self.count.iter().position(|count| *count > 1)?;
        let (start, count) = (*self.start.get(cut)?, *self.count.get(cut)?);
        let side = chunk.get(cut).copied().unwrap_or(1).max(1);
        let middle = start + count / 2;
        // Between two chunks, so that none is decoded twice.
        let aligned = middle - middle % side;
        let middle = if aligned > start { aligned } else { middle };
        let (mut first, mut second) = (self.clone(), self.clone());
        *first.count.get_mut(cut)? = middle - start;
        *second.start.get_mut(cut)? = middle;
        *second.count.get_mut(cut)? = start + count - middle;
        Some((first, second))
    }
}

/// Blocks that cover `dims` (`[rank]`, elements) in row-major order, each of about `block_bytes` bytes, and of whole
/// chunks of the dimensions `chunk` where that is possible. None, if there are no elements.
pub fn split_into_blocks(dims: &[u64], chunk: &[u64], element_bytes: u64, block_bytes: u64) -> Vec<DatasetBlock> {
    if dims.contains(&0) {
        return Vec::new();
    }
    // The dimension to cut: what lies behind it is small enough to be taken whole.
    let mut inner = element_bytes.max(1);
    let mut cut = dims.len().saturating_sub(1);
    while let Some(bytes) =
        dims.get(cut).and_then(|dim| inner.checked_mul(*dim)).filter(|bytes| cut > 0 && *bytes <= block_bytes)
    {
        inner = bytes;
        cut -= 1;
    }
    let Some((outer, [length, rest @ ..])) = dims.split_at_checked(cut) else {
        return vec![DatasetBlock::all(dims)];
    };
    let step = (block_bytes / inner).max(1).min(*length);
    let step = match chunk.get(cut) {
        Some(rows) if *rows > 0 && step > *rows && step < *length => step - step % rows,
        _ => step,
    };
    if outer.is_empty() && step == *length {
        return vec![DatasetBlock::all(dims)];
    }
    let mut at = vec![0; outer.len()];
    let mut blocks = Vec::new();
    loop {
        for first in (0..*length).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            let start: Vec<_> = at.iter().copied().chain([first]).chain(rest.iter().map(|_| 0)).collect();
            let count: Vec<_> =
                at.iter().map(|_| 1).chain([step.min(length - first)]).chain(rest.iter().copied()).collect();
            blocks.push(DatasetBlock { start, count });
        }
        // The next index of the outer dimensions, the last one first.
        let Some(next) =
            (0..outer.len()).rev().find(|d| at.get(*d).zip(outer.get(*d)).is_some_and(|(a, o)| a + 1 < *o))
        else {
            return blocks;
        };
        at.iter_mut().skip(next + 1).for_each(|a| *a = 0);
        if let Some(a) = at.get_mut(next) {
            *a += 1;
        }
    }
}

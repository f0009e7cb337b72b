//! Blocks of elements, and which of them were written.

use crate::model::{DatasetSpec, Layout, Selection, StoredChunk};

/// Most stored chunks of a dataset that are told from elements that nobody wrote.
const MAX_BLOCKS: usize = 1 << 20;

/// A block of elements.
#[derive(Clone)]
pub struct Block {
    /// The first element, in each dimension.
    pub start: Vec<u64>,
    /// Elements in each dimension.
    pub count: Vec<u64>,
}

impl Block {
    /// All elements of a dataset with these dimensions.
    pub fn all(dims: &[u64]) -> Self {
        Block { start: vec![0; dims.len()], count: dims.to_vec() }
    }

    /// The blocks that were written in a dataset: its stored chunks, which `for_each_chunk` lists. All of it, if they are
    /// very many or not known.
    ///
    /// # Errors
    /// Those of `for_each_chunk`.
    pub fn list_written<E>(
        spec: &DatasetSpec,
        for_each_chunk: impl FnOnce(&mut dyn FnMut(StoredChunk) -> bool) -> Result<(), E>,
    ) -> Result<Vec<Block>, E> {
        let all = Block::all(spec.dataspace.dims());
        let (Some(grid), false) = (spec.grid(), matches!(spec.layout, Layout::Virtual(_))) else {
            return Ok(vec![all]);
        };
        let mut blocks = Vec::new();
        for_each_chunk(&mut |chunk| {
            blocks.push(Block { start: grid.start_of(&chunk.coord).to_vec(), count: grid.dims().to_vec() });
            blocks.len() <= MAX_BLOCKS
        })?;
        Ok(if blocks.len() > MAX_BLOCKS { vec![all] } else { blocks })
    }

    /// The selection of these elements.
    pub fn selection(&self) -> Selection {
        if self.start.is_empty() { Selection::All } else { Selection::block(&self.start, &self.count) }
    }

    /// The number of elements.
    pub fn elements(&self) -> u64 {
        self.count.iter().product()
    }

    /// Elements that are in another block too.
    pub fn shared(&self, other: &Block) -> u64 {
        let ends = |start: &u64, count: &u64| start.saturating_add(*count);
        let dims = self.start.iter().zip(&self.count).zip(other.start.iter().zip(&other.count));
        let counts = dims.map(|((start, count), (other_start, other_count))| {
            let end = ends(start, count).min(ends(other_start, other_count));
            end.saturating_sub(*start.max(other_start))
        });
        counts.product()
    }

    /// Two halves, cut along the first dimension that can be cut: so the elements of each follow each other.
    pub fn halves(&self, chunk: &[u64]) -> Option<(Block, Block)> {
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

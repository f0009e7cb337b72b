//! Comparison of the elements of two datasets of one shape, block by block. Blocks that neither side has written are
//! not read.

use std::sync::Arc;

use h5live::{Dataset, Datatype};

use super::tolerance::Tolerance;
use super::{DiffSide, ValueDifferences};
use crate::model::{DatasetSpec, Layout, ReferenceKind, Selection};
use crate::value::Value;

/// Elements are read in blocks of at most this many bytes, or one by one if they are larger...
const BLOCK_BYTES: u64 = 8 << 20;
/// ...and values in blocks of this many.
const BLOCK_VALUES: u64 = 1 << 18;

/// Blocks of so few elements are read, however little of them is written.
const FEW_ELEMENTS: u64 = 1 << 10;

/// A dataset with more stored chunks is read completely.
const MAX_BLOCKS: usize = 1 << 20;

/// The comparison of two datasets of one shape.
pub struct Comparison<'a> {
    tolerance: Tolerance,
    sides: ((&'a Dataset, &'a DiffSide), (&'a Dataset, &'a DiffSide)),
    dims: Vec<u64>,
    /// Bytes of the larger elements.
    size: u64,
    /// Whether equal bytes are equal values.
    bytewise: bool,
    /// Whether elements that were never written have the same bytes on both sides, and are thus equal.
    has_equal_fill: bool,
    /// The fill value of each side; `None` if it is not known.
    fill: Option<(Value, Value)>,
    /// The blocks that one of the sides has written.
    stored: Vec<Block>,
    pub found: ValueDifferences,
}

/// A block of elements.
#[derive(Clone)]
struct Block {
    start: Vec<u64>,
    count: Vec<u64>,
}

impl Block {
    fn elements(&self) -> u64 {
        self.count.iter().product()
    }

    /// Elements that are in another block too.
    fn shared(&self, other: &Block) -> u64 {
        let ends = |start: &u64, count: &u64| start.saturating_add(*count);
        let dims = self.start.iter().zip(&self.count).zip(other.start.iter().zip(&other.count));
        let counts = dims.map(|((start, count), (other_start, other_count))| {
            let end = ends(start, count).min(ends(other_start, other_count));
            end.saturating_sub(*start.max(other_start))
        });
        counts.product()
    }

    /// Two halves, cut along the first dimension that can be cut: so the elements of each follow each other.
    fn halves(&self, chunk: &[u64]) -> Option<(Block, Block)> {
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

impl<'a> Comparison<'a> {
    /// Prepares the comparison of two datasets with their descriptions.
    ///
    /// # Errors
    /// If the index of one cannot be read.
    pub fn new(
        tolerance: Tolerance,
        sides: ((&'a Dataset, &'a DiffSide), (&'a Dataset, &'a DiffSide)),
        (a, b): (&DatasetSpec, &DatasetSpec),
        found: ValueDifferences,
    ) -> h5live::Result<Self> {
        let mut stored = blocks_of(sides.0.0, a)?;
        stored.extend(blocks_of(sides.1.0, b)?);
        let bytewise = a.datatype == b.datatype && !a.datatype.is_indirect() && !has_references(&a.datatype);
        Ok(Comparison {
            tolerance,
            dims: a.dataspace.dims().to_vec(),
            size: u64::from(a.datatype.size().max(b.datatype.size())).max(1),
            bytewise,
            has_equal_fill: bytewise && a.fill_pattern() == b.fill_pattern(),
            fill: fill_of(sides.0.1, a).zip(fill_of(sides.1.1, b)),
            sides,
            stored,
            found,
        })
    }

    /// Compares all elements.
    ///
    /// # Errors
    /// If elements cannot be read.
    pub fn run(&mut self) -> h5live::Result<()> {
        let all = Block { start: vec![0; self.dims.len()], count: self.dims.clone() };
        let chunk = match &self.sides.0.0.spec()?.layout {
            Layout::Chunked(dims) => dims.clone(),
            _ => Vec::new(),
        };
        let stored: Arc<[usize]> = (0..self.stored.len()).collect();
        let mut waiting = vec![(all, stored)];
        while let Some((block, stored)) = waiting.pop() {
            let mut written = 0u64;
            let here = stored.iter().copied().filter(|n| {
                let shared = self.stored.get(*n).map_or(0, |one| one.shared(&block));
                written = written.saturating_add(shared);
                shared > 0
            });
            let here: Arc<[usize]> = here.collect();
            if here.is_empty() && (self.has_equal_fill || self.is_unwritten(&block)) {
                continue;
            }
            let elements = block.elements();
            let has_fill = self.has_equal_fill || self.fill.is_some();
            let is_sparse = has_fill && written < elements / 2 && elements > FEW_ELEMENTS;
            let is_large = is_sparse || elements.saturating_mul(self.size) > BLOCK_BYTES;
            let halves = block.halves(&chunk);
            if let Some((first, second)) = halves.clone().filter(|_| is_large) {
                waiting.extend([(second, here.clone()), (first, here)]);
                continue;
            }
            let selection =
                if self.dims.is_empty() { Selection::All } else { Selection::block(&block.start, &block.count) };
            let ((a, in_a), (b, in_b)) = self.sides;
            if self.bytewise && a.read_raw(&selection)? == b.read_raw(&selection)? {
                continue;
            }
            if let Some((first, second)) = halves.filter(|_| elements > BLOCK_VALUES) {
                waiting.extend([(second, here.clone()), (first, here)]);
                continue;
            }
            let (mine, theirs) = (a.read_values(&selection)?, b.read_values(&selection)?);
            let first = self.index(&block);
            self.found.add(self.tolerance, (&mine, in_a), (&theirs, in_b), &self.dims, first);
        }
        Ok(())
    }

    /// Whether the fill values of both sides are known for a block that neither has written. They are compared then.
    fn is_unwritten(&mut self, block: &Block) -> bool {
        let Some((a, b)) = &self.fill else { return false };
        let place = (self.index(block), block.elements());
        let ((_, in_a), (_, in_b)) = self.sides;
        self.found.add_same(self.tolerance, (a, in_a), (b, in_b), &self.dims, place);
        true
    }

    /// Which element is the first of a block.
    fn index(&self, block: &Block) -> u64 {
        block.start.iter().zip(&self.dims).fold(0, |index, (start, dim)| index * dim + start)
    }
}

/// The blocks that were written in a dataset.
fn blocks_of(dataset: &Dataset, spec: &DatasetSpec) -> h5live::Result<Vec<Block>> {
    let dims = spec.dataspace.dims();
    let all = Block { start: vec![0; dims.len()], count: dims.to_vec() };
    let (Some(grid), false) = (spec.grid(), matches!(spec.layout, Layout::Virtual(_))) else {
        return Ok(vec![all]);
    };
    let mut blocks = Vec::new();
    dataset.for_each_chunk(|chunk| {
        blocks.push(Block { start: grid.start_of(&chunk.coord).to_vec(), count: grid.dims().to_vec() });
        blocks.len() <= MAX_BLOCKS
    })?;
    Ok(if blocks.len() > MAX_BLOCKS { vec![all] } else { blocks })
}

/// The value of elements that were never written.
fn fill_of(side: &DiffSide, spec: &DatasetSpec) -> Option<Value> {
    if u64::from(spec.datatype.size()) > BLOCK_BYTES {
        return None;
    }
    let values = Value::decode_all(&spec.datatype, &spec.fill_element(), Some(side.file.store())).ok()?;
    values.into_iter().next()
}

fn has_references(datatype: &Datatype) -> bool {
    use h5live::Datatype::{Array, Compound, Reference};
    match datatype {
        Reference(reference) => reference.kind == ReferenceKind::Object1,
        Array(array) => has_references(&array.base),
        Compound(compound) => compound.members.iter().any(|member| has_references(&member.datatype)),
        _ => false,
    }
}

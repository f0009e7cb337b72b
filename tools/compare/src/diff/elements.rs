//! Comparison of the elements of two datasets of one shape, block by block. Blocks that neither side has written are
//! not read.

use std::sync::Arc;

use h5live::model::{DatasetSpec, Layout, ReferenceKind};
use h5live::{Dataset, Datatype, Value};

use super::side::DiffSide;
use super::tolerance::Tolerance;
use super::value_differences::ValueDifferences;
use crate::block::DatasetBlock;

/// Elements are read in blocks of at most this many bytes, or one by one if they are larger...
const BLOCK_BYTES: u64 = 8 << 20;
/// ...and values in blocks of this many.
const BLOCK_VALUES: u64 = 1 << 18;

/// Blocks of so few elements are read, however little of them is written.
const FEW_ELEMENTS: u64 = 1 << 10;

/// The comparison of two datasets of one shape.
pub struct DatasetComparison<'a> {
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
    stored: Vec<DatasetBlock>,
    pub differences: ValueDifferences,
}

impl<'a> DatasetComparison<'a> {
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
        let mut stored = DatasetBlock::list_written(a, |each| sides.0.0.for_each_stored_chunk(each))?;
        stored.extend(DatasetBlock::list_written(b, |each| sides.1.0.for_each_stored_chunk(each))?);
        let bytewise = a.datatype == b.datatype && !a.datatype.has_vlen_or_references() && !has_references(&a.datatype);
        Ok(DatasetComparison {
            tolerance,
            dims: a.dataspace.dims().to_vec(),
            size: u64::from(a.datatype.size().max(b.datatype.size())).max(1),
            bytewise,
            has_equal_fill: bytewise && a.nonzero_fill_value() == b.nonzero_fill_value(),
            fill: fill_of(sides.0.1, a).zip(fill_of(sides.1.1, b)),
            sides,
            stored,
            differences: found,
        })
    }

    /// Compares all elements.
    ///
    /// # Errors
    /// If elements cannot be read.
    pub fn run(&mut self) -> h5live::Result<()> {
        let all = DatasetBlock::all(&self.dims);
        let chunk = match &self.sides.0.0.spec()?.layout {
            Layout::Chunked(dims) => dims.clone(),
            _ => Vec::new(),
        };
        let stored: Arc<[usize]> = (0..self.stored.len()).collect();
        let mut waiting = vec![(all, stored)];
        while let Some((block, stored)) = waiting.pop() {
            let mut written = 0u64;
            let here = stored.iter().copied().filter(|n| {
                let shared = self.stored.get(*n).map_or(0, |one| one.shared_element_count(&block));
                written = written.saturating_add(shared);
                shared > 0
            });
            let here: Arc<[usize]> = here.collect();
            if here.is_empty() && (self.has_equal_fill || self.is_unwritten(&block)) {
                continue;
            }
            let elements = block.element_count();
            let has_fill = self.has_equal_fill || self.fill.is_some();
            let is_sparse = has_fill && written < elements / 2 && elements > FEW_ELEMENTS;
            let is_large = is_sparse || elements.saturating_mul(self.size) > BLOCK_BYTES;
            let halves = block.halves(&chunk);
            if let Some((first, second)) = halves.clone().filter(|_| is_large) {
                waiting.extend([(second, here.clone()), (first, here)]);
                continue;
            }
            if !self.compare(&block, halves.is_some())? {
                waiting.extend(
                    halves.into_iter().flat_map(|(first, second)| [(second, here.clone()), (first, here.clone())]),
                );
            }
        }
        Ok(())
    }

    /// Compares the elements of a block. Returns whether it did: a block with differences is not compared if it has too
    /// many values at once, but has halves.
    ///
    /// # Errors
    /// If elements cannot be read.
    fn compare(&mut self, block: &DatasetBlock, has_halves: bool) -> h5live::Result<bool> {
        let selection = block.selection();
        let ((a, in_a), (b, in_b)) = self.sides;
        if self.bytewise && a.read_raw(&selection)? == b.read_raw(&selection)? {
            return Ok(true);
        }
        if has_halves && block.element_count() > BLOCK_VALUES {
            return Ok(false);
        }
        let read = || Ok((a.read_values(&selection)?, b.read_values(&selection)?));
        let (mine, theirs) = match read() {
            Err(error) if has_halves && h5live::Error::is_over_max_allocation(&error) => return Ok(false),
            values => values?,
        };
        let first = self.index(block);
        self.differences.compare_elements(self.tolerance, (&mine, in_a), (&theirs, in_b), &self.dims, first);
        Ok(true)
    }

    /// Whether the fill values of both sides are known for a block that neither has written. They are compared then.
    fn is_unwritten(&mut self, block: &DatasetBlock) -> bool {
        let Some((a, b)) = &self.fill else { return false };
        let place = (self.index(block), block.element_count());
        let ((_, in_a), (_, in_b)) = self.sides;
        self.differences.compare_repeated_value(self.tolerance, (a, in_a), (b, in_b), &self.dims, place);
        true
    }

    /// Which element is the first of a block.
    fn index(&self, block: &DatasetBlock) -> u64 {
        block.start.iter().zip(&self.dims).fold(0, |index, (start, dim)| index * dim + start)
    }
}

/// The value of elements that were never written.
fn fill_of(side: &DiffSide, spec: &DatasetSpec) -> Option<Value> {
    if u64::from(spec.datatype.size()) > BLOCK_BYTES {
        return None;
    }
    let values = Value::decode_all(&spec.datatype, &spec.fill_value_or_zeros(), Some(side.file.store())).ok()?;
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

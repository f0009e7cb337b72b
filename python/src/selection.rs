//! Selections: what Python passes, and the fast way for integers and slices.

use h5live::model::{Hyperslab, SelectionError};
use h5live::{DimSelection, ResolvedSelection, Select, Selection};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PyInt, PySlice, PyTuple};

use crate::memory::Memory;

/// The elements of a dataset that take part in a transfer.
#[pyclass(frozen, name = "Selection", module = "h5live._h5live")]
#[derive(Clone)]
pub(crate) struct SelectionHandle(SelectionKind);

#[derive(Clone)]
enum SelectionKind {
    /// What HDF5 has.
    Plain(Selection),
    /// Along each dimension.
    Product(Vec<DimSelection>),
}

impl From<Selection> for SelectionHandle {
    fn from(selection: Selection) -> Self {
        SelectionHandle(SelectionKind::Plain(selection))
    }
}

impl Select for SelectionHandle {
    fn resolve(&self, extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
        match &self.0 {
            SelectionKind::Plain(selection) => selection.resolve(extent),
            SelectionKind::Product(dims) => dims.resolve(extent),
        }
    }
}

#[pymethods]
impl SelectionHandle {
    /// All elements.
    #[staticmethod]
    fn all() -> Self {
        Selection::All.into()
    }

    /// No element.
    #[staticmethod]
    fn none() -> Self {
        Selection::None.into()
    }

    /// Blocks at regular distances.
    #[staticmethod]
    fn hyperslab(start: Vec<u64>, stride: Vec<u64>, count: Vec<u64>, block: Vec<u64>) -> PyResult<Self> {
        if [&stride, &count, &block].iter().any(|list| list.len() != start.len()) {
            return Err(PyValueError::new_err("start, stride, count and block are not of one length"));
        }
        Ok(Selection::Hyperslab(Hyperslab {
            start: start.into(),
            stride: stride.into(),
            count: count.into(),
            block: block.into(),
        })
        .into())
    }

    /// Points: an array of unsigned 64-bit integers, `rank` for each point.
    #[staticmethod]
    fn points(coordinates: &Bound<'_, PyAny>, rank: usize) -> PyResult<Self> {
        let memory = Memory::readable(coordinates)?;
        let point = |bytes: &[u8]| {
            let coordinate = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
            bytes.chunks_exact(8).map(coordinate).collect()
        };
        let points: Vec<_> = memory.bytes().chunks_exact(8 * rank.max(1)).map(point).collect();
        Ok(if points.is_empty() { Selection::None } else { Selection::Points(points) }.into())
    }

    /// The product of what is selected along each dimension: an index, a tuple (start, step, count), or a list of indices.
    #[staticmethod]
    fn product(dims: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        let dim = |dim: Bound<'_, PyAny>| -> PyResult<DimSelection> {
            if let Ok((start, step, count)) = dim.extract::<(u64, u64, u64)>()
                && dim.is_instance_of::<PyTuple>()
            {
                return Ok(range(start, step, count));
            }
            if dim.is_instance_of::<PyInt>() {
                return Ok(DimSelection::index(dim.extract()?));
            }
            Ok(DimSelection::list(dim.extract::<Vec<u64>>()?))
        };
        let dims = dims.into_iter().map(dim).collect::<PyResult<_>>()?;
        Ok(SelectionHandle(SelectionKind::Product(dims)))
    }
}

fn range(start: u64, step: u64, count: u64) -> DimSelection {
    match step {
        1 => DimSelection::range(start, count),
        _ => DimSelection::steps(start, step, count),
    }
}

/// The selection of integers, slices and an ellipsis, the shape of what it selects, and whether a single element is a scalar
/// (not with an ellipsis of a dataset without dimensions); `None` if there is something else, or something that needs a closer
/// look.
pub(crate) fn simple_selection(
    args: &Bound<'_, PyAny>,
    shape: &[u64],
) -> PyResult<Option<(SelectionHandle, Vec<u64>, bool)>> {
    let items: Vec<Bound<'_, PyAny>> = match args.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => vec![args.clone()],
    };
    let is_ellipsis = |item: &Bound<'_, PyAny>| item.is_instance_of::<PyEllipsis>();
    let ellipses = items.iter().filter(|item| is_ellipsis(item)).count();
    let named = items.len() - ellipses;
    if ellipses > 1 || named > shape.len() {
        return Ok(None);
    }
    let (mut dims, mut result) = (Vec::with_capacity(shape.len()), Vec::with_capacity(shape.len()));
    let keep_all = |dims: &mut Vec<DimSelection>, result: &mut Vec<u64>, n: usize| {
        for size in shape.iter().skip(dims.len()).take(n) {
            dims.push(DimSelection::range(0, *size));
            result.push(*size);
        }
    };
    for item in &items {
        if is_ellipsis(item) {
            keep_all(&mut dims, &mut result, shape.len() - named);
        } else if !add_simple(item, shape, &mut dims, &mut result)? {
            return Ok(None);
        }
    }
    let missing = shape.len() - dims.len();
    keep_all(&mut dims, &mut result, missing);
    let is_plain = ellipses == 0 || !shape.is_empty();
    Ok(Some((SelectionHandle(SelectionKind::Product(dims)), result, is_plain)))
}

/// Adds the selection of an integer or a slice, and says whether it is one.
fn add_simple(
    item: &Bound<'_, PyAny>,
    shape: &[u64],
    dims: &mut Vec<DimSelection>,
    result: &mut Vec<u64>,
) -> PyResult<bool> {
    let size = shape[dims.len()];
    if let Ok(slice) = item.cast::<PySlice>() {
        let Ok(size) = isize::try_from(size) else { return Ok(false) };
        let found = slice.indices(size)?;
        if found.step < 1 {
            return Ok(false);
        }
        let (start, count, step) = (found.start as u64, found.slicelength as u64, found.step as u64);
        // Nothing is selected behind the end.
        dims.push(if count == 0 { DimSelection::range(0, 0) } else { range(start, step, count) });
        result.push(count);
        return Ok(true);
    }
    if !item.is_exact_instance_of::<PyInt>() {
        return Ok(false);
    }
    let Ok(index) = item.extract::<i64>() else { return Ok(false) };
    let found = if index < 0 { index.checked_add_unsigned(size) } else { Some(index) };
    match found.and_then(|index| u64::try_from(index).ok()).filter(|index| *index < size) {
        Some(index) => {
            dims.push(DimSelection::index(index));
            Ok(true)
        }
        None => {
            let last = size.saturating_sub(1);
            Err(PyIndexError::new_err(format!("Index ({index}) out of range for (0-{last})")))
        }
    }
}

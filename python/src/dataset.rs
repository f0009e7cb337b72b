//! Datasets.

use h5live::model::{
    AllocationTime, BoundSelection, ChunkCoord, Dataspace, FillTime, FillValue, FilterSpec, Layout, StoredChunk,
};
use h5live::{Dataset, Select, Selection, UNLIMITED};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::datatype::DatatypeHandle;
use crate::errors::{raise, raise_source};
use crate::links::name_object;
use crate::memory::Memory;
use crate::number::Number;
use crate::object_handle::object_handle;
use crate::process::run;
use crate::selection::{SelectionHandle, simple_selection};

/// Where a chunk begins in the dataset, its filter mask, and where it is in the file, in bytes.
type ChunkRecord = (Vec<u64>, u32, Option<u64>, u64);

object_handle! {
    /// A dataset.
    DatasetHandle, "Dataset", Dataset, Dataset, dataset
}

/// Dimensions, of which those without limit are `None`.
fn limits(max: &[u64]) -> Vec<Option<u64>> {
    max.iter().map(|dim| (*dim != UNLIMITED).then_some(*dim)).collect()
}

/// The shape of a dataset, that of what is selected in it, and the number of elements selected.
pub(crate) fn dataset_and_selection_shape(
    py: Python<'_>,
    dataset: &Dataset,
    selection: &Selection,
) -> PyResult<Py<PyAny>> {
    let shape = run(py, || dataset.shape())?.map_err(raise)?;
    let refused = |error: h5live::model::SelectionError| PyValueError::new_err(error.to_string());
    let bound: BoundSelection = selection.clone().into_bound(&shape).map_err(refused)?;
    let dims = box_dims(selection, bound.element_count()).unwrap_or_else(|| bound.dims().to_vec());
    (shape, dims, bound.element_count()).into_py_any(py)
}

/// The dimensions of blocks that are the product of what they have along each dimension.
fn box_dims(selection: &Selection, elements: u64) -> Option<Vec<u64>> {
    let Selection::Blocks(blocks) = selection else { return None };
    let mut dims = Vec::new();
    for dim in 0..blocks.first()?.start.len() {
        let mut ranges: Vec<(u64, u64)> = blocks.iter().map(|block| (block.start[dim], block.count[dim])).collect();
        ranges.sort_unstable();
        let (mut covered, mut end) = (0, 0);
        for (start, count) in ranges {
            let stop = start.saturating_add(count);
            covered += stop.saturating_sub(start.max(end));
            end = end.max(stop);
        }
        dims.push(covered);
    }
    let product = dims.iter().fold(1u64, |n, dim| n.saturating_mul(*dim));
    (product == elements).then_some(dims)
}

/// Takes up what the sources of a virtual dataset have now, if it grows with them.
fn refresh_sources(dataset: &Dataset) -> h5live::Result<()> {
    if dataset.is_virtual() && dataset.max_shape()?.contains(&UNLIMITED) {
        dataset.refresh()?;
    }
    Ok(())
}

/// The exception for an error of reading. What is wrong with a source is no fault of the arguments.
fn raise_read(dataset: &Dataset, error: h5live::Error) -> PyErr {
    match raise(error) {
        raised if dataset.is_virtual() => raise_source(raised),
        raised => raised,
    }
}

#[pymethods]
impl DatasetHandle {
    /// The dimensions; `None` without elements.
    fn shape(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let dataset = self.dataset()?;
        let spec = run(py, || refresh_sources(&dataset).and_then(|()| dataset.spec()))?
            .map_err(|error| raise_read(&dataset, error))?;
        match &spec.dataspace {
            Dataspace::Null => Ok(py.None()),
            space => PyTuple::new(py, space.dims())?.into_py_any(py),
        }
    }

    /// The largest dimensions, `None` for those without limit.
    fn max_shape(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let dataset = self.dataset()?;
        let spec = run(py, || dataset.spec())?.map_err(|error| raise_read(&dataset, error))?;
        match &spec.dataspace {
            Dataspace::Null => Ok(py.None()),
            space => PyTuple::new(py, limits(space.max_dims()))?.into_py_any(py),
        }
    }

    fn datatype(&self, py: Python<'_>) -> PyResult<DatatypeHandle> {
        let dataset = self.dataset()?;
        Ok(DatatypeHandle(run(py, || dataset.datatype())?.map_err(raise)?))
    }

    /// The rest of the description: layout, chunks, filters, fill value, committed type.
    fn description(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let dataset = self.dataset()?;
        let spec = run(py, || dataset.spec())?.map_err(|error| raise_read(&dataset, error))?;
        let out = PyDict::new(py);
        describe_layout(py, &spec.layout, &out)?;
        let filter = |filter: &FilterSpec| {
            let name = filter.name.as_ref().map(|name| name_object(py, name));
            (filter.id, filter.optional, name, filter.params.clone())
        };
        out.set_item("filters", spec.filters.iter().map(filter).collect::<Vec<_>>())?;
        match &spec.fill.value {
            FillValue::Value(bytes) => out.set_item("fill", PyBytes::new(py, bytes))?,
            FillValue::Undefined => out.set_item("fill_undefined", true)?,
            FillValue::Default => {}
        }
        let time = match spec.fill.time {
            FillTime::Allocation => "alloc",
            FillTime::Never => "never",
            FillTime::IfSet => "ifset",
        };
        out.set_item("fill_time", time)?;
        let alloc = match spec.fill.allocation {
            AllocationTime::Early => "early",
            AllocationTime::Late => "late",
            AllocationTime::Incremental => "incr",
        };
        out.set_item("alloc_time", alloc)?;
        out.set_item("committed", spec.committed_datatype.map(|id| id.0))?;
        out.into_py_any(py)
    }

    /// The elements that integers and slices select, in an array that `numpy_empty` makes of a shape and `dtype`; a single
    /// one as a scalar, whose type is `scalar`. `None` if there is something else among `args`, and of datasets without elements.
    fn read_simple<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyAny>,
        datatype: &DatatypeHandle,
        numpy_empty: &Bound<'py, PyAny>,
        dtype: &Bound<'py, PyAny>,
        scalar: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let dataset = self.dataset()?;
        let shape = run(py, || refresh_sources(&dataset).and_then(|()| dataset.shape()))?
            .map_err(|error| raise_read(&dataset, error))?;
        if shape.is_empty() && dataset.spec().map_err(raise)?.dataspace == Dataspace::Null {
            return Ok(None);
        }
        let Some((selection, dims, is_plain)) = simple_selection(args, &shape)? else { return Ok(None) };
        // Of arrays without dimensions, numpy exports no shape.
        let is_single = dims.is_empty();
        if is_single
            && is_plain
            && let Some(mut number) = Number::new(&datatype.0)
        {
            run(py, || dataset.read_as_into(&selection, &datatype.0, number.bytes_mut()))?
                .map_err(|error| raise_read(&dataset, error))?;
            return scalar.call1((number.to_object(py)?,)).map(Some);
        }
        let array = numpy_empty.call1((PyTuple::new(py, if is_single { &[1] } else { dims.as_slice() })?, dtype))?;
        if !dims.contains(&0) {
            let mut memory = Memory::writable(&array)?;
            run(py, || dataset.read_as_into(&selection, &datatype.0, memory.bytes_mut()))?
                .map_err(|error| raise_read(&dataset, error))?;
        }
        match (is_single, is_plain) {
            (false, _) => Ok(Some(array)),
            (true, true) => array.get_item(0).map(Some),
            (true, false) => array.call_method1("reshape", (PyTuple::empty(py),)).map(Some),
        }
    }

    /// Reads elements of a type into an array's memory.
    fn read_into(
        &self,
        py: Python<'_>,
        selection: &SelectionHandle,
        datatype: &DatatypeHandle,
        into: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let dataset = self.dataset()?;
        let mut memory = Memory::writable(into)?;
        run(py, || dataset.read_as_into(selection, &datatype.0, memory.bytes_mut()))?
            .map_err(|error| raise_read(&dataset, error))
    }

    /// Writes elements of a type from an array's memory.
    fn write_from(
        &self,
        py: Python<'_>,
        selection: &SelectionHandle,
        datatype: &DatatypeHandle,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let dataset = self.dataset()?;
        let memory = Memory::readable(data)?;
        run(py, || dataset.write_as(selection, &datatype.0, memory.bytes()))?.map_err(raise)
    }

    /// Appends rows of elements of a type.
    fn append_from(&self, py: Python<'_>, datatype: &DatatypeHandle, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let dataset = self.dataset()?;
        let memory = Memory::readable(data)?;
        run(py, || dataset.append_as(&datatype.0, memory.bytes()))?.map_err(raise)
    }

    fn resize(&self, py: Python<'_>, shape: Vec<u64>) -> PyResult<()> {
        let dataset = self.dataset()?;
        run(py, || dataset.resize(&shape))?.map_err(raise)
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let dataset = self.dataset()?;
        run(py, || dataset.flush())?.map_err(raise)
    }

    fn flush_durable(&self, py: Python<'_>) -> PyResult<()> {
        let dataset = self.dataset()?;
        run(py, || dataset.flush_durable())?.map_err(raise)
    }

    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        let dataset = self.dataset()?;
        run(py, || dataset.refresh())?.map_err(raise)
    }

    fn is_live(&self, py: Python<'_>) -> PyResult<bool> {
        let dataset = self.dataset()?;
        run(py, || dataset.is_live())?.map_err(raise)
    }

    /// A follower of new rows.
    fn follow(&self, py: Python<'_>, start: Option<u64>, batch: Option<u64>) -> PyResult<crate::follow::RowsHandle> {
        let dataset = self.dataset()?;
        let follow = || -> h5live::Result<_> {
            let mut follower = dataset.follow::<u8>();
            follower = match start {
                Some(row) => follower.start_row(row),
                None => follower.skip_existing()?,
            };
            Ok(if let Some(rows) = batch { follower.max_batch_rows(rows) } else { follower })
        };
        Ok(crate::follow::RowsHandle::new(&self.session, run(py, follow)?.map_err(raise)?))
    }

    /// Looks for the files of the sources of a virtual dataset in a folder first.
    fn set_source_folder(&self, folder: &str) -> PyResult<()> {
        self.dataset()?.set_source_folder(folder);
        Ok(())
    }

    fn region_reference(&self, py: Python<'_>, selection: &SelectionHandle) -> PyResult<Vec<u8>> {
        let dataset = self.dataset()?;
        let made = run(py, || dataset.region_reference(selection))?.map_err(raise)?;
        Ok(made.as_bytes().to_vec())
    }

    /// The stored chunks: coordinate (elements), filter mask, address (if the store has one), size (bytes).
    fn chunks(&self, py: Python<'_>) -> PyResult<Vec<ChunkRecord>> {
        let dataset = self.dataset()?;
        let spec = run(py, || dataset.spec())?.map_err(|error| raise_read(&dataset, error))?;
        let grid: Vec<u64> = spec.chunk_dims_or_extent().unwrap_or(&[]).to_vec();
        let chunks = run(py, || dataset.stored_chunks())?.map_err(raise)?;
        Ok(chunks.iter().map(|chunk| chunk_record(chunk, &grid)).collect())
    }

    /// The bytes of a stored chunk, with its filter mask; `None` if it is not stored.
    fn read_chunk<'py>(&self, py: Python<'py>, scaled: Vec<u64>) -> PyResult<Option<(u32, Bound<'py, PyBytes>)>> {
        let dataset = self.dataset()?;
        let coord = ChunkCoord::new(&scaled);
        let found = run(py, || -> h5live::Result<_> {
            let Some(chunk) = dataset.stored_chunk(&coord)? else { return Ok(None) };
            Ok(Some((chunk.filter_mask, dataset.read_chunk(&chunk)?)))
        })?;
        Ok(found.map_err(raise)?.map(|(mask, bytes)| (mask, PyBytes::new(py, &bytes))))
    }

    fn write_chunk(&self, py: Python<'_>, scaled: Vec<u64>, mask: u32, bytes: &Bound<'_, PyAny>) -> PyResult<()> {
        let dataset = self.dataset()?;
        let memory = Memory::readable(bytes)?;
        let coord = ChunkCoord::new(&scaled);
        run(py, || dataset.write_chunk(&coord, mask, memory.bytes()))?.map_err(raise)
    }

    /// Where scales and what belongs to them is kept: made a scale, attached, and so on.
    fn make_scale(&self, py: Python<'_>, name: Option<&str>) -> PyResult<()> {
        let dataset = self.dataset()?;
        run(py, || dataset.make_scale(name))?.map_err(raise)
    }

    fn is_scale(&self, py: Python<'_>) -> PyResult<bool> {
        let dataset = self.dataset()?;
        run(py, || dataset.is_scale())?.map_err(raise)
    }

    fn attach_scale(&self, py: Python<'_>, dim: usize, scale: &DatasetHandle) -> PyResult<()> {
        let (dataset, scale) = (self.dataset()?, scale.dataset()?);
        run(py, || dataset.attach_scale(dim, &scale))?.map_err(raise)
    }

    fn scales(&self, py: Python<'_>, dim: usize) -> PyResult<Vec<DatasetHandle>> {
        let dataset = self.dataset()?;
        let scales = run(py, || dataset.scales(dim))?.map_err(raise)?;
        Ok(scales.into_iter().map(|scale| DatasetHandle::new(&self.session, scale)).collect())
    }
}

fn chunk_record(chunk: &StoredChunk, grid: &[u64]) -> (Vec<u64>, u32, Option<u64>, u64) {
    let offset = chunk.coord.scaled().iter().zip(grid).map(|(at, dim)| at * dim).collect();
    (offset, chunk.filter_mask, chunk.file_offset, chunk.size)
}

fn describe_layout(py: Python<'_>, layout: &Layout, out: &Bound<'_, PyDict>) -> PyResult<()> {
    match layout {
        Layout::Compact => out.set_item("layout", "compact"),
        Layout::Contiguous => out.set_item("layout", "contiguous"),
        Layout::Chunked(dims) => {
            out.set_item("layout", "chunked")?;
            out.set_item("chunks", PyTuple::new(py, dims)?)
        }
        Layout::External(pieces) => {
            out.set_item("layout", "contiguous")?;
            let piece = pieces.iter().map(|piece| (name_object(py, &piece.name), piece.offset, piece.size));
            out.set_item("external", piece.collect::<Vec<_>>())
        }
        Layout::Virtual(sources) => {
            out.set_item("layout", "virtual")?;
            let handle = |selection: &Selection| Py::new(py, SelectionHandle::from(selection.clone()));
            let mut all = Vec::new();
            for source in sources {
                let names = (name_object(py, &source.file), name_object(py, &source.dataset));
                all.push((names, handle(&source.source)?, handle(&source.target)?));
            }
            out.set_item("virtual", all)
        }
    }
    .map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

const _: () = {
    const fn selects<S: Select>() {}
    selects::<SelectionHandle>();
};

//! New datasets: from the options that Python passes to the builder.

use h5live::model::{AllocationTime, Dataspace, FillTime, FilterSpec, Selection, Shape, VirtualSource};
use h5live::{DatasetBuilder, Group, UNLIMITED};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::datatype::DatatypeHandle;
use crate::file::entry_storage;
use crate::named_type::NamedTypeHandle;
use crate::selection::SelectionHandle;

fn option<'py, T>(options: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>>
where
    T: FromPyObjectOwned<'py>,
{
    let found = options.get_item(name)?.filter(|found| !found.is_none());
    found.map(|found| found.extract().map_err(Into::into)).transpose()
}

/// A dimension that may grow without limit is `None`.
fn with_limits(max: Vec<Option<u64>>) -> Vec<u64> {
    max.into_iter().map(|dim| dim.unwrap_or(UNLIMITED)).collect()
}

fn dataspace(options: &Bound<'_, PyDict>) -> PyResult<Dataspace> {
    let Some(shape) = option::<Vec<u64>>(options, "shape")? else { return Ok(Dataspace::Null) };
    let max = option::<Vec<Option<u64>>>(options, "max_shape")?.map(with_limits);
    Ok(match max {
        None if shape.is_empty() => Dataspace::Scalar,
        None => Dataspace::Simple(Shape::fixed(&shape)),
        Some(max) => Dataspace::Simple(
            Shape::with_max(&shape, &max)
                .ok_or_else(|| PyValueError::new_err("\"maxshape\" must have same rank as and be at least shape"))?,
        ),
    })
}

/// The description of a new dataset.
pub(crate) fn builder(
    group: &Group,
    datatype: &Bound<'_, PyAny>,
    options: &Bound<'_, PyDict>,
) -> PyResult<DatasetBuilder> {
    let mut builder = match datatype.cast::<NamedTypeHandle>() {
        Ok(named) => {
            let named = named.get().named()?;
            group.new_dataset_with_type(named.datatype().clone()).committed_datatype(&named)
        }
        Err(_) => group.new_dataset_with_type(datatype.cast::<DatatypeHandle>()?.get().0.clone()),
    };
    builder = builder.dataspace(dataspace(options)?);
    if let Some(chunks) = option::<Vec<u64>>(options, "chunks")? {
        builder = builder.chunk_shape(&chunks);
    }
    match option::<String>(options, "layout")?.as_deref() {
        Some("compact") => builder = builder.compact(),
        Some("contiguous") => builder = builder.contiguous(),
        _ => {}
    }
    let filters = option::<Vec<(u16, bool, Vec<u32>)>>(options, "filters")?.unwrap_or_default();
    for (id, optional, params) in filters {
        builder = builder.filter(FilterSpec { id, optional, name: None, params });
    }
    if let Some(element) = option::<Vec<u8>>(options, "fill")? {
        builder = builder.fill_raw(&element);
    }
    match option::<String>(options, "fill_time")?.as_deref() {
        Some("alloc") => builder = builder.fill_time(FillTime::Allocation),
        Some("never") => builder = builder.fill_time(FillTime::Never),
        Some("ifset") => builder = builder.fill_time(FillTime::IfSet),
        _ => {}
    }
    match option::<String>(options, "alloc_time")?.as_deref() {
        Some("early") => builder = builder.alloc_time(AllocationTime::Early),
        Some("late") => builder = builder.alloc_time(AllocationTime::Late),
        Some("incr") => builder = builder.alloc_time(AllocationTime::Incremental),
        _ => {}
    }
    if option(options, "track_times")? == Some(true) {
        builder = builder.track_times();
    }
    if option(options, "track_order")? == Some(true) {
        builder = builder.attribute_storage(entry_storage(true));
    }
    for (file, offset, size) in option::<Vec<(String, u64, u64)>>(options, "external")?.unwrap_or_default() {
        builder = builder.external(&file, offset, size);
    }
    if let Some(sources) = option::<Vec<Bound<'_, PyAny>>>(options, "virtual")? {
        builder = builder.virtual_sources(sources.iter().map(virtual_source).collect::<PyResult<_>>()?);
    }
    Ok(builder)
}

fn virtual_source(source: &Bound<'_, PyAny>) -> PyResult<VirtualSource> {
    type Parts<'py> = (String, String, Bound<'py, PyAny>, Vec<u64>, Bound<'py, PyAny>, Vec<u64>);
    let (file, dataset, from, from_shape, to, to_shape): Parts<'_> = source.extract()?;
    Ok(VirtualSource {
        file: file.as_str().into(),
        dataset: dataset.as_str().into(),
        source: plain_selection(&from, &from_shape)?,
        target: plain_selection(&to, &to_shape)?,
    })
}

/// A selection that HDF5 has, in a dataspace of a shape.
pub(crate) fn plain_selection(selection: &Bound<'_, PyAny>, shape: &[u64]) -> PyResult<Selection> {
    use h5live::Select;
    let refused = |error: h5live::model::SelectionError| PyValueError::new_err(error.to_string());
    let selection = selection.cast::<SelectionHandle>()?.get();
    selection.resolve(shape).and_then(|resolved| resolved.into_selection(shape)).map_err(refused)
}

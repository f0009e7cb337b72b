//! The native half of the Python package `h5live`: handles on the engine's objects, and what is done for each element,
//! each chunk or each call in a loop. Signatures, defaults and protocols are in Python.

mod attributes;
mod blobs;
mod create;
mod dataset;
mod datatype;
mod errors;
mod file;
mod follow;
mod group;
mod links;
mod maps;
mod memory;
mod named_type;
mod number;
mod object_handle;
mod process;
mod progress;
mod recovery;
mod selection;
mod session;
mod wait;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
fn _h5live(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<file::FileHandle>()?;
    module.add_class::<group::GroupHandle>()?;
    module.add_class::<named_type::NamedTypeHandle>()?;
    module.add_class::<dataset::DatasetHandle>()?;
    module.add_class::<attributes::AttributesHandle>()?;
    module.add_class::<maps::MapHandle>()?;
    module.add_class::<datatype::DatatypeHandle>()?;
    module.add_class::<selection::SelectionHandle>()?;
    module.add_class::<follow::RowsHandle>()?;
    module.add_class::<follow::GroupFollowerHandle>()?;
    module.add_function(wrap_pyfunction!(process::after_fork_in_child, module)?)?;
    module.add_function(wrap_pyfunction!(wait::signal_looks, module)?)?;
    module.add("MAX_SECONDS_BETWEEN_SIGNALS", wait::MAX_WAIT_BETWEEN_SIGNALS.as_secs_f64())?;
    module.add_function(wrap_pyfunction!(blobs::common_type, module)?)?;
    module.add_function(wrap_pyfunction!(errors::set_error_printing, module)?)?;
    module.add_function(wrap_pyfunction!(recovery::check, module)?)?;
    module.add_function(wrap_pyfunction!(recovery::diagnose, module)?)?;
    module.add_function(wrap_pyfunction!(recovery::repair, module)?)?;
    Ok(())
}

//! What is done with files that nobody has open: diagnosis and repair.

use pyo3::prelude::*;

use crate::errors::raise;

/// In which condition what is at a location is, in words.
#[pyfunction]
pub(crate) fn diagnose(py: Python<'_>, location: &str) -> PyResult<String> {
    let found = py.detach(|| h5live::diagnose(location)).map_err(raise)?;
    Ok(format!("{found:?}"))
}

/// Brings what a dead writer has left into order; says what was done, in words.
#[pyfunction]
pub(crate) fn repair(py: Python<'_>, location: &str) -> PyResult<String> {
    let done = py.detach(|| h5live::repair(location)).map_err(raise)?;
    Ok(format!("{done:?}"))
}

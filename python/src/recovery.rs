//! What is done with files that nobody has open: diagnosis and repair.

use h5live::{StoreCheck, StoreFinding};
use pyo3::prelude::*;

use crate::errors::raise;
use crate::process::run;

/// A fault: a path, a word for its kind, and what it is.
type Fault = (Option<String>, &'static str, String);

/// In which condition what is at a location is, in words.
#[pyfunction]
pub(crate) fn diagnose(py: Python<'_>, location: &str) -> PyResult<String> {
    let found = run(py, || h5live::diagnose(location))?.map_err(raise)?;
    Ok(format!("{found:?}"))
}

/// What is wrong with what is at a location: a path if there is one, a word for the kind of fault, and the fault; and
/// the number of objects that were looked at.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, location: &str, data: bool) -> PyResult<(Vec<Fault>, u64)> {
    let what = StoreCheck { data, ..StoreCheck::default() };
    let report = run(py, || h5live::check(location, what))?.map_err(raise)?;
    let fault = |found: StoreFinding| (found.path, found.kind, found.cause.to_string());
    Ok((report.findings.into_iter().map(fault).collect(), report.objects))
}

/// Brings what a dead writer has left into order; says what was done, in words.
#[pyfunction]
pub(crate) fn repair(py: Python<'_>, location: &str) -> PyResult<String> {
    let done = run(py, || h5live::repair(location))?.map_err(raise)?;
    Ok(format!("{done:?}"))
}

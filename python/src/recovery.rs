//! What is done with files that nobody has open: diagnosis and repair.

use h5live::{FileDiagnosis, FileHolderProcess, FileOpenState, StoreCheckOptions, StoreFinding};
use pyo3::prelude::*;

use crate::errors::raise;
use crate::process::run;

/// A fault: a path, a word for its kind, and what it is.
type Fault = (Option<String>, &'static str, String);

/// A process that has a file open: its number, and the name of its program.
type Process = (u32, String);

/// The condition, whether others may follow the writer, the writers, the version of the superblock, the bytes of the file and
/// those that it announces, and the readers.
type Condition = (&'static str, bool, Vec<Process>, Option<u8>, u64, u64, Vec<Process>);

fn condition_of(found: FileDiagnosis) -> Condition {
    let processes = |holders: Vec<FileHolderProcess>| {
        holders.into_iter().map(|holder| (holder.pid, holder.name)).collect::<Vec<Process>>()
    };
    let (condition, live, writers) = match found.open_state {
        FileOpenState::Closed => ("closed", false, Vec::new()),
        FileOpenState::OpenForWriting { live, holders } => ("written", live, holders),
        FileOpenState::Abandoned { live } => ("abandoned", live, Vec::new()),
        FileOpenState::OpenOrAbandoned { live } => ("unknown", live, Vec::new()),
        _ => ("unknown", false, Vec::new()),
    };
    let readers = processes(found.other_readers);
    (condition, live, processes(writers), found.superblock_version, found.length, found.announced_length, readers)
}

/// In which condition what is at a location is.
#[pyfunction]
pub(crate) fn diagnose(py: Python<'_>, location: &str) -> PyResult<Condition> {
    Ok(condition_of(run(py, || h5live::diagnose(location))?.map_err(raise)?))
}

/// What is wrong with what is at a location: a path if there is one, a word for the kind of fault, and the fault; and
/// the number of objects that were looked at.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, location: &str, data: bool) -> PyResult<(Vec<Fault>, u64)> {
    let what = StoreCheckOptions { verify_data: data, ..StoreCheckOptions::default() };
    let report = run(py, || h5live::check(location, what))?.map_err(raise)?;
    let fault = |found: StoreFinding| (found.path, found.kind, found.cause.to_string());
    Ok((report.findings.into_iter().map(fault).collect(), report.object_count))
}

/// Brings what a dead writer has left into order: how it was, how it is now, and what could not be done.
#[pyfunction]
pub(crate) fn repair(py: Python<'_>, location: &str) -> PyResult<(Condition, Condition, Vec<String>)> {
    let done = run(py, || h5live::repair(location))?.map_err(raise)?;
    Ok((condition_of(done.before), condition_of(done.after), done.unrepaired))
}

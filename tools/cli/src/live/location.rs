//! The location at which the processes of a run write and read.

use std::path::{Path, PathBuf};

use h5live::{File, Location, OpenError, StoreCheckOptions};
use h5live_checker::file::{CheckOptions, check_path_with};

use crate::counted::counted;
use crate::error::{Error, Result, error_with_causes};
use crate::model::DurabilitySupport;
use crate::new_output::NewOutput;
use crate::open;
use crate::temp_output::ForceArgs;

/// The location as an argument of another process, with its options.
pub fn to_argument(location: &Location) -> PathBuf {
    match location {
        Location::Path(path) => path.clone(),
        Location::Url(url) => url.text_as_path(),
    }
}

/// Makes a new store at which processes will write and read.
///
/// # Errors
/// [`Error::OpenFailed`] if other processes cannot follow what is written there; errors of `make`, and of creating it.
pub fn create_live_store(location: &Location, force: ForceArgs, make: impl FnOnce(&File) -> Result<()>) -> Result<()> {
    let can = open::new_store_capabilities(location)?;
    if !can.supports_live_reads || can.durability == DurabilitySupport::Never {
        let text = "other processes cannot follow what is written there: use a native file, or a store that `h5live \
                    stores` says is followed while written";
        let source = Box::new(OpenError::InvalidLocation(text.to_owned()));
        return Err(Error::OpenFailed { location: location.to_string(), source });
    }
    let output = NewOutput::prepare_for(location, force)?;
    let file = output.create_file(open::command_line_options())?;
    make(&file)?;
    output.persist(file)
}

/// The path of a native file, for what is done with those only.
///
/// # Errors
/// [`Error::OpenFailed`] that says so of another store.
pub fn require_new_native_file_path(location: &Location, needed_by: &str) -> Result<PathBuf> {
    open::new_native_file_path(location)?.ok_or_else(|| {
        let source = Box::new(OpenError::InvalidLocation(format!("{needed_by} needs a native file")));
        Error::OpenFailed { location: location.to_string(), source }
    })
}

/// What is wrong with a store whose writer is gone, as its checker finds it.
pub fn first_check_finding(location: &Location) -> Option<String> {
    match open::native_file_path(location) {
        Err(error) => return Some(error.to_string()),
        Ok(Some(path)) => return first_file_check_finding(&path),
        Ok(None) => {}
    }
    match open::command_line_options()
        .check(location, StoreCheckOptions { verify_data: true, ..StoreCheckOptions::default() })
    {
        Ok(report) => first_of(&report.findings, |finding| {
            format!("{}: {}", finding.path.as_deref().unwrap_or("/"), finding.cause)
        }),
        Err(error) => Some(error_with_causes(&error)),
    }
}

/// What is wrong with a native file whose writer is gone, as the file checker finds it.
pub fn first_file_check_finding(path: &Path) -> Option<String> {
    let filters = open::filter_engine();
    let options = CheckOptions { may_be_live: true, filter_engine: Some(&filters), ..CheckOptions::default() };
    match check_path_with(path, options) {
        Ok(report) => first_of(&report.findings, ToString::to_string),
        Err(error) => Some(error.to_string()),
    }
}

fn first_of<T>(findings: &[T], text: impl Fn(&T) -> String) -> Option<String> {
    let more = findings.len().saturating_sub(1);
    findings.first().map(|finding| format!("{} (and {} more)", text(finding), counted(more, "finding")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_filtered_chunks_lead_to_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("texts.h5");
        let location = Location::from(path.as_path());
        let file = h5live::File::options().create().open(&path).unwrap();
        file.new_dataset::<String>().shape(&[1]).chunk_shape(&[1]).fletcher32().create("texts").unwrap();
        file.dataset("texts").unwrap().write(&["a text".to_owned()]).unwrap();
        file.close().unwrap();
        assert_eq!(first_check_finding(&location), None);
        let mut bytes = std::fs::read(&path).unwrap();
        let heap = bytes.windows(4).position(|bytes| bytes == b"GCOL").unwrap();
        bytes[heap] = 0;
        std::fs::write(&path, bytes).unwrap();
        assert!(first_check_finding(&location).is_some());
    }
}

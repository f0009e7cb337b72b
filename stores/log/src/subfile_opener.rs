//! The subfiles of writers that have joined: finding them.

use std::sync::Arc;

use h5live_model::{AllocationLimit, Error, Mode, ObjectId, OpenError, Store, StoreErrorKind};

use crate::anchor::read_i64_attribute;
use crate::error::{LogError, Result};
use crate::log_file::{LogFile, log_group};
use crate::log_state::LogState;
use crate::multi_writer_files::MultiWriterFiles;
use crate::names;
use crate::position::LogPosition;

/// What the seam has for an error of opening.
pub fn into_model_error(error: OpenError) -> Error {
    match error {
        OpenError::Store(error) => error,
        other => Error::Invalid(other.to_string()),
    }
}

/// Whether a file could not be opened because another process has it.
pub fn is_in_use(error: &OpenError) -> bool {
    matches!(error, OpenError::Store(Error::Store(error)) if matches!(error.kind, StoreErrorKind::InUse(_)))
}

/// Whether a live writer has a subfile. `opened_for_reading` is what came of opening it with [`Mode::Read`].
pub fn has_live_writer(opened_for_reading: std::result::Result<Arc<dyn Store>, OpenError>) -> bool {
    match opened_for_reading {
        Ok(store) => store.close().is_err(),
        Err(error) => is_in_use(&error),
    }
}

/// The attribute of a group of a log, 0 if it has none.
pub fn log_group_attribute_or_zero(store: &dyn Store, group: ObjectId, name: &'static str) -> Result<i64> {
    Ok(read_i64_attribute(store, group, name, names::OF_GROUP)?.unwrap_or(0))
}

/// How many subfiles a main file has.
pub fn subfile_count(main: &dyn Store, group: ObjectId) -> Result<u32> {
    let count = log_group_attribute_or_zero(main, group, names::SUBFILE_COUNT)?;
    let known = u32::try_from(count).ok().filter(|count| *count <= LogPosition::MAX_FILE_NUMBER);
    Ok(known.ok_or(LogError::InvalidAttribute { attribute: names::SUBFILE_COUNT, of: names::OF_GROUP })?)
}

/// How subfiles are opened to be read.
#[derive(Debug)]
pub struct SubfileOpener<'a> {
    /// Where they are; `None` if that is not known.
    pub files: Option<&'a dyn MultiWriterFiles>,
    /// The mode in which they are opened.
    pub mode: Mode,
    /// Whether what their index tables have is read from there.
    pub reads_table: bool,
    /// The subfile to which the session appends, until a state has it.
    pub own_file: Option<LogFile>,
}

impl<'a> SubfileOpener<'a> {
    /// Those of other writers, which may be at work.
    pub fn for_following(files: Option<&'a dyn MultiWriterFiles>) -> Self {
        SubfileOpener { files, mode: Mode::SwmrRead, reads_table: false, own_file: None }
    }

    /// Adds the subfiles of a main file that `state` does not have. What was read of them waits.
    ///
    /// # Errors
    /// If one is missing or belongs to another file; errors of the stores beneath.
    pub fn add_unopened_subfiles(
        &mut self,
        main: &dyn Store,
        group: ObjectId,
        state: &mut LogState,
        limit: AllocationLimit,
    ) -> Result<()> {
        let (known, count) = (state.files().len() as u32, subfile_count(main, group)?);
        for number in known..=count {
            match self.own_file.take_if(|own| own.number == number) {
                Some(own) => state.add_own_file(own, limit)?,
                None => state.add_file(self.open_numbered(main, group, (number, count), limit)?, limit)?,
            }
        }
        Ok(())
    }

    /// The log of the subfile with a number of a main file, which has so many.
    ///
    /// # Errors
    /// As [`SubfileOpener::add_unopened_subfiles`].
    pub fn open_numbered(
        &self,
        main: &dyn Store,
        group: ObjectId,
        (number, count): (u32, u32),
        limit: AllocationLimit,
    ) -> Result<LogFile> {
        let file_id = log_group_attribute_or_zero(main, group, names::FILE_ID)?;
        let missing =
            || LogError::MissingPart(format!("subfile {number} of {count}: the location of the file is not known"));
        let store = self.files.ok_or_else(missing)?.open_subfile(number, self.mode, false);
        let store = store.map_err(|error| subfile_error(number, count, error))?;
        let group = subfile_log_group(number, &*store, file_id)?;
        LogFile::open(number, store, group, self.reads_table, limit)
    }
}

/// The group of the log in a subfile of the main file that has this identity.
///
/// # Errors
/// If it has no log, or belongs to another file; errors of the store beneath.
pub fn subfile_log_group(number: u32, store: &dyn Store, file_id: i64) -> Result<ObjectId> {
    let group = log_group(store)?.ok_or_else(|| LogError::MissingPart(format!("log in subfile {number}")))?;
    if log_group_attribute_or_zero(store, group, names::FILE_ID)? != file_id {
        return Err(LogError::ForeignSubfile(number).into());
    }
    Ok(group)
}

/// The error of a subfile that cannot be opened, with its number.
pub fn subfile_error(number: u32, count: u32, error: OpenError) -> Error {
    match into_model_error(error) {
        Error::Store(error) => Error::store(error.kind.clone(), LogError::OpenSubfile { number, count, source: error }),
        other => other,
    }
}

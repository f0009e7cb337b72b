//! The state of a file, and the repair of a file whose writer has died.

use h5live_model::{self as model, Connector, Location, Maintenance, OpenError, ResolvedLocation};

use crate::{
    FileDiagnosis, FileOpenState, Options, ReclaimReport, RepairReport, Result, StoreCheckOptions, StoreCheckReport,
};

/// Finds out what state the file at a location is in (closed, being written, or left by a writer that died), without
/// changing it.
///
/// # Errors
/// [`ErrorKind::Open`](crate::ErrorKind::Open) if it cannot be read, or is no HDF5 file.
pub fn diagnose(location: impl Into<Location>) -> Result<FileDiagnosis> {
    Options::default().diagnose(location)
}

/// Repairs a file whose writer has died. Afterwards the file is as if its writer had closed it: data that was never
/// published is cut off, changes that belong together agree, the superblock announces the real end of the file, and its
/// flags name no writer. Chunks that were not full, and are stored without the filters of their dataset, go through them. h5live does not need this, because it does the same when it next writes the file. But other
/// programs may refuse the file until then. For files of libhdf5 it also does the work of `h5clear`.
///
/// A file that needs no repair is left unchanged.
///
/// # Errors
/// [`ErrorKind::Open`](crate::ErrorKind::Open) if a process has the file open, or if structures are missing.
pub fn repair(location: impl Into<Location>) -> Result<RepairReport> {
    Options::default().repair(location)
}

/// Repairs a file, and deletes the objects to which no path leads: groups that lead to each other in a circle of hard links,
/// and what is only in them. [`Group::unlink`](crate::Group::unlink) leaves these, as libhdf5 does. Object references
/// to them lead nowhere afterwards.
///
/// Their space is given back as that of any deleted object: the file becomes shorter if it is at the end, and a file that
/// keeps a list of its free space has it there. Otherwise a copy of the file is smaller.
///
/// # Errors
/// [`ErrorKind::Open`](crate::ErrorKind::Open) if a process has the file open, if a structure cannot be read, or if the
/// file has shared messages. Nothing has changed then.
pub fn repair_and_reclaim_unreachable(location: impl Into<Location>) -> Result<ReclaimReport> {
    Options::default().repair_and_reclaim_unreachable(location)
}

/// Checks whether everything in the store at a location is accounted for. The store is not changed, and another process
/// may write it meanwhile. Native files can be checked so, key-value stores, domains of object stores, and the logs of files
/// with a log. Of a file with a log, the log is checked, and not the file that has it: the command `h5live check` does both.
///
/// # Errors
/// [`ErrorKind::Open`](crate::ErrorKind::Open) if it cannot be read, or is a store of another kind.
pub fn check(location: impl Into<Location>, what: StoreCheckOptions) -> Result<StoreCheckReport> {
    Options::default().check(location, what)
}

impl Options {
    /// As [`diagnose`](crate::diagnose()), with these options.
    ///
    /// # Errors
    /// As [`diagnose`](crate::diagnose()).
    pub fn diagnose(&self, location: impl Into<Location>) -> Result<FileDiagnosis> {
        let at = self.resolve_location(&location.into())?;
        diagnose_at(&at).map_err(|error| crate::Error::new(&at.location().to_string(), None, error))
    }

    /// As [`repair_and_reclaim_unreachable`](crate::repair_and_reclaim_unreachable()), with these options.
    ///
    /// # Errors
    /// As [`repair_and_reclaim_unreachable`](crate::repair_and_reclaim_unreachable()).
    pub fn repair_and_reclaim_unreachable(&self, location: impl Into<Location>) -> Result<ReclaimReport> {
        let at = self.resolve_location(&location.into())?;
        let reclaim = || {
            let maintenance = self.checked_upkeep(&at)?;
            self.with_request(&at, |how| maintenance.repair_and_reclaim_unreachable(at.location(), how))
        };
        reclaim().map_err(|error| crate::Error::new(&at.location().to_string(), None, error))
    }

    /// As [`check`](crate::check()), with these options.
    ///
    /// # Errors
    /// As [`check`](crate::check()).
    pub fn check(&self, location: impl Into<Location>, what: StoreCheckOptions) -> Result<StoreCheckReport> {
        let at = self.resolve_location(&location.into())?;
        let check = || {
            let maintenance = self.checked_upkeep(&at)?;
            self.with_request(&at, |how| maintenance.check(at.location(), how, &what))
        };
        check().map_err(|error| crate::Error::new(&at.location().to_string(), None, error))
    }

    /// What is done to a store as a whole, if it has the options that were set for it.
    fn checked_upkeep<'a>(&self, at: &'a ResolvedLocation) -> Result<&'a dyn Maintenance, OpenError> {
        self.refuse_native_options(&**at.connector())?;
        required_upkeep(&**at.connector())
    }

    pub(crate) fn repair_at(&self, at: &ResolvedLocation) -> Result<RepairReport, OpenError> {
        let maintenance = self.checked_upkeep(at)?;
        self.with_request(at, |how| maintenance.repair(at.location(), how))
    }
}

pub(crate) fn diagnose_at(at: &ResolvedLocation) -> Result<FileDiagnosis, OpenError> {
    required_upkeep(&**at.connector())?.diagnose(at.location())
}

fn required_upkeep(connector: &dyn Connector) -> Result<&dyn Maintenance, OpenError> {
    let none = || model::Error::Unsupported("a diagnosis or repair of such a store").into();
    connector.maintenance().ok_or_else(none)
}

/// The known state of the writer of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriterState {
    /// It is at work, and others may follow it.
    Live,
    /// There is none, or none that can be followed.
    Other,
}

/// Repairs a file whose writer has died, if that is possible.
pub(crate) fn try_recover(at: &ResolvedLocation, options: &Options) -> WriterState {
    match diagnose_at(at).map(|found| found.open_state) {
        Ok(FileOpenState::OpenForWriting { live: true, .. }) => WriterState::Live,
        Ok(FileOpenState::Abandoned { .. }) => {
            // A reader does not need the repair. Another process may just be doing it.
            let _ = options.repair_at(at);
            WriterState::Other
        }
        // Opening the file returns the same error. A store without maintenance needs no repair.
        _ => WriterState::Other,
    }
}

//! New files and other new stores that a command makes.

#[cfg(feature = "hsds")]
use h5live_hsds::LastOpenedStore;

use h5live::{File, Location, OpenError, Options};
use h5live_output::TempOutputFile;
#[cfg(feature = "kv")]
use h5live_output::TempStoreFolder;

#[cfg(feature = "hsds")]
use crate::draft_domain::{DraftDomain, options_tracking_opened, publish_domain};
use crate::error::{Error, Result};
use crate::open;
use crate::temp_output::ForceArgs;
#[cfg(feature = "remote")]
use crate::upload::UploadOutput;

/// The option of a log with which a session is one of many writers. Such a session makes files beside the one that is to
/// take its place.
const JOIN: &str = "join";

/// Where a store is until it is complete.
#[derive(Debug)]
enum Unfinished {
    File(TempOutputFile),
    /// A key-value store.
    #[cfg(feature = "kv")]
    Folder(TempStoreFolder),
    /// A domain of an object store, which is a draft.
    #[cfg(feature = "hsds")]
    Domain(DraftDomain),
    /// A native file that is written to an object store.
    #[cfg(feature = "remote")]
    Upload(UploadOutput),
}

/// A new store. A file, a domain of an object store, or a key-value store in a folder, appears under its name when it is
/// complete; another store is there from the start.
#[derive(Debug)]
pub struct NewOutput {
    location: Location,
    /// The options of the location, which the unfinished file needs too.
    settings: Vec<(String, String)>,
    unfinished: Option<Unfinished>,
    is_native: bool,
    force: ForceArgs,
}

impl NewOutput {
    /// A new store at a location.
    ///
    /// # Errors
    /// [`Error::OpenFailed`] if no store can open the location; as [`TempOutputFile::reserve_for`].
    pub fn prepare_for(location: &Location, force: ForceArgs) -> Result<Self> {
        let is_native = open::new_native_file_path(location)?.is_some();
        let unfinished = match open::any_file_path(location)? {
            Some(path) => Some(Unfinished::File(TempOutputFile::reserve_for(&path, force.replaces_file)?)),
            None => match folder_for(location, force)? {
                Some(folder) => Some(folder),
                None => match upload_for(location, force)? {
                    Some(upload) => Some(upload),
                    None => domain_at(location)?,
                },
            },
        };
        #[cfg(feature = "remote")]
        let is_native = is_native || matches!(unfinished, Some(Unfinished::Upload(_)));
        let settings = match (location, &unfinished) {
            // They say how the object store is reached.
            #[cfg(feature = "remote")]
            (_, Some(Unfinished::Upload(_))) => Vec::new(),
            // They are in the location that is opened.
            #[cfg(feature = "hsds")]
            (_, Some(Unfinished::Domain(_))) => Vec::new(),
            (Location::Url(url), Some(_)) if !is_path(location) => {
                let wrong = |source| Error::OpenFailed { location: location.to_string(), source: Box::new(source) };
                let settings = url.query_settings().map_err(wrong)?;
                settings.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
            }
            _ => Vec::new(),
        };
        Ok(NewOutput { location: location.clone(), settings, unfinished, is_native, force })
    }

    /// Whether it is a native file.
    pub fn is_native(&self) -> bool {
        self.is_native
    }

    /// Whether all changes are in memory until they are flushed. Nobody else sees the store before it takes its place, so
    /// that it may be flushed at any time.
    pub fn buffers_until_flush(&self) -> bool {
        match &self.unfinished {
            #[cfg(feature = "kv")]
            Some(Unfinished::Folder(_)) => true,
            _ => false,
        }
    }

    /// Makes the store.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn create_file(&self, options: Options) -> Result<File> {
        let in_place =
            |options: Options| if self.force.replaces_file { options.create() } else { options.create_new() };
        let unfinished = match &self.unfinished {
            None => return Ok(in_place(options).open(&self.location)?),
            #[cfg(feature = "hsds")]
            Some(Unfinished::Domain(draft)) => {
                return Ok(options_tracking_opened(in_place(options), draft.last_opened()).open(&self.location)?);
            }
            Some(unfinished) => unfinished,
        };
        if self.settings.iter().any(|(name, _)| name == JOIN) {
            let text = "a new file is complete before others may join it: leave out `join`".to_owned();
            let source = Box::new(OpenError::InvalidLocation(text));
            return Err(Error::OpenFailed { location: self.location.to_string(), source });
        }
        let set = |options: Options, (name, value): &(String, String)| options.setting(name, value);
        let place = match unfinished {
            Unfinished::File(file) => {
                let place = open::location_of_same_kind(&self.location, file.temp_path())?;
                place.unwrap_or_else(|| Location::Path(file.temp_path().to_owned()))
            }
            #[cfg(feature = "kv")]
            Unfinished::Folder(folder) => open::key_value_location_of_folder(folder.temp_path())?,
            #[cfg(feature = "remote")]
            Unfinished::Upload(upload) => Location::Path(upload.local_path()),
            #[cfg(feature = "hsds")]
            Unfinished::Domain(_) => self.location.clone(),
        };
        Ok(self.settings.iter().fold(options, set).create().open(place)?)
    }

    /// The sessions on a new domain; `None` if it is another store.
    #[cfg(feature = "hsds")]
    pub fn draft_domain_session(&self) -> Option<&LastOpenedStore> {
        match &self.unfinished {
            Some(Unfinished::Domain(draft)) => Some(draft.last_opened()),
            _ => None,
        }
    }

    /// Closes the store, which was opened here, and puts it in its place.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::OpenFailed`]; as [`TempOutputFile::persist`].
    pub fn persist(self, file: File) -> Result<()> {
        #[cfg(feature = "hsds")]
        if let Some(Unfinished::Domain(draft)) = &self.unfinished {
            // What cannot be written out is an error before anybody sees the domain.
            file.flush()?;
            publish_domain(draft.last_opened(), &self.location)?;
        }
        file.close()?;
        match self.unfinished {
            Some(Unfinished::File(file)) => Ok(file.persist()?),
            #[cfg(feature = "kv")]
            Some(Unfinished::Folder(folder)) => Ok(folder.persist()?),
            #[cfg(feature = "remote")]
            Some(Unfinished::Upload(upload)) => upload.persist(),
            #[cfg(feature = "hsds")]
            Some(Unfinished::Domain(_)) => Ok(()),
            None => Ok(()),
        }
    }
}

/// Where a key-value store at a location is made; `None` if it is another store.
#[cfg(feature = "kv")]
fn folder_for(location: &Location, force: ForceArgs) -> Result<Option<Unfinished>> {
    let folder = open::folder_of_key_value_store(location)?;
    let created =
        folder.map(|folder| TempStoreFolder::reserve_for(&folder, force.replaces_file).map(Unfinished::Folder));
    Ok(created.transpose()?)
}

#[cfg(not(feature = "kv"))]
fn folder_for(_: &Location, _: ForceArgs) -> Result<Option<Unfinished>> {
    Ok(None)
}

/// Where a file on an object store is made; `None` if it is another store.
#[cfg(feature = "remote")]
fn upload_for(location: &Location, force: ForceArgs) -> Result<Option<Unfinished>> {
    Ok(UploadOutput::prepare_for(location, force)?.map(Unfinished::Upload))
}

#[cfg(not(feature = "remote"))]
fn upload_for(_: &Location, _: ForceArgs) -> Result<Option<Unfinished>> {
    Ok(None)
}

/// A new domain, if that is what a location names.
#[cfg(feature = "hsds")]
fn domain_at(location: &Location) -> Result<Option<Unfinished>> {
    let is_domain = open::is_hsds_location(location)?;
    Ok(is_domain.then(|| Unfinished::Domain(DraftDomain::prepare_with_signal_cleanup(location))))
}

#[cfg(not(feature = "hsds"))]
fn domain_at(_: &Location) -> Result<Option<Unfinished>> {
    Ok(None)
}

/// Whether a location is a path although it looks like a URL, as `run:1.h5` does.
fn is_path(location: &Location) -> bool {
    let found = Options::built_in_connectors().resolve(location, h5live::Mode::CreateNew);
    found.is_ok_and(|found| found.location().as_path().is_some())
}

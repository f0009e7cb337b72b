//! Opening files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use h5live::filters::RegistryFilterEngine;
use h5live::{Dataset, File, LinkedFilePolicy, Location, MissingSourcePolicy, Mode, Options};
use h5live_native::NativeConnector;

use crate::error::{Error, Result};
use crate::missing_sources;
use crate::model::{AllocationLimit, Capabilities, Connector, ResolvedLocation};
use crate::number_arg::byte_count;
use crate::value::Value;

/// The name of the connector of files with a log.
const LOG: &str = "log";

/// What the command line says of every file that is opened.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Options of every command")]
pub struct OpenArgs {
    /// Most bytes that are allocated at once for what a file says, such as 2GiB; by default a quarter of the machine's memory,
    /// and 256 MiB at least. Larger elements and chunks with filters are errors
    #[arg(long, global = true, value_name = "SIZE", value_parser = byte_count)]
    max_allocation: Option<u64>,
    /// An option of every store that is opened, as in the URL STORE:FILE?NAME=VALUE; `h5live stores` lists them. May be
    /// given several times
    #[arg(long, global = true, value_name = "NAME=VALUE", value_parser = setting)]
    with: Vec<(String, String)>,
    /// Write or repair a native file that is marked as being written, where the system does not tell this user whether its
    /// writer lives. Two writers at once destroy the file: only if you know that no process writes it
    #[arg(long, global = true)]
    take_over: bool,
    /// Where links in files may lead: never (to no other file), same-origin (the default: to files of the same kind,
    /// and of the same server), any
    #[arg(long, global = true, value_name = "WHERE", value_parser = links)]
    links: Option<LinkedFilePolicy>,
    /// What elements of a virtual dataset are whose source is not there: fill (the default: fill values; they are told of,
    /// and the exit code is 1), error. A source that is there and cannot be read is always an error
    #[arg(long, global = true, value_name = "WHAT", value_parser = missing_sources::parse)]
    missing_sources: Option<MissingSourcePolicy>,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("an option is NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn links(text: &str) -> Result<LinkedFilePolicy, String> {
    match text {
        "never" => Ok(LinkedFilePolicy::Never),
        "same-origin" => Ok(LinkedFilePolicy::SameOrigin),
        "any" => Ok(LinkedFilePolicy::Any),
        _ => Err("allowed are never, same-origin and any".to_owned()),
    }
}

/// The options of the command line.
static ARGS: OnceLock<OpenArgs> = OnceLock::new();

/// Sets how files are opened from now on.
pub fn set_args_once(args: OpenArgs) {
    let _ = ARGS.set(args);
}

/// Options with what the command line says of all files.
pub fn command_line_options() -> Options {
    let options = Options::default().on_missing_source(missing_sources::record_missing_source);
    let Some(args) = ARGS.get() else { return options };
    let mut options = options.linked_file_policy(args.links.unwrap_or_default());
    options = options.missing_sources(args.missing_sources.unwrap_or_default());
    if let Some(bytes) = args.max_allocation {
        options = options.max_allocation(bytes);
    }
    if args.take_over {
        options = options.take_over(true);
    }
    args.with.iter().fold(options, |options, (name, value)| options.setting(name, value))
}

/// The store at a location.
///
/// # Errors
/// [`Error::OpenFailed`] if no store can open it.
pub fn resolve(location: &Location) -> Result<ResolvedLocation> {
    let found = Options::built_in_connectors().resolve(location, Mode::Read);
    found.map_err(|source| Error::OpenFailed { location: location.to_string(), source: Box::new(source) })
}

fn native_path(at: &ResolvedLocation) -> Result<Option<PathBuf>> {
    if at.connector().name() != NativeConnector.name() {
        return Ok(None);
    }
    let path = NativeConnector::path(at.location());
    path.map(Some).map_err(|source| Error::OpenFailed { location: at.location().to_string(), source: Box::new(source) })
}

/// The path of the native file at a location; `None` if it is a location of another store.
///
/// # Errors
/// [`Error::OpenFailed`] if no store can open it.
pub fn native_file_path(location: &Location) -> Result<Option<PathBuf>> {
    native_path(&resolve(location)?)
}

/// How a location is found for a new store. A new file on a path is native, also where there is a file with a log now. What
/// is in a folder is replaced by a store of the same kind.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_new(location: &Location) -> Result<ResolvedLocation> {
    let at = resolve(location)?;
    if at.location().as_path().is_none() || at.file_path().is_none() {
        return Ok(at);
    }
    let found = Options::built_in_connectors().resolve(location, Mode::CreateNew);
    found.map_err(|source| Error::OpenFailed { location: location.to_string(), source: Box::new(source) })
}

/// The path of the new native file at a location; `None` if it is a location of another store.
///
/// # Errors
/// As [`native_file_path`].
pub fn new_native_file_path(location: &Location) -> Result<Option<PathBuf>> {
    native_path(&resolve_new(location)?)
}

/// The path of the file with a log at a location; `None` if it is a location of another store.
///
/// # Errors
/// As [`native_file_path`].
pub fn log_store_file_path(location: &Location) -> Result<Option<PathBuf>> {
    let at = resolve(location)?;
    Ok(if at.connector().name() == LOG { at.file_path() } else { None })
}

/// What the store at a location can do at most.
///
/// # Errors
/// As [`native_file_path`].
pub fn new_store_capabilities(location: &Location) -> Result<Capabilities> {
    Ok(h5live::max_file_capabilities(&**resolve_new(location)?.connector()))
}

/// Whether the store at a location is no file, so that it is checked by its own code, if it is.
///
/// # Errors
/// As [`native_file_path`].
pub fn is_checkable_non_file(location: &Location) -> Result<bool> {
    let at = resolve(location)?;
    Ok(at.file_path().is_none() && at.connector().maintenance().is_some())
}

/// The file on an object store at a location, and how it is reached; `None` if it is a location of another store.
///
/// # Errors
/// [`Error::OpenFailed`].
#[cfg(feature = "remote")]
pub fn remote_file_and_options(location: &Location) -> Result<Option<(h5live_remote::RemoteLocation, h5live::Remote)>> {
    use std::any::Any;
    let at = resolve(location)?;
    if at.connector().name() != h5live_remote::RemoteConnector.name() {
        return Ok(None);
    }
    let wrong = |source| Error::OpenFailed { location: location.to_string(), source: Box::new(source) };
    let given = ARGS.get().map(|args| args.with.as_slice()).unwrap_or_default();
    let options = given.iter().fold(Options::default(), |options, (name, value)| options.setting(name, value));
    let options = options.store_options(&at).map_err(wrong)?;
    let options: &dyn Any = &*options;
    let file = h5live_remote::RemoteLocation::of(at.location()).map_err(wrong)?;
    Ok(Some((file, options.downcast_ref::<h5live::Remote>().cloned().unwrap_or_default())))
}

/// The folder of the key-value store at a location; `None` if it is a location of another store.
///
/// # Errors
/// As [`native_file_path`].
#[cfg(feature = "kv")]
pub fn folder_of_key_value_store(location: &Location) -> Result<Option<PathBuf>> {
    let at = resolve(location)?;
    if at.connector().name() != h5live_kv::LmdbConnector.name() {
        return Ok(None);
    }
    let folder = h5live_kv::LmdbConnector::folder(at.location());
    folder.map(Some).map_err(|source| Error::OpenFailed { location: location.to_string(), source: Box::new(source) })
}

/// The location of a key-value store in a folder.
///
/// # Errors
/// [`Error::Io`] if the name of the folder cannot be part of a location.
#[cfg(feature = "kv")]
pub fn key_value_location_of_folder(folder: &Path) -> Result<Location> {
    let text = folder.to_str().ok_or_else(|| Error::Io {
        path: folder.to_owned(),
        source: std::io::Error::new(std::io::ErrorKind::InvalidInput, "its name is not UTF-8"),
    })?;
    Ok(h5live::model::Url::literal(h5live_kv::LmdbConnector.name(), text).into())
}

#[cfg(feature = "hsds")]
fn is_in_object_store(at: &ResolvedLocation) -> bool {
    let name = at.connector().name();
    #[cfg(feature = "hsds-clouds")]
    let is_on_cloud = name == h5live_hsds::HsdsCloudConnector::default().name();
    #[cfg(not(feature = "hsds-clouds"))]
    let is_on_cloud = false;
    is_on_cloud || name == h5live_hsds::HsdsFolderConnector::default().name()
}

/// Whether a location is that of a domain of an object store.
///
/// # Errors
/// As [`native_file_path`].
#[cfg(feature = "hsds")]
pub fn is_hsds_location(location: &Location) -> Result<bool> {
    Ok(is_in_object_store(&resolve(location)?))
}

/// Calls `act` with the location of a domain of an object store.
///
/// # Errors
/// [`Error::OpenFailed`] if it is none, and those of `act`.
#[cfg(feature = "hsds")]
pub fn with_hsds_location<T>(
    location: &Location,
    act: impl FnOnce(&Location) -> Result<T, h5live::OpenError>,
) -> Result<T> {
    let at = resolve(location)?;
    let done = match is_in_object_store(&at) {
        true => act(at.location()),
        false => {
            Err(h5live::OpenError::InvalidLocation("this command needs an object store: hsds:run is one".to_owned()))
        }
    };
    done.map_err(|source| Error::OpenFailed { location: location.to_string(), source: Box::new(source) })
}

/// Calls `read` with the location of a key-value store.
///
/// # Errors
/// [`Error::OpenFailed`] if it is none, and those of `read`.
#[cfg(feature = "kv")]
pub fn with_key_value_location<T>(
    location: &Location,
    read: impl FnOnce(&Location) -> Result<T, h5live::OpenError>,
) -> Result<T> {
    let at = resolve(location)?;
    let read = match at.connector().name() == h5live_kv::LmdbConnector.name() {
        true => read(at.location()),
        false => {
            Err(h5live::OpenError::InvalidLocation("this command needs a key-value store: kv:run is one".to_owned()))
        }
    };
    read.map_err(|source| Error::OpenFailed { location: location.to_string(), source: Box::new(source) })
}

/// The path of the file at a location, whatever store it is; `None` if the store is no file.
///
/// # Errors
/// As [`native_file_path`].
pub fn any_file_path(location: &Location) -> Result<Option<PathBuf>> {
    Ok(resolve(location)?.file_path())
}

/// The path of the file or the folder that is the store at a location, if the files that it names are looked for among
/// its siblings.
///
/// # Errors
/// As [`native_file_path`].
pub fn file_or_folder_path(location: &Location) -> Result<Option<PathBuf>> {
    #[cfg(feature = "kv")]
    if let Some(folder) = folder_of_key_value_store(location)? {
        return Ok(Some(folder));
    }
    any_file_path(location)
}

/// The path of the file at a location, whatever store it is.
///
/// # Errors
/// As [`native_file_path`]; [`Error::NotNativeFile`] if the store is no file.
pub fn require_any_file_path(location: &Location) -> Result<PathBuf> {
    any_file_path(location)?.ok_or_else(|| Error::NotNativeFile { location: location.to_string() })
}

/// The location of a new store like the one at `like`, in another file; `None` if such stores are no files.
///
/// # Errors
/// As [`native_file_path`].
pub fn location_of_same_kind(like: &Location, path: &Path) -> Result<Option<Location>> {
    Ok(resolve_new(like)?.connector().file_location(path))
}

/// The path of the native file at a location.
///
/// # Errors
/// As [`native_file_path`]; [`Error::NotNativeFile`] if it is a location of another store.
pub fn require_native_file_path(location: &Location) -> Result<PathBuf> {
    let path = native_file_path(location)?.ok_or_else(|| Error::NotNativeFile { location: location.to_string() })?;
    let refused = |source| Error::Io { path: path.clone(), source: std::io::Error::other(source) };
    h5live_swmr::refuse_directory_or_pipe(&path).map_err(refused)?;
    Ok(path)
}

/// Refuses to read this many elements of a dataset if their values need more memory than may be allocated at once.
///
/// # Errors
/// [`Error::Store`] that names the file and the dataset.
pub fn check_value_memory(dataset: &Dataset, elements: u64) -> Result<()> {
    check_memory(dataset, elements.saturating_mul(size_of::<Value>() as u64))
}

/// What may be allocated at once for a length that a file states.
pub fn allocation_limit() -> AllocationLimit {
    AllocationLimit::new(command_line_options().get_max_allocation())
}

/// The filters that are known, for what reads files beside the library.
pub fn filter_engine() -> RegistryFilterEngine {
    RegistryFilterEngine::new(Arc::default(), allocation_limit())
}

/// Refuses to read this many bytes of a dataset if they are more than may be allocated at once.
///
/// # Errors
/// [`Error::Store`] that names the file and the dataset.
pub fn check_memory(dataset: &Dataset, bytes: u64) -> Result<()> {
    let checked = allocation_limit().check(bytes);
    checked.map(drop).map_err(|error| Error::Store {
        file: dataset.file().name().into(),
        path: dataset.path().into(),
        source: error.into(),
    })
}

/// Opens a file to read its present contents, whether another process is writing it or not.
///
/// # Errors
/// [`crate::error::Error::File`] that names the file and the reason.
pub fn for_reading(location: impl Into<Location>) -> Result<File> {
    let location = location.into();
    match command_line_options().read().open(&location) {
        Err(error) if error.is_in_use() => for_following(location),
        opened => Ok(opened?),
    }
}

/// Opens a file that another process may be writing, to follow it.
///
/// # Errors
/// [`crate::error::Error::File`] that names the file and the reason.
pub fn for_following(location: impl Into<Location>) -> Result<File> {
    Ok(command_line_options().swmr_read().open(location)?)
}

//! How a file is opened.

mod common;
mod native;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use h5live_filters::{Registry, RegistryFilterEngine};
use h5live_model::{
    AllocationLimit, ConnectorOptions, ConnectorRegistry, Location, Mode, ObjectKindSpec, ObjectSpec, OpenError,
    OpenRequest, ResolvedLocation, SessionInfo, SettingDescription, Settings,
};

use self::common::{CommonOptions, DEFAULT_CHUNK_CACHE_BYTES};
use crate::convert::ConversionPolicy;
use crate::link_rules::{DEFAULT_MAX_LINKED_FILES, LinkFilter, LinkedFilePolicy};
use crate::machine_memory::default_max_allocation;
use crate::memory_budget::{large_share, metadata_share};
use crate::missing_sources::{MissingSource, MissingSourceHook, MissingSourcePolicy};
use crate::publish::PublishInterval;
use crate::{Result, open};

/// The option of stores that says how many bytes of metadata are kept in memory.
const METADATA_CACHE: &str = "metadata_cache";

/// Options for opening a file. Made by [`File::options`](crate::File::options).
///
/// ```no_run
/// use h5live::{File, Locking};
///
/// let file = File::options().swmr_read().locking(Locking::BestEffort).open("run.h5")?;
/// # Ok::<(), h5live::Error>(())
/// ```
#[derive(Clone)]
pub struct Options {
    pub(crate) mode: Mode,
    pub(crate) root: ObjectSpec,
    pub(crate) chunk_cache_bytes: usize,
    pub(crate) append_buffer_bytes: usize,
    pub(crate) transfer_memory_bytes: usize,
    pub(crate) memory: u64,
    pub(crate) max_allocation: AllocationLimit,
    pub(crate) filters: Arc<Registry>,
    pub(crate) publications: Option<String>,
    pub(crate) publish_rows: Option<u64>,
    pub(crate) publish_time: Option<Duration>,
    pub(crate) recover: bool,
    pub(crate) wait_timeout: Option<Duration>,
    pub(crate) conversion: ConversionPolicy,
    pub(crate) links: LinkedFilePolicy,
    pub(crate) link_filter: Option<LinkFilter>,
    pub(crate) raw_files: bool,
    pub(crate) missing_sources: MissingSourcePolicy,
    pub(crate) on_missing_source: Option<MissingSourceHook>,
    pub(crate) max_linked_files: usize,
    pub(crate) connectors: Arc<ConnectorRegistry>,
    /// At most one for each connector.
    typed_options: Vec<Arc<dyn ConnectorOptions>>,
    /// Options of the location that is opened.
    settings: Settings,
    /// The options of native files that were set by methods.
    native_options_set: Vec<&'static str>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            mode: Mode::Read,
            root: ObjectSpec::group(),
            chunk_cache_bytes: DEFAULT_CHUNK_CACHE_BYTES,
            append_buffer_bytes: 64 << 20,
            transfer_memory_bytes: 64 << 20,
            memory: u64::MAX,
            max_allocation: AllocationLimit::new(default_max_allocation()),
            filters: Arc::default(),
            publications: None,
            publish_rows: None,
            publish_time: None,
            recover: false,
            wait_timeout: None,
            conversion: ConversionPolicy::default(),
            links: LinkedFilePolicy::default(),
            link_filter: None,
            raw_files: true,
            missing_sources: MissingSourcePolicy::default(),
            on_missing_source: None,
            max_linked_files: DEFAULT_MAX_LINKED_FILES,
            connectors: open::built_in(),
            typed_options: Vec::new(),
            settings: Settings::default(),
            native_options_set: Vec::new(),
        }
    }
}

impl Options {
    /// Reads: [`Mode::Read`].
    pub fn read(self) -> Self {
        self.mode(Mode::Read)
    }

    /// Reads and writes a file that exists: [`Mode::Write`].
    pub fn write(self) -> Self {
        self.mode(Mode::Write)
    }

    /// Creates a new file, and replaces an existing one: [`Mode::Create`].
    pub fn create(self) -> Self {
        self.mode(Mode::Create)
    }

    /// Creates a new file: [`Mode::CreateNew`].
    pub fn create_new(self) -> Self {
        self.mode(Mode::CreateNew)
    }

    /// Reads while another process writes: [`Mode::SwmrRead`].
    pub fn swmr_read(self) -> Self {
        self.mode(Mode::SwmrRead)
    }

    /// Writes while other processes read: [`Mode::SwmrWrite`].
    pub fn swmr_write(self) -> Self {
        self.mode(Mode::SwmrWrite)
    }

    /// Sets the access mode (default: read).
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the description of the root group of a new file: whether the creation order of its links and attributes is
    /// stored, and so on. Descriptions of datasets and types are ignored.
    pub fn root(mut self, root: ObjectSpec) -> Self {
        if let ObjectKindSpec::Group(_) = root.body {
            self.root = root;
        }
        self
    }

    /// Sets the bytes of decoded chunks that are kept for later reads of their other parts (default: 32 MiB).
    pub fn chunk_cache_bytes(mut self, bytes: usize) -> Self {
        self.chunk_cache_bytes = bytes;
        self
    }

    /// Sets the bytes of a dataset that are kept until the next flush, or until their chunk is full (default: 64 MiB).
    pub fn append_buffer_bytes(mut self, bytes: usize) -> Self {
        self.append_buffer_bytes = bytes;
        self
    }

    /// Sets the bytes that one read or write may use beside the caller's buffer and the caches, while several threads
    /// decode or encode chunks (default: 64 MiB). Large chunks are worked on fewer at a time, but always at least one.
    pub fn transfer_memory_bytes(mut self, bytes: usize) -> Self {
        self.transfer_memory_bytes = bytes;
        self
    }

    /// Sets the bytes that files may take together for what can be stored or read again (default: no limit but those of the
    /// parts). All files of the process that are opened with the same number share them: a quarter for decoded chunks, a
    /// quarter for elements that wait to be stored, a quarter for one transfer, and an eighth for the metadata of each
    /// file. Beside that, every open dataset takes some kilobytes, and a chunk that must be in memory as a whole its size.
    ///
    /// Nothing is refused when they are used up. Elements are then stored with each write, not when their chunk is full, and
    /// chunks are decoded again. [`File::stats`](crate::File::stats) says how often
    /// ([`Stats::early_stores`](h5live_model::Stats::early_stores)).
    ///
    /// ```
    /// use h5live::File;
    ///
    /// let file = File::options().memory(64 << 20).create().open_image(Vec::new())?;
    /// # Ok::<(), h5live::Error>(())
    /// ```
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets the most bytes that are allocated at once for a length that a file or a description states (default: a quarter
    /// of the machine's memory where the system says it, and 256 MiB at least). This limits structures of the file, elements, and chunks that must be in memory as a whole because of
    /// their filters. The buffers of the caller do not count. Larger data is read and written in pieces. Where that is
    /// impossible, the error is [`ErrorKind::Allocation`](crate::ErrorKind::Allocation), or has it as its cause. So no
    /// file can make a program run out of memory.
    ///
    /// ```
    /// use h5live::{ErrorKind, File, Options};
    ///
    /// let file = Options::default().max_allocation(1 << 20).create().open_image(Vec::new())?;
    /// let data = file.new_dataset::<u8>().shape(&[4 << 20]).chunk_shape(&[2 << 20]).deflate(1).create("data")?;
    /// let error = data.write_slice(0..1, &[1u8]).unwrap_err();
    /// assert!(matches!(error.kind(), ErrorKind::Allocation(_)));
    /// # Ok::<(), h5live::Error>(())
    /// ```
    pub fn max_allocation(mut self, bytes: u64) -> Self {
        self.max_allocation = AllocationLimit::new(bytes);
        self
    }

    /// Sets what is done with values that the other type does not have when elements, attributes and fill values are
    /// read and written (default: [`ConversionPolicy::Checked`], an error).
    pub fn conversion(mut self, conversion: ConversionPolicy) -> Self {
        self.conversion = conversion;
        self
    }

    /// Sets the registered filters (default: all built-in ones). A dataset with an unknown filter is opened and listed
    /// all the same. Reading it is [`ErrorKind::Filter`](crate::ErrorKind::Filter).
    ///
    /// ```
    /// use h5live::File;
    /// use h5live::filters::{DecodeOutcome, EncodeOutcome, FilterFault, Filter, Registry};
    /// use h5live::model::FilterSpec;
    ///
    /// /// Turns every bit over.
    /// struct Inverted;
    ///
    /// impl Filter for Inverted {
    ///     fn id(&self) -> u16 {
    ///         300
    ///     }
    ///
    ///     fn name(&self) -> &str {
    ///         "inverted"
    ///     }
    ///
    ///     fn decode(&self, _: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutcome, FilterFault> {
    ///         let place = output.get_mut(..input.len()).ok_or(FilterFault::TooLarge { limit: 0 })?;
    ///         place.iter_mut().zip(input).for_each(|(to, from)| *to = !from);
    ///         Ok(DecodeOutcome::Decoded(input.len()))
    ///     }
    ///
    ///     fn encode(&self, _: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault> {
    ///         output.extend(input.iter().map(|byte| !byte));
    ///         Ok(EncodeOutcome::Encoded)
    ///     }
    /// }
    ///
    /// let mut filters = Registry::default();
    /// filters.register(Inverted);
    /// let path = std::env::temp_dir().join(format!("inverted-{}.h5", std::process::id()));
    /// let file = File::options().create().filters(filters).open(&path)?;
    /// let inverted = FilterSpec { id: 300, ..FilterSpec::default() };
    /// let data = file.new_dataset::<u8>().shape(&[3]).chunk_shape(&[3]).filter(inverted).create("data")?;
    /// data.write(&[0u8, 1, 255])?;
    /// assert_eq!(data.read_chunk(&data.stored_chunks()?[0])?, [255, 254, 0]);
    /// assert_eq!(data.read::<u8>()?, [0, 1, 255]);
    /// file.close()?;
    /// assert!(File::open(&path)?.dataset("data")?.read::<u8>().is_err());
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), h5live::Error>(())
    /// ```
    pub fn filters(mut self, filters: Registry) -> Self {
        self.filters = filters.into();
        self
    }

    /// Counts publications in the attribute `publications` (a 64-bit number) of the group at `group_path`. The group is
    /// created if it does not exist. The counter is written after everything that it counts, by one more small write
    /// for each flush. Readers with the same path (or none, if it is `/`) wait for it with
    /// [`File::wait_for_publication`](crate::File::wait_for_publication).
    pub fn publication_counter(mut self, group_path: &str) -> Self {
        self.publications = Some(group_path.into());
        self
    }

    /// Publishes automatically, in addition to the flushes of the program: after a number of rows
    /// ([`PublishInterval::DatasetRows`]), or at regular times ([`PublishInterval::Time`]). Both may be set.
    ///
    /// An error in the background is returned by the next append or flush.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// let file = h5live::File::options().create().publish_every(Duration::from_millis(20)).open("run.h5")?;
    /// # Ok::<(), h5live::Error>(())
    /// ```
    pub fn publish_every(mut self, every: impl Into<PublishInterval>) -> Self {
        match every.into() {
            PublishInterval::DatasetRows(rows) => self.publish_rows = Some(rows.max(1)),
            PublishInterval::Time(time) => self.publish_time = Some(time),
        }
        self
    }

    /// Repairs the file, as [`repair`](crate::repair) does, if its writer has died: before the file is opened for
    /// reading, and when a follower finds that the writer is dead. Other programs, which do not follow, then open the
    /// file at once. Sessions that write do this in any case.
    ///
    /// A file that is opened for reading while its writer lives is followed, if it can be followed
    /// ([`Mode::SwmrRead`]). If the file cannot be repaired, because this process may not write it or others read it,
    /// it is opened as it is. A repair takes a little more than a second if readers may have followed the dead writer.
    ///
    /// ```no_run
    /// let file = h5live::File::options().swmr_read().recover(true).open("run.h5")?;
    /// # Ok::<(), h5live::Error>(())
    /// ```
    pub fn recover(mut self, recover: bool) -> Self {
        self.recover = recover;
        self
    }

    /// Waits for a file that is not there yet, that is still empty, or that its writer does not let be opened yet, at
    /// most so long. After that, opening fails as it does without this option. [`FileWaiter`](crate::FileWaiter) waits
    /// for something in the file, too.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("run.h5");
    /// # let at = path.clone();
    /// # let writer = std::thread::spawn(move || h5live::File::create(at)?.start_swmr());
    /// let file = h5live::File::options().swmr_read().wait(Duration::from_secs(60)).open(&path)?;
    /// # writer.join().unwrap()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait(mut self, timeout: Duration) -> Self {
        self.wait_timeout = Some(timeout);
        self
    }

    /// The mode.
    pub fn get_mode(&self) -> Mode {
        self.mode
    }

    /// The largest allocation for a length that a file or a description states (bytes).
    pub fn get_max_allocation(&self) -> u64 {
        self.max_allocation.bytes()
    }

    /// Sets the options of one kind of store, typed. They apply to the location that is opened, if it is such a store,
    /// and to such stores at the targets of links. If no connector of that kind is registered, opening is an error.
    ///
    /// ```
    /// use h5live::{File, LibVer, Native};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("run.h5");
    /// let native = Native { libver: LibVer::V18, offset_size: 4, ..Native::default() };
    /// let file = File::options().create().with(native).open(&path)?;
    /// assert_eq!(file.offset_size(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with(mut self, options: impl ConnectorOptions) -> Self {
        self.set_typed(Arc::new(options));
        self
    }

    /// Sets an option of the store that is opened, by name and as a text, like the URL `native:run.h5?name=value`. A
    /// store without such an option refuses to open. Links do not pass the option on.
    ///
    /// ```
    /// use h5live::File;
    ///
    /// let error = File::options().create().setting("speed", "high").open("mem:").unwrap_err();
    /// assert_eq!(error.to_string(), r#"mem:: the store "mem" has no option "speed"; its options are chunk_cache, memory"#);
    /// ```
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.set(name, value);
        self
    }

    /// Sets the registered connectors: the stores that can be opened. The default is [`Options::built_in_connectors`].
    pub fn connectors(mut self, connectors: ConnectorRegistry) -> Self {
        self.connectors = connectors.into();
        self
    }

    /// The connectors that are built in: native files, files in memory (`mem:`), and those of the features that are on. Others can be
    /// added to them.
    pub fn built_in_connectors() -> ConnectorRegistry {
        ConnectorRegistry::clone(&open::built_in())
    }

    /// Sets the allowed targets of external links, sources of virtual datasets and references to other files (default:
    /// [`LinkedFilePolicy::SameOrigin`]).
    pub fn linked_file_policy(mut self, links: LinkedFilePolicy) -> Self {
        self.links = links;
        self
    }

    /// Opens another file to which a link, a virtual dataset or a reference leads only if `is_allowed` says so of its
    /// location, beside what [`Options::linked_file_policy`] says. It is asked before anything is opened. A program that shows files to
    /// others keeps them in a folder by it; [`Options::raw_files`] is the other part of this. A file that is not beside the
    /// one that names it may be in the current folder, as for libhdf5: if `is_allowed` refuses that, the file is not there.
    ///
    /// ```
    /// use h5live::{File, Location};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("run.h5");
    /// let file = File::create(&path)?;
    /// file.root().link_external("other", "other.h5", "/")?;
    /// file.close()?;
    /// let file = File::options().filter_linked_files(|_: &Location| false).open(&path)?;
    /// assert!(file.group("other").unwrap_err().to_string().contains("does not let links lead there"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn filter_linked_files(mut self, is_allowed: impl Fn(&Location) -> bool + Send + Sync + 'static) -> Self {
        self.link_filter = Some(LinkFilter(Arc::new(is_allowed)));
        self
    }

    /// Sets whether elements are read that are in raw files, which a dataset of the file or of a linked file names (default:
    /// yes, as libhdf5). If not, they are [`ErrorKind::RawFilesRefused`](crate::ErrorKind::RawFilesRefused).
    pub fn raw_files(mut self, are_read: bool) -> Self {
        self.raw_files = are_read;
        self
    }

    /// Sets what reading a virtual dataset does where a source is not there (default: [`MissingSourcePolicy::Fill`]).
    pub fn missing_sources(mut self, missing: MissingSourcePolicy) -> Self {
        self.missing_sources = missing;
        self
    }

    /// Calls `each` when elements of a virtual dataset are fill values, or its extent is shorter, because a source is not
    /// there. It may be called more than once for a source, by any thread that reads.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use std::sync::Arc;
    /// use h5live::{File, Selection};
    /// use h5live::model::VirtualSource;
    ///
    /// let missing = Arc::new(AtomicU64::new(0));
    /// let count = missing.clone();
    /// let options = File::options().create().on_missing_source(move |_| drop(count.fetch_add(1, Ordering::Relaxed)));
    /// let file = options.open_image(Vec::new())?;
    /// let all = || Selection::All;
    /// let source = VirtualSource { file: ".".into(), dataset: "/gone".into(), source: all(), target: all() };
    /// let data = file.new_dataset::<u8>().shape(&[3]).virtual_sources(vec![source]).create("data")?;
    /// assert_eq!(data.read::<u8>()?, [0, 0, 0]);
    /// assert_eq!(missing.load(Ordering::Relaxed), 1);
    /// # Ok::<(), h5live::Error>(())
    /// ```
    pub fn on_missing_source(mut self, each: impl Fn(&MissingSource) + Send + Sync + 'static) -> Self {
        self.on_missing_source = Some(MissingSourceHook(Arc::new(each)));
        self
    }

    /// Sets the most other files that are kept open for links, virtual datasets or references (default: 256). Beyond
    /// that, the file that was opened first is closed, and opened again when it is needed.
    pub fn max_open_linked_files(mut self, files: usize) -> Self {
        self.max_linked_files = files;
        self
    }

    /// The first option that says something of how a store is opened that does not hold for one that is open already.
    pub(crate) fn option_unused_by(&self, session: &SessionInfo) -> Option<&'static str> {
        let default = Options::default();
        let given = [
            ("mode", self.mode != default.mode && self.mode != session.mode),
            ("root", self.root != default.root),
            ("with", !self.typed_options.is_empty() && self.native_options_set.is_empty()),
            ("setting", !self.settings.is_empty()),
            ("recover", self.recover != default.recover),
            ("wait", self.wait_timeout != default.wait_timeout),
        ];
        let portable = given.into_iter().find(|(_, given)| *given).map(|(option, _)| option);
        portable.or_else(|| self.native_options_set.first().copied())
    }

    /// The connector for a location.
    pub(crate) fn resolve_location(&self, location: &Location) -> Result<ResolvedLocation> {
        self.connectors.resolve(location, self.mode).map_err(|error| open_error(location, error))
    }

    /// Calls `open` with how the store at a location is to be opened.
    pub(crate) fn with_request<T>(
        &self,
        at: &ResolvedLocation,
        open: impl FnOnce(&OpenRequest<'_>) -> Result<T, OpenError>,
    ) -> Result<T, OpenError> {
        let options = self.store_options(at)?;
        open(&OpenRequest {
            mode: self.mode,
            root: &self.root,
            options: &*options,
            max_allocation: self.max_allocation,
            filter_engine: Arc::new(RegistryFilterEngine::new(self.filters.clone(), self.max_allocation)),
            registry: &self.connectors,
        })
    }

    /// The options that every store has, by name and as texts ([`Options::setting`]), with their defaults.
    pub fn common_settings_with_defaults() -> Vec<(SettingDescription, String)> {
        let options = CommonOptions::default();
        options
            .visible_setting_descriptions()
            .iter()
            .map(|setting| (*setting, options.get(setting.name).unwrap_or_default()))
            .collect()
    }

    /// The options of the store at a location: of its URL, by [`Options::setting`], and typed.
    ///
    /// # Errors
    /// [`OpenError::Setting`] if the store does not have one of them.
    pub fn store_options(&self, at: &ResolvedLocation) -> Result<Box<dyn ConnectorOptions>, OpenError> {
        self.all_options(at, &mut CommonOptions { memory: self.memory, ..CommonOptions::default() })
    }

    fn all_options(
        &self,
        at: &ResolvedLocation,
        common: &mut CommonOptions,
    ) -> Result<Box<dyn ConnectorOptions>, OpenError> {
        let mut options =
            self.connectors.resolve_options(at, &self.typed_options, &self.settings, Some(&mut *common))?;
        let most = metadata_share(common.memory);
        let is_more = |bytes: String| bytes.parse().is_ok_and(|bytes: u64| bytes > most);
        if options.get(METADATA_CACHE).is_some_and(is_more) {
            options.set(METADATA_CACHE, &most.to_string())?;
        }
        Ok(options)
    }

    /// These options, with what a location and [`Options::setting`] say of those that every store has.
    pub(crate) fn with_common_settings(&self, at: &ResolvedLocation) -> Result<Options, OpenError> {
        let mut common = CommonOptions { chunk_cache: self.chunk_cache_bytes as u64, memory: self.memory };
        self.all_options(at, &mut common)?;
        let chunk_cache_bytes = usize::try_from(common.chunk_cache).unwrap_or(usize::MAX);
        Ok(Options { chunk_cache_bytes, memory: common.memory, ..self.clone() })
    }

    /// These options, with no part larger than its share of the memory.
    pub(crate) fn within_memory(self) -> Options {
        let share = large_share(self.memory);
        Options {
            chunk_cache_bytes: self.chunk_cache_bytes.min(share),
            append_buffer_bytes: self.append_buffer_bytes.min(share),
            transfer_memory_bytes: self.transfer_memory_bytes.min(share),
            ..self
        }
    }

    /// These options for a file to which a link leads.
    pub(crate) fn for_linked_file(&self, mode: Mode) -> Options {
        Options { mode, settings: Settings::default(), ..self.clone() }
    }

    fn typed_options<T: ConnectorOptions>(&self) -> Option<&T> {
        let mut options = self.typed_options.iter().map(|options| -> &dyn Any { &**options });
        options.find_map(<dyn Any>::downcast_ref)
    }

    fn set_typed(&mut self, options: Arc<dyn ConnectorOptions>) {
        self.typed_options.retain(|known| known.connector() != options.connector());
        self.typed_options.push(options);
    }
}

pub(crate) fn open_error(location: &Location, error: OpenError) -> crate::Error {
    crate::Error::new(&location.to_string(), None, error)
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Options");
        out.field("mode", &self.mode)
            .field("links", &self.links)
            .field("missing_sources", &self.missing_sources)
            .field("typed", &self.typed_options)
            .field("settings", &self.settings)
            .field("chunk_cache", &self.chunk_cache_bytes);
        out.field("staging", &self.append_buffer_bytes)
            .field("transfer_memory", &self.transfer_memory_bytes)
            .field("memory", &self.memory)
            .field("max_allocation", &self.max_allocation.bytes())
            .field("filters", &self.filters)
            .finish()
    }
}

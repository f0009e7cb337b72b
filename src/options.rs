//! How a file is opened.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use h5live_filters::Registry;
use h5live_model::{AllocationLimit, FileSpace, LibVer, Mode, ObjectBody, ObjectSpec, Session};

use crate::linked_files::LinkedFiles;
use crate::recovery::{self, WriterState};
use crate::{File, PublishInterval, Result, open};

/// Whether files are locked against use by other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Locking {
    /// As the variable `HDF5_USE_FILE_LOCKING` says, which is `TRUE` if it is not set.
    #[default]
    Environment,
    /// Locked; a file system without locks is an error.
    Always,
    /// Locked if the file system can.
    BestEffort,
    /// Not locked.
    Never,
}

/// Options for opening a file. Made by [`File::options`].
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
    pub(crate) locking: Locking,
    pub(crate) libver: LibVer,
    pub(crate) root: ObjectSpec,
    pub(crate) user_block: Vec<u8>,
    pub(crate) grace: Duration,
    pub(crate) reuse_unread: bool,
    pub(crate) headroom: u64,
    pub(crate) file_space: FileSpace,
    pub(crate) mapped: bool,
    pub(crate) offset_size: u32,
    pub(crate) chunk_cache: usize,
    pub(crate) staging: usize,
    pub(crate) memory: usize,
    pub(crate) max_allocation: AllocationLimit,
    pub(crate) filters: Arc<Registry>,
    pub(crate) publications: Option<String>,
    pub(crate) publish_rows: Option<u64>,
    pub(crate) publish_time: Option<Duration>,
    pub(crate) recover: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            mode: Mode::Read,
            locking: Locking::Environment,
            libver: LibVer::default(),
            root: ObjectSpec::group(),
            user_block: Vec::new(),
            grace: Duration::from_secs(5),
            reuse_unread: true,
            headroom: 0,
            file_space: FileSpace::default(),
            mapped: true,
            offset_size: 8,
            chunk_cache: 32 << 20,
            staging: 64 << 20,
            memory: 64 << 20,
            max_allocation: AllocationLimit::default(),
            filters: Arc::default(),
            publications: None,
            publish_rows: None,
            publish_time: None,
            recover: false,
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

    /// Makes a new file in place of what is there: [`Mode::Create`].
    pub fn create(self) -> Self {
        self.mode(Mode::Create)
    }

    /// Makes a new file: [`Mode::CreateNew`].
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

    /// What the session may do; the default is to read.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Whether the file is locked.
    pub fn locking(mut self, locking: Locking) -> Self {
        self.locking = locking;
        self
    }

    /// The oldest release of the HDF5 library that shall be able to read what is written (default: [`LibVer::V110`]).
    pub fn libver(mut self, profile: LibVer) -> Self {
        self.libver = profile;
        self
    }

    /// What the root group of a new file is like: whether the order of its links and attributes is kept, and so on. That
    /// of a dataset or a type does not count.
    pub fn root(mut self, root: ObjectSpec) -> Self {
        if let ObjectBody::Group(_) = root.body {
            self.root = root;
        }
        self
    }

    /// A new file begins with these bytes, which are not HDF5's (a header of another format, say), padded with zeros to 512
    /// or the next power of two.
    pub fn user_block(mut self, bytes: &[u8]) -> Self {
        self.user_block = bytes.into();
        self
    }

    /// How long space of a live file to which nothing leads any more stays as it is (default: 5 s; at least 1 s).
    ///
    /// Nodes of B-trees that were copied, filtered chunks that were replaced, chunks outside of a smaller extent and
    /// deleted objects give their space back; so long after the flush that no longer leads there it is used for something
    /// else. Readers of h5live know by themselves when what they have read may be too old, and read it again. **Readers
    /// of libhdf5 (h5py) do not**: they must refresh every dataset and group that they have open at least once in this
    /// time, or take something else for what was there. For readers that do not, [`Duration::MAX`] never uses space
    /// again; the file then grows with every flush of a dataset with more than one unlimited dimension. Datasets that
    /// are only appended to and have at most one unlimited dimension give nothing back.
    ///
    /// While nobody has the file open there is nobody to wait for, see [`Options::reuse_when_exclusive`].
    pub fn reuse_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Whether such space is used again at once while the system says that nobody else has the file open (default: yes).
    ///
    /// Linux tells that of files on its own file systems (ext4, XFS, Btrfs, tmpfs) to their owner; elsewhere the grace
    /// always holds. Switch it off where something reads the file for others but opens it anew for every look, so that it
    /// goes unseen in between: a web server that answers range requests, or an NFS server of version 3.
    pub fn reuse_when_exclusive(mut self, reuse: bool) -> Self {
        self.reuse_unread = reuse;
        self
    }

    /// Bytes beyond its end that a live file announces (default: none), for readers of libhdf5.
    ///
    /// Such a reader takes the end of the file from when it opened it, and refuses what lies beyond: it follows elements
    /// of fixed size in chunked datasets that were there, and attributes, but neither opens new objects nor reads new
    /// strings. With headroom, it can follow everything that comes to lie within; h5py must reopen a group to see what is
    /// new in it. Readers of h5live need none.
    ///
    /// From [`File::start_swmr`] until it is closed the file is longer by as much, though nothing is stored there. If
    /// its writer dies, it stays so until h5live next writes it, or until [`repair`](crate::repair); programs that copy
    /// files without holes then copy zeros.
    pub fn eof_headroom(mut self, bytes: u64) -> Self {
        self.headroom = bytes;
        self
    }

    /// How a new file hands out its space, and whether it keeps what is free while nobody has it open. Other programs know
    /// what is not by default from HDF5 1.10 on.
    ///
    /// ```
    /// use h5live::File;
    /// use h5live::model::{FileSpace, SpaceStrategy};
    ///
    /// let space = FileSpace { strategy: SpaceStrategy::Paged, persist: true, page_size: 8192, ..FileSpace::default() };
    /// let path = std::env::temp_dir().join(format!("paged-{}.h5", std::process::id()));
    /// File::options().create().file_space(space).open(&path)?.close()?;
    /// assert_eq!(File::open(&path)?.file_space(), space);
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), h5live::Error>(())
    /// ```
    pub fn file_space(mut self, space: FileSpace) -> Self {
        self.file_space = space;
        self
    }

    /// Whether the file may be mapped into memory, so that small pieces are read, and rows that follow each other closely are
    /// written, without a call to the system for each (default: yes). This is done on Linux, on file systems of this machine.
    /// About 64 MiB of the file are mapped at a time; they count as memory of the process, but are the system's. If somebody
    /// cuts the file, calls are made from then on; for that, the first mapping sets a handler of SIGBUS, which leaves to the
    /// one before it what does not concern the mappings of this library.
    pub fn use_mmap(mut self, yes: bool) -> Self {
        self.mapped = yes;
        self
    }

    /// Bytes of the addresses in a new file: 2, 4 or 8 (the default). With fewer, structures and references are smaller, and
    /// the file cannot grow beyond 64 KiB or 4 GiB. Other sizes are refused when the file is opened.
    pub fn offset_size(mut self, bytes: u32) -> Self {
        self.offset_size = bytes;
        self
    }

    /// Bytes of decoded chunks that are kept for further reads of their other parts (default: 32 MiB).
    pub fn chunk_cache_bytes(mut self, bytes: usize) -> Self {
        self.chunk_cache = bytes;
        self
    }

    /// Bytes of a dataset that are kept until the next flush or until their chunk is full (default: 64 MiB).
    pub fn append_buffer_bytes(mut self, bytes: usize) -> Self {
        self.staging = bytes;
        self
    }

    /// Bytes that one read or write may take beside the caller's buffer and the caches, while several threads decode or
    /// encode chunks (default: 64 MiB). Fewer chunks are worked on at a time if they are large; one chunk always is.
    pub fn transfer_memory_bytes(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// Most bytes that are allocated at once for a length that a file or a description states (default: 256 MiB): for a
    /// structure of the file, an element, or a chunk that has to be in memory as a whole because of its filters. The buffers
    /// of the caller are not counted. Larger data is read and written in pieces. What cannot be is
    /// [`ErrorKind::Allocation`](crate::ErrorKind::Allocation), or has it as its cause, so that no file can make a program
    /// run out of memory.
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

    /// The filters at hand; the default is every built-in one. A dataset whose filters are not at hand is opened and
    /// listed all the same; to read it is [`ErrorKind::Filter`](crate::ErrorKind::Filter).
    ///
    /// ```
    /// use h5live::File;
    /// use h5live::filters::{DecodeOutput, EncodeOutput, FilterFault, Filter, Registry};
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
    ///     fn decode(&self, _: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutput, FilterFault> {
    ///         let place = output.get_mut(..input.len()).ok_or(FilterFault::TooLarge { limit: 0 })?;
    ///         place.iter_mut().zip(input).for_each(|(to, from)| *to = !from);
    ///         Ok(DecodeOutput::Output(input.len()))
    ///     }
    ///
    ///     fn encode(&self, _: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutput, FilterFault> {
    ///         output.extend(input.iter().map(|byte| !byte));
    ///         Ok(EncodeOutput::Output)
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
    /// assert_eq!(data.read_chunk(&data.chunks()?[0])?, [255, 254, 0]);
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

    /// Counts publications in the attribute `publication_counter` (a 64-bit number) of the group at `path`, which is made if it is
    /// not there. It is written after everything that it counts: one small write more for each flush. Readers that are
    /// given the same path, or none if it is `/`, wait for it with [`File::wait_for_publication`](crate::File::wait_for_publication).
    pub fn publication_counter(mut self, path: &str) -> Self {
        self.publications = Some(path.into());
        self
    }

    /// Publishes without being asked for it, beside each flush that is asked for: after so many rows
    /// ([`PublishInterval::Rows`]), or each time that a time is over ([`PublishInterval::Time`]). Both may be set.
    ///
    /// An error that this meets in the background is that of the next append or flush.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// let file = h5live::File::options().create().publish_every(Duration::from_millis(20)).open("run.h5")?;
    /// # Ok::<(), h5live::Error>(())
    /// ```
    pub fn publish_every(mut self, every: impl Into<PublishInterval>) -> Self {
        match every.into() {
            PublishInterval::Rows(rows) => self.publish_rows = Some(rows.max(1)),
            PublishInterval::Time(time) => self.publish_time = Some(time),
        }
        self
    }

    /// Brings the file into order, as [`repair`](crate::repair) does, if its writer has died: before the file is opened for
    /// reading, and when a session that follows a writer finds that it is dead. Other programs, which do not follow, then
    /// open the file at once. Sessions that write do that in any case.
    ///
    /// If the writer lives, and others may follow it, a file that is opened for reading is followed
    /// ([`Mode::SwmrRead`]). If the file cannot be brought into order, because this process may not write it or others
    /// read it, it is opened as it is. To bring a file into order takes a little more than a second if readers may have
    /// followed the writer that died.
    ///
    /// ```no_run
    /// let file = h5live::File::options().swmr_read().recover(true).open("run.h5")?;
    /// # Ok::<(), h5live::Error>(())
    /// ```
    pub fn recover(mut self, recover: bool) -> Self {
        self.recover = recover;
        self
    }

    /// The mode.
    pub fn get_mode(&self) -> Mode {
        self.mode
    }

    /// The use of locks.
    pub fn get_locking(&self) -> Locking {
        self.locking
    }

    /// The largest allocation for a length that a file or a description states (bytes).
    pub fn get_max_allocation(&self) -> u64 {
        self.max_allocation.bytes()
    }

    /// Opens the file at a location.
    ///
    /// # Errors
    /// [`ErrorKind::Open`](crate::ErrorKind::Open) that names the file and the reason.
    pub fn open(&self, location: impl AsRef<Path>) -> Result<File> {
        self.open_linked(location.as_ref(), Arc::default())
    }

    /// Opens a file whose bytes are in memory. What is written to it stays there.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open_image(&self, bytes: Vec<u8>) -> Result<File> {
        let name = "memory";
        let store = open::image(bytes, self).map_err(|error| crate::Error::new(name, None, error))?;
        let file = File::new(store, name.into(), self.clone());
        file.begin_counting()?;
        Ok(file)
    }

    /// The first option that says something of how a store is opened that does not hold for one that is open already.
    pub(crate) fn unused_by(&self, session: &Session) -> Option<&'static str> {
        let default = Options::default();
        let given = [
            ("mode", self.mode != default.mode && self.mode != session.mode),
            ("locking", self.locking != default.locking),
            ("libver", self.libver != default.libver),
            ("root", self.root != default.root),
            ("user_block", self.user_block != default.user_block),
            ("reuse_grace", self.grace != default.grace),
            ("reuse_when_exclusive", self.reuse_unread != default.reuse_unread),
            ("eof_headroom", self.headroom != default.headroom),
            ("file_space", self.file_space != default.file_space),
            ("use_mmap", self.mapped != default.mapped),
            ("offset_size", self.offset_size != default.offset_size),
            ("recover", self.recover != default.recover),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    pub(crate) fn open_linked(&self, location: &Path, family: Arc<LinkedFiles>) -> Result<File> {
        if self.recover && !self.mode.writes() && recovery::recover(location) == WriterState::Live {
            return self.clone().swmr_read().open_as_it_is(location, family);
        }
        self.open_as_it_is(location, family)
    }

    fn open_as_it_is(&self, location: &Path, family: Arc<LinkedFiles>) -> Result<File> {
        let name = location.display().to_string();
        let store = open::open(location, self).map_err(|error| crate::Error::new(&name, None, error))?;
        let file = File::from_parts(store, name, self.clone(), Some(location.to_owned()), family);
        file.begin_counting()?;
        Ok(file)
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Options");
        out.field("mode", &self.mode)
            .field("profile", &self.libver)
            .field("locking", &self.locking)
            .field("chunk_cache", &self.chunk_cache);
        out.field("staging", &self.staging)
            .field("memory", &self.memory)
            .field("max_allocation", &self.max_allocation.bytes())
            .field("filters", &self.filters)
            .finish()
    }
}

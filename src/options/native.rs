//! Options that only a native file has: short forms of [`Native`], which another store refuses by name.

use std::sync::Arc;
use std::time::Duration;

use h5live_model::{Connector, ConnectorOptions, FileSpace, LibVer, SettingError};

use super::Options;
use crate::open::{Locking, Native};

impl Options {
    /// Whether the file is locked.
    pub fn locking(self, locking: Locking) -> Self {
        self.set_native("locking", |native| native.locking = locking)
    }

    /// The oldest release of the HDF5 library that shall be able to read what is written (default: [`LibVer::V110`]).
    pub fn libver(self, profile: LibVer) -> Self {
        self.set_native("libver", |native| native.libver = profile)
    }

    /// A new file begins with these bytes, which are not HDF5's (a header of another format, say), padded with zeros to 512
    /// or the next power of two.
    pub fn user_block(self, bytes: &[u8]) -> Self {
        self.set_native("user_block", |native| native.user_block = bytes.to_vec())
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
    pub fn reuse_grace(self, grace: Duration) -> Self {
        self.set_native("reuse_grace", |native| native.grace = grace)
    }

    /// Whether such space is used again at once while the system says that nobody else has the file open (default: yes).
    ///
    /// Linux tells that of files on its own file systems (ext4, XFS, Btrfs, tmpfs) to their owner; elsewhere the grace
    /// always holds. Switch it off where something reads the file for others but opens it anew for every look, so that it
    /// goes unseen in between: a web server that answers range requests, or an NFS server of version 3.
    pub fn reuse_when_exclusive(self, reuse: bool) -> Self {
        self.set_native("reuse_when_exclusive", |native| native.reuse_unread = reuse)
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
    pub fn eof_headroom(self, bytes: u64) -> Self {
        self.set_native("eof_headroom", |native| native.headroom = bytes)
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
    pub fn file_space(self, space: FileSpace) -> Self {
        self.set_native("file_space", |native| native.set_file_space(space))
    }

    /// Whether the file may be mapped into memory, so that small pieces are read, and rows that follow each other closely are
    /// written, without a call to the system for each (default: yes). This is done on Linux, on file systems of this machine.
    /// About 64 MiB of the file are mapped at a time; they count as memory of the process, but are the system's. If somebody
    /// cuts the file, calls are made from then on; for that, the first mapping sets a handler of SIGBUS, which leaves to the
    /// one before it what does not concern the mappings of this library.
    pub fn use_mmap(self, yes: bool) -> Self {
        self.set_native("use_mmap", |native| native.mapped = yes)
    }

    /// Bytes of the addresses in a new file: 2, 4 or 8 (the default). With fewer, structures and references are smaller, and
    /// the file cannot grow beyond 64 KiB or 4 GiB. Other sizes are refused when the file is opened.
    pub fn offset_size(self, bytes: u32) -> Self {
        self.set_native("offset_size", |native| native.offset_size = bytes)
    }

    /// The use of locks.
    pub fn get_locking(&self) -> Locking {
        self.native().locking
    }

    fn native(&self) -> Native {
        let options: Option<&Native> = self.typed_options();
        options.cloned().unwrap_or_default()
    }

    /// Changes an option of native files, which other stores refuse by this name.
    fn set_native(mut self, name: &'static str, change: impl FnOnce(&mut Native)) -> Self {
        let mut native = self.native();
        change(&mut native);
        self.set_typed(Arc::new(native));
        self.native_names.push(name);
        self
    }

    /// Refuses what was asked for by a method of this file, if the connector is not the native one.
    pub(super) fn check_native_names(&self, connector: &dyn Connector) -> Result<(), SettingError> {
        let Some(name) = self.native_names.first() else { return Ok(()) };
        if connector.name() == Native::default().connector() {
            return Ok(());
        }
        let known = connector.options().settings().iter().map(|setting| setting.name).collect();
        Err(SettingError::Unknown { connector: connector.name(), name: (*name).to_owned(), known })
    }
}

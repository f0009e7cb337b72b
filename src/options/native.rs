//! Options that only a native file has: short forms of [`Native`], which another store refuses by name.

use std::sync::Arc;
use std::time::Duration;

use h5live_model::{Connector, ConnectorOptions, FileSpaceSettings, LibVer, SettingError};

use super::Options;
use crate::open::{AllowedReaders, Locking, Native};

impl Options {
    /// Sets the use of file locks.
    pub fn locking(self, locking: Locking) -> Self {
        self.set_native("locking", |native| native.locking = locking)
    }

    /// Sets the oldest release of the HDF5 library that can read the written file (default: [`LibVer::V110`]).
    pub fn libver(self, profile: LibVer) -> Self {
        self.set_native("libver", |native| native.libver = profile)
    }

    /// Sets the user block: bytes at the start of a new file that do not belong to HDF5 (a header of another format,
    /// for example). They are padded with zeros to 512 bytes or the next power of two.
    pub fn user_block(self, bytes: &[u8]) -> Self {
        self.set_native("user_block", |native| native.user_block = bytes.to_vec())
    }

    /// Sets who may follow a live file (default: [`AllowedReaders::Any`]).
    ///
    /// Space is freed by copied nodes of B-trees, replaced chunks, chunks outside of a smaller extent, and deleted objects.
    /// Readers of libhdf5 (h5py) follow what they have read for as long as they like. So in a live file for any readers,
    /// freed space rests until the system says that nobody else has the file open, and one second more. A reader that
    /// keeps the file open keeps all of it from being used again; [`Options::max_resting`] limits that. Linux says this to
    /// the owner of a file on its own file systems (ext4, XFS, Btrfs, tmpfs). Elsewhere, freed space of a live session is
    /// not used again before the next session.
    ///
    /// In a live file for [`AllowedReaders::H5live`], freed space is used again after [`Options::reuse_grace`], whoever has the
    /// file open. h5py, `h5dump` and all other programs refuse such a file until it is closed.
    pub fn readers(self, readers: AllowedReaders) -> Self {
        self.set_native("readers", |native| native.readers = readers)
    }

    /// Sets the grace: the time for which freed space of a live file for [`AllowedReaders::H5live`] is not used again (default:
    /// 5 s; at least 1 s; [`Duration::MAX`]: it is never used again). It has no effect on files for any readers.
    ///
    /// Readers of h5live know when their pointers may be too old, and read again.
    pub fn reuse_grace(self, grace: Duration) -> Self {
        self.set_native("reuse_grace", |native| native.grace = grace)
    }

    /// Sets whether freed space of a live file for any readers is used again after the system has said that nobody else
    /// has the file open (default: yes). If not, it is not used again in this session.
    ///
    /// Switch this off if a program of libhdf5 reads the file for others and opens it anew for each look, because the
    /// writer does not notice it in between: an NFS server of version 3, for example.
    pub fn reuse_when_exclusive(self, reuse: bool) -> Self {
        self.set_native("reuse_when_exclusive", |native| native.reuse_unread = reuse)
    }

    /// Sets the most bytes of freed space of a live file that may wait for readers to close the file (default: no limit).
    /// A flush that finds more is refused, with an error that names the processes that have the file open. What was to
    /// be flushed stays in memory, and the next flush after a reader has gone writes it.
    pub fn max_resting(self, bytes: u64) -> Self {
        self.set_native("max_resting", |native| native.max_resting = bytes)
    }

    /// Sets the headroom: bytes beyond its end that a live file announces (default: none), for readers of libhdf5.
    ///
    /// Such a reader notes the end of the file when it opens it, and refuses everything beyond. It can follow
    /// attributes, and elements of fixed size in existing chunked datasets. It cannot open new objects or read new
    /// strings. With headroom, it can follow everything inside the headroom; h5py must reopen a group to see new links
    /// in it. Readers of h5live need no headroom.
    ///
    /// From [`File::start_swmr`](crate::File::start_swmr) until the file is closed, the file is longer by this much,
    /// although nothing is stored there. If its writer dies, it stays so until h5live next writes it, or until
    /// [`repair`](crate::repair). Programs that copy files without holes then copy zeros.
    pub fn eof_headroom(self, bytes: u64) -> Self {
        self.set_native("eof_headroom", |native| native.headroom = bytes)
    }

    /// Sets how a new file allocates its space, and whether it stores its list of free space when it is closed. Other
    /// programs need HDF5 1.10 for settings other than the default.
    ///
    /// ```
    /// use h5live::File;
    /// use h5live::model::{FileSpaceSettings, FileSpaceStrategy};
    ///
    /// let space = FileSpaceSettings { strategy: FileSpaceStrategy::Paged, persist: true, page_size: 8192, ..FileSpaceSettings::default() };
    /// let path = std::env::temp_dir().join(format!("paged-{}.h5", std::process::id()));
    /// File::options().create().file_space(space).open(&path)?.close()?;
    /// assert_eq!(File::open(&path)?.file_space(), space);
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), h5live::Error>(())
    /// ```
    pub fn file_space(self, space: FileSpaceSettings) -> Self {
        self.set_native("file_space", |native| native.set_file_space(space))
    }

    /// Sets whether the file may be mapped into memory (default: yes). Then small pieces are read, and rows that
    /// closely follow each other are written, without a system call for each. This is done on Linux, on file systems of
    /// this machine. About 64 MiB of the file are mapped at a time. They count as memory of the process, but belong to
    /// the system. If another program truncates the file, system calls are used from then on. For this, the first
    /// mapping installs a handler of SIGBUS. The handler passes faults outside of the mappings of this library on to
    /// the handler before it.
    pub fn use_mmap(self, yes: bool) -> Self {
        self.set_native("use_mmap", |native| native.mapped = yes)
    }

    /// Sets the bytes of an address in a new file: 2, 4 or 8 (default: 8). With fewer bytes, structures and references
    /// are smaller, and the file cannot grow beyond 64 KiB or 4 GiB. Other sizes are refused when the file is opened.
    pub fn offset_size(self, bytes: u32) -> Self {
        self.set_native("offset_size", |native| native.offset_size = bytes)
    }

    /// Sets whether a file is written or repaired that is marked as being written, where the system cannot tell whether
    /// its writer lives (default: no, an error). **Two writers at once destroy the file**: say so only if you know that no
    /// process writes it.
    ///
    /// Linux tells a dead writer from a live one to the owner of the file, and to root, on its own file systems. To other
    /// users, and on network file systems, a live writer of h5live is seen by a lock that it holds. A writer of libhdf5
    /// holds none, so that a file that is marked, without this lock, may have one.
    pub fn take_over(self, yes: bool) -> Self {
        self.set_native("take_over", |native| native.take_over = yes)
    }

    /// Sets the bytes of metadata that are kept in memory (default: 64 MiB): headers, nodes of indexes, heaps. What is
    /// unwritten or in use stays in memory beyond that. A quarter of it may be unwritten before some is written early, at
    /// most 16 MiB. A small cache only costs time: what was dropped is read again.
    pub fn metadata_cache_bytes(self, bytes: usize) -> Self {
        self.set_native("metadata_cache_bytes", |native| native.metadata_cache = bytes as u64)
    }

    /// Sets how often a reader tries to read a structure that its writer has half-written (default: 60, which takes up
    /// to a second). More attempts are for writers that are stopped for long within a write, fewer for readers that
    /// would rather have the error at once.
    pub fn read_attempts(self, attempts: u32) -> Self {
        self.set_native("read_attempts", |native| native.read_attempts = attempts)
    }

    /// Sets the sizes of the nodes of group indexes in a new file for old programs (default: 16 and 4): a node of the
    /// B-tree has at most twice `internal` children, and a symbol table node at most twice `leaf` links. Large groups
    /// need fewer reads with larger nodes. Groups have no such nodes if the oldest program is HDF5 1.8 or later
    /// ([`Options::libver`]).
    pub fn group_btree_k(self, internal: u32, leaf: u32) -> Self {
        self.set_native("group_btree_k", |native| (native.group_btree_k, native.group_leaf_k) = (internal, leaf))
    }

    /// Sets the size of the nodes of chunk indexes in a new file for old programs (default: 32): a node of the B-tree
    /// has at most twice as many children. Files for HDF5 1.10 and later have other indexes ([`Options::libver`]). With
    /// [`LibVer::Earliest`] and another size than the default, the file cannot be followed while it is written.
    pub fn chunk_btree_k(self, k: u32) -> Self {
        self.set_native("chunk_btree_k", |native| native.chunk_btree_k = k)
    }

    /// The use of locks.
    pub fn get_locking(&self) -> Locking {
        self.native().locking
    }

    fn native(&self) -> Native {
        let options: Option<&Native> = self.typed_options();
        options.cloned().unwrap_or_default()
    }

    /// Changes an option of native files. Other stores refuse the option by this name.
    fn set_native(mut self, name: &'static str, change: impl FnOnce(&mut Native)) -> Self {
        let mut native = self.native();
        change(&mut native);
        self.set_typed(Arc::new(native));
        self.native_options_set.push(name);
        self
    }

    /// Refuses options that were set by methods of this file, if the connector is not the native one.
    pub(crate) fn refuse_native_options(&self, connector: &dyn Connector) -> Result<(), SettingError> {
        let Some(name) = self.native_options_set.first() else { return Ok(()) };
        if connector.name() == Native::default().connector() {
            return Ok(());
        }
        let known: Vec<_> =
            connector.options().visible_setting_descriptions().iter().map(|setting| setting.name).collect();
        let known = known
            .into_iter()
            .chain(Options::common_settings_with_defaults().iter().map(|(setting, _)| setting.name))
            .collect();
        Err(SettingError::Unknown { connector: connector.name(), name: (*name).to_owned(), known })
    }
}

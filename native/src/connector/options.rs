//! The options that only a native file has.

use std::time::Duration;

use h5live_model::{
    FileSpaceSettings, FileSpaceStrategy, LibVer, SettingValue, name_of_value, settings, value_with_name,
};

use h5live_format::messages::BtreeK;

use crate::open_options::RequestedBtreeK;
use crate::{AllowedReaders, OpenOptions, RetryPolicy};

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

impl Locking {
    const NAMES: [(Locking, &'static str); 4] = [
        (Locking::Environment, "environment"),
        (Locking::Always, "always"),
        (Locking::BestEffort, "best-effort"),
        (Locking::Never, "never"),
    ];
}

impl SettingValue for Locking {
    const FORM: &'static str = "environment|always|best-effort|never";

    fn from_text(text: &str) -> Option<Self> {
        value_with_name(&Locking::NAMES, text)
    }

    fn to_text(&self) -> String {
        name_of_value(&Locking::NAMES, self)
    }
}

impl AllowedReaders {
    const NAMES: [(AllowedReaders, &'static str); 2] =
        [(AllowedReaders::Any, "any"), (AllowedReaders::H5live, "h5live")];
}

impl SettingValue for AllowedReaders {
    const FORM: &'static str = "any|h5live";

    fn from_text(text: &str) -> Option<Self> {
        value_with_name(&AllowedReaders::NAMES, text)
    }

    fn to_text(&self) -> String {
        name_of_value(&AllowedReaders::NAMES, self)
    }
}

settings! {
    connector "native";
    /// The options that only a native HDF5 file has.
    pub struct Native {
        /// Whether the file is locked against use by other processes.
        locking: Locking = Locking::Environment,
        /// The oldest release of the HDF5 library that shall be able to read what is written.
        libver: LibVer = LibVer::default(),
        /// The bytes, not HDF5's own, with which a new file begins.
        user_block: Vec<u8> = Vec::new(),
        /// Who may follow the file while it is live: any readers, or those of h5live only.
        readers: AllowedReaders = AllowedReaders::Any,
        /// How long readers of h5live may use space to which nothing leads any more, where there are no others.
        grace: Duration = Duration::from_secs(5),
        /// Whether such space is used again when nobody else has the file open.
        reuse_unread: bool = true,
        /// Most bytes of such space that wait for readers to close the file.
        max_resting: u64 = u64::MAX,
        /// Bytes beyond its end that a live file announces, for readers of libhdf5.
        headroom: u64 = 0,
        /// Who hands out the space in a new file.
        strategy: FileSpaceStrategy = FileSpaceSettings::default().strategy,
        /// Whether a new file keeps what is free while nobody has it open.
        persist: bool = FileSpaceSettings::default().persist,
        /// The smallest free section that a new file keeps.
        threshold: u64 = FileSpaceSettings::default().threshold,
        /// Bytes of a page of a new file with pages.
        page_size: u64 = FileSpaceSettings::default().page_size,
        /// Whether the file may be mapped into memory.
        mapped: bool = true,
        /// Bytes of the addresses in a new file: 2, 4 or 8.
        offset_size: u32 = 8,
        /// Whether to write a file that is marked as being written, where the system cannot tell whether its writer lives.
        take_over: bool = false,
        /// Bytes of metadata that are kept in memory; what is unwritten or in use may take more.
        metadata_cache: u64 = OpenOptions::default().metadata_cache_bytes as u64,
        /// How often a reader tries to read a structure that its writer has half-written.
        read_attempts: u32 = RetryPolicy::DEFAULT_ATTEMPTS,
        /// K of the version 1 B-trees of chunks in a new file: a node has at most 2K children.
        chunk_btree_k: u32 = BtreeK::default().chunk.into(),
        /// K of the version 1 B-trees of groups in a new file: a node has at most 2K children.
        group_btree_k: u32 = BtreeK::default().group_internal.into(),
        /// K of the symbol table nodes of groups in a new file: a node has at most 2K links.
        group_leaf_k: u32 = BtreeK::default().group_leaf.into(),
    }
    hidden {
        /// Whether other writers that have the file open are ignored, because it was agreed whose turn it is.
        takes_turns: bool = false,
        /// Whether closing leaves a live file live, for the next of several writers that take turns.
        leaves_live: bool = false,
        /// Whether the writer before is known to have left the file live and whole; then there is no recovery.
        left_whole: bool = false,
        /// Whether who opens a file that has a live writer is told its process, which is looked for among all.
        names_writer: bool = true,
    }
}

impl Native {
    /// How a new file hands out its space.
    pub fn file_space(&self) -> FileSpaceSettings {
        let Native { strategy, persist, threshold, page_size, .. } = *self;
        FileSpaceSettings { strategy, persist, threshold, page_size }
    }

    /// Says how a new file hands out its space.
    pub fn set_file_space(&mut self, space: FileSpaceSettings) {
        FileSpaceSettings {
            strategy: self.strategy,
            persist: self.persist,
            threshold: self.threshold,
            page_size: self.page_size,
        } = space;
    }

    /// These options, and all others as by default.
    pub(super) fn open_options(&self) -> OpenOptions {
        OpenOptions {
            locking: self.locking.into(),
            profile: self.libver,
            user_block: self.user_block.clone(),
            readers: self.readers,
            reuse_grace: self.grace,
            reuse_when_exclusive: self.reuse_unread,
            max_bytes_awaiting_no_readers: self.max_resting,
            eof_headroom_bytes: self.headroom,
            space: self.file_space(),
            use_mmap: self.mapped,
            offset_size: self.offset_size,
            take_over_if_unknown: self.take_over,
            metadata_cache_bytes: usize::try_from(self.metadata_cache).unwrap_or(usize::MAX),
            retry: RetryPolicy::with_attempts(self.read_attempts),
            btree_k: RequestedBtreeK {
                chunk: self.chunk_btree_k,
                group_internal: self.group_btree_k,
                group_leaf: self.group_leaf_k,
            },
            ignores_other_writers: self.takes_turns,
            leaves_live: self.leaves_live,
            skips_recovery: self.left_whole,
            reports_writer_process: self.names_writer,
            ..OpenOptions::default()
        }
    }
}

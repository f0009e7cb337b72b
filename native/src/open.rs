//! Opening and creating files: the session that the options lead to.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use h5live_cache::{FileStorage, Storage};
use h5live_model::Mode;
use h5live_swmr::{AccessOptions, CreatedOrOpenedFile, FileOpenedForWriting, LockHandle, OtherHandlePresence};

use crate::bootstrap::SessionMedium;
use crate::open_options::OpenOptions;
use crate::session::NativeSession;
use crate::{Result, member_files};

impl OpenOptions {
    /// A session on a storage that is no file, and that nobody else uses.
    pub(crate) fn open_storage(&self, storage: Arc<dyn Storage>) -> Result<NativeSession> {
        let medium = SessionMedium { path: PathBuf::new(), storage, lock: LockHandle::without_file() };
        match self.mode {
            Mode::Read | Mode::SwmrRead => self.start_reading(medium),
            Mode::Write | Mode::SwmrWrite => {
                let mut found = self.access().check_writable(&medium.storage, &medium.lock, true)?;
                if self.mutant.simulates_other_handles {
                    found.other_handles = OtherHandlePresence::Some;
                }
                self.start_writing(medium, found)
            }
            Mode::Create | Mode::CreateNew => self.start_new(medium),
        }
    }

    pub(crate) fn open(&self, path: &Path) -> Result<NativeSession> {
        self.access().check_path_kind_and_newness(path)?;
        match self.mode {
            Mode::Read | Mode::SwmrRead => self.open_for_reading(path),
            Mode::Write | Mode::SwmrWrite => self.open_for_writing(path),
            Mode::Create | Mode::CreateNew => self.create(path),
        }
    }

    /// How the file is opened, as the protocol sees it.
    pub(crate) fn access(&self) -> AccessOptions {
        AccessOptions {
            mode: self.mode,
            locking: self.locking,
            take_over: self.take_over_if_unknown,
            takes_turns: self.ignores_other_writers,
            reports_writer_process: self.reports_writer_process,
        }
    }

    fn open_for_reading(&self, path: &Path) -> Result<NativeSession> {
        let path = &*member_files::first_member_path(path);
        let (file, lock) = self.access().open_for_reading(path)?;
        self.start_reading(SessionMedium { path: path.to_owned(), storage: Arc::new(self.file_storage(file)), lock })
    }

    fn open_for_writing(&self, path: &Path) -> Result<NativeSession> {
        self.start_writing_file(path, self.access().open_for_writing(path)?)
    }

    /// Opens a file for writing though it may end before it says.
    pub(crate) fn open_for_repair(&self, path: &Path) -> Result<NativeSession> {
        self.start_writing_file(path, self.access().open_for_repair(path)?)
    }

    fn start_writing_file(&self, path: &Path, opened: FileOpenedForWriting) -> Result<NativeSession> {
        let FileOpenedForWriting { file, lock, found_state: found } = opened;
        let storage = self.existing_file_write_wrapper.wrap(Arc::new(self.file_storage(file)));
        self.start_writing(SessionMedium { path: path.to_owned(), storage, lock }, found)
    }

    fn create(&self, path: &Path) -> Result<NativeSession> {
        let CreatedOrOpenedFile { file, lock, is_new } = self.access().create_or_open_to_overwrite(path)?;
        let storage = Arc::new(self.file_storage(file));
        let begun = self.start_new(SessionMedium { path: path.to_owned(), storage, lock });
        if begun.is_err() && is_new {
            // It has no superblock, and every later attempt would take it for a file of another kind.
            self.access().remove_failed_creation(path);
        }
        begun
    }

    fn file_storage(&self, file: File) -> FileStorage {
        let storage = FileStorage::new(file);
        if self.use_mmap { storage } else { storage.without_mmap_io() }
    }
}

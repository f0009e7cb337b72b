//! Opening and creating files: modes, locks, the superblock, and taking over from a writer that died.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use h5live_cache::{Based, Cache, FileStorage, Overlay, Reuse, Scope, Settings, Storage};
use h5live_format::messages::{GroupInfo, LinkInfo};
use h5live_format::{Addr, MessageFlags, ObjectHeaderPrefix, Profile, RawMessage, Root, StatusFlags, Superblock};
use h5live_model::{self as model, NoFilters, Unfilter};

use crate::error::{Conflict, NotLive};
use crate::extension::cache_image;
use crate::header::{Header, Room};
use crate::locking::{Lock, LockHandle, Locking, Taken, Writer, light_beacon};
use crate::session::Session;
use crate::status::Status;
use crate::{Error, Patience, Result, members};

/// What a session may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Read; nobody writes meanwhile.
    #[default]
    Read,
    /// Read, while another process may write.
    SwmrRead,
    /// Read and write a file that exists; nobody else has it open.
    Write,
    /// Read and write a file that exists, while other processes may read.
    SwmrWrite,
    /// Make a new file in place of what is there.
    Create,
    /// Make a new file; one that exists is an error.
    CreateNew,
}

impl Mode {
    pub(crate) fn writes(self) -> bool {
        !matches!(self, Mode::Read | Mode::SwmrRead)
    }
}

/// How a file is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// What the session may do.
    pub mode: Mode,
    /// Whether the file is locked, if the environment does not say.
    pub locking: Locking,
    /// How long a SWMR reader waits for what is half-written.
    pub patience: Patience,
    /// Which versions of structures are written.
    pub profile: Profile,
    /// Write a file that its superblock says is being written, when the system cannot tell whether its writer lives.
    pub take_over: bool,
    /// What undoes the filters of groups that keep their links behind some.
    pub unfilter: Arc<dyn Unfilter>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            mode: Mode::default(),
            locking: Locking::default(),
            patience: Patience::default(),
            profile: Profile::default(),
            take_over: false,
            unfilter: Arc::new(NoFilters),
        }
    }
}

/// Bytes of unused space in the header of a new group, for links.
const GROUP_ROOM: Room = Room(320);

impl OpenOptions {
    pub(crate) fn open(&self, path: &Path) -> Result<Session> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(Error::Directory),
            Ok(_) if self.mode == Mode::CreateNew => return Err(Error::Exists(path.to_owned())),
            _ => {}
        }
        match self.mode {
            Mode::Read | Mode::SwmrRead => self.open_for_reading(path),
            Mode::Write | Mode::SwmrWrite => self.open_for_writing(path),
            Mode::Create | Mode::CreateNew => self.create(path),
        }
    }

    fn lock_handle(&self, path: &Path) -> Result<LockHandle> {
        let locking = Locking::from_environment().unwrap_or(self.locking);
        LockHandle::open(path, locking).map_err(Error::io("open the file"))
    }

    fn settings(&self, superblock: &Superblock) -> Settings {
        let mut settings = Settings::default();
        settings.widths = superblock.widths;
        settings
    }

    fn open_for_reading(&self, path: &Path) -> Result<Session> {
        let path = &*members::first_of(path);
        let lock = self.lock_handle(path)?;
        if lock.take(Lock::Shared).map_err(Error::io("lock the file"))? == Taken::Conflict {
            return Err(Error::InUse { reason: Conflict::Writer, holders: lock.holders() });
        }
        let file = File::open(path).map_err(Error::io("open the file"))?;
        let storage: Arc<dyn Storage> = Arc::new(FileStorage::new(file));
        let live = self.mode == Mode::SwmrRead;
        let patience = if live { self.patience.clone() } else { Patience::none() };
        let (at, superblock) = patience.retry(|| locate_superblock(&storage))?;
        let flags = superblock.status;
        let (write, swmr) = (flags.contains(StatusFlags::WRITE), flags.contains(StatusFlags::SWMR));
        if superblock.version >= 3 && ((write || swmr) && !live || write != swmr) {
            let reason = if swmr { Conflict::SwmrWriter } else { Conflict::Writer };
            match lock.writer() {
                Writer::None => {}
                Writer::Alive(holders) => return Err(Error::InUse { reason, holders }),
                Writer::Unknown => return Err(Error::InUse { reason: Conflict::UnknownWriter, holders: Vec::new() }),
            }
        }
        let storage =
            patience.retry(|| members::join(path, storage.clone(), at, &superblock, self.settings(&superblock)))?;
        if !(live && superblock.version >= 3) {
            check_length(&storage, &superblock)?;
        }
        if live && write && swmr {
            lock.release().map_err(Error::io("unlock the file"))?;
        }
        let storage: Arc<dyn Storage> = Arc::new(Based::new(storage, at));
        let mut cache = Arc::new(Cache::reading(storage.clone(), self.settings(&superblock)));
        let image = patience.retry(|| cache_image(&cache, &superblock))?;
        if !image.is_empty() {
            let rule = "the structures of a metadata cache image do not overlap";
            let header = superblock.extension;
            let storage = Overlay::new(storage, image).ok_or(Error::Object { header, rule })?;
            cache = Arc::new(Cache::reading(Arc::new(storage), self.settings(&superblock)));
        }
        let status = Arc::new(Status::new(superblock.clone()));
        Session::new(cache, status, superblock, lock, patience, self, path)
    }

    fn open_for_writing(&self, path: &Path) -> Result<Session> {
        let lock = self.lock_handle(path)?;
        let locked = lock.take(Lock::Exclusive).map_err(Error::io("lock the file"))? == Taken::Yes;
        let probe = FileStorage::new(File::open(path).map_err(Error::io("open the file"))?);
        let (at, superblock) = locate_superblock(&probe)?;
        let marked = superblock.status.contains(StatusFlags::WRITE) || superblock.status.contains(StatusFlags::SWMR);
        let marked = superblock.version >= 3 && marked;
        let swmr = superblock.status.contains(StatusFlags::SWMR);
        // Whoever holds a lock on a file with the SWMR flag can only be a SWMR reader, for whom a SWMR writer is no
        // harm.
        let among_swmr_readers = marked && swmr && self.mode == Mode::SwmrWrite;
        if !locked && !among_swmr_readers {
            return Err(match lock.writer() {
                Writer::Alive(holders) => Error::InUse { reason: Conflict::Writer, holders },
                Writer::None => Error::InUse { reason: Conflict::Readers, holders: Vec::new() },
                Writer::Unknown => Error::InUse { reason: Conflict::Lock, holders: Vec::new() },
            });
        }
        if marked {
            let reason = if swmr { Conflict::SwmrWriter } else { Conflict::Writer };
            match lock.writer() {
                Writer::None => {}
                Writer::Unknown if self.take_over => {}
                Writer::Alive(holders) => return Err(Error::InUse { reason, holders }),
                Writer::Unknown => return Err(Error::InUse { reason: Conflict::UnknownWriter, holders: Vec::new() }),
            }
        } else {
            check_length(&probe, &superblock)?;
        }
        if superblock.driver_info.is_defined() {
            return Err(Error::Model(model::Error::Unsupported("changing a file that is cut into several")));
        }
        if superblock.version < 2 {
            return Err(Error::Model(model::Error::Unsupported("changing a file with a superblock before version 2")));
        }
        if superblock.extension.is_defined() {
            return Err(Error::Model(model::Error::Unsupported("changing a file with a superblock extension")));
        }
        if self.mode == Mode::SwmrWrite && superblock.version < 3 {
            return Err(Error::NotLive(NotLive::Superblock(superblock.version)));
        }
        let file = File::options().read(true).write(true).open(path).map_err(Error::io("open the file for writing"))?;
        self.begin_writing(path, file, at, superblock, lock, marked)
    }

    /// Takes a file for writing: from here on the superblock says so.
    fn begin_writing(
        &self,
        path: &Path,
        file: File,
        at: u64,
        mut superblock: Superblock,
        lock: LockHandle,
        taken_over: bool,
    ) -> Result<Session> {
        light_beacon(&file, Locking::from_environment().unwrap_or(self.locking)).map_err(|source| {
            match source.kind() {
                io::ErrorKind::WouldBlock => Error::InUse { reason: Conflict::SwmrWriter, holders: lock.holders() },
                _ => Error::Io { action: "mark the file as written by this process", source },
            }
        })?;
        let len = file.metadata().map_err(Error::io("ask for the length of the file"))?.len();
        let stated = superblock.end_of_file.get().unwrap_or(0);
        // A writer that died may have left structures beyond the end that it announced.
        let end = if taken_over { stated.max(len) } else { stated };
        superblock.base = Addr::new(at);
        superblock.status = match self.mode {
            Mode::SwmrWrite => StatusFlags::WRITE | StatusFlags::SWMR,
            _ => StatusFlags::WRITE,
        };
        let storage: Arc<dyn Storage> = Arc::new(Based::new(Arc::new(FileStorage::new(file)), at));
        let status = Arc::new(Status::new(superblock.clone()));
        let settings = self.settings(&superblock);
        let cache = Arc::new(Cache::writing(storage, settings, end.saturating_sub(at), status.clone()));
        if self.mode == Mode::SwmrWrite {
            cache.space().set_reuse(Reuse::Never);
        }
        cache.write_superblock()?;
        if self.mode == Mode::SwmrWrite {
            lock.release().map_err(Error::io("unlock the file"))?;
        }
        Session::new(cache, status, superblock, lock, Patience::none(), self, path)
    }

    fn create(&self, path: &Path) -> Result<Session> {
        if self.profile < Profile::V110 {
            return Err(Error::Model(model::Error::Unsupported("making a file of a profile before v110")));
        }
        let existed = path.exists();
        if existed {
            let lock = self.lock_handle(path)?;
            if let Writer::Alive(holders) = lock.writer() {
                return Err(Error::InUse { reason: Conflict::Writer, holders });
            }
        }
        let mut options = File::options();
        options.read(true).write(true);
        let options =
            if self.mode == Mode::CreateNew { options.create_new(true) } else { options.create(true).truncate(false) };
        let file = options.open(path).map_err(Error::io("create the file"))?;
        let lock = self.lock_handle(path)?;
        if lock.take(Lock::Exclusive).map_err(Error::io("lock the file"))? == Taken::Conflict {
            return Err(Error::InUse { reason: Conflict::Lock, holders: Vec::new() });
        }
        file.set_len(0).map_err(Error::io("empty the file"))?;
        // The end is not known before the size, and must not be undefined.
        let superblock = Superblock { version: 3, end_of_file: Addr::new(1), ..Superblock::default() };
        let len = h5live_format::encoded_len(&superblock, superblock.widths)? as u64;
        let superblock = Superblock { end_of_file: Addr::new(len), ..superblock };
        let session = self.begin_writing(path, file, 0, superblock, lock, false)?;
        let widths = session.cache.widths();
        let messages = vec![
            RawMessage::new(&LinkInfo::default(), MessageFlags::default(), widths)?,
            RawMessage::new(&GroupInfo::default(), MessageFlags::CONSTANT, widths)?,
        ];
        let root = Header::create(&session.cache, ObjectHeaderPrefix::default(), messages, GROUP_ROOM)?.addr();
        session.cache.flush(Scope::All)?;
        session.status.change(|superblock| superblock.root = Root::Header(root));
        session.cache.write_superblock()?;
        Ok(session.with_root(root))
    }
}

impl Session {
    fn with_root(mut self, root: Addr) -> Self {
        self.superblock.root = Root::Header(root);
        self
    }
}

/// The messages of a new group, with room for links.
pub(crate) fn new_group(session: &Session) -> Result<Header> {
    let widths = session.cache.widths();
    let messages = vec![
        RawMessage::new(&LinkInfo::default(), MessageFlags::default(), widths)?,
        RawMessage::new(&GroupInfo::default(), MessageFlags::CONSTANT, widths)?,
    ];
    Header::create(&session.cache, ObjectHeaderPrefix::default(), messages, GROUP_ROOM)
}

/// The superblock at `at` (bytes from the start of `storage`).
pub(crate) fn read_superblock(storage: &dyn Storage, at: u64) -> Result<Superblock> {
    let mut bytes = vec![0; Superblock::MAX_SIZE];
    let len = storage.read_at(&mut bytes, at).map_err(Error::io("read the superblock"))?;
    bytes.truncate(len);
    if !bytes.starts_with(&Superblock::SIGNATURE) {
        return Err(Error::NotHdf5);
    }
    Superblock::decode(&bytes).map_err(Error::Superblock)
}

/// Where the superblock is (bytes from the start of the file), and what it says.
fn locate_superblock(storage: &dyn Storage) -> Result<(u64, Superblock)> {
    let len = storage.len().map_err(Error::io("ask for the length of the file"))?;
    for at in Superblock::locations(len) {
        match read_superblock(storage, at) {
            Err(Error::NotHdf5) => {}
            found => {
                let mut superblock = found?;
                // Who moved the superblock, by adding or removing a user block, moved everything.
                let stated = superblock.base.get().unwrap_or(at);
                let end = superblock.end_of_file.get().unwrap_or(0);
                superblock.end_of_file = Addr::new(end.saturating_sub(stated).saturating_add(at));
                superblock.base = Addr::new(at);
                return Ok((at, superblock));
            }
        }
    }
    Err(Error::NotHdf5)
}

fn check_length(storage: &dyn Storage, superblock: &Superblock) -> Result<()> {
    let len = storage.len().map_err(Error::io("ask for the length of the file"))?;
    let stated = superblock.end_of_file.get().unwrap_or(0);
    if len < stated { Err(Error::Truncated { len, stated }) } else { Ok(()) }
}

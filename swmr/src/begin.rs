//! The beginning of a session: the superblock, and taking over from a writer that died.

use std::path::PathBuf;
use std::sync::Arc;

use h5live_cache::{Based, Cache, Kind, Mended, Overlay, Reuse, Scope, Settings, Storage};
use h5live_format::messages::SymbolTable as SymbolTableMessage;
use h5live_format::{
    Addr, Root, StatusFlags, StructureVersions, Superblock, SymbolCache, SymbolTableEntry, Width, Widths,
};
use h5live_model::{self as model, FileSpace};

use crate::error::{Conflict, NotLive};
use crate::extension::{cache_image, write_image};
use crate::generation::{Generations, shown_at};
use crate::header::Header;
use crate::intent::{self, Mender};
use crate::locking::{LockHandle, Writer};
use crate::session::Session;
use crate::status::Status;
use crate::survey::{self, Survey, Unsettled};
use crate::{Error, Mode, OpenOptions, Patience, Result, members};

/// Where a file is, and the handle through which it is locked.
pub(crate) struct Medium {
    /// The file, as it was opened; empty for a storage that is none.
    pub path: PathBuf,
    pub storage: Arc<dyn Storage>,
    pub lock: LockHandle,
}

/// Most bytes at the end of a file that are not used at once when its writer died (more than any is announced ahead, unless
/// it is asked for).
const MOST_RESTING: u64 = 64 << 20;

/// The end of a file whose writer died, in bytes from the base address.
#[derive(Debug, Clone, Copy)]
enum Tail {
    /// The file ends here.
    None(u64),
    /// What lies between is in nobody's use, but those who follow may have been led there a moment ago.
    Resting { from: u64, end: u64 },
}

impl Tail {
    fn end(self) -> u64 {
        match self {
            Tail::None(end) | Tail::Resting { end, .. } => end,
        }
    }
}

/// What a file that is to be written says of itself.
pub(crate) struct Found {
    /// Where the superblock is (bytes from the start of the file).
    at: u64,
    superblock: Superblock,
    /// What is known of a writer that has not closed it.
    left: Option<Left>,
}

/// What a writer has left that has not closed the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left {
    /// Others may still be following it.
    live: bool,
}

impl Found {
    /// As a file that a writer has left, whatever it says.
    pub(crate) fn mended(self) -> Self {
        Found { left: self.left.or(Some(Left { live: false })), ..self }
    }
}

/// Whether the superblock says that the file is open for writing. Before version 3 other programs say that without heeding
/// it; that it can be followed only h5live says.
pub(crate) fn is_marked(superblock: &Superblock) -> bool {
    let (status, old) = (superblock.status, superblock.version < 3);
    status.contains(StatusFlags::SWMR) || !old && status.contains(StatusFlags::WRITE)
}

impl OpenOptions {
    pub(crate) fn settings(&self, superblock: &Superblock) -> Settings {
        let mut settings = Settings::default();
        settings.widths = superblock.widths;
        settings.base = superblock.base.get().unwrap_or(0);
        settings.without_intents = self.trial.without_intents;
        settings.barriers = self.durable && !self.trial.without_barriers;
        settings.max_allocation = self.max_allocation;
        settings.clock = self.clock.clone();
        settings.disabled_edges = self.trial.disabled_edges;
        settings.shards = self.trial.shards.unwrap_or(settings.shards);
        settings
    }

    /// Begins to read.
    pub(crate) fn read(&self, medium: Medium) -> Result<Session> {
        let Medium { path, storage, lock } = medium;
        let lock = Arc::new(lock);
        let mut live = self.mode == Mode::SwmrRead;
        let live_patience = || self.patience.of_session(self.clock.clone(), lock.clone());
        let mut patience = if live { live_patience() } else { Patience::none() };
        let (at, superblock) = patience.retry(|| locate_superblock(&storage))?;
        let flags = superblock.status;
        let (write, swmr) = (flags.contains(StatusFlags::WRITE), flags.contains(StatusFlags::SWMR));
        if superblock.version >= 3 && ((write || swmr) && !live || write != swmr) {
            let reason = if swmr { Conflict::SwmrWriter } else { Conflict::Writer };
            match lock.writer() {
                // Another SWMR writer may take it over at any time.
                Writer::None if write && swmr && !path.as_os_str().is_empty() => {
                    live = true;
                    patience = live_patience();
                }
                Writer::None => {}
                Writer::Alive(holders) => return Err(Error::InUse { reason, holders }),
                Writer::Unknown => return Err(Error::InUse { reason: Conflict::UnknownWriter, holders: Vec::new() }),
            }
        }
        let old = superblock.version < 3;
        if let (true, false, Writer::Alive(holders)) = (old && swmr, live, lock.writer()) {
            return Err(Error::InUse { reason: Conflict::SwmrWriter, holders });
        }
        let storage =
            patience.retry(|| members::join(&path, storage.clone(), at, &superblock, self.settings(&superblock)))?;
        if !live || old && !swmr {
            check_length(&storage, &superblock)?;
        }
        if self.mode == Mode::SwmrRead && write && swmr {
            lock.release().map_err(Error::io("unlock the file"))?;
        }
        let storage: Arc<dyn Storage> = Arc::new(Based::new(storage, at));
        let laid = Arc::new(Mended::new(storage.clone()));
        let storage = if live && old { laid.clone() } else { storage };
        let mender = Mender::new(storage);
        let storage = mender.storage();
        let patience = match live {
            true if old => patience,
            true => patience.with(mender),
            false => {
                mender.mend_all(&superblock)?;
                patience
            }
        };
        let mut cache = Arc::new(Cache::reading(storage.clone(), self.settings(&superblock)));
        let image = patience.retry(|| cache_image(&cache, &superblock))?;
        if !image.is_empty() {
            let rule = "the structures of a metadata cache image do not overlap";
            let header = superblock.extension;
            let storage = Overlay::new(storage, image).ok_or(Error::Object { header, rule })?;
            cache = Arc::new(Cache::reading(Arc::new(storage), self.settings(&superblock)));
        }
        let patience = match live && old {
            true => patience.by_generations(Generations::new(laid, cache.clone(), lock.clone())),
            false => patience,
        };
        let status = Arc::new(Status::new(superblock.clone()));
        let mode = if live { Mode::SwmrRead } else { self.mode };
        Session::new(cache, status, superblock, lock, patience, &OpenOptions { mode, ..self.clone() }, &path)
    }

    /// Finds out whether a file may be written, and what it says of itself. `locked` says whether the lock was to be
    /// had.
    pub(crate) fn check_writable(&self, storage: &dyn Storage, lock: &LockHandle, locked: bool) -> Result<Found> {
        let found = self.check_unmended(storage, lock, locked)?;
        if found.left.is_none() {
            check_length(storage, &found.superblock)?;
        }
        Ok(found)
    }

    /// As [`OpenOptions::check_writable`], of a file that may end before it says.
    pub(crate) fn check_unmended(&self, storage: &dyn Storage, lock: &LockHandle, locked: bool) -> Result<Found> {
        let (at, superblock) = locate_superblock(storage)?;
        let marked = is_marked(&superblock);
        let swmr = superblock.status.contains(StatusFlags::SWMR);
        // Whoever holds a lock on a file with the SWMR flag can only be a SWMR reader, for whom a SWMR writer is no
        // harm.
        let among_swmr_readers = marked && swmr && self.mode == Mode::SwmrWrite && superblock.version >= 3;
        if !locked && !among_swmr_readers {
            return Err(match lock.writer() {
                Writer::Alive(holders) => Error::InUse { reason: Conflict::Writer, holders },
                Writer::None => Error::InUse { reason: Conflict::Readers, holders: lock.own_lock() },
                Writer::Unknown => Error::InUse { reason: Conflict::Lock, holders: lock.own_lock() },
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
        }
        if superblock.driver_info.is_defined() {
            let what = "changing a file that is cut into several";
            return Err(Error::Model(model::Error::Unsupported(what)));
        }
        if self.mode == Mode::SwmrWrite && superblock.version == 1 {
            return Err(Error::NotLive(NotLive::Superblock(superblock.version)));
        }
        Ok(Found { at, superblock, left: marked.then_some(Left { live: swmr }) })
    }

    /// Begins to write: from here on the superblock says so.
    pub(crate) fn write(&self, medium: Medium, found: Found) -> Result<Session> {
        let Medium { path, storage, lock } = medium;
        let Found { at, mut superblock, left } = found;
        let len = storage.len().map_err(Error::io("ask for the length of the file"))?;
        let stated = superblock.end_of_file.get().unwrap_or(0);
        superblock.base = Addr::new(at);
        let storage: Arc<dyn Storage> = Arc::new(Based::new(storage, at));
        let generation = shown_at(&*storage, &superblock)?.map(|(generation, _)| generation).filter(|_| left.is_some());
        let intent = intent::find(&*storage, &superblock)?;
        if let Some(intent) = &intent {
            intent::redo(&*storage, intent)?;
        }
        // A writer that died may have left structures beyond the end that it announced; one with intents has not.
        let end = if left.is_some() && intent.is_none() { stated.max(len) } else { stated }.saturating_sub(at);
        let (tail, unsettled) = match left {
            Some(left) => self.tail(&storage, &superblock, left, end)?,
            None => (Tail::None(end), Unsettled::default()),
        };
        superblock.status = match self.mode {
            Mode::SwmrWrite => StatusFlags::WRITE | StatusFlags::SWMR,
            _ if superblock.version >= 3 => StatusFlags::WRITE,
            _ => StatusFlags::CLEAR,
        };
        let status = Arc::new(Status::new(superblock.clone()));
        let settings = self.settings(&superblock);
        let cache = Arc::new(Cache::writing(storage, settings, tail.end(), status.clone()));
        if self.mode == Mode::SwmrWrite {
            cache.space().set_reuse(Reuse::Grace(self.grace));
        }
        if let Tail::Resting { from, end } = tail {
            cache.space().adopt_later(from, end - from, Kind::Metadata, Reuse::SHORTEST_GRACE);
        }
        let image = cache_image(&cache, &superblock)?;
        if self.mode == Mode::SwmrWrite && superblock.version < 3 {
            cache.begin_generations(generation)?;
        }
        match self.headroom {
            headroom if self.mode == Mode::SwmrWrite && headroom > 0 => cache.announce_ahead(headroom)?,
            _ => cache.write_superblock()?,
        }
        write_image(&cache, image)?;
        let session = Session::new(cache, status, superblock, Arc::new(lock), Patience::none(), self, &path)?;
        if self.mode == Mode::SwmrWrite {
            session.admit_readers()?;
        }
        session.claim_extension()?;
        survey::settle_left(session, if self.trial.without_recount { Unsettled::default() } else { unsettled })
    }

    /// What a dead writer has left at the end of the file, which ends at `end` at the latest (bytes from the base address),
    /// and what is to be set right.
    fn tail(
        &self,
        storage: &Arc<dyn Storage>,
        superblock: &Superblock,
        left: Left,
        end: u64,
    ) -> Result<(Tail, Unsettled)> {
        let (found, unsettled) = match survey::survey(storage, superblock, self, end) {
            Ok(Survey { end: Some(found), left }) if found <= end => (found, left),
            // Nothing is known to be in nobody's use, but nothing can be there that is not in the file.
            survey if storage.len().is_ok_and(|len| len >= end) => {
                return Ok((Tail::None(end), survey.map(|survey| survey.left).unwrap_or_default()));
            }
            _ => {
                let len = storage.len().map_err(Error::io("ask for the length of the file"))?;
                return Err(Error::Truncated { len, stated: end });
            }
        };
        let tail = match end - found {
            0 => Tail::None(end),
            _ if !left.live => Tail::None(found),
            1..=MOST_RESTING => Tail::Resting { from: found, end },
            _ => {
                // The end was announced far ahead, so that all of that would be jumped over.
                std::thread::sleep(Reuse::SHORTEST_GRACE);
                Tail::None(found)
            }
        };
        Ok((tail, unsettled))
    }

    /// Bytes of the user block of a new file: none, or at least 512, and a power of two.
    fn user_block_size(&self) -> u64 {
        match self.user_block.len() as u64 {
            0 => 0,
            len => len.next_power_of_two().max(512),
        }
    }

    /// Makes a new file of a storage, whatever it holds.
    pub(crate) fn make(&self, medium: Medium) -> Result<Session> {
        let space = self.space.checked().map_err(Error::Model)?;
        let widths = self.widths()?;
        // A file that was emptied is written to the disk when it is closed, by some file systems: no need of that for a new one.
        if !medium.storage.is_empty().map_err(Error::io("find out the length of the file"))? {
            medium.storage.set_len(0).map_err(Error::io("empty the file"))?;
        }
        // The end is not known before the size, and must not be undefined.
        let version = match self.profile.superblock() {
            // Earlier ones have no extension.
            version @ ..2 if space == FileSpace::default() => version,
            version => version.max(2),
        };
        let root = match version {
            ..2 => Root::Entry(SymbolTableEntry::default()),
            _ => Root::Header(Addr::UNDEFINED),
        };
        let superblock = Superblock { version, widths, end_of_file: Addr::new(1), root, ..Superblock::default() };
        let len = h5live_format::encoded_len(&superblock, superblock.widths)? as u64;
        let at = self.user_block_size();
        let superblock = Superblock { end_of_file: Addr::new(at.saturating_add(len)), ..superblock };
        medium.storage.write_at(&self.user_block, 0).map_err(Error::io("write the user block"))?;
        let mut session = self.write(medium, Found { at, superblock, left: None })?;
        let extension = match space == FileSpace::default() {
            true => Addr::UNDEFINED,
            false => session.create_extension(space)?,
        };
        let header = session.create(&self.root, None)?;
        let root = match version {
            ..2 => Root::Entry(root_entry(&header)?),
            _ => Root::Header(header.addr()),
        };
        session.cache.flush(Scope::All)?;
        session.superblock.root = root.clone();
        session.superblock.extension = extension;
        session.status.change(|superblock| (superblock.root, superblock.extension) = (root, extension));
        session.cache.write_superblock()?;
        Ok(session)
    }

    /// The widths of a new file. Its lengths are not cut short: they say how large a dataset may become.
    fn widths(&self) -> Result<Widths> {
        let offset = match self.offset_size {
            2 => Width::TWO,
            4 => Width::FOUR,
            8 => Width::EIGHT,
            size => {
                let text = format!("addresses have 2, 4 or 8 bytes, and not {size}");
                return Err(Error::Model(h5live_model::Error::Invalid(text)));
            }
        };
        Ok(Widths { offset, ..Widths::default() })
    }
}

/// The way to the root group in superblocks before version 2.
fn root_entry(root: &Header) -> Result<SymbolTableEntry> {
    let cache = match root.get::<SymbolTableMessage>()? {
        Some(SymbolTableMessage { btree, heap }) => SymbolCache::Group { btree, heap },
        None => SymbolCache::None,
    };
    Ok(SymbolTableEntry { name_offset: 0, header: root.addr(), cache })
}

/// The superblock at `at` (bytes from the start of `storage`).
pub(crate) fn read_superblock(storage: &dyn Storage, at: u64) -> Result<Superblock> {
    let mut bytes = vec![0; Superblock::MAX_SIZE];
    let len = storage.read_at(&mut bytes, at).map_err(Error::io("read the superblock"))?;
    bytes.truncate(len);
    superblock_of(&bytes)
}

/// The superblock that is at the beginning of `bytes`.
pub(crate) fn superblock_of(bytes: &[u8]) -> Result<Superblock> {
    if !bytes.starts_with(&Superblock::SIGNATURE) {
        return Err(Error::NotHdf5);
    }
    Superblock::decode(bytes).map_err(Error::Superblock)
}

/// Where the superblock is (bytes from the start of the file), and what it says.
pub(crate) fn locate_superblock(storage: &dyn Storage) -> Result<(u64, Superblock)> {
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

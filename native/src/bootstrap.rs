//! The beginning of a session: the superblock, and taking over from a writer that died.

use std::path::PathBuf;
use std::sync::Arc;

use h5live_cache::{BaseOffsetStorage, Cache, FlushScope, RedoOverlay, ReusePolicy, SpaceKind, StaticOverlay, Storage};
use h5live_format::messages::{BtreeK, SymbolTableMessage};
use h5live_format::{
    Addr, RootGroupLocation, StatusFlags, StructureVersions, Superblock, SymbolTableEntry, SymbolTableScratchPad,
    Width, Widths,
};
use h5live_model::{self as model, FileSpaceSettings};
use h5live_swmr::{
    Error as SwmrError, FoundFileState, GenerationReader, LockHandle, OtherHandlePresence, PendingSuperblock,
    RedoReader, RetryPolicy, UncleanClose, check_file_len, find_redo_record, has_dead_swmr_writer,
    locate_and_rebase_superblock, read_generation_and_eof, replay_redo_record,
};

use crate::global_heap::GlobalHeapReader;
use crate::header::CachedHeader;
use crate::open_options::OpenOptions;
use crate::recovery_scan::{self, RecoveryScan, RepairPlan};
use crate::session::{FollowerPolicy, NativeSession, SessionParts, reuse_policy_without_followers};
use crate::superblock_extension::{apply_cache_image, load_cache_image};
use crate::{Error, Mode, Result, member_files};

/// The location of a file, and the handle through which it is locked.
pub(crate) struct SessionMedium {
    /// The path under which the file was opened; empty for a storage that is no file.
    pub path: PathBuf,
    pub storage: Arc<dyn Storage>,
    pub lock: LockHandle,
}

/// Most bytes at the end of a file that are not used at once when its writer died and nobody else has the file open (more
/// than any is announced ahead, unless it is asked for).
const MAX_RESTING_TAIL_BYTES: u64 = 64 << 20;

/// The end of a file whose writer died, in bytes from the base address.
#[derive(Debug, Clone, Copy)]
enum FileTail {
    /// The file ends here.
    Clean { end: u64 },
    /// The space between these addresses is unused, but a reader may have read a pointer into it before.
    Resting { from: u64, end: u64 },
}

impl FileTail {
    /// Takes over what is unused.
    fn let_rest(self, cache: &Cache, other_handles: OtherHandlePresence) {
        let FileTail::Resting { from, end } = self else { return };
        match other_handles {
            OtherHandlePresence::None => {
                cache.space().adopt_range_with_min_grace(from, end - from, SpaceKind::Metadata)
            }
            _ => cache.space().adopt_unreachable_range(from, end - from, SpaceKind::Metadata),
        }
    }

    fn file_end(self) -> u64 {
        match self {
            FileTail::Clean { end } | FileTail::Resting { end, .. } => end,
        }
    }
}

impl OpenOptions {
    /// Begins to read.
    pub(crate) fn start_reading(&self, medium: SessionMedium) -> Result<NativeSession> {
        let SessionMedium { path, storage, lock } = medium;
        let lock = Arc::new(lock);
        let mut live = self.mode == Mode::SwmrRead;
        let live_retry = || self.retry.for_session(self.clock.clone(), lock.clone());
        let mut retry = if live { live_retry() } else { RetryPolicy::no_retries() };
        let (at, superblock) = retry.retry(|| locate_and_rebase_superblock(&storage))?;
        let flags = superblock.status;
        let (write, swmr) = (flags.contains(StatusFlags::WRITE), flags.allows_concurrent_readers());
        let old = superblock.version < 3;
        // Another SWMR writer may take a file over at any time from one that died.
        if has_dead_swmr_writer(&superblock, &lock, self.access())? && !path.as_os_str().is_empty() {
            live = true;
            retry = live_retry();
        }
        member_files::refuse_revisions(&path)?;
        let storage = retry.retry(|| {
            member_files::join_members(&path, storage.clone(), at, &superblock, self.cache_options(&superblock))
        })?;
        if !live || old && !swmr {
            check_file_len(&storage, &superblock)?;
        }
        if self.mode == Mode::SwmrRead && write && swmr {
            lock.release_flock().map_err(Error::io("unlock the file"))?;
        }
        let storage: Arc<dyn Storage> = Arc::new(BaseOffsetStorage::new(storage, at));
        let overlay = Arc::new(RedoOverlay::new(storage.clone()));
        let storage = if live && old { overlay.clone() } else { storage };
        let redo_reader = RedoReader::new(storage);
        let storage = redo_reader.overlaid_storage();
        let retry = match live {
            true if old => retry,
            true => retry.with_redo_reader(redo_reader),
            false => {
                redo_reader.overlay_record_at_eof(&superblock)?;
                retry
            }
        };
        let mut cache = Arc::new(Cache::new_read_only(storage.clone(), self.cache_options(&superblock)));
        let image = retry.retry(|| load_cache_image(&cache, &superblock))?;
        if !image.is_empty() {
            let rule = "the structures of a metadata cache image do not overlap";
            let header = superblock.extension_or_free_space;
            let storage = StaticOverlay::new(storage, image).ok_or(Error::DamagedObject { header, rule })?;
            cache = Arc::new(Cache::new_read_only(Arc::new(storage), self.cache_options(&superblock)));
        }
        let heap_reader = Arc::<GlobalHeapReader>::default();
        let retry = match live && old {
            true => {
                let reader = GenerationReader::new(overlay, cache.clone(), lock.clone(), heap_reader.clone());
                retry.with_generation_reader(reader)
            }
            false => retry,
        };
        let status = Arc::new(PendingSuperblock::new(superblock.clone()));
        let mode = if live { Mode::SwmrRead } else { self.mode };
        let parts = SessionParts { cache, status, superblock, lock, retry, heap_reader };
        NativeSession::new(parts, &OpenOptions { mode, ..self.clone() }, &path)
    }

    /// Begins to write: from here on the superblock says so.
    pub(crate) fn start_writing(&self, medium: SessionMedium, found: FoundFileState) -> Result<NativeSession> {
        let SessionMedium { path, storage, lock } = medium;
        let FoundFileState { superblock_offset: at, mut superblock, unclean_close, other_handles } = found;
        member_files::refuse_revisions(&path)?;
        let left = unclean_close.filter(|_| !self.skips_recovery || superblock.version < 3);
        if superblock.driver_info.is_defined() {
            return Err(Error::Model(model::Error::Unsupported("changing a file that is cut into several")));
        }
        let len = storage.len().map_err(Error::io("ask for the length of the file"))?;
        let stated = superblock.end_of_file.get().unwrap_or(0);
        superblock.base = Addr::new(at);
        let storage: Arc<dyn Storage> = Arc::new(BaseOffsetStorage::new(storage, at));
        let generation = read_generation_and_eof(&*storage, &superblock)?
            .map(|(generation, _)| generation)
            .filter(|_| left.is_some());
        let record = find_redo_record(&*storage, &superblock)?;
        if let Some(record) = &record {
            replay_redo_record(&*storage, record)?;
        }
        // A writer that died may have left structures beyond the end that it announced; one with redo records has not.
        let end = if left.is_some() && record.is_none() { stated.max(len) } else { stated }.saturating_sub(at);
        let (tail, repair_plan) = match left {
            Some(left) => self.scan_tail(&storage, &superblock, (left, other_handles), end)?,
            None => (FileTail::Clean { end }, RepairPlan::default()),
        };
        let has_generations = superblock.version < 3;
        let followers = FollowerPolicy::new(self, has_generations);
        superblock.status = match self.mode {
            Mode::SwmrWrite => followers.live_flags(has_generations),
            _ if superblock.version >= 3 => StatusFlags::WRITE,
            _ => StatusFlags::CLEAR,
        };
        let status = Arc::new(PendingSuperblock::new(superblock.clone()));
        let settings = self.cache_options(&superblock);
        let cache = Arc::new(Cache::new_writable(storage, settings, tail.file_end(), status.clone()));
        cache.space().set_reuse_policy(match self.mode {
            Mode::SwmrWrite => followers.reuse_policy(),
            _ => reuse_policy_without_followers(other_handles, left.is_some_and(|left| left.may_have_followers)),
        });
        tail.let_rest(&cache, other_handles);
        let image = load_cache_image(&cache, &superblock)?;
        if self.mode == Mode::SwmrWrite && superblock.version < 3 {
            cache.start_publishing_generations(generation)?;
        }
        match self.eof_headroom_bytes {
            headroom if self.mode == Mode::SwmrWrite && headroom > 0 => cache.preextend_file_and_eof(headroom)?,
            _ => cache.write_superblock()?,
        }
        apply_cache_image(&cache, image)?;
        let (lock, retry, heap_reader) = (Arc::new(lock), RetryPolicy::no_retries(), Arc::default());
        let parts = SessionParts { cache, status, superblock, lock, retry, heap_reader };
        let session = NativeSession::new(parts, self, &path)?;
        if self.mode == Mode::SwmrWrite {
            session.let_readers_in()?;
        }
        session.adopt_free_space_drop_image()?;
        let plan = if self.mutant.lacks_recount() { RepairPlan::default() } else { repair_plan };
        recovery_scan::apply_repairs(session, plan)
    }

    /// Finds the structures of a dead writer at the end of the file, which ends at `end` at the latest (bytes from the
    /// base address), and the structures that must be corrected.
    fn scan_tail(
        &self,
        storage: &Arc<dyn Storage>,
        superblock: &Superblock,
        (left, other_handles): (UncleanClose, OtherHandlePresence),
        end: u64,
    ) -> Result<(FileTail, RepairPlan)> {
        let (found, repair_plan) = match recovery_scan::scan_file(storage, superblock, self, end) {
            Ok(RecoveryScan { used_end: Some(found), repair_plan: left }) if found <= end => (found, left),
            // Nothing is known to be in nobody's use, but nothing can be there that is not in the file.
            scan if storage.len().is_ok_and(|len| len >= end) => {
                return Ok((FileTail::Clean { end }, scan.map(|scan| scan.repair_plan).unwrap_or_default()));
            }
            _ => {
                let len = storage.len().map_err(Error::io("ask for the length of the file"))?;
                return Err(SwmrError::Truncated { len, stated: end }.into());
            }
        };
        let tail = match end - found {
            0 => FileTail::Clean { end },
            _ if !left.may_have_followers && other_handles != OtherHandlePresence::Some => {
                FileTail::Clean { end: found }
            }
            unused if unused > MAX_RESTING_TAIL_BYTES && other_handles == OtherHandlePresence::None => {
                // The end was announced far ahead, so that all of that would be jumped over.
                std::thread::sleep(ReusePolicy::MIN_GRACE);
                FileTail::Clean { end: found }
            }
            _ => FileTail::Resting { from: found, end },
        };
        Ok((tail, repair_plan))
    }

    /// Bytes of the user block of a new file: none, or at least 512, and a power of two.
    fn user_block_size(&self) -> u64 {
        match self.user_block.len() as u64 {
            0 => 0,
            len => len.next_power_of_two().max(512),
        }
    }

    /// Makes a new file in a storage, and drops the contents of the storage.
    pub(crate) fn start_new(&self, medium: SessionMedium) -> Result<NativeSession> {
        let space = self.space.validate_and_normalize().map_err(Error::Model)?;
        let (widths, btree_k) = (self.superblock_widths()?, self.btree_k.validate()?);
        // A file that was emptied is written to the disk when it is closed, by some file systems: no need of that for a
        // new one.
        if !medium.storage.is_empty().map_err(Error::io("find out the length of the file"))? {
            medium.storage.set_len(0).map_err(Error::io("empty the file"))?;
        }
        // The end is not known before the size, and must not be undefined.
        let version = match self.profile.min_superblock_version() {
            // Earlier ones have no extension.
            // Version 1 has the K of chunks.
            version @ ..2 if space == FileSpaceSettings::default() => match btree_k.chunk == BtreeK::default().chunk {
                true => version,
                false => version.max(1),
            },
            version => version.max(2),
        };
        let root = match version {
            ..2 => RootGroupLocation::Entry(SymbolTableEntry::default()),
            _ => RootGroupLocation::Header(Addr::UNDEFINED),
        };
        let superblock =
            Superblock { version, widths, btree_k, end_of_file: Addr::new(1), root, ..Superblock::default() };
        let len = h5live_format::encoded_len(&superblock, superblock.widths)? as u64;
        let at = self.user_block_size();
        let superblock = Superblock { end_of_file: Addr::new(at.saturating_add(len)), ..superblock };
        medium.storage.write_at(&self.user_block, 0).map_err(Error::io("write the user block"))?;
        let mut session = self.start_writing(
            medium,
            FoundFileState {
                superblock_offset: at,
                superblock,
                unclean_close: None,
                other_handles: OtherHandlePresence::None,
            },
        )?;
        let has_extension = space != FileSpaceSettings::default() || version >= 2 && btree_k != BtreeK::default();
        let extension = if has_extension { session.create_superblock_extension(space)? } else { Addr::UNDEFINED };
        let header = session.create_object(&self.root, None)?;
        let root = match version {
            ..2 => RootGroupLocation::Entry(root_entry(&header)?),
            _ => RootGroupLocation::Header(header.addr()),
        };
        session.cache.flush(FlushScope::All)?;
        session.superblock.root = root.clone();
        session.superblock.extension_or_free_space = extension;
        session
            .status
            .change_superblock(|superblock| (superblock.root, superblock.extension_or_free_space) = (root, extension));
        session.cache.write_superblock()?;
        Ok(session)
    }

    /// The widths of a new file. Its lengths are not cut short: they say how large a dataset may become.
    fn superblock_widths(&self) -> Result<Widths> {
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
fn root_entry(root: &CachedHeader) -> Result<SymbolTableEntry> {
    let cache = match root.get_message::<SymbolTableMessage>()? {
        Some(SymbolTableMessage { btree, heap }) => SymbolTableScratchPad::Group { btree, heap },
        None => SymbolTableScratchPad::None,
    };
    Ok(SymbolTableEntry { name_offset: 0, header: root.addr(), cache })
}

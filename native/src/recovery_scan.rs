//! The recovery scan: finds the real end of a file whose writer has died, and what that writer has left. It visits
//! everything to which the file leads.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use h5live_cache::{Cache, FlushScope, Storage};
use h5live_format::messages::MessageType;
use h5live_format::{Addr, GlobalHeapCollection, Superblock};
use h5live_model::{Error as ModelError, LinkTarget, ObjectKind};

use crate::attributes::AttributeStorage;
use crate::dataset::NativeDataset;
use crate::links::LinkStorage;
use crate::object_kind::{committed_datatype, kind_of};
use crate::open_options::OpenOptions;
use crate::recount::{HighestCreationOrders, ObjectToRepair, ObjectUses};
use crate::session::{NativeSession, SessionParts};
use crate::{Error, Mode, Result, RetryPolicy, superblock_extension};
use h5live_swmr::LockHandle;
use h5live_swmr::PendingSuperblock;

/// Bytes of the file that are searched at a time for collections of the global heap.
const SCAN_BLOCK_BYTES: usize = 1 << 20;

/// The search ends after this many zero bytes. They belong to an end that was announced far ahead.
const MAX_ZERO_RUN_BYTES: u64 = 1 << 30;

/// A storage that nothing changes.
#[derive(Debug)]
struct UnmodifiedStorage(Arc<dyn Storage>);

impl UnmodifiedStorage {
    fn refuse() -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

impl Storage for UnmodifiedStorage {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.0.read_at(into, at)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Self::refuse()
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Self::refuse()
    }

    fn sync(&self) -> io::Result<()> {
        Self::refuse()
    }
}

/// The result of a scan.
#[derive(Debug, Default)]
pub(crate) struct RecoveryScan {
    /// The end of everything to which the file leads, in bytes from the base address, if it could be found.
    pub used_end: Option<u64>,
    /// The structures that must be corrected.
    pub repair_plan: RepairPlan,
}

/// Structures of a dead writer that must be corrected.
#[derive(Debug, Default)]
pub(crate) struct RepairPlan {
    /// The datasets with chunks outside of their extents.
    datasets_to_trim: Vec<Addr>,
    /// The objects whose structures contradict each other.
    objects_to_recount: Vec<ObjectToRepair>,
}

/// Scans a file from its base address on, at which `storage` begins. Heap collections to which only elements of
/// variable length lead are found by their signature, below `limit`.
///
/// # Errors
/// If a structure cannot be read, or if the scan may be incomplete.
pub(crate) fn scan_file(
    storage: &Arc<dyn Storage>,
    superblock: &Superblock,
    options: &OpenOptions,
    limit: u64,
) -> Result<RecoveryScan> {
    let session = open_scan_session(storage, superblock, options, limit)?;
    let found = scan_objects(&session);
    session.abandon();
    let superblock_end = h5live_format::encoded_len(superblock, superblock.widths)? as u64;
    let found = found?;
    let end = found
        .used_end
        .map(|end| find_collections_end(&**storage, superblock, end.max(superblock_end), limit))
        .transpose()?;
    Ok(RecoveryScan { used_end: end, ..found })
}

/// A session that changes a file in memory only, from its base address on, at which `storage` begins, up to `limit`.
///
/// # Errors
/// If the superblock extension cannot be read.
pub(crate) fn open_scan_session(
    storage: &Arc<dyn Storage>,
    superblock: &Superblock,
    options: &OpenOptions,
    limit: u64,
) -> Result<Arc<NativeSession>> {
    let storage: Arc<dyn Storage> = Arc::new(UnmodifiedStorage(storage.clone()));
    let status = Arc::new(PendingSuperblock::new(superblock.clone()));
    let cache = Arc::new(Cache::new_writable(storage, options.cache_options(superblock), limit, status.clone()));
    let options = OpenOptions { mode: Mode::Write, ..options.clone() };
    let (lock, retry, heap_reader) = (Arc::new(LockHandle::without_file()), RetryPolicy::no_retries(), Arc::default());
    let parts = SessionParts { cache, status, superblock: superblock.clone(), lock, retry, heap_reader };
    Ok(Arc::new(NativeSession::new(parts, &options, Path::new(""))?))
}

/// Drops the chunks that a dead writer has left outside of the extents of datasets. Otherwise they would come back with
/// their old elements when the datasets grow. Corrects structures that contradict each other.
///
/// # Errors
/// If a structure cannot be read or changed, or the file cannot be written.
pub(crate) fn apply_repairs(session: NativeSession, repair_plan: RepairPlan) -> Result<NativeSession> {
    let RepairPlan { datasets_to_trim, objects_to_recount } = repair_plan;
    if datasets_to_trim.is_empty() && objects_to_recount.is_empty() {
        return Ok(session);
    }
    let session = Arc::new(session);
    for addr in datasets_to_trim {
        NativeDataset::open(&session, addr)?.free_unpublished_chunks()?;
    }
    objects_to_recount.iter().try_for_each(|object| session.repair_counts_and_indexes(object))?;
    session.flush(FlushScope::All)?;
    // Every dataset is closed again.
    Arc::into_inner(session).ok_or(Error::Model(ModelError::Closed))
}

/// Gives up every object, in memory, and returns the end of what that would free.
fn scan_objects(session: &Arc<NativeSession>) -> Result<RecoveryScan> {
    // Shared messages may lie behind everything else, and use objects by themselves.
    let is_whole = session.extension.shared.is_none();
    let _operation = session.cache.begin_atomic_change();
    let (mut end, mut datasets_to_trim, mut counts) = (0, Vec::new(), ObjectUses::default());
    let mut reach = |at: Addr, len: u64| end = end.max(at.get().map_or(0, |at| at.saturating_add(len)));
    if let Some(header) = superblock_extension::load_extension_header(&session.cache, &session.superblock)? {
        if header.has_message(MessageType::CACHE_IMAGE) {
            return Err(Error::Model(ModelError::Unsupported("finding the end of a file with a cache image")));
        }
        header.chunk_ranges().for_each(|(at, len)| reach(at, len as u64));
    }
    let mut seen = HashSet::new();
    let mut waiting = vec![session.superblock.root.header()];
    while let Some(addr) = waiting.pop() {
        counts.add_use(addr);
        if !seen.insert(addr) {
            continue;
        }
        let mut header = session.load_header(addr)?;
        let mut newest = HighestCreationOrders::default();
        let object = |id| session.header_addr_of(id);
        let attributes = AttributeStorage::load(session, &header)?;
        if matches!(attributes, AttributeStorage::Compact) && header.chunk_nodes().nth(1).is_some() {
            let mut names = HashSet::new();
            let held = AttributeStorage::list_compact_attributes(session, &header)?;
            newest.has_duplicate_attributes = !held.into_iter().all(|(_, stored)| names.insert(stored.message.name));
        }
        attributes.for_each_attribute(session, &header, &mut |stored| {
            newest.attribute_order = newest.attribute_order.max(Some(stored.creation_order));
            waiting.extend(committed_datatype(stored.message.datatype.shared()).map(object).transpose()?);
            Ok(true)
        })?;
        match kind_of(&header)? {
            ObjectKind::Group => LinkStorage::load(session, &header)?.for_each_link(&header, &mut |link| {
                newest.link_order = newest.link_order.max(link.creation_order);
                if let LinkTarget::Hard(id) = link.target {
                    waiting.extend(object(id).ok());
                }
                true
            })?,
            ObjectKind::Dataset => {
                let dataset = NativeDataset::open(session, addr)?;
                waiting.extend(dataset.committed_datatype().map(object).transpose()?);
                dataset.for_each_raw_range_unpublished(&mut reach)?;
                if dataset.has_unpublished_chunks()? {
                    datasets_to_trim.push(addr);
                }
                dataset.delete_index()?;
            }
            _ => {}
        }
        counts.add_visited_object(session, &mut header, newest)?;
        session.free_link_and_attribute_storage(&header)?;
        header.delete_header();
    }
    let repair_plan = RepairPlan { datasets_to_trim, objects_to_recount: counts.into_objects_to_repair(is_whole) };
    Ok(RecoveryScan { used_end: is_whole.then(|| end.max(session.cache.space().max_freed_end())), repair_plan })
}

/// The end of the last collection of the global heap that begins between `end` and `limit`; `end` if there is none.
fn find_collections_end(storage: &dyn Storage, superblock: &Superblock, end: u64, limit: u64) -> Result<u64> {
    let mut found = end;
    let mut at = end;
    let mut empty = 0;
    let mut bytes = vec![0; SCAN_BLOCK_BYTES + GlobalHeapCollection::PREFIX_BYTES];
    while at < limit && empty < MAX_ZERO_RUN_BYTES {
        let len = storage.read_at(&mut bytes, at).map_err(Error::io("search the end of the file"))?;
        let stretch = bytes.get(..len).unwrap_or_default();
        for (place, start) in stretch.windows(GlobalHeapCollection::PREFIX_BYTES).enumerate().take(SCAN_BLOCK_BYTES) {
            if start.starts_with(b"GCOL")
                && let Ok(size) = GlobalHeapCollection::stated_size(start, superblock.widths)
            {
                let last = at.saturating_add(place as u64).saturating_add(size);
                found = if last <= limit { found.max(last) } else { found };
            }
        }
        if len < bytes.len() {
            break;
        }
        empty = if stretch.iter().all(|byte| *byte == 0) { empty + SCAN_BLOCK_BYTES as u64 } else { 0 };
        at += SCAN_BLOCK_BYTES as u64;
    }
    Ok(found)
}

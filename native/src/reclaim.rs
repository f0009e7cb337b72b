//! Deleting the objects to which no path leads.

use std::path::Path;
use std::sync::Arc;

use h5live_cache::{FlushScope, FreeList};
use h5live_checker::file::{CheckOptions, check_path_with};
use h5live_format::Addr;
use h5live_format::messages::FileSpaceStrategy;
use h5live_model::{Leak, LeakLocation, ReclaimReport};

use crate::object_deletion::add_object_to_plan;
use crate::session::NativeSession;
use crate::unlinked_objects::DeletePlan;
use crate::unreachable::{UnreachableObjects, find_unreachable};
use crate::{Error, Mode, OpenOptions, Result, repair};

/// Zeros in the place of the signature of a deleted header, so that nobody takes it for that of an object.
const NO_SIGNATURE: [u8; 4] = [0; 4];

/// Repairs the file at `path`, and deletes the objects to which no path leads: groups that lead to each other in a circle
/// of hard links, and what is only in them. The objects outside to which they had links count fewer.
///
/// The space is given back as that of any deleted object: the file becomes shorter if the space is at its end, and a
/// file that keeps a list of its free space has it there. So is what earlier sessions have left unused, if all of the
/// file can be followed. Values of variable length stay in the heaps of the file.
///
/// # Errors
/// As [`repair`]; if a structure to which a path leads cannot be read; [`h5live_model::Error::Unsupported`] for a file
/// with shared messages. Nothing has changed then.
pub fn repair_and_reclaim_unreachable(path: &Path, options: &OpenOptions) -> Result<ReclaimReport> {
    let before = repair(path, options)?.after;
    let options = OpenOptions { mode: Mode::Write, ..options.clone() };
    let session = Arc::new(options.open(path)?);
    let base = session.superblock.base.get().unwrap_or(0);
    let found = find_unreachable(&session, &options)?;
    session.delete_unreachable(&found)?;
    session.close()?;
    free_unused(path, &options)?;
    let place = |addr: Addr| LeakLocation::ObjectHeaderOffset(base.saturating_add(addr.get().unwrap_or(0)));
    let objects = found.objects.iter().map(|object| Leak {
        place: place(object.addr),
        kind: Some(object.kind),
        bytes: object.total_bytes(),
    });
    let headers = found.leftover_headers.iter();
    let headers = headers.map(|(addr, bytes)| Leak { place: place(*addr), kind: None, bytes: *bytes });
    let after = h5live_swmr::diagnose_open_state(path)?;
    Ok(ReclaimReport {
        deleted_leaks: objects.chain(headers).collect(),
        size_before: before.length,
        size_after: after.length,
    })
}

/// Gives back the bytes that nothing uses, though nobody knows them to be free. A file of pages keeps them, for a part of a
/// page is not free by itself.
fn free_unused(path: &Path, options: &OpenOptions) -> Result<()> {
    let session = options.open(path)?;
    if session.extension.space.strategy != FileSpaceStrategy::Paged {
        let (space, base) = (session.cache.space(), session.superblock.base.get().unwrap_or(0));
        let mut unused = find_unused(path, options, base)?;
        for (at, len, _) in space.free_sections() {
            unused.remove_if_free(at, len);
        }
        unused.sections().for_each(|(at, len)| space.free_metadata_after_full_flush(Addr::new(at), len));
    }
    session.close()
}

/// The bytes that nothing uses, from the base address; none if some of the file cannot be followed. A session has the file
/// open, and has changed nothing.
fn find_unused(path: &Path, options: &OpenOptions, base: u64) -> Result<FreeList> {
    let look = CheckOptions {
        reports_leaks: true,
        may_be_live: true,
        max_total_value_bytes: u64::MAX,
        filter_engine: Some(&*options.filter_engine),
        max_chunk_bytes: options.max_allocation.bytes(),
        ..CheckOptions::default()
    };
    let report = check_path_with(path, look).map_err(Error::io("look for unused space"))?;
    let mut unused = FreeList::default();
    if report.is_clean() && report.has_followed_everything {
        report.leaks.iter().for_each(|range| unused.free_range(range.offset.saturating_sub(base), range.len));
    }
    Ok(unused)
}

impl NativeSession {
    /// Deletes unreachable objects, and gives back their space.
    fn delete_unreachable(self: &Arc<Self>, found: &UnreachableObjects) -> Result<()> {
        if found.objects.is_empty() && found.leftover_headers.is_empty() {
            return Ok(());
        }
        let operation = self.cache.begin_atomic_change();
        let (mut plan, mut uses) = (DeletePlan::default(), Vec::new());
        for object in &found.objects {
            let header = self.load_header(object.addr)?;
            add_object_to_plan(&mut plan, self, &header, &mut uses)?;
            plan.deleted_objects.insert(object.addr);
        }
        for addr in uses {
            *plan.lost_uses.entry(addr).or_default() += 1;
        }
        self.subtract_lost_uses(&plan)?;
        self.free_deleted(plan)?;
        let space = self.cache.space();
        found.leftover_headers.iter().for_each(|(addr, len)| space.free_metadata_after_full_flush(*addr, *len));
        drop(operation);
        self.cache.flush(FlushScope::All)?;
        let headers = found.objects.iter().map(|object| object.addr);
        for addr in headers.chain(found.leftover_headers.iter().map(|(addr, _)| *addr)).filter_map(Addr::get) {
            let wiped = self.cache.storage().write_at(&NO_SIGNATURE, addr);
            wiped.map_err(Error::io("overwrite the header of a deleted object"))?;
        }
        Ok(())
    }
}

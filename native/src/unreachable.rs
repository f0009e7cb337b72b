//! Objects to which no path leads. Groups that lead to each other in a circle of hard links keep each other and what is
//! in them when the last link from outside is removed.
//!
//! The search first visits everything that the root group leads to, and gives it up in memory: the rest of the file is
//! unused. Object headers in unused bytes are of such objects, or of objects that were deleted. A header is that of an
//! object only if unreachable objects lead to it as often as it states, and if nothing that it leads to is used by
//! another object. Of the others only the header itself counts as unused.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use h5live_cache::FreeList;
use h5live_format::{
    Addr, FirstHeaderChunk, GlobalHeapCollection, ObjectHeaderPrefix, SymbolTableNode, decode_prefix,
    decode_prefix_with,
};
use h5live_model::{Error as ModelError, ObjectKind};

use crate::object_deletion::add_object_to_plan;
use crate::object_kind::kind_of;
use crate::open_options::OpenOptions;
use crate::recovery_scan::open_scan_session;
use crate::session::NativeSession;
use crate::superblock_extension::load_extension_header;
use crate::unlinked_objects::DeletePlan;
use crate::{Error, Result};

/// Bytes of the file that are searched at a time.
const SCAN_BLOCK_BYTES: u64 = 1 << 20;
/// Bytes of a signature.
const SIGNATURE_BYTES: usize = 4;
/// More headers are not looked at, so that a hostile file cannot use up the memory.
const MAX_CANDIDATES: usize = 1 << 20;

/// An object to which no path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnreachableObject {
    pub addr: Addr,
    pub kind: ObjectKind,
    /// Links and other uses that it states.
    stated_links: u32,
    /// The objects that it uses: hard links of a group, committed datatypes.
    pub uses: Vec<Addr>,
    /// Everything that it takes: first byte and length (bytes).
    ranges: Vec<(u64, u64)>,
}

impl UnreachableObject {
    /// Bytes that it takes.
    pub fn total_bytes(&self) -> u64 {
        self.ranges.iter().fold(0, |sum, (_, len)| sum.saturating_add(*len))
    }
}

/// The result of a search.
#[derive(Debug, Default)]
pub(crate) struct UnreachableObjects {
    /// The objects, by address.
    pub objects: Vec<UnreachableObject>,
    /// The first chunks of headers that objects had before they were deleted: address and length (bytes).
    pub leftover_headers: Vec<(Addr, u64)>,
}

/// Finds the objects of a file to which no path leads. `session` has the file open for writing, and has changed
/// nothing.
///
/// # Errors
/// If a structure to which a path leads cannot be read; [`ModelError::Unsupported`] for a file with shared messages,
/// which use objects by themselves.
pub(crate) fn find_unreachable(session: &NativeSession, options: &OpenOptions) -> Result<UnreachableObjects> {
    if session.extension.shared.is_some() {
        return Err(Error::Model(ModelError::Unsupported("a search for unreachable objects among shared messages")));
    }
    let end = session.cache.space().allocated_end();
    let scan = open_scan_session(session.cache.storage(), &session.superblock, options, end)?;
    Search { end, scan, used: FreeList::default() }.run(session)
}

struct Search {
    /// The end of the allocated space.
    end: u64,
    /// A session that gives up objects in memory.
    scan: Arc<NativeSession>,
    /// Bytes that are used, or known to be free.
    used: FreeList,
}

impl Search {
    fn run(mut self, session: &NativeSession) -> Result<UnreachableObjects> {
        let found = self.mark_used(session).and_then(|()| self.sort_out());
        self.scan.abandon();
        found
    }

    /// Notes what the superblock and everything reachable take, and what is known to be free.
    fn mark_used(&mut self, session: &NativeSession) -> Result<()> {
        let superblock_end = h5live_format::encoded_len(&session.superblock, session.superblock.widths)? as u64;
        self.used.free_range(0, superblock_end);
        session.cache.space().free_sections().into_iter().for_each(|(at, len, _)| self.used.free_range(at, len));
        if let Some(header) = load_extension_header(&self.scan.cache, &session.superblock)? {
            for (at, len) in header.chunk_ranges() {
                self.used.free_range(at.get().unwrap_or(self.end), len as u64);
            }
        }
        let mut seen = HashSet::new();
        let mut waiting = vec![session.superblock.root.header()];
        while let Some(addr) = waiting.pop() {
            if seen.insert(addr) {
                let object = self.give_up(addr)?;
                object.ranges.iter().for_each(|(at, len)| self.used.free_range(*at, *len));
                waiting.extend(object.uses);
            }
        }
        Ok(())
    }

    /// Gives up an object in memory, and says what it took.
    fn give_up(&self, addr: Addr) -> Result<UnreachableObject> {
        let _operation = self.scan.cache.begin_atomic_change();
        let before = self.scan.cache.space().freed_sections_awaiting_full_flush().len();
        let header = self.scan.load_header(addr)?;
        let (kind, stated_links) = (kind_of(&header)?, header.object_info()?.hard_link_count);
        let (mut plan, mut uses) = (DeletePlan::default(), Vec::new());
        add_object_to_plan(&mut plan, &self.scan, &header, &mut uses)?;
        plan.deleted_objects.insert(addr);
        drop(header);
        self.scan.free_deleted(plan)?;
        let ranges = self.scan.cache.space().freed_sections_awaiting_full_flush().split_off(before);
        Ok(UnreachableObject { addr, kind, stated_links, uses, ranges })
    }

    /// Looks at everything unused.
    fn sort_out(&mut self) -> Result<UnreachableObjects> {
        let (headers, symbols) = self.find_candidates()?;
        let mut objects = HashMap::new();
        let mut waiting: Vec<Addr> = headers.keys().copied().chain(symbols).collect();
        while let Some(addr) = waiting.pop() {
            let is_unused = addr.get().is_some_and(|at| at < self.end && !self.used.overlaps(at, 1));
            if !is_unused || objects.contains_key(&addr) || objects.len() == MAX_CANDIDATES {
                continue;
            }
            // What cannot be read was deleted, and partly overwritten.
            if let Ok(object) = self.give_up(addr)
                && !object.ranges.iter().any(|(at, len)| self.used.overlaps(*at, *len))
            {
                waiting.extend(&object.uses);
                objects.insert(addr, object);
            }
        }
        keep_consistent(&mut objects);
        let mut taken = FreeList::default();
        objects.values().flat_map(|object| &object.ranges).for_each(|(at, len)| taken.free_range(*at, *len));
        let mut leftover_headers: Vec<_> = headers.into_iter().collect();
        leftover_headers.retain(|(addr, len)| addr.get().is_some_and(|at| !taken.overlaps(at, *len)));
        leftover_headers.sort_unstable();
        let mut objects: Vec<_> = objects.into_values().collect();
        objects.sort_unstable_by_key(|object| object.addr);
        Ok(UnreachableObjects { objects, leftover_headers })
    }

    /// The headers of version 2 in unused bytes, with the lengths of their first chunks, and the objects that symbol
    /// tables in unused bytes name: headers of version 1 cannot be told from other bytes.
    fn find_candidates(&mut self) -> Result<(HashMap<Addr, u64>, Vec<Addr>)> {
        // Values of variable length, to which only elements lead, may hold anything.
        for (at, bytes) in self.find_signatures(b"GCOL", GlobalHeapCollection::PREFIX_BYTES as u64)? {
            if let Ok(size) = GlobalHeapCollection::stated_size(&bytes, self.scan.cache.widths()) {
                self.used.free_range(at, size.min(self.end.saturating_sub(at)));
            }
        }
        let mut headers = HashMap::new();
        for (at, bytes) in self.find_signatures(b"OHDR", ObjectHeaderPrefix::MAX_LEN as u64)? {
            headers.extend(self.first_chunk_len(at, &bytes)?.map(|len| (Addr::new(at), len)));
        }
        let blank = SymbolTableNode::for_k(self.scan.extension.btree_k);
        let mut symbols = Vec::new();
        for (_, bytes) in self.find_signatures(b"SNOD", blank.size(self.scan.cache.widths()) as u64)? {
            let node = decode_prefix_with(blank.clone(), &bytes, self.scan.cache.widths());
            symbols.extend(node.into_iter().flat_map(|(node, _)| node.entries).map(|entry| entry.header));
        }
        Ok((headers, symbols))
    }

    /// The places in unused bytes where this signature is, and at most `len` bytes from there on.
    fn find_signatures(&self, signature: &[u8; SIGNATURE_BYTES], len: u64) -> Result<Vec<(u64, Vec<u8>)>> {
        let mut found = Vec::new();
        let mut from = 0;
        let uses: Vec<_> = self.used.sections().chain([(self.end, 0)]).collect();
        for (used, size) in uses {
            let end = used.min(self.end);
            while from < end {
                let window = self.read(from, SCAN_BLOCK_BYTES.min(end - from))?;
                for (place, _) in window.windows(SIGNATURE_BYTES).enumerate().filter(|(_, bytes)| bytes == signature) {
                    let at = from.saturating_add(place as u64);
                    if found.len() < MAX_CANDIDATES {
                        found.push((at, self.read(at, len.min(end - at))?));
                    }
                }
                // A signature may lie across two windows.
                let step = (window.len() as u64).saturating_sub(SIGNATURE_BYTES as u64 - 1).max(1);
                from = if (window.len() as u64) < SCAN_BLOCK_BYTES { end } else { from.saturating_add(step) };
            }
            from = from.max(used.saturating_add(size));
        }
        Ok(found)
    }

    /// The length of the first chunk of a whole object header of version 2 at `at`, which begins with `bytes`.
    fn first_chunk_len(&self, at: u64, bytes: &[u8]) -> Result<Option<u64>> {
        let widths = self.scan.cache.widths();
        let Ok((prefix, _)) = decode_prefix::<ObjectHeaderPrefix>(bytes, widths) else { return Ok(None) };
        let len = prefix.first_chunk_len();
        if at.checked_add(len).is_none_or(|end| end > self.end) || self.used.overlaps(at, len) {
            return Ok(None);
        }
        let whole = self.read(at, len)?;
        Ok(decode_prefix::<FirstHeaderChunk>(&whole, widths).is_ok().then_some(len))
    }

    /// At most `len` bytes at `at`.
    fn read(&self, at: u64, len: u64) -> Result<Vec<u8>> {
        Ok(self.scan.cache.read_uncached_to_eof(Addr::new(at), usize::try_from(len).unwrap_or(usize::MAX))?)
    }
}

/// Leaves the objects to which others of them lead as often as they state, and that share no bytes.
fn keep_consistent(objects: &mut HashMap<Addr, UnreachableObject>) {
    loop {
        let mut wrong = sharing_bytes(objects);
        let mut found: HashMap<Addr, u32> = HashMap::new();
        objects.values().flat_map(|object| &object.uses).for_each(|used| *found.entry(*used).or_default() += 1);
        let uses = |addr: &Addr| found.get(addr).copied().unwrap_or(0);
        let is_deleted = |object: &UnreachableObject| uses(&object.addr) < object.stated_links.max(1);
        wrong.extend(objects.values().filter(|object| is_deleted(object)).map(|object| object.addr));
        if wrong.is_empty() {
            return;
        }
        objects.retain(|addr, _| !wrong.contains(addr));
    }
}

/// The objects that have bytes in common.
fn sharing_bytes(objects: &HashMap<Addr, UnreachableObject>) -> HashSet<Addr> {
    let ranges = objects.values().flat_map(|object| object.ranges.iter().map(|range| (*range, object.addr)));
    let mut ranges: Vec<_> = ranges.collect();
    ranges.sort_unstable();
    let (mut sharing, mut last) = (HashSet::new(), None);
    for ((at, len), addr) in ranges {
        let end = at.saturating_add(len);
        match last {
            Some((before, owner)) if before > at => {
                sharing.extend([owner, addr]);
                last = Some((end.max(before), if end > before { addr } else { owner }));
            }
            _ => last = Some((end, addr)),
        }
    }
    sharing
}

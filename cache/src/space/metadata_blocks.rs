//! Metadata blocks: blocks of a large file that hold only small structures, so that these lie near each other. A reader
//! of an index then reads one part of the disk, and a writer through a mapping needs few windows.

use std::{collections::BTreeMap, ops::Range};

use super::{free_list::FreeList, space_kind::OS_PAGE_BYTES};

/// A block takes so small a part of the file...
const BLOCK_FILE_FRACTION: u64 = 64;
/// ...within these bounds (bytes). Files that are too small for this have no blocks.
const BLOCK_BYTES: Range<u64> = 64 << 10..1 << 20;

/// Most sections that are kept apart.
const MAX_RECENT_FREES: usize = 64;

/// The blocks and their free space.
#[derive(Debug, Default)]
pub(super) struct MetadataBlocks {
    /// All of them: where each begins, and where it ends.
    all: BTreeMap<u64, u64>,
    free: FreeList,
    recent: RecentFrees,
    /// The part of the newest block that was never allocated.
    never_used: Range<u64>,
    /// No more blocks are added.
    closed: bool,
}

/// The sections that were freed last, all of one length: nodes of a tree come and go.
#[derive(Debug, Default)]
struct RecentFrees {
    section_len: u64,
    addrs: Vec<u64>,
}

impl RecentFrees {
    /// Whether a section was taken up: it is of that length, there is room, and it overlaps none.
    fn try_push(&mut self, at: u64, len: u64) -> bool {
        if self.addrs.is_empty() {
            self.section_len = len;
        }
        let has_room = self.section_len == len && self.addrs.len() < MAX_RECENT_FREES;
        let takes = has_room && self.addrs.iter().all(|other| other.abs_diff(at) >= len);
        if takes {
            self.addrs.push(at);
        }
        takes
    }

    fn pop(&mut self, len: u64) -> Option<u64> {
        if self.section_len == len { self.addrs.pop() } else { None }
    }

    /// First byte and length of each.
    fn sections(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.addrs.iter().map(|at| (*at, self.section_len))
    }
}

impl MetadataBlocks {
    /// Bytes of a new block in a file of `file_len` bytes; `None` if structures of `len` bytes do not go into blocks there.
    pub fn block_size_for(&self, len: u64, file_len: u64) -> Option<u64> {
        let size = (file_len / BLOCK_FILE_FRACTION).min(BLOCK_BYTES.end);
        (len <= OS_PAGE_BYTES && size >= BLOCK_BYTES.start && !self.closed).then_some(size - size % BLOCK_BYTES.start)
    }

    /// Adds a block at `at`. Nothing else may use its bytes.
    pub fn add_block(&mut self, at: u64, size: u64) {
        let block = at..at.saturating_add(size);
        self.all.insert(at, block.end);
        let Range { start, end } = std::mem::replace(&mut self.never_used, block);
        self.free.free_range(start, end - start);
    }

    /// Takes `len` bytes that were freed last, if that is where `first_fitting_addr` puts them.
    pub fn take_recently_freed(&mut self, len: u64, first_fitting_addr: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let at = self.recent.pop(len)?;
        if first_fitting_addr(at) == Some(at) {
            return Some(at);
        }
        self.free.free_range(at, len);
        None
    }

    /// Takes `len` bytes where `first_fitting_addr` puts them.
    pub fn alloc_in_block(&mut self, len: u64, first_fitting_addr: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        self.free
            .take_best_fit(len, &first_fitting_addr)
            .or_else(|| self.take_never_used(len, &first_fitting_addr))
            .or_else(|| {
                self.merge_recent();
                self.free.take_best_fit(len, &first_fitting_addr)
            })
    }

    fn take_never_used(&mut self, len: u64, place: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let at = place(self.never_used.start)?;
        let end = at.checked_add(len).filter(|end| *end <= self.never_used.end)?;
        self.free.free_range(self.never_used.start, at - self.never_used.start);
        self.never_used.start = end;
        Some(at)
    }

    /// Merges the sections that were freed last with the rest.
    fn merge_recent(&mut self) {
        let recent = std::mem::take(&mut self.recent);
        recent.sections().for_each(|(at, len)| self.free.free_range(at, len));
    }

    /// Adds `len` free bytes at `at`, if they lie in a block; says whether they do.
    pub fn free_if_in_block(&mut self, at: u64, len: u64) -> bool {
        let ends_by = |end: u64| at.checked_add(len).is_some_and(|last| last <= end);
        let is_inside = self.all.range(..=at).next_back().is_some_and(|(_, end)| ends_by(*end));
        if is_inside && (self.free.overlaps(at, len) || !self.recent.try_push(at, len)) {
            self.merge_recent();
            self.free.free_range(at, len);
        }
        is_inside
    }

    /// The first border of a block behind `at`.
    pub fn next_block_boundary(&self, at: u64) -> u64 {
        let of_this = self.all.range(..=at).next_back().map(|(_, end)| *end).filter(|end| *end > at);
        let of_next = || self.all.range(at.saturating_add(1)..).next().map(|(start, _)| *start);
        of_this.or_else(of_next).unwrap_or(u64::MAX)
    }

    /// Removes all blocks, and returns their free space.
    pub fn close_and_take_free(&mut self) -> Self {
        self.merge_recent();
        std::mem::replace(self, MetadataBlocks { closed: true, ..MetadataBlocks::default() })
    }

    /// All free bytes: first byte and length of each section.
    pub fn free_sections(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let fresh =
            Some((self.never_used.start, self.never_used.end - self.never_used.start)).filter(|(_, len)| *len > 0);
        self.free.sections().chain(self.recent.sections()).chain(fresh)
    }

    /// How many bytes are free.
    pub fn total_free_bytes(&self) -> u64 {
        let recent = self.recent.section_len.saturating_mul(self.recent.addrs.len() as u64);
        self.free.total_bytes().saturating_add(recent).saturating_add(self.never_used.end - self.never_used.start)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use h5live_format::{Addr, Width};

    use crate::{clock::Clock, space::FileSpaceAllocator, space::SpaceKind};

    const LARGE: u64 = 100 << 20;

    fn space(end: u64) -> FileSpaceAllocator {
        FileSpaceAllocator::new(end, Width::EIGHT, Clock::default(), false)
    }

    fn alloc(space: &FileSpaceAllocator, len: u64, kind: SpaceKind) -> u64 {
        space.alloc(len, kind).unwrap().get().unwrap()
    }

    #[test]
    fn small_structures_of_a_large_file_lie_together_whatever_comes_between() {
        let space = space(LARGE);
        let mut nodes = Vec::new();
        for _ in 0..1000 {
            nodes.push(alloc(&space, 2048, SpaceKind::Metadata));
            alloc(&space, 4096, SpaceKind::Raw);
        }
        let far = nodes.windows(2).filter(|pair| pair[1] != pair[0] + 2048).count();
        assert_eq!(far, 1, "two blocks of 1 MiB hold 1024 of them");
        assert_eq!(space.allocated_end() - LARGE, (2 << 20) + 1000 * 4096, "and nothing more is taken");
    }

    #[test]
    fn what_was_a_structure_in_a_block_is_not_given_to_raw_data() {
        let space = space(LARGE);
        let nodes: Vec<u64> = (0..100).map(|_| alloc(&space, 2048, SpaceKind::Metadata)).collect();
        nodes.iter().for_each(|at| space.adopt_unreachable_range(*at, 2048, SpaceKind::Metadata));
        assert!(alloc(&space, 4096, SpaceKind::Raw) >= LARGE + (1 << 20));
        assert!(alloc(&space, 8192, SpaceKind::Metadata) >= LARGE + (1 << 20), "nor to a large structure");
        assert!(nodes.contains(&alloc(&space, 2048, SpaceKind::Metadata)));
    }

    #[test]
    fn what_was_freed_last_is_given_out_once_whatever_comes_between() {
        let space = space(LARGE);
        let nodes: Vec<u64> = (0..200).map(|_| alloc(&space, 2048, SpaceKind::Metadata)).collect();
        let reusable = space.free_bytes();
        nodes.iter().step_by(2).for_each(|at| space.adopt_unreachable_range(*at, 2048, SpaceKind::Metadata));
        // Sections of another length, within what is free already, and twice.
        space.adopt_unreachable_range(nodes[1], 512, SpaceKind::Metadata);
        space.adopt_unreachable_range(nodes[3], 2048, SpaceKind::Metadata);
        space.adopt_unreachable_range(nodes[2] + 1024, 2048, SpaceKind::Metadata);
        space.adopt_unreachable_range(nodes[4], 2048, SpaceKind::Metadata);
        assert_eq!(space.free_bytes() - reusable, 101 * 2048 + 512);
        assert_eq!(space.free_sections().iter().map(|(_, len, _)| len).sum::<u64>(), space.free_bytes());
        let mut again: Vec<(u64, u64)> =
            [512, 2048].repeat(60).iter().map(|len| (alloc(&space, *len, SpaceKind::Metadata), *len)).collect();
        assert_eq!(space.allocated_end(), LARGE + (1 << 20), "small ones find room beside the large");
        again.extend(nodes.iter().skip(5).step_by(2).map(|at| (*at, 2048)));
        again.sort_unstable();
        assert!(again.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{again:?}");
        for _ in 0..2 {
            space.adopt_unreachable_range(nodes[5], 2048, SpaceKind::Metadata);
        }
        assert_ne!(alloc(&space, 2048, SpaceKind::Metadata), alloc(&space, 2048, SpaceKind::Metadata));
    }

    #[test]
    fn a_file_grows_for_a_block_only_where_nothing_else_has_room() {
        let (space, pages) = (space(LARGE), (1 << 20) / 4096);
        space.adopt_unreachable_range(8192, 1 << 20, SpaceKind::Raw);
        space.adopt_unreachable_range(LARGE - 8192, 3000, SpaceKind::Raw);
        let block: Vec<u64> = (0..pages).map(|_| alloc(&space, 4096, SpaceKind::Metadata)).collect();
        let expected: Vec<u64> = (0..pages).map(|n| 8192 + n * 4096).collect();
        assert_eq!(block, expected, "a block is where there was raw data");
        assert_eq!(alloc(&space, 2000, SpaceKind::Metadata), LARGE - 8192);
        assert_eq!(space.allocated_end(), LARGE);
        assert_eq!(alloc(&space, 2000, SpaceKind::Metadata), LARGE);
        assert_eq!(space.allocated_end(), LARGE + (1 << 20));
    }

    #[test]
    fn small_files_have_none() {
        let space = space((4 << 20) - 8192);
        let first = alloc(&space, 2048, SpaceKind::Metadata);
        assert_eq!(alloc(&space, 100, SpaceKind::Raw), first + 2048);
        assert_eq!(space.allocated_end(), first + 2148);
    }

    #[test]
    fn the_end_of_the_file_is_that_of_what_is_used_all_the_same() {
        let space = space(LARGE);
        let first = alloc(&space, 2048, SpaceKind::Metadata);
        let second = alloc(&space, 2048, SpaceKind::Metadata);
        assert_eq!(space.allocated_end(), LARGE + (1 << 20));
        assert_eq!(space.free_bytes(), (1 << 20) - 4096);
        space.adopt_unreachable_range(second, 2048, SpaceKind::Metadata);
        space.shrink_allocated_end();
        assert_eq!((first, space.allocated_end(), space.free_bytes()), (LARGE, LARGE + 2048, 0));
        assert_eq!(space.alloc(100, SpaceKind::Metadata).unwrap(), Addr::new(LARGE + 2048));
        assert_eq!(space.allocated_end(), LARGE + 2148, "there are no more blocks");
    }
}

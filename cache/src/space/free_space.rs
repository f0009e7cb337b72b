//! The free space of a file, and allocation: from one list, or in pages that hold one kind of space each.

use super::{
    free_list::FreeList,
    metadata_blocks::MetadataBlocks,
    space_kind::{FreedSection, METADATA_ALIGNMENT, OS_PAGE_BYTES, SpaceKind},
};

/// The free space, by purpose.
#[derive(Debug, Default)]
pub(super) struct FreeSpace {
    /// Bytes of a page of the file, if it is paged. Then structures and raw data are in different pages, and nothing
    /// smaller than a page crosses the border of one.
    page_size: Option<u64>,
    /// Free space for structures; of a file without pages, for everything.
    metadata: FreeList,
    /// Free space for small structures, in a large file without pages.
    blocks: MetadataBlocks,
    /// Free space for raw data in pages that hold some.
    raw: FreeList,
    /// Pages that hold nothing.
    pages: FreeList,
}

/// The first address from `at` on where `len` bytes of a kind go in a file without pages.
fn first_fit_unpaged(kind: SpaceKind, len: u64, at: u64) -> Option<u64> {
    match kind {
        SpaceKind::Metadata => {
            let at = at.checked_next_multiple_of(METADATA_ALIGNMENT)?;
            let crosses = len <= OS_PAGE_BYTES && crosses_page(OS_PAGE_BYTES, at, len);
            if crosses { at.checked_next_multiple_of(OS_PAGE_BYTES) } else { Some(at) }
        }
        SpaceKind::Raw if len > 0 && len.is_multiple_of(OS_PAGE_BYTES) => at.checked_next_multiple_of(OS_PAGE_BYTES),
        SpaceKind::Raw => align_for_kind(kind, len, at),
    }
}

/// Aligns structures, and raw data whose size is at least a page and a multiple of the alignment. Then elements of
/// eight bytes can be used where they are. (Alignment of small pieces would leave holes.)
fn align_for_kind(kind: SpaceKind, len: u64, at: u64) -> Option<u64> {
    let is_aligned = kind == SpaceKind::Metadata || len >= OS_PAGE_BYTES && len.is_multiple_of(METADATA_ALIGNMENT);
    if is_aligned { at.checked_next_multiple_of(METADATA_ALIGNMENT) } else { Some(at) }
}

/// The first address from `at` on where `len` bytes of a kind, which are less than a page, go in a file with pages.
fn first_fit_in_page(page: u64, kind: SpaceKind, len: u64, at: u64) -> Option<u64> {
    let at = align_for_kind(kind, len, at)?;
    if crosses_page(page, at, len) { at.checked_next_multiple_of(page) } else { Some(at) }
}

/// Whether `len` bytes at `at` cross the border of a page of `page` bytes (not 0).
fn crosses_page(page: u64, at: u64, len: u64) -> bool {
    (at % page).checked_add(len).is_none_or(|end| end > page)
}

impl FreeSpace {
    /// From now on the file has pages of `page` bytes. It ends at `end`; returns where it ends from now on.
    pub fn set_page_size_and_align_end(&mut self, page: u64, end: u64) -> Option<u64> {
        self.dissolve_blocks();
        self.page_size = Some(page);
        let new = end.checked_next_multiple_of(page)?;
        self.metadata.free_range(end, new - end);
        Some(new)
    }

    pub fn page_size(&self) -> Option<u64> {
        self.page_size
    }

    /// Takes `len` bytes from free space. If none fits, takes them behind `allocated_end`, and moves `allocated_end`. `None` if there are
    /// no addresses below `limit` any more.
    pub fn alloc_free_or_extend(
        &mut self,
        len: u64,
        kind: SpaceKind,
        allocated_end: &mut u64,
        limit: u64,
    ) -> Option<u64> {
        let Some(page) = self.page_size else { return self.take_unpaged(len, kind, allocated_end, limit) };
        let mut fresh = |pages: &mut FreeList, len: u64| {
            pages.take_best_fit(len, |at| at.checked_next_multiple_of(page)).or_else(|| {
                let at = allocated_end.checked_next_multiple_of(page)?;
                *allocated_end = at.checked_add(len).filter(|new| *new < limit)?;
                Some(at)
            })
        };
        if len >= page {
            return fresh(&mut self.pages, len.checked_next_multiple_of(page)?);
        }
        let list = match kind {
            SpaceKind::Metadata => &mut self.metadata,
            SpaceKind::Raw => &mut self.raw,
        };
        list.take_best_fit(len, |at| first_fit_in_page(page, kind, len, at)).or_else(|| {
            let at = fresh(&mut self.pages, page)?;
            list.free_range(at.saturating_add(len), page - len);
            Some(at)
        })
    }

    /// Takes `len` bytes that were freed last.
    pub fn take_recently_freed(&mut self, len: u64, kind: SpaceKind) -> Option<u64> {
        if kind == SpaceKind::Raw {
            return None;
        }
        self.blocks.take_recently_freed(len, |at| first_fit_unpaged(kind, len, at))
    }

    fn take_unpaged(&mut self, len: u64, kind: SpaceKind, end: &mut u64, limit: u64) -> Option<u64> {
        let place = |at| first_fit_unpaged(kind, len, at);
        let size = self.blocks.block_size_for(len, *end).filter(|_| kind == SpaceKind::Metadata);
        let Some(size) = size else { return self.take_or_extend(len, place, end, limit) };
        if let Some(at) = self.blocks.alloc_in_block(len, place) {
            return Some(at);
        }
        let to_page = |at: u64| at.checked_next_multiple_of(OS_PAGE_BYTES);
        let block = match self.metadata.take_best_fit(size, to_page) {
            Some(block) => Some(block),
            // The file does not grow while there is any room.
            None => match self.metadata.take_best_fit(len, place) {
                Some(at) => return Some(at),
                None => self.take_or_extend(size, to_page, end, limit),
            },
        };
        match block {
            Some(block) => {
                self.blocks.add_block(block, size);
                self.blocks.alloc_in_block(len, place)
            }
            // The last addresses are for whatever there is.
            None => self.take_or_extend(len, place, end, limit),
        }
    }

    /// Takes `len` bytes where `place` puts them, of a file without pages.
    fn take_or_extend(
        &mut self,
        len: u64,
        place: impl Fn(u64) -> Option<u64>,
        end: &mut u64,
        limit: u64,
    ) -> Option<u64> {
        self.metadata.take_best_fit(len, &place).or_else(|| {
            let at = place(*end)?;
            let new = at.checked_add(len).filter(|new| *new < limit)?;
            self.metadata.free_range(*end, at - *end);
            *end = new;
            Some(at)
        })
    }

    /// Dissolves the metadata blocks: their free space may be used for anything.
    fn dissolve_blocks(&mut self) {
        self.blocks.close_and_take_free().free_sections().for_each(|(at, len)| self.metadata.free_range(at, len));
    }

    /// Takes `len` free bytes that end before `limit`, but no whole page.
    pub fn take_below_limit(&mut self, len: u64, kind: SpaceKind, limit: u64) -> Option<u64> {
        let before = |at: u64| Some(at).filter(|at| at.checked_add(len).is_some_and(|end| end <= limit));
        // The caller is about to make the file shorter.
        self.dissolve_blocks();
        match (self.page_size, kind) {
            (None, _) => self.metadata.take_best_fit(len, |at| before(first_fit_unpaged(kind, len, at)?)),
            (Some(page), _) if len >= page => None,
            (Some(page), SpaceKind::Metadata) => {
                self.metadata.take_best_fit(len, |at| before(first_fit_in_page(page, kind, len, at)?))
            }
            (Some(page), SpaceKind::Raw) => {
                self.raw.take_best_fit(len, |at| before(first_fit_in_page(page, kind, len, at)?))
            }
        }
    }

    /// Adds `len` free bytes at `at`, which held something of `kind`.
    pub fn free_range(&mut self, at: u64, len: u64, kind: SpaceKind) {
        let Some(page) = self.page_size else {
            if !self.blocks.free_if_in_block(at, len) {
                self.metadata.free_range(at, len);
            }
            return;
        };
        if len >= page {
            // The rest of the last page was not used for anything else.
            let end = at.saturating_add(len).checked_next_multiple_of(page).unwrap_or(u64::MAX);
            return self.pages.free_range(at, end - at);
        }
        let list = match kind {
            SpaceKind::Metadata => &mut self.metadata,
            SpaceKind::Raw => &mut self.raw,
        };
        list.free_range(at, len);
        let Some((start, len)) = list.section_containing(at) else { return };
        let last = start.saturating_add(len) / page * page;
        if let Some(first) = start.checked_next_multiple_of(page).filter(|first| *first < last) {
            list.remove_if_free(first, last - first);
            self.pages.free_range(first, last - first);
        }
    }

    /// The sections out of which neighbours were merged, as [`FreeSpace::free_range`] takes them: none crosses the
    /// border of a page or of a metadata block.
    pub fn split_at_boundaries(&self, (at, len, kind): FreedSection) -> impl Iterator<Item = FreedSection> + '_ {
        let end = at.saturating_add(len);
        let next = move |at: u64| match self.page_size {
            Some(page) => (at / page).saturating_add(1).saturating_mul(page),
            None => self.blocks.next_block_boundary(at),
        };
        let mut start = Some(at).filter(|at| *at < end);
        std::iter::from_fn(move || {
            let (at, border) = (start?, next(start?));
            start = Some(border).filter(|border| *border < end);
            Some((at, border.min(end) - at, kind))
        })
    }

    /// If the last bytes before `allocated_end` are free, they no longer belong to the file; returns where it ends then.
    pub fn remove_free_tail(&mut self, allocated_end: u64) -> u64 {
        self.dissolve_blocks();
        let list = if self.page_size.is_some() { &mut self.pages } else { &mut self.metadata };
        let last = list.last_section().filter(|(start, len)| start.checked_add(*len) == Some(allocated_end));
        let new = last
            .and_then(|(start, _)| start.checked_next_multiple_of(self.page_size.unwrap_or(1)))
            .unwrap_or(allocated_end);
        list.remove_if_free(new, allocated_end.saturating_sub(new));
        new
    }

    /// The free sections: first byte, length, and the only kind of space for which each may be used.
    pub fn sections(&self) -> impl Iterator<Item = (u64, u64, Option<SpaceKind>)> + '_ {
        let paged = self.page_size.is_some();
        let metadata = self.metadata.sections().chain(self.blocks.free_sections());
        let metadata = metadata.map(move |(at, len)| (at, len, paged.then_some(SpaceKind::Metadata)));
        let raw = self.raw.sections().map(|(at, len)| (at, len, Some(SpaceKind::Raw)));
        metadata.chain(raw).chain(self.pages.sections().map(|(at, len)| (at, len, None)))
    }

    pub fn total_bytes(&self) -> u64 {
        let totals = [
            self.metadata.total_bytes(),
            self.blocks.total_free_bytes(),
            self.raw.total_bytes(),
            self.pages.total_bytes(),
        ];
        totals.into_iter().fold(0, u64::saturating_add)
    }
}

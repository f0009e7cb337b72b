//! Sections that nothing in the file leads to any more, and that rest until it is known that no process has the file
//! open. Neighbours are merged, and their number is bounded.

use super::free_list::FreeList;
use super::space_kind::{FreedSection, SpaceKind};

/// Most sections of a kind that are remembered. Beyond this the shortest is forgotten: nobody gets its bytes in this
/// session.
const MAX_SECTIONS: usize = 1 << 16;

/// Sections that rest, by kind.
#[derive(Debug, Default)]
pub(super) struct SectionsAwaitingNoReaders {
    metadata: FreeList,
    raw: FreeList,
    /// Bytes of a page of the file, if it has pages.
    page_size: Option<u64>,
    /// Bytes of sections that were forgotten.
    forgotten_bytes: u64,
}

impl SectionsAwaitingNoReaders {
    /// From now on the file has pages of `page` bytes.
    pub fn set_page_size(&mut self, page: u64) {
        self.page_size = Some(page);
    }

    /// Adds a section. In a file with pages, a section of a page or more has its last page to itself.
    pub fn add_section(&mut self, (at, mut len, kind): FreedSection) {
        if let Some(page) = self.page_size.filter(|page| len >= *page) {
            len = at.saturating_add(len).checked_next_multiple_of(page).unwrap_or(u64::MAX) - at;
        }
        let list = match kind {
            SpaceKind::Metadata => &mut self.metadata,
            SpaceKind::Raw => &mut self.raw,
        };
        list.free_range(at, len);
        if list.section_count() > MAX_SECTIONS {
            let shortest = list.take_shortest().map_or(0, |(_, len)| len);
            self.forgotten_bytes = self.forgotten_bytes.saturating_add(shortest);
        }
    }

    /// Bytes of the remembered sections.
    pub fn total_bytes(&self) -> u64 {
        self.metadata.total_bytes().saturating_add(self.raw.total_bytes())
    }

    /// Bytes of sections that were forgotten, or never remembered.
    pub fn abandoned_bytes(&self) -> u64 {
        self.forgotten_bytes
    }

    /// Counts bytes that rest for ever.
    pub fn add_abandoned_bytes(&mut self, len: u64) {
        self.forgotten_bytes = self.forgotten_bytes.saturating_add(len);
    }

    /// The sections, each merged with its neighbours of the same kind.
    pub fn sections(&self) -> impl Iterator<Item = FreedSection> + '_ {
        let of = |list: &FreeList, kind| list.sections().map(move |(at, len)| (at, len, kind)).collect::<Vec<_>>();
        of(&self.metadata, SpaceKind::Metadata).into_iter().chain(of(&self.raw, SpaceKind::Raw))
    }

    /// Removes all sections.
    pub fn take_all(&mut self) -> Vec<FreedSection> {
        let all = self.sections().collect();
        self.metadata.clear();
        self.raw.clear();
        all
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_kind_are_merged() {
        let mut resting = SectionsAwaitingNoReaders::default();
        for (at, kind) in
            [(0, SpaceKind::Raw), (100, SpaceKind::Metadata), (200, SpaceKind::Raw), (300, SpaceKind::Raw)]
        {
            resting.add_section((at, 100, kind));
        }
        let all: Vec<_> = resting.sections().collect();
        assert_eq!(all, [(100, 100, SpaceKind::Metadata), (0, 100, SpaceKind::Raw), (200, 200, SpaceKind::Raw)]);
        assert_eq!((resting.total_bytes(), resting.take_all().len(), resting.total_bytes()), (400, 3, 0));
    }

    #[test]
    fn the_shortest_of_too_many_sections_is_forgotten() {
        let mut resting = SectionsAwaitingNoReaders::default();
        for n in 0..MAX_SECTIONS as u64 + 10 {
            resting.add_section((n * 100, if n == 7 { 10 } else { 20 }, SpaceKind::Metadata));
        }
        assert_eq!(resting.sections().count(), MAX_SECTIONS);
        assert_eq!(resting.abandoned_bytes(), 10 + 9 * 20);
    }
}

//! The list of free space that a closed file keeps: its free-space managers.

use std::collections::{BTreeMap, BTreeSet};

use h5live_cache::{DependencyKind, FlushScope, Handle, Owner, SpaceKind};
use h5live_format::messages::{FileSpaceInfo, FileSpaceStrategy, MessageType};
use h5live_format::{Addr, FreeSection, FreeSpaceHeader, FreeSpaceSections, SameSizeSections};
use h5live_indexes::ObjectMetadataAccess;

use crate::session::NativeSession;
use crate::superblock_extension;
use crate::{Error, Result};

/// The managers of a file that has no pages, and of a paged one: their places in the message that lists all twelve.
const SIMPLE_MANAGER_INDEX: usize = 0;
const SMALL_METADATA_MANAGER_INDEX: usize = 0;
const SMALL_RAW_MANAGER_INDEX: usize = 2;
const LARGE_MANAGER_INDEX: usize = 6;

/// The kinds of sections of a file.
const SIMPLE_SECTION_CLASS: u8 = 0;
const SMALL_SECTION_CLASS: u8 = 1;
const LARGE_SECTION_CLASS: u8 = 2;

/// The parameters that libhdf5 gives to the managers of a file.
const ADDRESS_BITS: u16 = 63;

/// Most free space managers and sections are not near this; more are taken for damage.
const MAX_SECTIONS: u64 = 1 << 24;

/// A free section that a manager listed: first byte, length (bytes), and for what.
type ManagedSection = (u64, u64, SpaceKind);

impl NativeSession {
    /// Takes over the free space that the managers in the file list, and removes the managers. Until the file is
    /// closed, only this session knows the free space.
    ///
    /// # Errors
    /// If a manager cannot be read.
    pub fn take_managed_sections(&self, info: &mut FileSpaceInfo) -> Result<Vec<ManagedSection>> {
        let mut sections = Vec::new();
        let page = Some(info.page_size).filter(|_| is_paged(info));
        for (number, manager) in info.managers.iter_mut().flatten().enumerate() {
            // The kinds of the managers repeat: superblock, B-trees, raw data, global heap, local heap, object headers.
            let kind = if matches!(number % 6, 2 | 3) { SpaceKind::Raw } else { SpaceKind::Metadata };
            let addr = std::mem::replace(manager, Addr::UNDEFINED);
            if addr.is_defined() {
                // The rest of a large block's last page cannot be used before the block is free, too.
                let min_size = page.filter(|_| number >= LARGE_MANAGER_INDEX).unwrap_or(0);
                self.read_free_space_manager(addr, (kind, min_size), &mut sections)?;
            }
        }
        info.end_before_managers = Addr::UNDEFINED;
        Ok(sections)
    }

    fn read_free_space_manager(
        &self,
        addr: Addr,
        (kind, min_size): (SpaceKind, u64),
        sections: &mut Vec<ManagedSection>,
    ) -> Result<()> {
        let metadata = ObjectMetadataAccess::new(self.cache.clone(), Owner::FILE);
        let len = FreeSpaceHeader::size(metadata.widths()) as u64;
        let header = metadata.load(addr, len, FreeSpaceHeader::default)?.read().clone();
        self.cache.forget_entry(addr);
        sections.extend(addr.get().map(|at| (at, len, SpaceKind::Metadata)));
        if !header.section_list_addr.is_defined() {
            return Ok(());
        }
        if header.stored_section_count > MAX_SECTIONS {
            return Err(Error::DamagedObject {
                header: addr,
                rule: "a free-space manager has a sensible number of sections",
            });
        }
        let list =
            metadata.load(header.section_list_addr, header.section_list_used_bytes, || header.blank_section_list())?;
        for group in list.read().groups.iter().filter(|group| group.size >= min_size) {
            sections.extend(group.sections.iter().map(|section| (section.offset, group.size, kind)));
        }
        self.cache.forget_entry(header.section_list_addr);
        sections.extend(
            header.section_list_addr.get().map(|at| (at, header.section_list_allocated_bytes, SpaceKind::Metadata)),
        );
        Ok(())
    }

    /// Writes the managers of the free space, if the file is to keep it. Everything else has been flushed.
    ///
    /// # Errors
    /// If there is no space, or the superblock extension cannot be changed.
    pub fn persist_free_space(&self) -> Result<()> {
        let Some(mut header) = superblock_extension::load_extension_header(&self.cache, &self.superblock)? else {
            return Ok(());
        };
        let Some(mut info) =
            superblock_extension::load_file_space_info(&header)?.filter(|info| info.managers.is_some())
        else {
            return Ok(());
        };
        let space = self.cache.space();
        space.shrink_allocated_end();
        let page = Some(info.page_size).filter(|_| is_paged(&info));
        let manager = |kind| match kind {
            _ if page.is_none() => (SIMPLE_MANAGER_INDEX, SIMPLE_SECTION_CLASS),
            Some(SpaceKind::Metadata) => (SMALL_METADATA_MANAGER_INDEX, SMALL_SECTION_CLASS),
            Some(SpaceKind::Raw) => (SMALL_RAW_MANAGER_INDEX, SMALL_SECTION_CLASS),
            None => (LARGE_MANAGER_INDEX, LARGE_SECTION_CLASS),
        };
        let widths = self.cache.widths();
        // The headers take from what they will list; a new page for them leaves something for structures.
        let numbers: BTreeSet<usize> = space
            .free_sections()
            .iter()
            .map(|(.., kind)| manager(*kind).0)
            .chain(page.map(|_| SMALL_METADATA_MANAGER_INDEX))
            .collect();
        let mut headers = BTreeMap::new();
        for number in numbers {
            headers.insert(number, space.alloc(FreeSpaceHeader::size(widths) as u64, SpaceKind::Metadata)?);
        }
        let mut managers: BTreeMap<usize, (u8, Vec<(u64, u64)>)> = BTreeMap::new();
        for (at, len, kind) in space.free_sections() {
            let (number, class) = manager(kind);
            let manager = managers.entry(number).or_insert((class, Vec::new()));
            let unit = page.filter(|_| class == SMALL_SECTION_CLASS).unwrap_or(u64::MAX);
            manager.1.extend(split_at_pages(at, len, unit).filter(|(_, len)| *len >= info.threshold));
        }
        let operation = self.cache.begin_atomic_change();
        let slots = info.managers.get_or_insert_default();
        let mut made = Vec::new();
        for (number, (class, sections)) in managers.into_iter().filter(|(_, (_, sections))| !sections.is_empty()) {
            if let (Some(slot), Some(at)) = (slots.get_mut(number), headers.get(&number)) {
                made.push(self.write_free_space_manager(*at, class, &sections, page.unwrap_or(1))?);
                *slot = *at;
            }
        }
        info.end_before_managers = Addr::new(space.allocated_end());
        header.set_message(&info)?;
        for manager in &made {
            header.add_message_dependency(MessageType::FILE_SPACE_INFO, manager, DependencyKind::FreeSpaceSections)?;
        }
        drop(operation);
        Ok(self.cache.flush(FlushScope::All)?)
    }

    /// Writes a manager of these sections at `at`, and their list behind everything else, where it takes a multiple of
    /// `unit` bytes.
    fn write_free_space_manager(
        &self,
        at: Addr,
        class: u8,
        sections: &[(u64, u64)],
        unit: u64,
    ) -> Result<Handle<FreeSpaceHeader>> {
        let widths = self.cache.widths();
        let mut by_size: BTreeMap<u64, Vec<FreeSection>> = BTreeMap::new();
        for (addr, len) in sections {
            by_size.entry(*len).or_default().push(FreeSection { offset: *addr, class, blocks: None });
        }
        let groups: Vec<_> = by_size.into_iter().map(|(size, sections)| SameSizeSections { size, sections }).collect();
        let count = sections.len() as u64;
        let mut header = FreeSpaceHeader {
            free_bytes: sections.iter().fold(0, |sum, (_, len)| sum.saturating_add(*len)),
            section_count: count,
            stored_section_count: count,
            address_bits: ADDRESS_BITS,
            ..FreeSpaceHeader::default()
        };
        let with = |header: &FreeSpaceHeader, at, groups| {
            let mut list = header.blank_section_list();
            (list.header, list.groups) = (at, groups);
            list
        };
        let listed: FreeSpaceSections = with(&header, Addr::UNDEFINED, groups);
        header.section_list_used_bytes = listed.encoded_size(widths) as u64;
        header.section_list_allocated_bytes =
            header.section_list_used_bytes.checked_next_multiple_of(unit).unwrap_or(header.section_list_used_bytes);
        header.section_list_addr = self.cache.space().alloc_at_end(header.section_list_allocated_bytes)?;
        let listed = with(&header, at, listed.groups);
        let listed = self.cache.insert_entry(header.section_list_addr, Owner::FILE, listed);
        let header = self.cache.insert_entry(at, Owner::FILE, header);
        let done = self.cache.add_dependency(&header, &listed, DependencyKind::FreeSpaceSections);
        done.map_err(h5live_cache::Error::from)?;
        Ok(header)
    }
}

/// Whether structures and raw data are in pages of their own.
fn is_paged(info: &FileSpaceInfo) -> bool {
    info.strategy == FileSpaceStrategy::Paged && info.version > 0
}

/// The pieces of a section between multiples of `unit`.
fn split_at_pages(at: u64, len: u64, unit: u64) -> impl Iterator<Item = (u64, u64)> {
    let end = at.saturating_add(len);
    let next = move |at: u64| (at / unit).saturating_add(1).saturating_mul(unit).min(end);
    std::iter::successors(Some(at), move |at| Some(next(*at)))
        .take_while(move |at| *at < end)
        .map(move |at| (at, next(at) - at))
}

#[cfg(test)]
mod tests {
    use super::split_at_pages;

    #[test]
    fn sections_are_cut_at_the_borders_of_pages() {
        assert_eq!(split_at_pages(5, 20, 8).collect::<Vec<_>>(), [(5, 3), (8, 8), (16, 8), (24, 1)]);
        assert_eq!(split_at_pages(5, 20, u64::MAX).collect::<Vec<_>>(), [(5, 20)]);
        assert_eq!(split_at_pages(8, 0, 8).count(), 0);
    }
}

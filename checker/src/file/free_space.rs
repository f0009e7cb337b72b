//! Free-space managers: of the file, and of fractal heaps.

use h5live_format::messages::FileSpaceInfo;
use h5live_format::{Addr, FreeSection, FreeSpaceClient, FreeSpaceHeader, FreeSpaceSections, Record};

use super::FindingCause;
use super::walk::FileWalk;

const NAME: &str = FreeSpaceHeader::NAME;

impl FileWalk<'_> {
    /// A manager: its header, and the sections with their sizes.
    pub fn check_free_space_manager(
        &mut self,
        addr: Addr,
        client: FreeSpaceClient,
    ) -> Option<(FreeSpaceHeader, Vec<(u64, FreeSection)>)> {
        let header =
            self.claim_and_decode(FreeSpaceHeader::default(), addr, FreeSpaceHeader::size(self.widths) as u64)?;
        if header.client != client {
            self.report(NAME, addr, FindingCause::BrokenRule("a manager serves the file or the heap that leads to it"));
        }
        let counted = header.stored_section_count.saturating_add(header.ghost_section_count);
        self.check_equal(NAME, addr, "sections", header.section_count, counted);
        if !header.section_list_addr.is_defined() {
            if header.stored_section_count > 0 {
                self.report(NAME, addr, FindingCause::UndefinedAddr("section list"));
            }
            return Some((header, Vec::new()));
        }
        if header.section_list_used_bytes > header.section_list_allocated_bytes {
            let (found, limit) = (header.section_list_used_bytes, header.section_list_allocated_bytes);
            self.report(NAME, addr, FindingCause::ExceedsLimit { what: "bytes of section list in use", found, limit });
        }
        let at = header.section_list_addr;
        self.claim_metadata(FreeSpaceSections::NAME, at, header.section_list_allocated_bytes)?;
        let bytes = self.read_if_within_limit(
            FreeSpaceSections::NAME,
            at,
            header.section_list_used_bytes.min(header.section_list_allocated_bytes),
        )?;
        let list = self.decode(header.blank_section_list(), at, &bytes)?;
        if list.header != addr {
            self.report(
                FreeSpaceSections::NAME,
                at,
                FindingCause::BrokenRule("a section list states the address of its header"),
            );
        }
        let pairs = list.groups.iter().flat_map(|g| g.sections.iter().map(|section| (g.size, *section)));
        Some((header.clone(), pairs.collect()))
    }

    /// The managers of the file's free space.
    pub fn check_file_free_space(&mut self, info: &FileSpaceInfo, extension: Addr) {
        for manager in info.managers.iter().flatten().filter(|manager| manager.is_defined()) {
            let Some((header, sections)) = self.check_free_space_manager(*manager, FreeSpaceClient::File) else {
                continue;
            };
            let total = sections.iter().fold(0u64, |n, (size, _)| n.saturating_add(*size));
            self.check_equal(NAME, *manager, "free space", header.free_bytes, total);
            for (size, section) in sections {
                let addr = Addr::new(section.offset);
                if size == 0 {
                    self.report(
                        FreeSpaceSections::NAME,
                        *manager,
                        FindingCause::BrokenRule("a free section has bytes"),
                    );
                } else if let Some(start) = self.check_and_report_range("free section", addr, size) {
                    self.space.add_free_space(start, size, self.owner, "free section");
                }
            }
        }
        let before = info.end_before_managers.get();
        if let Some(found) = before.filter(|before| *before > self.end) {
            let cause = FindingCause::ExceedsLimit { what: "end before managers", found, limit: self.end };
            self.report(FileSpaceInfo::NAME, extension, cause);
        }
    }
}

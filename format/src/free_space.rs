//! Free-space managers: the free sections of a file or of a fractal heap (format specification 4.0, III.H).

use crate::{Addr, Fault, Record, Result, Width, Widths, Wire};

/// Whose free space it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FreeSpaceClient {
    /// A fractal heap's.
    FractalHeap,
    /// The file's.
    #[default]
    File,
}

/// The header of a free-space manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeSpaceHeader {
    /// Whose free space it is.
    pub client: FreeSpaceClient,
    /// Free bytes.
    pub free_bytes: u64,
    /// Sections, those that are not stored included.
    pub section_count: u64,
    /// Sections that are stored.
    pub stored_section_count: u64,
    /// Sections that are not stored.
    pub ghost_section_count: u64,
    /// Kinds of sections.
    pub class_count: u16,
    /// When the space for the sections shrinks (percent).
    pub shrink_percent: u16,
    /// How much the space for the sections grows (percent).
    pub expand_percent: u16,
    /// Bits of an address in the managed space.
    pub address_bits: u16,
    /// Bytes of the largest section that there can be.
    pub max_section_size: u64,
    /// The stored sections; undefined if there are none.
    pub section_list_addr: Addr,
    /// Bytes of the stored sections that are in use.
    pub section_list_used_bytes: u64,
    /// Bytes for which the stored sections have space.
    pub section_list_allocated_bytes: u64,
}

impl Default for FreeSpaceHeader {
    fn default() -> Self {
        FreeSpaceHeader {
            client: FreeSpaceClient::File,
            free_bytes: 0,
            section_count: 0,
            stored_section_count: 0,
            ghost_section_count: 0,
            class_count: 3,
            shrink_percent: 80,
            expand_percent: 120,
            address_bits: 64,
            max_section_size: u64::MAX >> 1,
            section_list_addr: Addr::UNDEFINED,
            section_list_used_bytes: 0,
            section_list_allocated_bytes: 0,
        }
    }
}

impl FreeSpaceHeader {
    /// The list of stored sections: context for decoding.
    pub fn blank_section_list(&self) -> FreeSpaceSections {
        FreeSpaceSections {
            header: Addr::UNDEFINED,
            groups: Vec::new(),
            client: self.client,
            count: self.stored_section_count,
            address: u8::try_from(self.address_bits.div_ceil(8)).ok().and_then(Width::new).unwrap_or(Width::EIGHT),
            size: Width::for_value(self.max_section_size),
            used: self.section_list_used_bytes,
        }
    }

    /// Bytes of a header.
    pub fn size(widths: Widths) -> usize {
        widths.length.bytes().saturating_mul(7).saturating_add(widths.offset.bytes()).saturating_add(18)
    }
}

impl Record for FreeSpaceHeader {
    const NAME: &'static str = "free space header";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.magic("FSHD")?;
        w.version(0..=0, &mut 0)?;
        self.client = match w.derived_u8("client", u8::from(self.client == FreeSpaceClient::File))? {
            0 => FreeSpaceClient::FractalHeap,
            1 => FreeSpaceClient::File,
            found => {
                let rule = "a client is a fractal heap (0) or the file (1)";
                return Err(w.fault("client", Fault::InvalidValue { found: found.into(), rule }));
            }
        };
        w.length("free space", &mut self.free_bytes)?;
        w.length("sections", &mut self.section_count)?;
        w.length("stored sections", &mut self.stored_section_count)?;
        w.length("ghost sections", &mut self.ghost_section_count)?;
        w.u16("classes", &mut self.class_count)?;
        w.u16("shrink percent", &mut self.shrink_percent)?;
        w.u16("expand percent", &mut self.expand_percent)?;
        w.u16("address bits", &mut self.address_bits)?;
        w.require("address bits", self.address_bits <= 64, self.address_bits.into(), "at most 64")?;
        w.length("largest section", &mut self.max_section_size)?;
        w.addr("section list", &mut self.section_list_addr)?;
        w.length("bytes of section list in use", &mut self.section_list_used_bytes)?;
        w.length("bytes of section list", &mut self.section_list_allocated_bytes)?;
        w.checksum()
    }
}

/// A free section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FreeSection {
    /// The first byte of the section, in the managed space.
    pub offset: u64,
    /// The kind of section. For a file: 0 simple, 1 small, 2 large. For a fractal heap: 0 in a direct block, 1 a row of
    /// the first indirect block of a run, 2 another row, 3 a run of blocks.
    pub class: u8,
    /// Sections of class 1 and 3 in a fractal heap: which blocks they stand for.
    pub blocks: Option<FreeHeapBlockRun>,
}

/// The blocks of a fractal heap that a free section stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FreeHeapBlockRun {
    /// The offset of their indirect block in heap space (bytes).
    pub indirect_block_offset: u64,
    /// The row of the first block.
    pub row: u16,
    /// The column of the first block.
    pub column: u16,
    /// The number of blocks.
    pub count: u16,
}

/// Free sections of the same size.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SameSizeSections {
    /// Bytes of each section.
    pub size: u64,
    /// The sections, by address.
    pub sections: Vec<FreeSection>,
}

/// The stored sections of a free-space manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeSpaceSections {
    /// The header of the manager.
    pub header: Addr,
    /// The sections, by size.
    pub groups: Vec<SameSizeSections>,
    client: FreeSpaceClient,
    count: u64,
    address: Width,
    size: Width,
    used: u64,
}

/// Bytes of the data of sections that stand for blocks of a fractal heap, after the offset.
const BLOCKS_DATA_BYTES: usize = 6;

impl FreeSpaceSections {
    fn wire_section(&self, w: &mut impl Wire, section: &mut FreeSection) -> Result<()> {
        w.uint("section", self.address, &mut section.offset)?;
        w.u8("class", &mut section.class)?;
        let largest = if self.client == FreeSpaceClient::File { 2 } else { 3 };
        w.require("class", section.class <= largest, section.class.into(), "0 to 2 for a file, 0 to 3 for a heap")?;
        let stands_for_blocks = self.client == FreeSpaceClient::FractalHeap && matches!(section.class, 1 | 3);
        if !stands_for_blocks {
            section.blocks = None;
            return Ok(());
        }
        let blocks = section.blocks.get_or_insert_default();
        w.uint("indirect block", self.address, &mut blocks.indirect_block_offset)?;
        w.u16("row", &mut blocks.row)?;
        w.u16("column", &mut blocks.column)?;
        w.u16("blocks", &mut blocks.count)
    }

    fn wire_size_group(&self, w: &mut impl Wire, group: &mut SameSizeSections, left: u64) -> Result<()> {
        let count = w.derived_uint("sections", Width::for_value(self.count), group.sections.len() as u64)?;
        w.require("sections", count > 0 && count <= left, count, "at least one, and not more than the header states")?;
        w.uint("section size", self.size, &mut group.size)?;
        if w.is_decoding() {
            let count = w.bounded_count("sections", count, self.address.bytes().saturating_add(1))?;
            group.sections.resize(count, FreeSection::default());
        }
        group.sections.iter_mut().try_for_each(|section| self.wire_section(w, section))
    }

    /// Bytes that the sections take, which the header states as the bytes in use.
    pub fn encoded_size(&self, widths: Widths) -> usize {
        let group = Width::for_value(self.count).bytes().saturating_add(self.size.bytes());
        let section = |section: &FreeSection| {
            let blocks =
                if section.blocks.is_some() { self.address.bytes().saturating_add(BLOCKS_DATA_BYTES) } else { 0 };
            self.address.bytes().saturating_add(1).saturating_add(blocks)
        };
        let sections = self.groups.iter().flat_map(|group| &group.sections).map(section);
        let sections = sections.fold(self.groups.len().saturating_mul(group), usize::saturating_add);
        sections.saturating_add(widths.offset.bytes()).saturating_add(9)
    }

    /// Whether there are no sections.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

impl Record for FreeSpaceSections {
    const NAME: &'static str = "free space sections";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let start = w.position();
        w.magic("FSSE")?;
        w.version(0..=0, &mut 0)?;
        w.addr("header", &mut self.header)?;
        let mut groups = std::mem::take(&mut self.groups);
        let mut left = self.count;
        if w.is_decoding() {
            groups.clear();
            while left > 0 {
                let mut group = SameSizeSections::default();
                self.wire_size_group(w, &mut group, left)?;
                left = left.saturating_sub(group.sections.len() as u64);
                groups.push(group);
            }
            self.groups = groups;
        } else {
            let written = groups.iter_mut().try_for_each(|group| {
                self.wire_size_group(w, group, left)?;
                left = left.saturating_sub(group.sections.len() as u64);
                Ok(())
            });
            self.groups = groups;
            written?;
            w.require("sections", left == 0, left, "as many as the header states")?;
        }
        let used = w.position().saturating_sub(start).saturating_add(4) as u64;
        let fault = Fault::TooLarge { found: used, limit: self.used };
        let gap = self.used.checked_sub(used).ok_or_else(|| w.fault("sections", fault))?;
        match w.bounded_count("sections", gap, 1)? {
            0 => {}
            gap => w.reserved(gap)?,
        }
        w.checksum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode, decode_with, encode};

    fn manager(
        client: FreeSpaceClient,
        class: u8,
        blocks: Option<FreeHeapBlockRun>,
    ) -> (FreeSpaceHeader, FreeSpaceSections) {
        let section = |addr, class, blocks| FreeSection { offset: addr, class, blocks };
        let groups = vec![
            SameSizeSections { size: 24, sections: vec![section(800, 0, None), section(900, class, blocks)] },
            SameSizeSections { size: 700, sections: vec![section(2000, 0, None)] },
        ];
        let mut header = FreeSpaceHeader { client, stored_section_count: 3, section_count: 3, ..Default::default() };
        let sections = FreeSpaceSections { header: Addr::new(7), groups, ..header.blank_section_list() };
        header.section_list_used_bytes = sections.encoded_size(Widths::default()) as u64 + 5;
        let sections =
            FreeSpaceSections { header: sections.header, groups: sections.groups, ..header.blank_section_list() };
        (header, sections)
    }

    #[test]
    fn comes_back_from_bytes() {
        let widths = Widths::default();
        let blocks = FreeHeapBlockRun { indirect_block_offset: 4096, row: 3, column: 1, count: 2 };
        for (client, class, blocks) in
            [(FreeSpaceClient::File, 2, None), (FreeSpaceClient::FractalHeap, 1, Some(blocks))]
        {
            let (header, sections) = manager(client, class, blocks);
            let bytes = encode(&header, widths).unwrap();
            assert_eq!(bytes.len(), FreeSpaceHeader::size(widths));
            assert_eq!(decode::<FreeSpaceHeader>(&bytes, widths).unwrap(), header);
            let bytes = encode(&sections, widths).unwrap();
            assert_eq!(bytes.len() as u64, header.section_list_used_bytes);
            assert_eq!(decode_with(header.blank_section_list(), &bytes, widths).unwrap(), sections);
        }
    }

    #[test]
    fn refuses_another_number_of_sections_than_the_header_states() {
        let (header, sections) = manager(FreeSpaceClient::File, 0, None);
        let bytes = encode(&sections, Widths::default()).unwrap();
        for stored_sections in [1, 4] {
            let header = FreeSpaceHeader { stored_section_count: stored_sections, ..header.clone() };
            assert!(decode_with(header.blank_section_list(), &bytes, Widths::default()).is_err());
        }
    }
}

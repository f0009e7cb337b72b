//! Tables of addresses and of chunk elements, kept as the bytes of the file. Blocks of the arrays hold up to thousands
//! of entries, and one operation touches a few.

use crate::{Addr, Record, Result, Width, Wire};

pub(crate) fn read_uint(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>().filter(|_| bytes.len() == 8) {
        Some(eight) => u64::from_le_bytes(*eight),
        None => bytes.iter().rev().fold(0, |value, byte| (value << 8) | u64::from(*byte)),
    }
}

pub(crate) fn write_uint(bytes: &mut [u8], value: u64) {
    for (byte, stored) in bytes.iter_mut().zip(value.to_le_bytes()) {
        *byte = stored;
    }
}

pub(crate) fn read_addr(bytes: &[u8]) -> Addr {
    match Width::new(u8::try_from(bytes.len()).unwrap_or(0)) {
        Some(width) => match read_uint(bytes) {
            ones if ones == width.max_value() => Addr::UNDEFINED,
            at => Addr::new(at),
        },
        None => Addr::UNDEFINED,
    }
}

pub(crate) fn write_addr(bytes: &mut [u8], addr: Addr) {
    match addr.get() {
        Some(at) => write_uint(bytes, at),
        None => bytes.fill(0xff),
    }
}

/// A table of addresses. Most tables have room for many, and few that are defined: those behind the last one are not in
/// memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddrTable {
    width: Width,
    /// The number of addresses.
    len: usize,
    /// Up to the last one that is defined.
    bytes: Vec<u8>,
}

impl AddrTable {
    /// A table of `len` undefined addresses of `width`.
    pub fn undefined(len: usize, width: Width) -> Self {
        AddrTable { width, len, bytes: Vec::new() }
    }

    /// The number of addresses.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the table has no addresses.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address at `index`; `None` past the end.
    pub fn get(&self, index: usize) -> Option<Addr> {
        let defined = self.bytes.chunks_exact(self.width.bytes()).nth(index);
        (index < self.len).then(|| defined.map_or(Addr::UNDEFINED, read_addr))
    }

    /// Replaces the address at `index`, and says whether there is one.
    pub fn set(&mut self, index: usize, addr: Addr) -> bool {
        if index >= self.len {
            return false;
        }
        let end = index.saturating_add(1).saturating_mul(self.width.bytes());
        if addr.is_defined() && self.bytes.len() < end {
            self.bytes.resize(end, 0xff);
        }
        if let Some(slot) = self.bytes.chunks_exact_mut(self.width.bytes()).nth(index) {
            write_addr(slot, addr);
        }
        if !addr.is_defined() {
            self.bytes.truncate(self.defined_bytes());
        }
        true
    }

    /// All addresses, in order.
    pub fn iter(&self) -> impl Iterator<Item = Addr> + '_ {
        let defined = self.bytes.chunks_exact(self.width.bytes()).map(read_addr);
        defined.chain(std::iter::repeat(Addr::UNDEFINED)).take(self.len)
    }

    /// Bytes up to the last address that is defined.
    fn defined_bytes(&self) -> usize {
        let last = self.bytes.iter().rposition(|byte| *byte != 0xff);
        last.map_or(0, |last| last.saturating_add(1).next_multiple_of(self.width.bytes()))
    }
}

impl Record for AddrTable {
    const NAME: &'static str = "address table";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let (len, defined) = (self.len.saturating_mul(self.width.bytes()), self.bytes.len());
        self.bytes.resize(len, 0xff);
        let done = w.bytes("addresses", len, &mut self.bytes);
        self.bytes.truncate(self.defined_bytes());
        if defined < len {
            self.bytes.shrink_to_fit();
        }
        done
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// The format of the elements of an array that indexes chunks: the array's "client".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChunkEntryFormat {
    /// An address (client 0).
    Unfiltered,
    /// An address, the stored size in this many bytes, and a filter mask of four bytes (client 1).
    Filtered(Width),
}

impl ChunkEntryFormat {
    /// The client number that headers and blocks store.
    pub fn client_id(self) -> u8 {
        match self {
            ChunkEntryFormat::Unfiltered => 0,
            ChunkEntryFormat::Filtered(_) => 1,
        }
    }

    /// Bytes of an element, with addresses of `offset` bytes.
    pub fn size(self, offset: Width) -> usize {
        match self {
            ChunkEntryFormat::Unfiltered => offset.bytes(),
            ChunkEntryFormat::Filtered(size) => offset.bytes().saturating_add(size.bytes()).saturating_add(4),
        }
    }

    /// The format that a header states by its client number and element size, with addresses of `offset` bytes.
    pub fn from_header(client: u8, element_size: u8, offset: Width) -> Option<Self> {
        let size = usize::from(element_size);
        match client {
            0 => (size == offset.bytes()).then_some(ChunkEntryFormat::Unfiltered),
            1 => {
                let width = size.checked_sub(offset.bytes())?.checked_sub(4)?;
                Width::new(u8::try_from(width).ok()?).map(ChunkEntryFormat::Filtered)
            }
            _ => None,
        }
    }

    /// The format of filtered chunks of `chunk_bytes` bytes before the filters: in layout version 4 the stored size
    /// takes one byte more than the chunk's own size needs, from version 5 on it is a `length` of the file.
    pub fn filtered(chunk_bytes: u64, layout_version: u8, length: Width) -> Self {
        let width = match (layout_version, chunk_bytes.checked_ilog2()) {
            (..=4, Some(log)) => {
                Width::new(u8::try_from(log.saturating_add(16) / 8).unwrap_or(8)).unwrap_or(Width::EIGHT)
            }
            _ => length,
        };
        ChunkEntryFormat::Filtered(width)
    }
}

/// The place of a chunk, as an array element states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ChunkIndexEntry {
    /// The first byte; undefined if the chunk is not stored.
    pub addr: Addr,
    /// Stored bytes, after the filters; 0 in unfiltered elements, which do not state it.
    pub stored_size: u64,
    /// Bit `i` set: filter `i` was skipped.
    pub filter_mask: u32,
}

impl ChunkIndexEntry {
    /// That a chunk is stored without filters.
    pub fn unfiltered(addr: Addr) -> Self {
        ChunkIndexEntry { addr, stored_size: 0, filter_mask: 0 }
    }
}

/// A table of chunk elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkEntryTable {
    format: ChunkEntryFormat,
    offset: Width,
    bytes: Vec<u8>,
}

impl ChunkEntryTable {
    /// A table of `len` elements that are not stored, with addresses of `offset` bytes.
    pub fn undefined(len: usize, format: ChunkEntryFormat, offset: Width) -> Self {
        let mut table = ChunkEntryTable { format, offset, bytes: vec![0; len.saturating_mul(format.size(offset))] };
        for element in table.bytes.chunks_exact_mut(format.size(offset)) {
            element.iter_mut().take(offset.bytes()).for_each(|byte| *byte = 0xff);
        }
        table
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len().checked_div(self.format.size(self.offset)).unwrap_or(0)
    }

    /// Whether the table has no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The format of the elements.
    pub fn format(&self) -> ChunkEntryFormat {
        self.format
    }

    /// The element at `index`; `None` past the end.
    pub fn get(&self, index: usize) -> Option<ChunkIndexEntry> {
        let element = self.bytes.chunks_exact(self.format.size(self.offset)).nth(index)?;
        let (addr, rest) = element.split_at_checked(self.offset.bytes())?;
        let addr = read_addr(addr);
        match self.format {
            ChunkEntryFormat::Unfiltered => Some(ChunkIndexEntry { addr, stored_size: 0, filter_mask: 0 }),
            ChunkEntryFormat::Filtered(width) => {
                let (size, mask) = rest.split_at_checked(width.bytes())?;
                let filter_mask = u32::try_from(read_uint(mask)).unwrap_or(u32::MAX);
                Some(ChunkIndexEntry { addr, stored_size: read_uint(size), filter_mask })
            }
        }
    }

    /// Replaces the element at `index`, and says whether there is one that can hold the stored size.
    pub fn set(&mut self, index: usize, element: ChunkIndexEntry) -> bool {
        let size = self.format.size(self.offset);
        let Some(slot) = self.bytes.chunks_exact_mut(size).nth(index) else { return false };
        let Some((addr, rest)) = slot.split_at_mut_checked(self.offset.bytes()) else { return false };
        if let ChunkEntryFormat::Filtered(width) = self.format {
            let Some((size, mask)) = rest.split_at_mut_checked(width.bytes()) else { return false };
            if element.stored_size > width.max_value() {
                return false;
            }
            write_uint(size, element.stored_size);
            write_uint(mask, u64::from(element.filter_mask));
        }
        write_addr(addr, element.addr);
        true
    }

    /// All elements, in order.
    pub fn iter(&self) -> impl Iterator<Item = ChunkIndexEntry> + '_ {
        (0..self.len()).map_while(|index| self.get(index))
    }
}

impl Record for ChunkEntryTable {
    const NAME: &'static str = "chunk elements";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let len = self.bytes.len();
        w.bytes("elements", len, &mut self.bytes)
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// A string of bits, most significant bit of each byte first, as the arrays keep them for pages in use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageBitmap(Vec<u8>);

impl PageBitmap {
    /// A bitmap of `bytes` bytes without a set bit.
    pub fn zeros(bytes: usize) -> Self {
        PageBitmap(vec![0; bytes])
    }

    /// Whether the bit at `index` is set; `false` past the end.
    pub fn get(&self, index: usize) -> bool {
        self.0.get(index / 8).is_some_and(|byte| byte & (0x80 >> (index % 8)) != 0)
    }

    /// Sets the bit at `index`, and says whether it was clear before.
    pub fn set_if_clear(&mut self, index: usize) -> bool {
        let mask = 0x80 >> (index % 8);
        self.0.get_mut(index / 8).is_some_and(|byte| {
            let was_clear = *byte & mask == 0;
            *byte |= mask;
            was_clear
        })
    }
}

impl Record for PageBitmap {
    const NAME: &'static str = "page bitmap";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let len = self.0.len();
        w.bytes("pages in use", len, &mut self.0)
    }

    fn memory_bytes(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_survive_the_way_through_their_bytes() {
        for format in [
            ChunkEntryFormat::Unfiltered,
            ChunkEntryFormat::filtered(4096, 4, Width::EIGHT),
            ChunkEntryFormat::filtered(4096, 5, Width::FOUR),
        ] {
            let mut table = ChunkEntryTable::undefined(3, format, Width::EIGHT);
            assert!(table.iter().all(|e| !e.addr.is_defined()));
            let size = if format == ChunkEntryFormat::Unfiltered { 0 } else { 4000 };
            let element = ChunkIndexEntry { addr: Addr::new(0x1234), stored_size: size, filter_mask: size as u32 };
            assert!(table.set(1, element));
            assert!(!table.set(3, element));
            assert_eq!(table.get(1), Some(element));
            assert_eq!(table.get(0).map(|e| e.addr), Some(Addr::UNDEFINED));
        }
    }

    #[test]
    fn stored_sizes_take_one_byte_more_than_the_chunk_in_version_4() {
        let width = |bytes| match ChunkEntryFormat::filtered(bytes, 4, Width::EIGHT) {
            ChunkEntryFormat::Filtered(width) => width.bytes(),
            ChunkEntryFormat::Unfiltered => 0,
        };
        assert_eq!([1, 255, 256, 65_535, 65_536, 1 << 24, 1 << 31].map(width), [2, 2, 3, 3, 4, 5, 5]);
    }

    #[test]
    fn bits_count_from_the_most_significant() {
        let mut bits = PageBitmap::zeros(2);
        assert!(bits.set_if_clear(0) && bits.set_if_clear(9) && !bits.set_if_clear(9) && !bits.set_if_clear(16));
        assert_eq!(bits, PageBitmap(vec![0x80, 0x40]));
    }
}

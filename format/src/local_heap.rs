//! Local heaps: the names of an old-style group, and of external files (format specification 4.0, III.D).

use h5live_model::Name;

use crate::element_table::{read_uint, write_uint};
use crate::{Addr, DecodeError, Fault, Record, Result, Width, Widths, Wire};

/// The prefix of a local heap, which says where its bytes are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalHeapPrefix {
    /// Bytes of the data segment.
    pub data_size: u64,
    /// The first free block, in bytes from the start of the data segment, if there is one.
    pub free_list_head: Option<u64>,
    /// The data segment.
    pub data: Addr,
}

/// Stands in a file for the offset of a free block if there is none.
const NO_BLOCK: u64 = 1;

impl LocalHeapPrefix {
    /// Bytes of the prefix, with the padding after it.
    pub fn prefix_size(widths: Widths) -> usize {
        let lengths = widths.length.bytes().saturating_mul(2);
        lengths.saturating_add(widths.offset.bytes()).saturating_add(8).next_multiple_of(8)
    }
}

impl Record for LocalHeapPrefix {
    const NAME: &'static str = "local heap";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let start = w.position();
        w.magic("HEAP")?;
        w.version(0..=0, &mut 0)?;
        w.reserved(3)?;
        w.length("data segment size", &mut self.data_size)?;
        let free = w.derived_uint("free list", w.widths().length, self.free_list_head.unwrap_or(NO_BLOCK))?;
        self.free_list_head = Some(free).filter(|free| *free != NO_BLOCK);
        let bad = self.free_list_head.filter(|free| *free >= self.data_size);
        w.require("free list", bad.is_none(), bad.unwrap_or(0), "lies inside the data segment")?;
        w.addr("data segment", &mut self.data)?;
        let used = w.position().saturating_sub(start);
        match Self::prefix_size(w.widths()).saturating_sub(used) {
            0 => Ok(()),
            padding => w.reserved(padding),
        }
    }
}

/// A run of unused bytes in the data segment of a local heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalHeapFreeRange {
    /// Bytes from the start of the data segment.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// The data segment of a local heap: strings, each ended by a NUL and begun at a multiple of 8, and free blocks, which
/// are a list threaded through the segment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalHeapData {
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl LocalHeapData {
    /// The string that begins at `offset`, without its NUL.
    ///
    /// # Errors
    /// [`Fault::TooLarge`] if it begins outside the segment, [`Fault::Truncated`] if no NUL ends it.
    pub fn string(&self, offset: u64) -> Result<Name> {
        self.string_bytes(offset).map(Name::from)
    }

    /// The bytes of the string that begins at `offset`.
    ///
    /// # Errors
    /// As [`LocalHeapData::string`].
    pub fn string_bytes(&self, offset: u64) -> Result<&[u8]> {
        let error = |fault| DecodeError {
            record: "local heap data",
            field: "string",
            offset_in_structure: self.place(offset),
            fault,
        };
        let outside = Fault::TooLarge { found: offset, limit: self.bytes.len() as u64 };
        let rest = usize::try_from(offset).ok().and_then(|at| self.bytes.get(at..)).ok_or_else(|| error(outside))?;
        let unended = Fault::Truncated { needed: (rest.len() as u64).saturating_add(1), left: rest.len() };
        let len = rest.iter().position(|byte| *byte == 0).ok_or_else(|| error(unended))?;
        Ok(rest.get(..len).unwrap_or_default())
    }

    /// The free blocks, in the order of the list that begins at `head`.
    ///
    /// # Errors
    /// [`Fault::InvalidValue`] if a block lies outside the segment, or the list does not end.
    pub fn free_ranges(&self, head: Option<u64>, length: Width) -> Result<Vec<LocalHeapFreeRange>> {
        let smallest = length.bytes().saturating_mul(2);
        let max_blocks = self.bytes.len().checked_div(smallest).unwrap_or(0);
        let mut blocks = Vec::new();
        let mut next = head;
        while let Some(offset) = next {
            let error = |found, rule| {
                let fault = Fault::InvalidValue { found, rule };
                Err(DecodeError {
                    record: "local heap data",
                    field: "free block",
                    offset_in_structure: self.place(offset),
                    fault,
                })
            };
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let Some(block) = self.bytes.get(start..).and_then(|rest| rest.get(..smallest)) else {
                return error(offset, "a free block lies inside the data segment");
            };
            let (following, size) = block.split_at_checked(length.bytes()).unwrap_or_default();
            let (following, size) = (read_uint(following), read_uint(size));
            if offset.checked_add(size).is_none_or(|end| end > self.bytes.len() as u64) {
                return error(size, "a free block lies inside the data segment");
            }
            if blocks.len() >= max_blocks || following == 0 {
                return error(following, "the list of free blocks ends");
            }
            blocks.push(LocalHeapFreeRange { offset, size });
            next = Some(following).filter(|following| *following != NO_BLOCK);
        }
        Ok(blocks)
    }

    /// Threads a list of free blocks through the segment, and returns where it begins. Blocks that cannot hold the
    /// two lengths of a list entry, or lie outside the segment, are left out: they are lost until the heap is rebuilt.
    pub fn write_free_list(&mut self, blocks: &[LocalHeapFreeRange], length: Width) -> Option<u64> {
        let smallest = length.bytes().saturating_mul(2);
        let end = self.bytes.len() as u64;
        let fits = |block: &&LocalHeapFreeRange| {
            block.size >= smallest as u64 && block.offset.checked_add(block.size).is_some_and(|to| to <= end)
        };
        let mut next = None;
        for block in blocks.iter().rev().filter(fits) {
            let start = usize::try_from(block.offset).unwrap_or(usize::MAX);
            let entry = self.bytes.get_mut(start..).and_then(|rest| rest.get_mut(..smallest)).unwrap_or_default();
            if let Some((following, size)) = entry.split_at_mut_checked(length.bytes()) {
                write_uint(following, next.unwrap_or(NO_BLOCK));
                write_uint(size, block.size);
                next = Some(block.offset);
            }
        }
        next
    }

    /// Writes a string and its NUL at `offset`, with NULs up to the next multiple of 8, and says whether it fits the
    /// segment.
    pub fn put_string(&mut self, offset: u64, string: &Name) -> bool {
        let taken = Self::padded_string_len(string);
        let Some(space) = usize::try_from(offset)
            .ok()
            .and_then(|start| self.bytes.get_mut(start..))
            .and_then(|rest| rest.get_mut(..taken))
        else {
            return false;
        };
        space.fill(0);
        space.iter_mut().zip(string.as_bytes()).for_each(|(byte, stored)| *byte = *stored);
        true
    }

    /// Bytes that a string takes, with its NUL and padding.
    pub fn padded_string_len(string: &Name) -> usize {
        string.as_bytes().len().saturating_add(1).checked_next_multiple_of(8).unwrap_or(usize::MAX)
    }

    fn place(&self, offset: u64) -> usize {
        usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len())
    }
}

impl Record for LocalHeapData {
    const NAME: &'static str = "local heap data";

    fn memory_bytes(&self) -> usize {
        size_of_val(self).saturating_add(self.bytes.len())
    }

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let len = if w.is_decoding() { w.remaining() } else { self.bytes.len() };
        w.bytes("data", len, &mut self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode, encode};

    #[test]
    fn prefix_comes_back_from_bytes_in_every_width() {
        for (offset, length) in [(Width::EIGHT, Width::EIGHT), (Width::FOUR, Width::FOUR), (Width::EIGHT, Width::TWO)] {
            let widths = Widths { offset, length };
            for free in [None, Some(8)] {
                let heap = LocalHeapPrefix { data_size: 88, free_list_head: free, data: Addr::new(680) };
                let bytes = encode(&heap, widths).unwrap();
                assert_eq!(bytes.len() % 8, 0);
                assert_eq!(decode::<LocalHeapPrefix>(&bytes, widths).unwrap(), heap);
            }
        }
    }

    #[test]
    fn strings_are_found_where_they_were_put() {
        let mut data = LocalHeapData { bytes: vec![0; 32] };
        assert!(data.put_string(8, &"seven..".into()) && data.put_string(16, &"twelve bytes".into()));
        assert!(!data.put_string(24, &"too long".into()));
        assert_eq!(data.string(0).unwrap(), "");
        assert_eq!(data.string(8).unwrap(), "seven..");
        assert_eq!(data.string(16).unwrap(), "twelve bytes");
        assert!(data.string(33).is_err());
        data.bytes.fill(b'x');
        assert!(matches!(data.string(16).unwrap_err().fault, Fault::Truncated { .. }));
    }

    #[test]
    fn free_blocks_are_a_list_in_the_segment() {
        let blocks = [LocalHeapFreeRange { offset: 40, size: 24 }, LocalHeapFreeRange { offset: 8, size: 16 }];
        let mut data = LocalHeapData { bytes: vec![0; 64] };
        let head = data.write_free_list(&blocks, Width::EIGHT);
        assert_eq!(head, Some(40));
        assert_eq!(data.free_ranges(head, Width::EIGHT).unwrap(), blocks);
        assert_eq!(data.write_free_list(&[LocalHeapFreeRange { offset: 60, size: 8 }], Width::EIGHT), None);
    }

    #[test]
    fn refuses_a_list_of_free_blocks_that_goes_round() {
        let mut data = LocalHeapData { bytes: vec![0; 64] };
        data.write_free_list(&[LocalHeapFreeRange { offset: 8, size: 16 }], Width::EIGHT);
        data.bytes[8] = 8;
        assert!(data.free_ranges(Some(8), Width::EIGHT).is_err());
    }
}

//! The bytes of the entries that a flush writes: one behind the other, in memory that stays for the next flush.
//!
//! A flush may take thousands of entries. Memory that each of them takes anew and gives back costs more than encoding them.

use std::ops::Range;

use h5live_format::EncodeError;

/// So much memory is kept in any case (bytes).
const MIN_KEPT_BYTES: usize = if cfg!(test) { 100 } else { 64 << 10 };

/// The bytes of all entries of a flush.
#[derive(Debug, Default)]
pub(crate) struct EntryImages {
    bytes: Vec<u8>,
}

/// Where the bytes of an entry are among those of its flush.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageRange(Range<usize>);

impl ImageRange {
    /// Bytes of the entry.
    pub(super) fn byte_count(&self) -> usize {
        self.0.len()
    }
}

impl EntryImages {
    /// Calls `append` to add the bytes of an entry behind the others.
    pub(super) fn push_with(
        &mut self,
        append: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> Result<ImageRange, EncodeError> {
        let start = self.bytes.len();
        append(&mut self.bytes)?;
        Ok(ImageRange(start..self.bytes.len()))
    }

    /// The bytes of an entry.
    pub(super) fn image(&self, range: &ImageRange) -> &[u8] {
        self.bytes.get(range.0.clone()).unwrap_or_default()
    }

    /// The bytes of several entries, one behind the other: from `scratch`, if they are not so here.
    pub(super) fn joined_images<'a>(
        &'a self,
        mut ranges: impl Iterator<Item = &'a ImageRange> + Clone,
        scratch: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let all = ranges.clone();
        let first = ranges.next().map_or(0..0, |range| range.0.clone());
        let extend =
            |joined: Range<usize>, next: &ImageRange| (joined.end == next.0.start).then_some(joined.start..next.0.end);
        if let Some(joined) = ranges.try_fold(first, extend) {
            return self.bytes.get(joined).unwrap_or_default();
        }
        scratch.clear();
        all.for_each(|range| scratch.extend_from_slice(self.image(range)));
        scratch
    }

    /// Forgets all bytes. Keeps memory for a next flush that is twice as large, up to about so many bytes: a file that had one
    /// large flush does not hold on to its memory.
    pub(super) fn clear(&mut self, max_kept_bytes: usize) {
        let kept = self.bytes.len().saturating_mul(2).max(MIN_KEPT_BYTES);
        self.bytes.clear();
        self.bytes.shrink_to(kept.min(max_kept_bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(images: &mut EntryImages, byte: u8, len: usize) -> ImageRange {
        let append = |bytes: &mut Vec<u8>| {
            bytes.resize(bytes.len() + len, byte);
            Ok(())
        };
        images.push_with(append).unwrap()
    }

    #[test]
    fn neighbours_are_joined_where_they_are_and_others_in_another_place() {
        let mut images = EntryImages::default();
        let mut ranges = [(1, 2), (2, 1), (3, 3)].map(|(byte, len)| push(&mut images, byte, len));
        let mut scratch = Vec::new();
        assert_eq!(images.joined_images(ranges.iter(), &mut scratch), [1, 1, 2, 3, 3, 3]);
        assert_eq!(images.joined_images(ranges[1..].iter(), &mut scratch), [2, 3, 3, 3]);
        assert!(scratch.is_empty());
        ranges.swap(0, 1);
        assert_eq!(images.joined_images(ranges.iter(), &mut scratch), [2, 1, 1, 3, 3, 3]);
        assert_eq!(images.joined_images(ranges[..1].iter(), &mut scratch), [2]);
        assert!(images.joined_images([].iter(), &mut scratch).is_empty());
    }

    #[test]
    fn a_large_flush_leaves_no_more_memory_than_it_may() {
        let mut images = EntryImages::default();
        let mut fill = |len| {
            push(&mut images, 1, len);
            images.clear(1000);
            (images.bytes.len(), images.bytes.capacity())
        };
        assert!(matches!(fill(100), (0, 100..)));
        assert!(matches!(fill(5000), (0, 1000..2000)));
        assert!(matches!(fill(300), (0, 600..1000)));
        assert!(matches!(fill(10), (0, 100..200)));
    }
}

//! The bytes of the entries that a flush writes: one behind the other, in memory that stays for the next flush.
//!
//! A flush may take thousands of entries. Memory that each of them takes anew and gives back costs more than encoding them.

use std::ops::Range;

use h5live_format::EncodeError;

use super::flush_step::FlushStep;

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
    pub(super) fn joined_images<'a>(&'a self, entries: &[FlushStep], scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let ranges = || entries.iter().filter_map(FlushStep::image);
        let joined =
            ranges().map(|range| range.0.clone()).try_fold(None, |joined: Option<Range<usize>>, next| match joined {
                None => Some(Some(next)),
                Some(joined) => (joined.end == next.start).then_some(Some(joined.start..next.end)),
            });
        if let Some(joined) = joined {
            return self.image(&ImageRange(joined.unwrap_or_default()));
        }
        scratch.clear();
        ranges().for_each(|range| scratch.extend_from_slice(self.image(range)));
        scratch
    }

    /// Forgets all bytes. Keeps memory for about so many bytes of the next flush.
    pub(super) fn clear(&mut self, max_kept_bytes: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(max_kept_bytes);
    }
}

#[cfg(test)]
mod tests {
    use h5live_format::Addr;

    use super::*;
    use crate::entry_id::EntryId;

    #[test]
    fn neighbours_are_joined_where_they_are_and_others_in_another_place() {
        let mut images = EntryImages::default();
        let mut step = |byte: u8, len| {
            let image = images.push_with(|bytes| {
                bytes.resize(bytes.len() + len, byte);
                Ok(())
            });
            FlushStep::Entry {
                id: EntryId(0),
                at: Addr::default(),
                name: "entry",
                image: image.unwrap(),
                in_place: false,
                has_dependencies: false,
            }
        };
        let mut steps = [step(1, 2), step(2, 1), step(3, 3)];
        let mut scratch = Vec::new();
        assert_eq!(images.joined_images(&steps, &mut scratch), [1, 1, 2, 3, 3, 3]);
        assert_eq!(images.joined_images(&steps[1..], &mut scratch), [2, 3, 3, 3]);
        assert!(scratch.is_empty());
        steps.swap(0, 1);
        assert_eq!(images.joined_images(&steps, &mut scratch), [2, 1, 1, 3, 3, 3]);
        assert_eq!(images.joined_images(&steps[..1], &mut scratch), [2]);
    }

    #[test]
    fn a_large_flush_leaves_no_more_memory_than_it_may() {
        let mut images = EntryImages::default();
        let mut fill = |len, kept| {
            let push = |bytes: &mut Vec<u8>| {
                bytes.resize(bytes.len() + len, 1);
                Ok(())
            };
            images.push_with(push).unwrap();
            images.clear(kept);
            (images.bytes.len(), images.bytes.capacity())
        };
        assert!(matches!(fill(100, 1000), (0, 100..)));
        assert!(matches!(fill(5000, 1000), (0, 1000..2000)));
    }
}

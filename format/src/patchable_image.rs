//! The image of a structure that changes in one place again and again, without describing all of it each time.

use std::ops::Range;

use crate::checksum::Lookup3State;

/// Bytes of a checksum.
const CHECKSUM_BYTES: usize = 4;

/// The image of a structure that ends with the checksum of all before it, and the place in it that changes.
#[derive(Debug, Clone)]
pub struct PatchableImage {
    image: Vec<u8>,
    patch_range: Range<usize>,
    /// The checksum, as far as nothing changes.
    checksum_state: Lookup3State,
    /// The offset where it continues.
    from: usize,
}

impl PatchableImage {
    /// An image in which the bytes of `patch_range` will change. `None` if `patch_range` is outside of it, or if `image` does not
    /// end with the checksum of the bytes before.
    pub fn new(image: Vec<u8>, patch_range: Range<usize>) -> Option<Self> {
        let (covered, sum) = image.split_last_chunk::<CHECKSUM_BYTES>()?;
        let before = covered
            .get(..patch_range.start)
            .filter(|_| patch_range.start < patch_range.end && patch_range.end <= covered.len())?;
        let mut begun = Lookup3State::new(covered.len(), 0);
        let from = before.len().checked_sub(begun.mix_all_but_last_block(before).len())?;
        let is_sum = begun.finalize(covered.get(from..)?).to_le_bytes() == *sum;
        is_sum.then_some(PatchableImage { patch_range, checksum_state: begun, from, image })
    }

    /// The bytes of the structure.
    pub fn image(&self) -> &[u8] {
        &self.image
    }

    /// Puts `bytes` in the place that changes; `false` if they are not as many as it has.
    pub fn patch(&mut self, bytes: &[u8]) -> bool {
        let Some((covered, sum)) = self.image.split_last_chunk_mut::<CHECKSUM_BYTES>() else { return false };
        let place = covered.get_mut(self.patch_range.clone()).filter(|place| place.len() == bytes.len());
        let Some(place) = place else { return false };
        place.copy_from_slice(bytes);
        *sum = self.checksum_state.finalize(covered.get(self.from..).unwrap_or_default()).to_le_bytes();
        true
    }

    /// The range that [`PatchableImage::patch`] changes (bytes).
    pub fn range_to_rewrite(&self) -> Range<usize> {
        self.patch_range.start..self.image.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup3;

    fn image(len: usize) -> Vec<u8> {
        let mut image: Vec<u8> = (0..len).map(|i| i as u8).collect();
        image.extend(lookup3(&image, 0).to_le_bytes());
        image
    }

    #[test]
    fn the_checksum_follows_what_is_put() {
        for len in 1..80 {
            for start in 0..len {
                let place = start..len.min(start + 8);
                let mut imprint = PatchableImage::new(image(len), place.clone()).unwrap();
                assert!(!imprint.patch(&vec![0xa5; place.len() + 1]));
                assert!(imprint.patch(&vec![0xa5; place.len()]));
                let (bytes, sum) = imprint.image().split_at(len);
                assert_eq!(bytes[place.clone()], vec![0xa5; place.len()]);
                assert_eq!(sum, lookup3(bytes, 0).to_le_bytes(), "{len} {start}");
                assert_eq!(imprint.range_to_rewrite(), start..len + 4);
            }
        }
    }

    #[test]
    fn what_has_no_such_place_or_checksum_is_refused() {
        assert!(PatchableImage::new(image(20), 12..21).is_none());
        assert!(PatchableImage::new(image(20), 12..12).is_none());
        assert!(PatchableImage::new(vec![1; 24], 0..4).is_none());
        assert!(PatchableImage::new(vec![1; 3], 0..1).is_none());
    }
}

//! Members of compounds.

use crate::convert::ConvertError;

/// The same member of compounds that lie one after another.
#[derive(Debug, Clone, Copy)]
pub struct MemberColumn<'a> {
    elements: &'a [u8],
    /// Bytes of an element.
    stride: usize,
    /// Where the member begins in an element (bytes).
    at: usize,
    /// Bytes of the member.
    size: usize,
}

impl<'a> MemberColumn<'a> {
    /// The column of `size` bytes at the offset `member_offset` in elements of `stride` bytes.
    ///
    /// # Errors
    /// [`ConvertError::Truncated`] if it does not lie inside the elements.
    pub fn new(elements: &'a [u8], stride: usize, member_offset: usize, size: usize) -> Result<Self, ConvertError> {
        match member_offset.checked_add(size) {
            Some(end) if end <= stride && stride > 0 => Ok(MemberColumn { elements, stride, at: member_offset, size }),
            _ => Err(ConvertError::Truncated { expected: size, found: stride.saturating_sub(member_offset) }),
        }
    }

    /// Bytes of the member.
    pub fn member_size(&self) -> usize {
        self.size
    }

    /// The member of each element.
    pub fn member_slices(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (at, end) = (self.at, self.at + self.size);
        self.elements.chunks_exact(self.stride).map(move |element| &element[at..end])
    }

    /// The member of each element, if it has `N` bytes.
    pub fn member_arrays<const N: usize>(&self) -> Option<impl Iterator<Item = &'a [u8; N]> + use<'a, N>> {
        let at = self.at;
        let arrays = self.elements.chunks_exact(self.stride).filter_map(move |element| element[at..].first_chunk());
        (self.size == N).then_some(arrays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_found_in_each_element() {
        let elements: Vec<u8> = (0..11).collect();
        let column = MemberColumn::new(&elements, 5, 1, 2).unwrap();
        assert_eq!(column.member_slices().collect::<Vec<_>>(), [[1, 2], [6, 7]]);
        assert_eq!(column.member_arrays::<2>().unwrap().collect::<Vec<_>>(), [&[1, 2], &[6, 7]]);
        assert!(column.member_arrays::<3>().is_none());
        assert_eq!(MemberColumn::new(&elements, 5, 5, 0).unwrap().member_slices().count(), 2);
    }

    #[test]
    fn refuses_what_is_not_inside_the_elements() {
        for (stride, at, size) in [(5, 4, 2), (5, 6, 0), (5, usize::MAX, 2), (0, 0, 0)] {
            assert!(matches!(MemberColumn::new(&[0; 10], stride, at, size), Err(ConvertError::Truncated { .. })));
        }
    }
}

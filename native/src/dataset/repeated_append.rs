//! What successive short appends have in common: the header in which only the extent changes, and the chunks that they
//! fill.

use std::ops::Range;

use h5live_cache::Handle;
use h5live_format::messages::DataspaceMessage;
use h5live_format::{FirstHeaderChunk, PatchableImage, Widths, encode_with_size_hint};
use h5live_model::{Dataspace, Shape, UNLIMITED};
use smallvec::SmallVec;

use super::extent_message::ExtentMessage;
use super::preallocated_append_rows::SequentialAppends;
use super::state::DatasetState;

/// After this many short appends in a row, it is worth keeping what they have in common.
pub(super) const MIN_APPENDS_BEFORE_REUSE: u32 = 2;

/// The parts that successive short appends have in common.
#[derive(Debug, Default)]
pub(crate) struct FastAppendState {
    /// Short appends in a row up to now.
    pub(super) consecutive_appends: u32,
    pub(super) repeated_append: Option<Box<RepeatedAppend>>,
    /// The chunks that they fill.
    pub(super) sequential_appends: Option<SequentialAppends>,
}

/// Appends along one dimension, by which nothing else changes in the header.
#[derive(Debug)]
pub(crate) struct RepeatedAppend {
    pub(super) axis: usize,
    /// The extent after the last of them.
    pub(super) dims: SmallVec<[u64; 4]>,
    pub(super) header: Handle<FirstHeaderChunk>,
    /// The header's edition then.
    pub(super) header_version: u64,
    /// The message with the extent, and where its body states that of the dimension.
    pub(super) message_index: usize,
    pub(super) extent_range: Range<usize>,
    pub(super) header_image: PatchableImage,
}

impl RepeatedAppend {
    /// Prepares for further appends that change only the extent, along the same dimension. `header` is the header after
    /// this append, and has that edition.
    pub fn new(
        old: &DatasetState,
        new: &DatasetState,
        (header, first, edition): (&Handle<FirstHeaderChunk>, &FirstHeaderChunk, u64),
        extent_message: &ExtentMessage,
        image: Vec<u8>,
        widths: Widths,
    ) -> Option<Self> {
        let (before, dims) = (old.spec.dataspace.dims(), new.spec.dataspace.dims());
        let axis = before.iter().zip(dims).position(|(before, now)| before != now)?;
        let body = extent_message.body();
        let place = extent_byte_range(DataspaceMessage::peek_version(body)?, (axis, dims.len()), widths)?;
        let stated = dims.get(axis)?.to_le_bytes();
        let as_expected = stated.get(..place.len()) == body.get(place.clone());
        let from = first.body_offset(extent_message.message_index())? + place.start;
        let imprint = PatchableImage::new(image, from..from + place.len()).filter(|_| as_expected)?;
        let header = header.clone();
        Some(RepeatedAppend {
            axis,
            dims: SmallVec::from_slice(dims),
            header,
            header_version: edition,
            message_index: extent_message.message_index(),
            extent_range: place,
            header_image: imprint,
        })
    }

    /// Whether an append from `old` to `new` is one like those before.
    pub fn continues(&self, old: &[u64], new: &[u64]) -> bool {
        let others = |(dim, _): &(usize, _)| *dim != self.axis;
        let same = old.iter().zip(new).enumerate().filter(others).all(|(_, (old, new))| old == new);
        same && self.dims[..] == *old
    }
}

/// Where the body of a dataspace message states the extent along dimension `axis` of `rank` that can all grow: where
/// the bodies differ of two that state others.
fn extent_byte_range(version: u8, (axis, rank): (usize, usize), widths: Widths) -> Option<Range<usize>> {
    let largest = u64::MAX >> (64 - 8 * widths.length.bytes().min(8));
    let body = |extent: u64| {
        let mut dims = SmallVec::<[u64; 4]>::from_elem(0, rank);
        *dims.get_mut(axis)? = extent;
        let shape = Shape::with_max(&dims, &SmallVec::<[u64; 4]>::from_elem(UNLIMITED, rank))?;
        encode_with_size_hint(&mut DataspaceMessage { version, dataspace: Dataspace::Simple(shape) }, widths).ok()
    };
    // All bytes of one and the other differ.
    let (zeros, other) = (body(0)?, body(largest / 2)?);
    let differ = |(zeros, other): (&u8, &u8)| zeros != other;
    let first = zeros.iter().zip(&other).position(differ)?;
    let last = zeros.iter().zip(&other).rposition(differ)?;
    (last + 1 - first == widths.length.bytes()).then_some(first..last + 1)
}

#[cfg(test)]
mod tests {
    use h5live_format::encode;

    use super::*;

    #[test]
    fn the_place_of_an_extent_is_where_it_is_stated() {
        let widths = Widths::default();
        for rank in 1..=5 {
            for axis in 0..rank {
                for version in [1, 2] {
                    let place = extent_byte_range(version, (axis, rank), widths).unwrap();
                    let dims: Vec<u64> = (0..rank as u64).map(|dim| 0x0102_0304_0506_0700 + dim).collect();
                    let shape = Shape::with_max(&dims, &vec![UNLIMITED; rank]).unwrap();
                    let message = DataspaceMessage { version, dataspace: Dataspace::Simple(shape) };
                    let body = encode(&message, widths).unwrap();
                    assert_eq!(body[place], dims[axis].to_le_bytes(), "{axis} of {rank}, version {version}");
                }
            }
        }
    }
}

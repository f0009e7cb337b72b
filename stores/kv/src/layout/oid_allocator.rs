//! Which indices are given to new objects.

use std::ops::Range;

use h5live_model::{ObjectId, ObjectKind};

use super::oid;

/// Indices that a writer reserves at a time.
pub const INDICES_PER_RANGE: u64 = 1024;

/// The next free range of a container: the value of [`MetadataField::FirstUnreservedObjectIndex`](super::MetadataField::FirstUnreservedObjectIndex).
/// Ranges begin at multiples of 1,024. Indices below [`oid::FIRST_USER_INDEX`] are passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OidCounter {
    next: u64,
}

impl OidCounter {
    /// The state of a container in which all indices below `next` are reserved.
    pub const fn starting_at(next: u64) -> Self {
        OidCounter { next }
    }

    /// The first index that is not reserved.
    pub const fn first_unreserved(self) -> u64 {
        self.next
    }

    /// Reserves a range: its indices, and the state to store before any of them is used. `None` if there are no more.
    pub fn reserve_range(self) -> Option<(Range<u64>, OidCounter)> {
        let end = self.next.checked_add(INDICES_PER_RANGE)?;
        Some((self.next.max(oid::FIRST_USER_INDEX)..end, OidCounter { next: end }))
    }
}

/// Gives out the indices of reserved ranges.
#[derive(Debug, Clone, Default)]
pub struct OidAllocator {
    free: Range<u64>,
}

impl OidAllocator {
    /// The identity of a new object; `None` if a range has to be reserved first.
    pub fn allocate(&mut self, kind: ObjectKind) -> Option<ObjectId> {
        self.free.next().map(|index| oid::new(kind, index))
    }

    /// Takes a reserved range. What was left of the one before is not used any more.
    pub fn replace_free_range(&mut self, range: Range<u64>) {
        self.free = range;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_range_passes_over_the_reserved_objects() {
        let (first, state) = OidCounter::default().reserve_range().unwrap();
        assert_eq!((first, state.first_unreserved()), (2..1024, 1024));
        let (second, state) = state.reserve_range().unwrap();
        assert_eq!((second, state.first_unreserved()), (1024..2048, 2048));
        assert_eq!(OidCounter::starting_at(u64::MAX - 1000).reserve_range(), None);
    }

    #[test]
    fn an_index_is_given_out_once() {
        let mut allocator = OidAllocator::default();
        assert_eq!(allocator.allocate(ObjectKind::Map), None);
        allocator.replace_free_range(2..4);
        assert_eq!(allocator.allocate(ObjectKind::Map), Some(oid::new(ObjectKind::Map, 2)));
        assert_eq!(allocator.allocate(ObjectKind::Group), Some(oid::new(ObjectKind::Group, 3)));
        assert_eq!(allocator.allocate(ObjectKind::Group), None);
    }
}

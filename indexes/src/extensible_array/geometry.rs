//! Where the elements of an extensible array lie (format specification 4.0, III.H).

use h5live_format::ExtensibleArrayParameters;

/// The shape of the blocks of one array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExtensibleArrayGeometry {
    index_elements: u64,
    min_elements: u64,
    /// Super blocks whose data blocks are listed in the index block itself.
    direct_super_blocks: u32,
    super_blocks: u32,
    page_elements: u64,
    offset_bytes: u8,
}

/// Which of the data blocks of the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataBlockPath {
    /// The index block points to it, in this slot.
    Direct(usize),
    /// A super block points to it.
    SuperBlock {
        /// The slot of the super block in the index block.
        slot: usize,
        /// The slot of the data block in the super block.
        within: usize,
    },
}

/// The place of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ElementLocation {
    /// In the index block, in this slot.
    IndexBlock(usize),
    /// In a data block.
    DataBlock {
        /// Which super block the data block belongs to, counted from 0.
        super_block: u32,
        /// How to get to the data block.
        branch: DataBlockPath,
        /// The element within the data block.
        slot: u64,
    },
}

impl ExtensibleArrayGeometry {
    /// The shape for parameters without a fault; `None` otherwise.
    pub fn new(parameters: &ExtensibleArrayParameters) -> Option<Self> {
        if parameters.fault().is_some() {
            return None;
        }
        let super_blocks = 1 + u32::from(parameters.element_index_bits) - parameters.data_block_min_elements.ilog2();
        let direct_super_blocks = 2 * parameters.super_block_min_pointers.ilog2();
        (direct_super_blocks <= super_blocks).then_some(ExtensibleArrayGeometry {
            index_elements: parameters.index_block_elements.into(),
            min_elements: parameters.data_block_min_elements.into(),
            direct_super_blocks,
            super_blocks,
            page_elements: 1 << parameters.page_bits,
            offset_bytes: parameters.element_index_bits.div_ceil(8),
        })
    }

    /// Elements in the index block.
    pub fn index_block_element_count(&self) -> usize {
        self.index_elements as usize
    }

    /// Super blocks whose data blocks are listed in the index block itself.
    pub fn unstored_super_block_count(&self) -> u32 {
        self.direct_super_blocks
    }

    /// Data blocks that the index block points to itself.
    pub fn direct_data_block_count(&self) -> usize {
        2 * ((1 << (self.direct_super_blocks / 2)) - 1)
    }

    /// Super blocks that the index block points to.
    pub fn stored_super_block_count(&self) -> usize {
        (self.super_blocks - self.direct_super_blocks) as usize
    }

    /// Bytes of the block offsets that blocks store.
    pub fn block_offset_size(&self) -> u8 {
        self.offset_bytes
    }

    /// Data blocks below a super block.
    pub fn data_block_count(&self, super_block: u32) -> u64 {
        1u64.checked_shl(super_block / 2).unwrap_or(0)
    }

    /// Elements in each data block below a super block.
    pub fn elements_per_data_block(&self, super_block: u32) -> u64 {
        self.min_elements.saturating_mul(1u64.checked_shl(super_block.div_ceil(2)).unwrap_or(u64::MAX))
    }

    /// Pages in each data block below a super block; 0 if the elements lie in the data block itself.
    pub fn pages_per_data_block(&self, super_block: u32) -> u64 {
        match self.elements_per_data_block(super_block) {
            elements if elements > self.page_elements => elements / self.page_elements,
            _ => 0,
        }
    }

    /// Elements in a page.
    pub fn elements_per_page(&self) -> u64 {
        self.page_elements
    }

    /// The index, less those of the index block, of the first element below a super block.
    pub fn data_block_elements_before(&self, super_block: u32) -> u64 {
        self.min_elements.saturating_mul((1u64 << super_block.min(63)) - 1)
    }

    /// Where the element at `index` lies; `None` beyond the end of the array.
    pub fn locate(&self, index: u64) -> Option<ElementLocation> {
        let Some(beyond) = index.checked_sub(self.index_elements) else {
            return Some(ElementLocation::IndexBlock(index as usize));
        };
        let super_block = (beyond / self.min_elements + 1).ilog2();
        if super_block >= self.super_blocks {
            return None;
        }
        let within = beyond - self.data_block_elements_before(super_block);
        let elements = self.elements_per_data_block(super_block);
        let (block, slot) = ((within / elements) as usize, within % elements);
        let branch = match super_block.checked_sub(self.direct_super_blocks) {
            None => DataBlockPath::Direct(self.direct_block_count_before(super_block) + block),
            Some(slot) => DataBlockPath::SuperBlock { slot: slot as usize, within: block },
        };
        Some(ElementLocation::DataBlock { super_block, branch, slot })
    }

    /// The index of the last element in the table (index block, data block or page) of the element at `index`, which is
    /// at `place`.
    pub fn last_index_in_block(&self, index: u64, place: ElementLocation) -> u64 {
        let (slot, len) = match place {
            ElementLocation::IndexBlock(slot) => (slot as u64, self.index_elements),
            ElementLocation::DataBlock { super_block, slot, .. } => {
                let len = self.elements_per_data_block(super_block).min(self.page_elements);
                (slot % len, len)
            }
        };
        index + (len - 1 - slot)
    }

    /// Data blocks below the super blocks before `super_block`.
    fn direct_block_count_before(&self, super_block: u32) -> usize {
        (0..super_block).map(|before| self.data_block_count(before) as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry() -> ExtensibleArrayGeometry {
        ExtensibleArrayGeometry::new(&ExtensibleArrayParameters::default()).unwrap()
    }

    #[test]
    fn has_the_numbers_of_libhdf5() {
        let g = geometry();
        assert_eq!((g.direct_data_block_count(), g.stored_super_block_count(), g.block_offset_size()), (6, 25, 4));
        let shape: Vec<_> = (0..6)
            .map(|u| (g.data_block_count(u), g.elements_per_data_block(u), g.data_block_elements_before(u)))
            .collect();
        assert_eq!(shape, [(1, 16, 0), (1, 32, 16), (2, 32, 48), (2, 64, 112), (4, 64, 240), (4, 128, 496)]);
        assert_eq!((g.pages_per_data_block(12), g.pages_per_data_block(13)), (0, 2));
    }

    #[test]
    fn every_element_has_a_place_of_its_own() {
        let g = geometry();
        let mut last = None;
        for index in 0..200_000 {
            let place = g.locate(index).unwrap();
            if let ElementLocation::DataBlock { super_block, branch, slot } = place {
                assert!(slot < g.elements_per_data_block(super_block));
                match branch {
                    DataBlockPath::Direct(at) => assert!(at < g.direct_data_block_count()),
                    DataBlockPath::SuperBlock { within, .. } => {
                        assert!((within as u64) < g.data_block_count(super_block))
                    }
                }
            }
            assert_ne!(Some(place), last);
            last = Some(place);
        }
    }

    #[test]
    fn tables_end_where_the_next_ones_begin() {
        let g = geometry();
        let ends = |index| g.last_index_in_block(index, g.locate(index).unwrap());
        assert_eq!([0, 3, 4, 19, 20].map(ends), [3, 3, 19, 19, 51]);
        // The first data block that has pages.
        let paged = g.index_elements + g.data_block_elements_before(13);
        assert_eq!([paged, paged + 1023, paged + 1024].map(ends), [paged + 1023, paged + 1023, paged + 2047]);
    }

    #[test]
    fn the_array_ends_at_its_largest_index() {
        let g = geometry();
        assert!(g.locate(u64::from(u32::MAX)).is_some());
        assert!(g.locate(u64::MAX).is_none());
    }
}

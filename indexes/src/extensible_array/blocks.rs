//! The blocks of an extensible array, and what all arrays need to know of them.

use h5live_cache::Handle;
use h5live_format::{
    Addr, ChunkEntryFormat, ExtensibleArrayDataBlock, ExtensibleArrayHeader, ExtensibleArrayIndexBlock,
    ExtensibleArrayParameters, ExtensibleArraySuperBlock, Widths,
};

use crate::element_array::ArrayHeader;

pub(super) type ExtensibleHeader = Handle<ExtensibleArrayHeader>;
pub(super) type IndexBlock = Handle<ExtensibleArrayIndexBlock>;
pub(super) type SuperBlock = Handle<ExtensibleArraySuperBlock>;
pub(super) type DataBlock = Handle<ExtensibleArrayDataBlock>;

/// The way to a data block: the structure that leads there, and the format of its elements.
#[derive(Debug, Clone, Copy)]
pub(super) struct DataBlockRef {
    pub super_block: u32,
    pub addr: Addr,
}

impl ArrayHeader for ExtensibleArrayHeader {
    type Shape = ExtensibleArrayParameters;

    fn new_header(format: ChunkEntryFormat, parameters: ExtensibleArrayParameters) -> Self {
        ExtensibleArrayHeader { format, parameters, ..Default::default() }
    }

    fn format_and_shape(&self) -> (ChunkEntryFormat, ExtensibleArrayParameters) {
        (self.format, self.parameters)
    }

    fn body_len(widths: Widths) -> u64 {
        6 + (6 * widths.length.bytes() + widths.offset.bytes()) as u64
    }
}

//! What the fixed and the extensible array have in common: their dataset, their header, how their blocks and pages are
//! found, and how their elements are visited.

use std::ops::Range;
use std::sync::Arc;

use h5live_cache::{Entry, Handle};
use h5live_format::{Addr, ArrayDataBlockPage, ChunkEntryFormat, ChunkEntryTable, ChunkIndexEntry, Record, Widths};
use h5live_model::ChunkCoord;
use parking_lot::Mutex;

use crate::chunk_index::IndexAddrSlot;
use crate::element_block::ElementBlock;
use crate::error::{Error, Result};
use crate::linear_chunk_order::LinearChunkOrder;
use crate::object_metadata::ObjectMetadataAccess;

/// Signature, version, client.
const BLOCK_PREFIX_BYTES: u64 = 6;
const CHECKSUM_BYTES: u64 = 4;

/// The header of an array.
pub(crate) trait ArrayHeader: Record + Entry {
    /// What decides the shape of an array, beside the format of its elements.
    type Shape: std::fmt::Debug + Copy + PartialEq;

    /// The header of a new array.
    fn new_header(format: ChunkEntryFormat, shape: Self::Shape) -> Self;

    /// The format of the elements, and the shape.
    fn format_and_shape(&self) -> (ChunkEntryFormat, Self::Shape);

    /// Bytes between the client and the checksum.
    fn body_len(widths: Widths) -> u64;
}

/// The result of a lookup.
pub(crate) enum ElementLookup {
    /// The element is in this slot of a block.
    Block(ElementBlock, usize),
    /// This many elements from here on were never set.
    Unset(u64),
}

/// An array of chunk elements, by its header.
#[derive(Debug)]
pub(crate) struct ElementArray<H: ArrayHeader> {
    pub metadata: ObjectMetadataAccess,
    pub root: Arc<dyn IndexAddrSlot>,
    pub line: LinearChunkOrder,
    pub format: ChunkEntryFormat,
    pub shape: H::Shape,
    /// The creation of the header, which two writers must not do at once.
    creation: Mutex<()>,
}

impl<H: ArrayHeader> ElementArray<H> {
    pub fn new(
        metadata: ObjectMetadataAccess,
        root: Arc<dyn IndexAddrSlot>,
        line: LinearChunkOrder,
        format: ChunkEntryFormat,
        shape: H::Shape,
    ) -> Self {
        ElementArray { metadata, root, line, format, shape, creation: Mutex::new(()) }
    }

    pub fn element_len(&self) -> u64 {
        self.format.size(self.metadata.addr_width()) as u64
    }

    pub fn addr_len(&self) -> u64 {
        self.metadata.addr_width().bytes() as u64
    }

    /// Bytes of a header.
    pub fn header_len(&self) -> u64 {
        BLOCK_PREFIX_BYTES + H::body_len(self.metadata.widths()) + CHECKSUM_BYTES
    }

    /// Bytes of a block that has `body` bytes between the address of the header and the checksum.
    pub fn block_len(&self, body: u64) -> u64 {
        BLOCK_PREFIX_BYTES + self.addr_len() + body + CHECKSUM_BYTES
    }

    /// Bytes of a page.
    pub fn page_len(&self, elements: u64) -> u64 {
        elements * self.element_len() + CHECKSUM_BYTES
    }

    pub fn undefined_elements(&self, len: u64) -> ChunkEntryTable {
        ChunkEntryTable::undefined(len as usize, self.format, self.metadata.addr_width())
    }

    pub fn layout_contradiction_error(&self, at: Addr, record: &'static str, rule: &'static str) -> Error {
        Error::Contradiction { record, at, other: "data layout message", rule }
    }

    /// Whether the stored size of a chunk fits its element.
    pub fn check_stored_size(&self, element: &ChunkIndexEntry) -> Result<()> {
        match self.format {
            ChunkEntryFormat::Filtered(width) if element.stored_size > width.max_value() => {
                Err(Error::StoredChunkTooLarge { size: element.stored_size })
            }
            _ => Ok(()),
        }
    }

    fn new_header(&self) -> H {
        H::new_header(self.format, self.shape)
    }

    /// The header, if the array was created.
    pub fn header(&self) -> Result<Option<Handle<H>>> {
        let addr = self.root.addr();
        if !addr.is_defined() {
            return Ok(None);
        }
        let header = self.metadata.load(addr, self.header_len(), || self.new_header())?;
        let agrees = header.read().format_and_shape() == (self.format, self.shape);
        if agrees {
            Ok(Some(header))
        } else {
            Err(self.layout_contradiction_error(addr, H::NAME, "shape of the array"))
        }
    }

    /// The header, which is created if it is not there. The object header waits for it.
    pub fn get_or_create_header(&self) -> Result<Handle<H>> {
        let _creation = self.creation.lock();
        let header = match self.header()? {
            Some(header) => header,
            None => {
                let header = self.metadata.create(self.header_len(), self.new_header())?;
                self.root.set_addr(header.addr())?;
                header
            }
        };
        self.root.depend_on(&header)?;
        Ok(header)
    }

    /// The block of `len` bytes at `addr`. It must state the address of this array's header.
    pub fn load_block<B: Record + Entry>(
        &self,
        addr: Addr,
        len: u64,
        empty: impl FnOnce() -> B,
        stated_header: impl FnOnce(&B) -> Addr,
    ) -> Result<Handle<B>> {
        let block = self.metadata.load(addr, len, empty)?;
        let stated = stated_header(&block.read());
        if stated == self.root.addr() {
            Ok(block)
        } else {
            Err(self.layout_contradiction_error(addr, B::NAME, "it names the header"))
        }
    }

    /// The page of `elements` elements at `addr`.
    pub fn load_page(&self, addr: Addr, elements: u64) -> Result<Handle<ArrayDataBlockPage>> {
        let empty = || ArrayDataBlockPage { elements: self.undefined_elements(elements) };
        self.metadata.load(addr, self.page_len(elements), empty)
    }

    /// A new page at `addr`, in the space of its data block.
    pub fn create_page(&self, addr: Addr, elements: u64) -> Result<Handle<ArrayDataBlockPage>> {
        self.metadata.cache().check_memory_allocation(addr, self.page_len(elements))?;
        let empty = ArrayDataBlockPage { elements: self.undefined_elements(elements) };
        Ok(self.metadata.cache().insert_entry(addr, self.metadata.owner(), empty))
    }

    /// Calls `each` with the chunks of a part of the array, until it returns `false`. `find` looks up an element by its
    /// index; `None` if the array cannot have one.
    pub fn for_each_chunk_in(
        &self,
        part: Range<u64>,
        find: impl Fn(u64) -> Result<Option<ElementLookup>>,
        each: &mut dyn FnMut(ChunkCoord, ChunkIndexEntry) -> bool,
    ) -> Result<()> {
        let Range { start: mut index, end } = part;
        while index < end {
            let (table, first) = match find(index)? {
                None => break,
                Some(ElementLookup::Unset(len)) => {
                    index = index.saturating_add(len);
                    continue;
                }
                Some(ElementLookup::Block(table, slot)) => (table, slot),
            };
            for element in (first..).map_while(|slot| table.get(slot)) {
                if index >= end {
                    return Ok(());
                }
                if element.addr.is_defined() && !each(self.line.coord_at(index), element) {
                    return Ok(());
                }
                index += 1;
            }
        }
        Ok(())
    }
}

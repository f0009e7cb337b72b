//! Reading many objects of a fractal heap at once.

use h5live_format::{FractalHeapDirectBlock, FractalHeapHeader, FractalHeapIdFormat, HeapObjectLocation};

use super::FractalHeap;
use crate::object_metadata::MaybeCached;
use crate::{Error, Result};

/// Most bytes of a heap whose blocks are cached when they are read.
const MAX_CACHED_HEAP_BYTES: u64 = 1 << 20;

/// A heap that nobody changes meanwhile: its objects are looked at in the order in which it has them.
#[derive(Debug)]
pub struct HeapBulkReader<'a> {
    heap: &'a FractalHeap,
    header: FractalHeapHeader,
    shape: FractalHeapIdFormat,
    /// The direct block that was looked at last.
    block: Option<MaybeCached<FractalHeapDirectBlock>>,
}

impl FractalHeap {
    /// Begins to read many objects.
    ///
    /// # Errors
    /// If the header cannot be read.
    pub fn bulk_reader(&self) -> Result<HeapBulkReader<'_>> {
        let header = self.header()?.read().clone();
        let shape = header.id_format(self.metadata.widths());
        Ok(HeapBulkReader { heap: self, header, shape, block: None })
    }
}

impl HeapBulkReader<'_> {
    /// Calls `visit` with the bytes of the objects with these heap IDs, in no particular order, until it returns
    /// `false`; returns whether it never did. It must not use the heap.
    ///
    /// # Errors
    /// The first error of `visit`; as [`FractalHeap::read_object`].
    pub fn for_each_object_unordered<E: From<Error>>(
        &mut self,
        ids: impl Iterator<Item: AsRef<[u8]>>,
        mut visit: impl FnMut(&[u8]) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let mut places = Vec::with_capacity(ids.size_hint().0);
        for id in ids {
            match self.heap.decode_id_with(&self.shape, id.as_ref())? {
                HeapObjectLocation::Managed { offset, length } if self.header.filter_info.is_none() => {
                    places.push((offset, length))
                }
                _ if !visit(&self.heap.read_object(id.as_ref())?)? => return Ok(false),
                _ => {}
            }
        }
        places.sort_unstable();
        for (offset, length) in places {
            let done = match self.with_object_in_block(offset, length, &mut visit) {
                Some(done) => done,
                None => {
                    self.load_block_at(offset)?;
                    self.with_object_in_block(offset, length, &mut visit)
                        .ok_or_else(|| self.heap.misplaced_object_error())?
                }
            };
            if !done? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// `None` if the object is not in the present block.
    fn with_object_in_block<T>(&self, offset: u64, length: u64, visit: impl FnOnce(&[u8]) -> T) -> Option<T> {
        self.block.as_ref()?.with(|block| block.object(offset, length).map(visit))
    }

    fn load_block_at(&mut self, offset: u64) -> Result<()> {
        let place = self.heap.block_path(&self.header, offset)?;
        self.block = Some(match self.header.allocated_space {
            ..=MAX_CACHED_HEAP_BYTES => MaybeCached::Cached(self.heap.load_direct_block(&self.header, &place)?),
            _ => self.heap.read_block_once(&self.header, &place)?,
        });
        Ok(())
    }
}

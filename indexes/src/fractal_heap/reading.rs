//! Reading many objects of a fractal heap at once.

use std::collections::BTreeMap;

use h5live_format::{FractalHeapHeader, HeapPlace};

use super::FractalHeap;
use super::place::Direct;
use crate::Result;

/// Most blocks that are held.
const HELD: usize = 1024;

/// A heap that nobody changes meanwhile: its blocks are sought once, not for each object.
#[derive(Debug)]
pub struct HeapReading<'a> {
    heap: &'a FractalHeap,
    header: FractalHeapHeader,
    /// Direct blocks, by where they begin in heap space.
    blocks: BTreeMap<u64, Direct>,
}

impl FractalHeap {
    /// Begins to read many objects.
    ///
    /// # Errors
    /// If the header cannot be read.
    pub fn reading(&self) -> Result<HeapReading<'_>> {
        Ok(HeapReading { heap: self, header: self.header()?.read().clone(), blocks: BTreeMap::new() })
    }
}

impl HeapReading<'_> {
    /// Calls `look` with the bytes of the object with this heap ID. It must not use the heap.
    ///
    /// # Errors
    /// As [`FractalHeap::get`].
    pub fn with<T>(&mut self, id: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let (offset, length) = match self.heap.decode_id(&self.header, id)? {
            HeapPlace::Managed { offset, length } if self.header.filtered.is_none() => (offset, length),
            _ => return Ok(look(&self.heap.get(id)?)),
        };
        if let Some((_, block)) = self.blocks.range(..=offset).next_back()
            && let Some(object) = block.read().object(offset, length)
        {
            return Ok(look(object));
        }
        let place = self.heap.place(&self.header, offset)?;
        let block = self.heap.direct_block(&self.header, &place)?;
        if self.blocks.len() == HELD {
            self.blocks.clear();
        }
        let block = self.blocks.entry(place.slot.start).or_insert(block).read();
        Ok(look(block.object(offset, length).ok_or_else(|| self.heap.misplaced())?))
    }
}

//! Local heaps: the strings of an old-style group.

use std::cmp::Ordering;

use h5live_cache::{EdgeKind, Handle, Moment};
use h5live_format::{Addr, FreeBlock, LocalHeap, LocalHeapData};
use h5live_model::Name;
use parking_lot::Mutex;

use crate::{Error, ObjectMetadata, Result};

/// The strings of one local heap (format specification 4.0, III.D).
pub(crate) struct LocalStrings {
    metadata: ObjectMetadata,
    prefix: Handle<LocalHeap>,
    /// None if the data segment is empty.
    data: Option<Handle<LocalHeapData>>,
}

/// Bytes that the empty string at the beginning takes.
const EMPTY: u64 = 8;

/// Strings of one local heap that are no longer used, but that readers of what is in the file still find; to be kept
/// as long as the session.
#[derive(Debug, Default)]
pub struct UnusedStrings(Mutex<Vec<(Moment, u64, u64)>>);

impl UnusedStrings {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

impl LocalStrings {
    /// The heap with its prefix at `addr`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load(metadata: &ObjectMetadata, addr: Addr) -> Result<Self> {
        let len = LocalHeap::prefix_size(metadata.widths()) as u64;
        let prefix = metadata.load(addr, len, LocalHeap::default)?;
        let (at, size) = {
            let prefix = prefix.read();
            (prefix.data, prefix.size)
        };
        let data = if size == 0 { None } else { Some(metadata.load(at, size, LocalHeapData::default)?) };
        Ok(LocalStrings { metadata: metadata.clone(), prefix, data })
    }

    /// A new heap with the empty string at offset 0, and a data segment of `size` bytes.
    ///
    /// # Errors
    /// If there is no room.
    pub fn create(metadata: &ObjectMetadata, size: u64) -> Result<Self> {
        let widths = metadata.widths();
        let mut data = LocalHeapData { bytes: vec![0; usize::try_from(size).unwrap_or(usize::MAX)] };
        let rest = FreeBlock { offset: EMPTY, size: size.saturating_sub(EMPTY) };
        let free = data.set_free_blocks(&[rest], widths.length);
        let data = metadata.create(size, data)?;
        let prefix = LocalHeap { size, free, data: data.addr() };
        let prefix = metadata.create(LocalHeap::prefix_size(widths) as u64, prefix)?;
        metadata.depend(&prefix, &data, EdgeKind::SymbolTable)?;
        Ok(LocalStrings { metadata: metadata.clone(), prefix, data: Some(data) })
    }

    /// The prefix, which is written after the strings.
    pub fn node(&self) -> &Handle<LocalHeap> {
        &self.prefix
    }

    fn with<T>(&self, look: impl FnOnce(&LocalHeapData) -> h5live_format::Result<T>) -> Result<T> {
        let found = match &self.data {
            Some(data) => look(&data.read()),
            None => look(&LocalHeapData::default()),
        };
        found.map_err(|source| Error::Cache(h5live_cache::Error::Decode { at: self.prefix.addr(), source }))
    }

    /// The string at an offset (bytes).
    ///
    /// # Errors
    /// If there is none.
    pub fn get(&self, offset: u64) -> Result<Name> {
        self.with(|data| data.string(offset))
    }

    /// How the string at an offset compares with a name.
    ///
    /// # Errors
    /// If there is none.
    pub fn compare(&self, offset: u64, name: &Name) -> Result<Ordering> {
        self.with(|data| Ok(data.text(offset)?.cmp(name.as_bytes())))
    }

    /// Adds a string, and returns its offset (bytes).
    ///
    /// # Errors
    /// If there is no room.
    pub fn insert(&mut self, string: &Name) -> Result<u64> {
        let smallest = 2 * self.metadata.widths().length.bytes() as u64;
        let need = LocalHeapData::space_for(string) as u64;
        let mut blocks = self.free_blocks();
        let fits = |block: &FreeBlock| block.size == need || block.size >= need.saturating_add(smallest);
        let at = match blocks.iter().position(fits) {
            Some(at) => at,
            None => {
                self.grow(&mut blocks, need.saturating_add(smallest))?;
                blocks.len() - 1
            }
        };
        let offset = blocks[at].offset;
        blocks[at] = FreeBlock { offset: offset.saturating_add(need), size: blocks[at].size.saturating_sub(need) };
        blocks.retain(|block| block.size > 0);
        self.change(&blocks, |data| data.put(offset, string))?;
        Ok(offset)
    }

    /// Changes the strings, and the list of free blocks. The segment moves if the file leads to it: prefix and segment
    /// could not be changed at once, and the list begins in the one and goes on in the other.
    fn change(&mut self, blocks: &[FreeBlock], change: impl FnOnce(&mut LocalHeapData) -> bool) -> Result<()> {
        let at = self.prefix.addr();
        let full = || Error::HeapFull { at };
        if !self.data.as_ref().ok_or_else(full)?.is_new() {
            let size = self.prefix.read().size;
            self.move_to(size)?;
        }
        let (data, width) = (self.data.as_ref().ok_or_else(full)?, self.metadata.widths().length);
        let free = data.update(|data| change(data).then(|| data.set_free_blocks(blocks, width)));
        let free = free.ok_or_else(full)?;
        self.metadata.depend(&self.prefix, data, EdgeKind::SymbolTable)?;
        self.prefix.update(|prefix| prefix.free = free);
        Ok(())
    }

    /// Moves the strings to a segment of `size` bytes.
    fn move_to(&mut self, size: u64) -> Result<()> {
        let (old, old_size) = {
            let prefix = self.prefix.read();
            (prefix.data, prefix.size)
        };
        let mut bytes = self.with(|data| Ok(data.bytes.clone()))?;
        bytes.resize(usize::try_from(size).unwrap_or(usize::MAX), 0);
        let data = self.metadata.create(size, LocalHeapData { bytes })?;
        self.metadata.depend(&self.prefix, &data, EdgeKind::SymbolTable)?;
        self.prefix.update(|prefix| (prefix.size, prefix.data) = (size, data.addr()));
        if old_size > 0 {
            self.metadata.free(old, old_size);
        }
        self.data = Some(data);
        Ok(())
    }

    /// The free blocks; none if the list of them is damaged.
    fn free_blocks(&self) -> Vec<FreeBlock> {
        let (head, width) = (self.prefix.read().free, self.metadata.widths().length);
        self.with(|data| data.free_blocks(head, width)).unwrap_or_default()
    }

    /// Moves the strings to a segment that is at least twice as large, with a free block of at least `need` bytes at
    /// its end.
    fn grow(&mut self, blocks: &mut Vec<FreeBlock>, need: u64) -> Result<()> {
        let size = self.prefix.read().size;
        let more = need.max(size).next_multiple_of(8);
        self.move_to(size.checked_add(more).ok_or(Error::HeapFull { at: self.prefix.addr() })?)?;
        match blocks.iter().position(|block| block.offset.saturating_add(block.size) == size) {
            Some(last) => {
                let block = blocks.remove(last);
                blocks.push(FreeBlock { size: block.size.saturating_add(more), ..block });
            }
            None => blocks.push(FreeBlock { offset: size, size: more }),
        }
        Ok(())
    }

    /// Strings become unused.
    ///
    /// # Errors
    /// If there are no such strings.
    pub fn remove(&self, unused: &UnusedStrings, offsets: &[u64]) -> Result<()> {
        for offset in offsets.iter().filter(|offset| **offset >= EMPTY) {
            let len = LocalHeapData::space_for(&self.get(*offset)?) as u64;
            unused.0.lock().push((self.metadata.cache().space().moment(), *offset, len));
        }
        Ok(())
    }

    /// Gives the space of unused strings back of which nothing in the file tells any more.
    ///
    /// # Errors
    /// If the heap cannot be changed.
    pub fn settle(&mut self, unused: &UnusedStrings) -> Result<bool> {
        let space = self.metadata.cache().space();
        let settled = {
            let mut unused = unused.0.lock();
            // The first has waited longest.
            if unused.first().is_none_or(|(moment, ..)| !space.is_settled(*moment)) {
                return Ok(false);
            }
            let (settled, waiting): (Vec<_>, Vec<_>) =
                unused.drain(..).partition(|(moment, ..)| space.is_settled(*moment));
            *unused = waiting;
            settled
        };
        let mut blocks = self.free_blocks();
        blocks.extend(settled.into_iter().map(|(_, offset, size)| FreeBlock { offset, size }));
        blocks.sort_unstable_by_key(|block| block.offset);
        blocks.dedup_by(|next, block| {
            let adjoins = block.offset.saturating_add(block.size) == next.offset;
            if adjoins {
                block.size = block.size.saturating_add(next.size);
            }
            adjoins
        });
        self.change(&blocks, |_| true)?;
        Ok(true)
    }

    /// Gives up the heap.
    pub fn delete(&self) {
        let widths = self.metadata.widths();
        let (data, size) = {
            let prefix = self.prefix.read();
            (prefix.data, prefix.size)
        };
        if size > 0 {
            self.metadata.free(data, size);
        }
        self.metadata.free(self.prefix.addr(), LocalHeap::prefix_size(widths) as u64);
    }
}

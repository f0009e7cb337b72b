//! Local heaps: the strings of an old-style group.

use std::cmp::Ordering;

use h5live_cache::{DependencyKind, DependencyNode, FileSpaceAllocator, FreeEpoch, FreeList, Handle, SpaceKind};
use h5live_format::{Addr, LocalHeapData, LocalHeapFreeRange, LocalHeapPrefix};
use h5live_model::Name;
use parking_lot::Mutex;

use crate::{Error, ObjectMetadataAccess, Result};

/// The strings of one local heap (format specification 4.0, III.D).
pub(crate) struct LocalHeapStrings {
    metadata: ObjectMetadataAccess,
    prefix: Handle<LocalHeapPrefix>,
    /// None if the data segment is empty.
    data: Option<Handle<LocalHeapData>>,
}

/// Bytes that the empty string at the beginning takes.
const EMPTY_STRING_BYTES: u64 = 8;

/// No segment is cut shorter than this (bytes).
const MIN_SEGMENT_BYTES: u64 = 88;

/// At most this fraction of a segment may be free at its end when the heap is finalized.
const MAX_SLACK_FRACTION: u64 = 32;

/// The space inside one local heap, as this session knows it. Keep it as long as the session, for all changes of the
/// heap.
///
/// From the first change on, the file says that nothing in the heap is free. The list of free space begins in the
/// prefix and continues in the segment, so it cannot be changed at once with the strings. So new strings go to free
/// places of the segment to which the file leads. The list is written again when the session ends
/// (`LocalHeapStrings::finalize_if_changed`).
#[derive(Debug, Default)]
pub struct LocalHeapFreeSpace(Mutex<StringSpaceState>);

#[derive(Debug, Default)]
struct StringSpaceState {
    /// Whether `free` is valid, and not the list in the file.
    is_free_list_valid: bool,
    /// Whether everything outside of `free` is known to be taken.
    is_everything_else_taken: bool,
    /// By offset in the segment.
    free_list: FreeList,
    /// Unused strings that readers of the file may still find: offset and length (bytes).
    removed: Vec<(FreeEpoch, u64, u64)>,
}

impl LocalHeapFreeSpace {
    pub(crate) fn is_changed(&self) -> bool {
        self.0.lock().is_free_list_valid
    }
}

/// Bytes that a string takes.
fn padded_string_bytes(string: &Name) -> u64 {
    LocalHeapData::padded_string_len(string) as u64
}

impl StringSpaceState {
    /// Takes room for all of these strings, or for none.
    fn alloc_strings(&mut self, strings: &[&Name]) -> Option<Vec<u64>> {
        let mut offsets = Vec::with_capacity(strings.len());
        for string in strings {
            match self.free_list.take_best_fit(padded_string_bytes(string), Some) {
                Some(offset) => offsets.push(offset),
                None => {
                    offsets
                        .iter()
                        .zip(strings)
                        .for_each(|(at, string)| self.free_list.free_range(*at, padded_string_bytes(string)));
                    return None;
                }
            }
        }
        Some(offsets)
    }

    /// Frees the space of unused strings to which nothing in the file leads any more.
    fn reclaim_removed(&mut self, space: &FileSpaceAllocator) {
        // The first has waited longest.
        if self.removed.first().is_none_or(|(moment, ..)| !space.is_reclaimable(*moment)) {
            return;
        }
        let (settled, waiting): (Vec<_>, _) =
            self.removed.drain(..).partition(|(moment, ..)| space.is_reclaimable(*moment));
        self.removed = waiting;
        settled.into_iter().for_each(|(_, offset, len)| self.free_list.free_range(offset, len));
    }
}

impl LocalHeapStrings {
    /// The heap with its prefix at `addr`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load(metadata: &ObjectMetadataAccess, addr: Addr) -> Result<Self> {
        let len = LocalHeapPrefix::prefix_size(metadata.widths()) as u64;
        let prefix = metadata.load(addr, len, LocalHeapPrefix::default)?;
        let (at, size) = {
            let prefix = prefix.read();
            (prefix.data, prefix.data_size)
        };
        let data = if size == 0 { None } else { Some(metadata.load(at, size, LocalHeapData::default)?) };
        Ok(LocalHeapStrings { metadata: metadata.clone(), prefix, data })
    }

    /// A new heap with the empty string at offset 0, and a data segment of `size` bytes. `space` gets its free space.
    ///
    /// # Errors
    /// If there is no room.
    pub fn create(metadata: &ObjectMetadataAccess, size: u64, space: &LocalHeapFreeSpace) -> Result<Self> {
        let data = LocalHeapData { bytes: vec![0; usize::try_from(size).unwrap_or(usize::MAX)] };
        let data = metadata.create(size, data)?;
        let prefix = LocalHeapPrefix { data_size: size, free_list_head: None, data: data.addr() };
        let prefix = metadata.create(LocalHeapPrefix::prefix_size(metadata.widths()) as u64, prefix)?;
        let mut strings = space.0.lock();
        strings.free_list.free_range(EMPTY_STRING_BYTES, size.saturating_sub(EMPTY_STRING_BYTES));
        (strings.is_free_list_valid, strings.is_everything_else_taken) = (true, true);
        Ok(LocalHeapStrings { metadata: metadata.clone(), prefix, data: Some(data) })
    }

    /// Where the prefix is.
    pub fn addr(&self) -> Addr {
        self.prefix.addr()
    }

    /// Bytes of the segment.
    pub fn segment_bytes(&self) -> u64 {
        self.prefix.read().data_size
    }

    #[cfg(test)]
    pub fn listed_free_bytes(&self) -> u64 {
        self.free_blocks().iter().map(|block| block.size).sum()
    }

    /// Makes `parent` wait for all strings that were added before.
    ///
    /// # Errors
    /// If the dependency would close a circle.
    pub fn add_flush_parent(&self, parent: &(impl DependencyNode + ?Sized)) -> Result<()> {
        self.add_dependency(parent, &self.prefix)?;
        self.data.as_ref().map_or(Ok(()), |data| self.add_dependency(parent, data))
    }

    fn add_dependency(
        &self,
        parent: &(impl DependencyNode + ?Sized),
        child: &(impl DependencyNode + ?Sized),
    ) -> Result<()> {
        let done = self.metadata.cache().add_dependency_until_clean(parent, child, DependencyKind::SymbolTable);
        Ok(done.map_err(h5live_cache::Error::from)?)
    }

    fn with_data<T>(&self, look: impl FnOnce(&LocalHeapData) -> h5live_format::Result<T>) -> Result<T> {
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
    pub fn read_string(&self, offset: u64) -> Result<Name> {
        self.with_data(|data| data.string(offset))
    }

    /// How the string at an offset compares with a name.
    ///
    /// # Errors
    /// If there is none.
    pub fn compare_string(&self, offset: u64, name: &Name) -> Result<Ordering> {
        self.with_data(|data| Ok(data.string_bytes(offset)?.cmp(name.as_bytes())))
    }

    /// Adds strings, and returns their offsets (bytes). `used_offsets` returns the offsets of all strings that are in use. It
    /// is called if no room is known, because the last session may have ended without a list of free space.
    ///
    /// # Errors
    /// If there is no room; the error of `used_offsets`.
    pub fn insert_strings(
        &mut self,
        space: &LocalHeapFreeSpace,
        strings: &[&Name],
        used_offsets: impl FnOnce() -> Result<Vec<u64>>,
    ) -> Result<Vec<u64>> {
        let known = &mut *space.0.lock();
        self.load_free_list(known)?;
        known.reclaim_removed(self.metadata.cache().space());
        let offsets = match known.alloc_strings(strings) {
            Some(offsets) => offsets,
            None => {
                if !std::mem::replace(&mut known.is_everything_else_taken, true) {
                    self.rebuild_free_list(known, &used_offsets()?);
                }
                self.alloc_strings_or_grow(known, strings)?
            }
        };
        let full = || Error::HeapFull { at: self.prefix.addr() };
        let data = self.data.as_ref().ok_or_else(full)?;
        let put =
            |data: &mut LocalHeapData| strings.iter().zip(&offsets).all(|(string, at)| data.put_string(*at, string));
        if data.update(put) { Ok(offsets) } else { Err(full()) }
    }

    /// Finds room for strings, if need be in a larger segment.
    fn alloc_strings_or_grow(&mut self, known: &mut StringSpaceState, strings: &[&Name]) -> Result<Vec<u64>> {
        if let Some(offsets) = known.alloc_strings(strings) {
            return Ok(offsets);
        }
        self.grow_segment(known, strings.iter().map(|string| padded_string_bytes(string)).sum())?;
        known.alloc_strings(strings).ok_or(Error::HeapFull { at: self.prefix.addr() })
    }

    /// Computes the free space from the strings in use.
    fn rebuild_free_list(&self, known: &mut StringSpaceState, taken: &[u64]) {
        known.free_list.clear();
        known.free_list.free_range(EMPTY_STRING_BYTES, self.prefix.read().data_size.saturating_sub(EMPTY_STRING_BYTES));
        // Keys of other programs may lead to strings that are no more.
        for (offset, string) in taken.iter().filter_map(|offset| Some((*offset, self.read_string(*offset).ok()?))) {
            known.free_list.remove_if_free(offset, padded_string_bytes(&string));
        }
        for (_, offset, len) in &known.removed {
            known.free_list.remove_if_free(*offset, *len);
        }
    }

    /// Takes the list of free space from the file.
    fn load_free_list(&self, strings: &mut StringSpaceState) -> Result<()> {
        if strings.is_free_list_valid {
            return Ok(());
        }
        self.free_blocks().into_iter().for_each(|block| strings.free_list.free_range(block.offset, block.size));
        if let Some(data) = self.data.as_ref().filter(|_| self.prefix.read().free_list_head.is_some()) {
            self.prefix.update(|prefix| prefix.free_list_head = None);
            // Nothing in the file tells of a list in a new segment.
            if !data.is_new() {
                self.metadata.cache().remove_dependencies(&self.prefix, data);
                self.add_dependency(data, &self.prefix)?;
            }
        }
        strings.is_free_list_valid = true;
        Ok(())
    }

    /// The free blocks that the file lists; none if the list is damaged.
    fn free_blocks(&self) -> Vec<LocalHeapFreeRange> {
        let (head, width) = (self.prefix.read().free_list_head, self.metadata.widths().length);
        self.with_data(|data| data.free_ranges(head, width)).unwrap_or_default()
    }

    /// Moves the strings to a segment that is at least half as large again, with at least `need` free bytes at its end.
    fn grow_segment(&mut self, strings: &mut StringSpaceState, need: u64) -> Result<()> {
        let size = self.prefix.read().data_size;
        let more = need.max(size / 2).next_multiple_of(8);
        let grown = size.checked_add(more).ok_or(Error::HeapFull { at: self.prefix.addr() })?;
        let at = self.metadata.cache().space().alloc(grown, SpaceKind::Metadata)?;
        self.move_segment_to(at, grown)?;
        strings.free_list.free_range(size, more);
        Ok(())
    }

    /// Moves the strings to a segment of `size` bytes at `at`.
    fn move_segment_to(&mut self, at: Addr, size: u64) -> Result<()> {
        let (old, old_size) = {
            let prefix = self.prefix.read();
            (prefix.data, prefix.data_size)
        };
        let mut bytes = self.with_data(|data| Ok(data.bytes.clone()))?;
        bytes.resize(usize::try_from(size).unwrap_or(usize::MAX), 0);
        let data = self.metadata.cache().insert_entry(at, self.metadata.owner(), LocalHeapData { bytes });
        self.add_dependency(&self.prefix, &data)?;
        self.prefix.update(|prefix| (prefix.data_size, prefix.data) = (size, data.addr()));
        if old_size > 0 {
            self.metadata.free_structure(old, old_size);
        }
        self.data = Some(data);
        Ok(())
    }

    /// Strings become unused.
    ///
    /// # Errors
    /// If there are no such strings.
    pub fn remove_strings(&self, space: &LocalHeapFreeSpace, offsets: &[u64]) -> Result<()> {
        let strings = &mut *space.0.lock();
        self.load_free_list(strings)?;
        for offset in offsets.iter().filter(|offset| **offset >= EMPTY_STRING_BYTES) {
            let len = padded_string_bytes(&self.read_string(*offset)?);
            strings.removed.push((self.metadata.cache().space().current_epoch(), *offset, len));
        }
        Ok(())
    }

    /// Finalizes the heap: writes the list of free space into the file again, cuts off the end of the segment if it is
    /// free, and moves the segment to free space before it if there is room. No more changes are expected, and
    /// everything before was flushed. Returns whether anything was done.
    ///
    /// # Errors
    /// If the dependency would close a circle.
    pub fn finalize_if_changed(&mut self, space: &LocalHeapFreeSpace) -> Result<bool> {
        let strings = &mut *space.0.lock();
        if !std::mem::take(&mut strings.is_free_list_valid) {
            return Ok(false);
        }
        strings.is_everything_else_taken = false;
        strings.reclaim_removed(self.metadata.cache().space());
        let mut blocks: Vec<_> =
            strings.free_list.sections().map(|(offset, size)| LocalHeapFreeRange { offset, size }).collect();
        strings.free_list.clear();
        let old = self.prefix.read().data_size;
        let mut size = old;
        if let Some(last) = blocks.last_mut().filter(|last| last.offset.saturating_add(last.size) == old) {
            let kept = last.offset.next_multiple_of(8).max(MIN_SEGMENT_BYTES).min(old);
            if old - kept > old / MAX_SLACK_FRACTION {
                last.size = kept.saturating_sub(last.offset);
                size = kept;
            }
        }
        let cache = self.metadata.cache().clone();
        let Some(data) = &self.data else { return Ok(false) };
        let at = data.addr();
        let len = usize::try_from(size).unwrap_or(usize::MAX);
        data.update(|data| data.bytes.truncate(len));
        let place = at.get().and_then(|at| cache.space().alloc_before(size, SpaceKind::Metadata, at));
        if let Some(place) = place {
            self.move_segment_to(place, size)?;
        }
        let Some(data) = &self.data else { return Ok(false) };
        let width = self.metadata.widths().length;
        let free = data.update(|data| data.write_free_list(&blocks, width));
        self.add_dependency(&self.prefix, data)?;
        self.prefix.update(|prefix| (prefix.data_size, prefix.free_list_head) = (size, free));
        if let Some(end) = at.get().filter(|_| size < old && place.is_none()).and_then(|at| at.checked_add(size)) {
            cache.space().free_metadata_after_full_flush(Addr::new(end), old - size);
        }
        Ok(true)
    }

    /// Gives up the heap.
    pub fn delete_heap(&self) {
        let widths = self.metadata.widths();
        let (data, size) = {
            let prefix = self.prefix.read();
            (prefix.data, prefix.data_size)
        };
        if size > 0 {
            self.metadata.free_structure(data, size);
        }
        self.metadata.free_structure(self.prefix.addr(), LocalHeapPrefix::prefix_size(widths) as u64);
    }
}

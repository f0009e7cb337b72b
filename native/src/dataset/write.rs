//! Writing chunks, whole and in part.

use std::borrow::Cow;
use std::ops::Range;

use h5live_cache::{Cache, ChunkProxy, DependencyKind, Owner, ReplacedBytesVisibility, SpaceKind};
use h5live_format::messages::{LayoutClass, LayoutMessage, MessageType};
use h5live_format::{Addr, ChunkEntryFormat, ChunkIndexEntry};
use h5live_model::{ChunkCoord, ChunkWrite, Dataspace};

use super::NativeDataset;
use super::extent_overlap::visibility_of;
use super::layout::NativeLayout;
use super::state::DatasetState;
use crate::{Error, Result};

/// A new chunk of at most this many bytes is put together with its fill values before it is written.
const MAX_FILLED_CHUNK_BYTES: u64 = 4 << 20;

/// When bytes of a new chunk are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteTime {
    /// At once. They lead to nothing.
    Now,
    /// By the flush that makes the chunk reachable.
    AtFlush,
}

impl NativeDataset {
    /// Refuses a chunk that the dataset cannot have, or bytes that an unfiltered chunk does not have.
    pub(super) fn check_chunk_writable(
        &self,
        state: &DatasetState,
        coord: &ChunkCoord,
        bytes: Option<usize>,
    ) -> Result<()> {
        state.layout.check_not_virtual()?;
        state.check_layout_covers_elements()?;
        state.check_chunk_size_for_version()?;
        let single = matches!(state.layout, NativeLayout::Compact(_) | NativeLayout::Single(..));
        let rank = state.spec.dataspace.rank();
        if coord.rank() != rank || (single && coord.scaled().iter().any(|at| *at != 0)) {
            return Err(Error::invalid(format!("the dataset has no chunk {:?}", coord.scaled())));
        }
        let dims = state.spec.chunk_dims_or_extent();
        if let (Some(dims), Dataspace::Simple(shape)) = (dims, &state.spec.dataspace) {
            let begins = coord.scaled().iter().zip(dims).map(|(at, size)| at.saturating_mul(*size));
            if begins.zip(shape.max_dims()).any(|(begin, max)| begin >= *max) {
                return Err(Error::invalid(format!("chunk {:?} lies outside of the largest extent", coord.scaled())));
            }
        }
        let size = state.spec.chunk_bytes_or_total().unwrap_or(0);
        match bytes {
            Some(bytes) if state.spec.filters.is_empty() && bytes as u64 != size => {
                Err(Error::invalid(format!("{bytes} bytes are not a chunk of {size} bytes")))
            }
            _ => Ok(()),
        }
    }

    /// Makes raw data that may lead to objects of a global heap wait for the objects that were written lately.
    fn add_heap_dependency(&self, state: &DatasetState, proxy: &ChunkProxy) -> Result<()> {
        match state.spec.datatype.has_vlen_or_references() {
            true => self.session.global_heap.add_flush_parent(proxy, DependencyKind::ChunkGlobalHeap),
            false => Ok(()),
        }
    }

    pub(super) fn write_chunk(&self, coord: &ChunkCoord, filter_mask: u32, bytes: &[u8]) -> Result<()> {
        self.check_writable()?;
        let state = self.state();
        self.check_chunk_writable(&state, coord, Some(bytes.len()))?;
        let (cache, owner) = (&self.session.cache, Owner::new(self.shared.header_addr));
        match &state.layout {
            NativeLayout::Compact(_) => return self.write_compact(0, bytes),
            NativeLayout::External(files) => return files.write(0, bytes),
            _ => {}
        }
        let filtered = matches!(state.layout.chunk_entry_format(), Some(ChunkEntryFormat::Filtered(_)));
        let beneath = visibility_of(&state.spec, self.session.may_be_followed(), coord, 0..bytes.len() as u64);
        // A follower must see the old chunk or the new one, not a mixture.
        let moves = filtered || (beneath == ReplacedBytesVisibility::Visible && state.layout.can_move_chunks());
        let mut stays = if moves { None } else { state.layout.locate_chunk(coord)? };
        if !moves
            && stays.is_none()
            && beneath == ReplacedBytesVisibility::BeyondExtent
            && self.try_preallocate_rows(&state, coord)?
        {
            stays = state.layout.locate_chunk(coord)?;
        }
        if let Some(old) = stays {
            return self.overwrite_chunk(&state, old.addr, (0, bytes.to_vec()), beneath);
        }
        let addr = cache.space().alloc(bytes.len() as u64, SpaceKind::Raw)?;
        let proxy = match state.spec.datatype.has_vlen_or_references() {
            true => Some(cache.enqueue_raw_write_with_visibility(
                owner,
                addr,
                (0, bytes.to_vec()),
                ReplacedBytesVisibility::NotYetReachable,
            )),
            false => cache.write_or_enqueue_new_raw(owner, addr, 0, bytes)?,
        };
        let operation = cache.begin_atomic_change();
        if let Some(proxy) = &proxy {
            self.add_heap_dependency(&state, proxy)?;
        }
        let size = if filtered { bytes.len() as u64 } else { 0 };
        let element = ChunkIndexEntry { addr, stored_size: size, filter_mask };
        if !moves {
            state.layout.set_chunk_entry(coord, element, proxy.as_ref())?;
        } else if let Some(old) = state.layout.replace_chunk_entry(coord, element, proxy.as_ref())? {
            let size = if filtered { old.stored_size } else { bytes.len() as u64 };
            cache.free_raw(Some(owner), old.addr, size);
        }
        drop(operation);
        Ok(cache.flush_over_budget()?)
    }

    pub(super) fn write_chunk_part(&self, coord: &ChunkCoord, at: u64, bytes: &[u8]) -> Result<()> {
        self.check_writable()?;
        let state = self.state();
        self.check_chunk_writable(&state, coord, None)?;
        if !state.spec.filters.is_empty() {
            return self.fill_unfiltered_chunk(&state, coord, (at, bytes));
        }
        if let NativeLayout::Compact(_) = state.layout {
            return self.write_compact(at as usize, bytes);
        }
        let size = state.spec.chunk_bytes_or_total().unwrap_or(0);
        let range = checked_part(size, at, bytes)?;
        if let NativeLayout::External(files) = &state.layout {
            return files.write(at, bytes);
        }
        let beneath = visibility_of(&state.spec, self.session.may_be_followed(), coord, range);
        let mut old = state.layout.locate_chunk(coord)?;
        if old.is_none()
            && beneath == ReplacedBytesVisibility::BeyondExtent
            && self.try_preallocate_rows(&state, coord)?
        {
            old = state.layout.locate_chunk(coord)?;
        }
        let Some(old) = old else {
            return self.write_new_chunk(&state, coord, size, (at, bytes), WriteTime::AtFlush);
        };
        self.overwrite_chunk(&state, old.addr, (at, bytes.to_vec()), beneath)
    }

    /// Writes a part of a stored chunk that went through none of the filters of the dataset. No reader sees it yet.
    fn fill_unfiltered_chunk(&self, state: &DatasetState, coord: &ChunkCoord, (at, bytes): (u64, &[u8])) -> Result<()> {
        let size = state.spec.chunk_bytes_or_total().unwrap_or(0);
        let range = checked_part(size, at, bytes)?;
        let stored = state.layout.locate_chunk(coord)?;
        let Some(stored) =
            stored.filter(|stored| stored.stored_size == size && state.skips_all_filters(stored.filter_mask))
        else {
            return Err(Error::invalid("part of a filtered chunk cannot be overwritten"));
        };
        match visibility_of(&state.spec, self.session.may_be_followed(), coord, range) {
            ReplacedBytesVisibility::Visible => {
                Err(Error::invalid("part of a chunk of a filtered dataset that others may read"))
            }
            beneath => self.overwrite_chunk(state, stored.addr, (at, bytes.to_vec()), beneath),
        }
    }

    /// Overwrites parts of one chunk, in their order, by one operation. They are all [`ChunkWrite::ByteRange`], and not
    /// `unseen`.
    pub(super) fn write_chunk_parts(&self, parts: &[ChunkWrite<'_>]) -> Result<()> {
        let mut rest = parts.iter().filter_map(|write| match *write {
            ChunkWrite::ByteRange { coord, byte_offset: at, bytes, .. } => Some((coord, at, bytes)),
            _ => None,
        });
        // The first one puts the chunk in its place, if there is none.
        let Some((coord, at, bytes)) = rest.next() else { return Ok(()) };
        self.write_chunk_part(coord, at, bytes)?;
        let state = self.state();
        let is_in_file = state.spec.filters.is_empty()
            && matches!(state.layout, NativeLayout::Single(..) | NativeLayout::Chunked(..));
        let chunk = if is_in_file { state.layout.locate_chunk(coord)? } else { None };
        let Some(chunk) = chunk else {
            return rest.try_for_each(|(coord, at, bytes)| self.write_chunk_part(coord, at, bytes));
        };
        let (size, mut beneath, mut end) =
            (state.spec.chunk_bytes_or_total().unwrap_or(0), ReplacedBytesVisibility::default(), 0);
        let mut parts = Vec::with_capacity(parts.len() - 1);
        for (_, at, bytes) in rest {
            let range = checked_part(size, at, bytes)?;
            end = end.max(range.end);
            if beneath != ReplacedBytesVisibility::Visible {
                beneath = visibility_of(&state.spec, self.session.may_be_followed(), coord, range);
            }
            parts.push((at, Cow::Borrowed(bytes)));
        }
        check_allocated(&self.session.cache, chunk.addr, 0, end)?;
        self.overwrite_located(&state, chunk.addr, parts, beneath)
    }

    /// As [`NativeDataset::write_chunk_part`], of bytes to which no reader was ever led. They are written at once, if
    /// nothing of the chunk waits to be written: before any metadata that is flushed later. They may lead to heap
    /// objects, whatever their type is: the header, which will lead to them, waits for those.
    pub(super) fn write_unseen_part(&self, coord: &ChunkCoord, at: u64, bytes: &[u8]) -> Result<()> {
        self.check_writable()?;
        let state = self.state();
        self.check_chunk_writable(&state, coord, None)?;
        let size = state.spec.chunk_bytes_or_total().unwrap_or(0);
        let fits = at.checked_add(bytes.len() as u64).is_some_and(|end| end <= size);
        let is_raw = matches!(state.layout, NativeLayout::Single(..)) && state.spec.filters.is_empty();
        if !fits || !is_raw || state.spec.datatype.has_vlen_or_references() {
            return self.write_chunk_part(coord, at, bytes);
        }
        let Some(stored) = state.layout.locate_chunk(coord)? else {
            // What comes later is written at once only if nothing of the chunk waits.
            return self.write_new_chunk(&state, coord, size, (at, bytes), WriteTime::Now);
        };
        let (cache, owner) = (&self.session.cache, Owner::new(self.shared.header_addr));
        check_allocated(cache, stored.addr, at, bytes.len() as u64)?;
        let proxy = cache.write_or_enqueue_new_raw(owner, stored.addr, at, bytes)?;
        let operation = cache.begin_atomic_change();
        if let Some(proxy) = &proxy {
            state.layout.make_header_wait_for_raw_data(proxy)?;
        }
        if !self.session.global_heap.changed_collections().is_empty() {
            let header = self.session.load_header(self.shared.header_addr)?;
            self.session.global_heap.add_header_as_flush_parent(&header)?;
        }
        drop(operation);
        Ok(cache.flush_over_budget()?)
    }

    /// Overwrites part of the stored chunk at `chunk`, from an offset in it (bytes) on. `beneath` says whether readers
    /// can see the bytes that are replaced.
    ///
    /// # Errors
    /// [`h5live_cache::Error::PastEnd`] if the file has no such bytes: what leads to the chunk is damaged.
    pub(super) fn overwrite_chunk(
        &self,
        state: &DatasetState,
        chunk: Addr,
        (offset, bytes): (u64, Vec<u8>),
        beneath: ReplacedBytesVisibility,
    ) -> Result<()> {
        check_allocated(&self.session.cache, chunk, offset, bytes.len() as u64)?;
        self.overwrite_located(state, chunk, [(offset, Cow::Owned(bytes))], beneath)
    }

    /// As [`NativeDataset::overwrite_chunk`], for parts that the file has.
    fn overwrite_located<'a>(
        &self,
        state: &DatasetState,
        chunk: Addr,
        parts: impl IntoIterator<Item = (u64, Cow<'a, [u8]>), IntoIter: ExactSizeIterator>,
        beneath: ReplacedBytesVisibility,
    ) -> Result<()> {
        let cache = &self.session.cache;
        let operation = cache.begin_atomic_change();
        self.session.make_flush_atomic_unless_followed();
        let proxy = cache.enqueue_chunk_overwrite(Owner::new(self.shared.header_addr), chunk, parts, beneath);
        self.add_heap_dependency(state, &proxy)?;
        state.layout.make_header_wait_for_raw_data(&proxy)?;
        drop(operation);
        Ok(cache.flush_over_budget()?)
    }

    /// Stores a chunk of `size` bytes that is not there: a part from `at` on, and fill values around it.
    fn write_new_chunk(
        &self,
        state: &DatasetState,
        coord: &ChunkCoord,
        size: u64,
        (at, bytes): (u64, &[u8]),
        when: WriteTime,
    ) -> Result<()> {
        let (cache, owner, spec) = (&self.session.cache, Owner::new(self.shared.header_addr), &state.spec);
        self.session.extend_eof_for_hole(spec, size)?;
        let (addr, zeros) = self.session.alloc_raw_space(size)?;
        let (offset, raw) = if zeros == 0 && spec.nonzero_fill_value().is_none() {
            (at, Cow::Borrowed(bytes))
        } else if size <= MAX_FILLED_CHUNK_BYTES {
            let mut chunk = spec.repeated_fill_value(size as usize);
            if let Some(part) = chunk.get_mut(at as usize..at as usize + bytes.len()) {
                part.copy_from_slice(bytes);
            }
            (0, Cow::Owned(chunk))
        } else {
            self.session.write_fill_values(spec, addr, (size, zeros), || Ok(cache.flush_over_budget()?))?;
            (at, Cow::Borrowed(bytes))
        };
        let proxy = match when {
            WriteTime::Now => cache.write_or_enqueue_new_raw(owner, addr, offset, &raw)?,
            WriteTime::AtFlush => {
                let raw = (offset, raw.into_owned());
                Some(cache.enqueue_raw_write_with_visibility(
                    owner,
                    addr,
                    raw,
                    ReplacedBytesVisibility::NotYetReachable,
                ))
            }
        };
        let operation = cache.begin_atomic_change();
        if let Some(proxy) = &proxy {
            self.add_heap_dependency(state, proxy)?;
        }
        state.layout.set_chunk_entry(
            coord,
            ChunkIndexEntry { addr, stored_size: 0, filter_mask: 0 },
            proxy.as_ref(),
        )?;
        drop(operation);
        Ok(cache.flush_over_budget()?)
    }

    fn write_compact(&self, at: usize, bytes: &[u8]) -> Result<()> {
        let _operation = self.session.cache.begin_atomic_change();
        let _lock = self.session.lock_header(self.shared.header_addr);
        let mut header = self.session.load_header(self.shared.header_addr)?;
        let misfit = || Error::invalid("the bytes do not fit the dataset");
        let range = at..at.checked_add(bytes.len()).ok_or_else(misfit)?;
        let found = header.change_message_body(MessageType::LAYOUT, |body| {
            let data = LayoutMessage::compact_elements_mut(body)?;
            Some(data.get_mut(range.clone()).map(|part| part.copy_from_slice(bytes)))
        });
        if let Some(done) = found.flatten() {
            done.ok_or_else(misfit)?;
            return self.session.global_heap.add_header_as_flush_parent(&header);
        }
        let mut layout = header.require_message::<LayoutMessage>("a dataset has a layout")?;
        if let LayoutClass::Compact { data, .. } = &mut layout.storage {
            data.get_mut(range).ok_or_else(misfit)?.copy_from_slice(bytes);
        }
        header.set_message(&layout)?;
        self.session.global_heap.add_header_as_flush_parent(&header)
    }
}

/// Where a part of a chunk of `size` bytes lies in it.
fn checked_part(size: u64, at: u64, bytes: &[u8]) -> Result<Range<u64>> {
    match at.checked_add(bytes.len() as u64).filter(|end| *end <= size) {
        Some(end) => Ok(at..end),
        None => Err(Error::invalid(format!("{} bytes at {at} do not fit a chunk of {size} bytes", bytes.len()))),
    }
}

/// Refuses bytes of the chunk at `chunk`, from an offset in it on, that the file does not have.
fn check_allocated(cache: &Cache, chunk: Addr, offset: u64, len: u64) -> Result<()> {
    let Some(begin) = chunk.get() else { return Err(h5live_cache::Error::UndefinedAddr.into()) };
    let begin = begin.saturating_add(offset);
    let end = cache.space().allocated_end();
    if begin.checked_add(len).is_some_and(|last| last <= end) {
        return Ok(());
    }
    let found = end.saturating_sub(begin);
    Err(h5live_cache::Error::PastEnd { at: Addr::new(begin), wanted: len, found }.into())
}

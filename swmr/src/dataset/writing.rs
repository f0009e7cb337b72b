//! Writing chunks, whole and in part.

use std::ops::Range;

use h5live_cache::{Beneath, EdgeKind, Kind, Owner, Proxy};
use h5live_format::messages::{LayoutMessage, MessageType, Storage};
use h5live_format::{Addr, ChunkElement, ElementFormat};
use h5live_model::{ChunkCoord, Dataspace};

use super::place::Place;
use super::{NativeDataset, State, invalid, seen};
use crate::Result;

impl NativeDataset {
    /// Refuses a chunk that the dataset cannot have, or bytes that an unfiltered chunk does not have.
    pub(super) fn check_chunk(&self, state: &State, coord: &ChunkCoord, bytes: Option<usize>) -> Result<()> {
        state.place.check_writable()?;
        let single = matches!(state.place, Place::Compact(_) | Place::Single(..));
        let rank = state.spec.dataspace.rank();
        if coord.rank() != rank || (single && coord.scaled().iter().any(|at| *at != 0)) {
            return Err(invalid(format!("the dataset has no chunk {:?}", coord.scaled())));
        }
        let dims = state.spec.chunk_dims();
        if let (Some(dims), Dataspace::Simple(shape)) = (dims, &state.spec.dataspace) {
            let begins = coord.scaled().iter().zip(dims).map(|(at, size)| at.saturating_mul(*size));
            if begins.zip(shape.max()).any(|(begin, max)| begin >= *max) {
                return Err(invalid(format!("chunk {:?} lies outside of the largest extent", coord.scaled())));
            }
        }
        let size = state.spec.chunk_bytes().unwrap_or(0);
        match bytes {
            Some(bytes) if state.spec.filters.is_empty() && bytes as u64 != size => {
                Err(invalid(format!("{bytes} bytes are not a chunk of {size} bytes")))
            }
            _ => Ok(()),
        }
    }

    /// What is in the place of these bytes of a chunk that is stored.
    pub(super) fn beneath(&self, state: &State, coord: &ChunkCoord, bytes: Range<u64>) -> Beneath {
        let size = u64::from(state.spec.datatype.size()).max(1);
        let (Some(chunk), true) = (state.spec.chunk_dims(), self.session.is_followed()) else {
            // One element.
            return if self.session.is_followed() { Beneath::Seen } else { Beneath::Unseen };
        };
        let begins = coord.scaled().iter().zip(chunk).map(|(at, side)| at.saturating_mul(*side));
        let inside = state.spec.dataspace.dims().iter().zip(begins).map(|(end, begin)| end.saturating_sub(begin));
        match seen::any_inside(bytes.start / size..bytes.end.div_ceil(size), chunk, inside) {
            true => Beneath::Seen,
            false => Beneath::Unseen,
        }
    }

    /// Has raw data that may lead to objects of a global heap wait for those that were written lately.
    fn wait_for_heap(&self, state: &State, proxy: &Proxy) -> Result<()> {
        match state.spec.datatype.is_indirect() {
            true => self.session.heap.lock().depend(&self.session, proxy, EdgeKind::ChunkHeap),
            false => Ok(()),
        }
    }

    /// Space for a new chunk, and whether it is known to hold zeros.
    fn allocate(&self, bytes: u64) -> Result<(Addr, bool)> {
        let space = self.session.cache.space();
        let end = space.end();
        let (addr, zeros) = space.alloc_told(bytes, Kind::Raw)?;
        let is_trusted = self.session.trusts_zeros && addr.get().is_some_and(|at| at >= end);
        Ok((addr, zeros || is_trusted))
    }

    pub(super) fn write_chunk(&self, coord: &ChunkCoord, filter_mask: u32, bytes: &[u8]) -> Result<()> {
        self.check_writable()?;
        let state = self.state();
        self.check_chunk(&state, coord, Some(bytes.len()))?;
        let (cache, owner) = (&self.session.cache, Owner::new(self.addr));
        match &state.place {
            Place::Compact(_) => return self.write_compact(0, bytes),
            Place::External(files) => return files.write(0, bytes),
            _ => {}
        }
        let filtered = matches!(state.place.format(), Some(ElementFormat::Filtered(_)));
        let beneath = self.beneath(&state, coord, 0..bytes.len() as u64);
        // Who follows is to see the old chunk or the new one, and not some of both.
        let moves = filtered || (beneath == Beneath::Seen && state.place.can_move());
        let stays = if moves { None } else { state.place.get(coord)? };
        if let Some(old) = stays {
            let operation = cache.operation();
            self.session.as_one();
            let proxy = cache.overwrite_raw(owner, old.addr, (0, bytes.to_vec()), beneath);
            self.wait_for_heap(&state, &proxy)?;
            state.place.depend(&proxy)?;
            drop(operation);
            return Ok(cache.trim()?);
        }
        let (addr, _) = self.allocate(bytes.len() as u64)?;
        let proxy = match state.spec.datatype.is_indirect() {
            true => Some(cache.write_raw_over(owner, addr, (0, bytes.to_vec()), Beneath::New)),
            false => cache.write_raw_through(owner, addr, 0, bytes)?,
        };
        let operation = cache.operation();
        if let Some(proxy) = &proxy {
            self.wait_for_heap(&state, proxy)?;
        }
        let size = if filtered { bytes.len() as u64 } else { 0 };
        let element = ChunkElement { addr, size, filter_mask };
        if !moves {
            state.place.set(coord, element, proxy.as_ref())?;
        } else if let Some(old) = state.place.replace(coord, element, proxy.as_ref())? {
            let size = if filtered { old.size } else { bytes.len() as u64 };
            cache.discard_raw(old.addr);
            cache.space().free_raw_of(owner, old.addr, size);
        }
        drop(operation);
        Ok(cache.trim()?)
    }

    pub(super) fn write_chunk_part(&self, coord: &ChunkCoord, at: u64, bytes: &[u8]) -> Result<()> {
        self.check_writable()?;
        let state = self.state();
        self.check_chunk(&state, coord, None)?;
        if !state.spec.filters.is_empty() {
            return Err(invalid("part of a filtered chunk cannot be overwritten"));
        }
        let (cache, owner) = (&self.session.cache, Owner::new(self.addr));
        if let Place::Compact(_) = state.place {
            return self.write_compact(at as usize, bytes);
        }
        let size = state.spec.chunk_bytes().unwrap_or(0);
        if at.checked_add(bytes.len() as u64).is_none_or(|end| end > size) {
            return Err(invalid(format!("{} bytes at {at} do not fit a chunk of {size} bytes", bytes.len())));
        }
        if let Place::External(files) = &state.place {
            return files.write(at, bytes);
        }
        let old = state.place.get(coord)?;
        let operation = cache.operation();
        if let Some(old) = old {
            self.session.as_one();
            let beneath = self.beneath(&state, coord, at..at + bytes.len() as u64);
            let proxy = cache.overwrite_raw(owner, old.addr, (at, bytes.to_vec()), beneath);
            self.wait_for_heap(&state, &proxy)?;
            state.place.depend(&proxy)?;
        } else {
            let (addr, zeros) = self.allocate(size)?;
            let plain = zeros && state.spec.fill_element().iter().all(|byte| *byte == 0);
            let (offset, raw) = if plain {
                (at, bytes.to_vec())
            } else {
                let mut chunk = state.spec.filled(size as usize);
                let (start, end) = (at as usize, at as usize + bytes.len());
                chunk[start..end].copy_from_slice(bytes);
                (0, chunk)
            };
            let proxy = cache.write_raw_over(owner, addr, (offset, raw), Beneath::New);
            self.wait_for_heap(&state, &proxy)?;
            state.place.set(coord, ChunkElement { addr, size: 0, filter_mask: 0 }, Some(&proxy))?;
        }
        drop(operation);
        Ok(cache.trim()?)
    }

    fn write_compact(&self, at: usize, bytes: &[u8]) -> Result<()> {
        let _operation = self.session.cache.operation();
        let _lock = self.session.header_lock(self.addr);
        let mut header = self.session.header(self.addr)?;
        let misfit = || invalid("the bytes do not fit the dataset");
        let range = at..at.checked_add(bytes.len()).ok_or_else(misfit)?;
        let found = header.change_body(MessageType::LAYOUT, |body| {
            let data = LayoutMessage::elements_in(body)?;
            Some(data.get_mut(range.clone()).map(|part| part.copy_from_slice(bytes)))
        });
        if let Some(done) = found.flatten() {
            done.ok_or_else(misfit)?;
            return header.wait_for_heap(&self.session);
        }
        let mut layout = header.require::<LayoutMessage>("a dataset has a layout")?;
        if let Storage::Compact { data, .. } = &mut layout.storage {
            data.get_mut(range).ok_or_else(misfit)?.copy_from_slice(bytes);
        }
        header.put(&layout)?;
        header.wait_for_heap(&self.session)
    }
}

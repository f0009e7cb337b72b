//! The extent of a dataset, and the chunks outside of it.

use std::sync::Arc;

use h5live_cache::{FlushScope, Owner, ReplacedBytesVisibility};
use h5live_format::messages::{DataspaceMessage, MessageType};
use h5live_format::{Addr, MessageFlags};
use h5live_model::StoredChunk;

use super::NativeDataset;
use super::extent_message::{ExtentMessage, spec_with_extent};
use super::layout::NativeLayout;
use super::state::DatasetState;
use crate::{Error, Result};

/// Most chunks that are looked up, and then dropped, in one operation.
const MAX_CHUNKS_DROPPED_AT_ONCE: usize = 4096;

impl NativeDataset {
    /// Puts a new extent into the header, and says whether some dimension has become smaller.
    pub(super) fn put_extent_in_header(&self, dims: &[u64]) -> Result<bool> {
        let _operation = self.session.cache.begin_atomic_change();
        let _lock = self.session.lock_header(self.shared.header_addr);
        let mut state = self.shared.state.write();
        let spec = spec_with_extent(&state.spec, dims)?;
        let written = match ExtentMessage::encode_if_in_first_chunk(&state, &spec, self.session.cache.widths())? {
            Some((header, said)) => header.update(|header| said.write_into(header)),
            None => false,
        };
        if !written {
            let mut header = self.session.load_header(self.shared.header_addr)?;
            let session = &self.session;
            let old = session.require_message::<DataspaceMessage>(&header, "a dataset has a dataspace")?;
            let new = DataspaceMessage { dataspace: spec.dataspace.clone(), ..old };
            let uses = session.shared_uses_of_message(&header, MessageType::DATASPACE)?;
            match header.find_message(|message| message.kind == MessageType::DATASPACE) {
                // A shared extent stays as it is, for those that share it.
                Some((spot, _)) if !uses.is_empty() => {
                    let own = header.encode_message(&new, MessageFlags::default())?;
                    header.replace_message(spot, own)?;
                }
                _ => header.set_message(&new)?,
            }
            session.release_shared_uses(uses)?;
        }
        let shrunk = dims.iter().zip(state.spec.dataspace.dims()).any(|(new, old)| new < old);
        *state = Arc::new(DatasetState { spec: Arc::new(spec), ..DatasetState::clone(&state) });
        Ok(shrunk)
    }

    /// Calls `each` with the chunks that lie wholly outside of the extent `dims`, also with those that the index does not
    /// count, until it returns `false`.
    fn for_each_chunk_outside(
        &self,
        state: &DatasetState,
        dims: &[u64],
        each: &mut dyn FnMut(StoredChunk) -> bool,
    ) -> Result<()> {
        let (Some(grid), NativeLayout::Single(..) | NativeLayout::Chunked(..)) =
            (state.spec.grid_or_single_chunk(), &state.layout)
        else {
            return Ok(());
        };
        state.layout.for_each_chunk_with_uncounted(state.spec.dataspace.rank(), &mut |coord, element| {
            let begins = coord.scaled().iter().zip(grid.chunk_dims()).map(|(at, size)| at.saturating_mul(*size));
            let is_outside = begins.zip(dims).any(|(begin, end)| begin >= *end);
            !is_outside || each(self.stored_chunk(state, &coord, element))
        })
    }

    /// Whether a writer that died has left chunks outside of the extent, which would come back when the dataset grows,
    /// or an index that counts its blocks wrong.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub(crate) fn has_unpublished_chunks(&self) -> Result<bool> {
        let state = self.state();
        let mut found = false;
        self.for_each_chunk_outside(&state, state.spec.dataspace.dims(), &mut |_| {
            found = true;
            false
        })?;
        Ok(found || state.layout.find_or_fix_block_count_errors(false)?)
    }

    /// Drops the chunks that a writer that died has left outside of the extent, and has the index count its blocks
    /// right.
    ///
    /// # Errors
    /// If the index cannot be read or changed.
    pub(crate) fn free_unpublished_chunks(&self) -> Result<()> {
        let state = self.state();
        self.free_chunks_outside(&state, state.spec.dataspace.dims())?;
        let _operation = self.session.cache.begin_atomic_change();
        state.layout.find_or_fix_block_count_errors(true).map(drop)
    }

    /// Drops the chunks that lie wholly outside of the extent `dims`, some at a time. Where the index has no way to drop
    /// one, its elements become fill values. Call it between operations.
    pub(super) fn free_chunks_outside(&self, state: &DatasetState, dims: &[u64]) -> Result<()> {
        self.shared.forget_preallocated_rows();
        if !state.layout.can_remove_chunks() {
            return self.clear_chunks_outside(state, dims);
        }
        let cache = &self.session.cache;
        loop {
            let mut outside = Vec::new();
            self.for_each_chunk_outside(state, dims, &mut |chunk| {
                outside.push(chunk);
                outside.len() < MAX_CHUNKS_DROPPED_AT_ONCE
            })?;
            let (found, mut dropped) = (outside.len(), 0);
            let operation = cache.begin_atomic_change();
            for chunk in outside {
                if let (Some(offset), true) = (chunk.file_offset, state.layout.remove_chunk_entry(&chunk.coord)?) {
                    cache.free_raw(Some(Owner::new(self.shared.header_addr)), Addr::new(offset), chunk.size);
                    dropped += 1;
                }
            }
            drop(operation);
            if found < MAX_CHUNKS_DROPPED_AT_ONCE || dropped == 0 {
                return Ok(());
            }
            cache.flush_over_budget()?;
        }
    }

    /// Overwrites the chunks that lie wholly outside of the extent `dims` with fill values, as far as the file has
    /// bytes of them. The chunks come in the order of their addresses, and nothing of them waits to be written.
    fn clear_chunks_outside(&self, state: &DatasetState, dims: &[u64]) -> Result<()> {
        let cache = &self.session.cache;
        let end = cache.storage().len().map_err(Error::io("ask for the length of the file"))?;
        let mut cleared = 0;
        let mut clear = |chunk: StoredChunk| {
            let at = chunk.file_offset.map_or(Addr::UNDEFINED, Addr::new);
            cache.check_memory_allocation(at, chunk.size)?;
            let bytes = state.spec.repeated_fill_value(chunk.size as usize);
            self.overwrite_chunk(state, at, (0, bytes), ReplacedBytesVisibility::BeyondExtent)?;
            cleared += 1;
            match cleared % MAX_CHUNKS_DROPPED_AT_ONCE {
                0 => self.session.flush(FlushScope::Owner(Owner::new(self.shared.header_addr))),
                _ => Ok(()),
            }
        };
        let mut done = Ok(());
        self.for_each_chunk_outside(state, dims, &mut |chunk| {
            if chunk.file_offset.is_none_or(|at| at >= end) {
                return false;
            }
            done = clear(chunk);
            done.is_ok()
        })?;
        done
    }
}

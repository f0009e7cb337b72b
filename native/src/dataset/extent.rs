//! The extent of a dataset, and the chunks outside of it.

use std::sync::Arc;

use h5live_cache::{FlushScope, Handle, Owner, Visibility};
use h5live_format::messages::{DataspaceMessage, MessageType};
use h5live_format::{Addr, ObjectHeader, Widths, encode_transient};
use h5live_model::{DatasetSpec, Dataspace, Layout, StoredChunk};

use super::layout::NativeLayout;
use super::{DatasetState, NativeDataset, invalid};
use crate::{Error, Result};

/// Gives a description another extent, and says whether it can have that.
pub(super) fn resize(spec: &mut DatasetSpec, dims: &[u64]) -> bool {
    match &mut spec.dataspace {
        Dataspace::Simple(shape) => {
            let grows = matches!(spec.layout, Layout::Chunked(_) | Layout::External(_) | Layout::Virtual(_));
            grows && shape.resize(dims)
        }
        _ => false,
    }
}

/// A description with another extent.
pub(super) fn with_extent(spec: &DatasetSpec, dims: &[u64]) -> Result<DatasetSpec> {
    let mut spec = DatasetSpec::clone(spec);
    if !resize(&mut spec, dims) && dims != spec.dataspace.dims() {
        return Err(invalid(format!("{dims:?} is not within the maximum {:?}", spec.dataspace.max())));
    }
    Ok(spec)
}

/// The new dataspace message of a header's first chunk.
pub(super) struct ExtentMessage {
    spot: usize,
    body: Vec<u8>,
}

impl ExtentMessage {
    /// The message for the extent of `spec`; `None` if the first chunk has no dataspace message.
    ///
    /// # Errors
    /// If the extent does not fit the format.
    pub fn new<'a>(
        state: &'a DatasetState,
        spec: &DatasetSpec,
        widths: Widths,
    ) -> Result<Option<(&'a Handle<ObjectHeader>, Self)>> {
        let first = state.layout.header().and_then(|header| header.find_in_first_chunk(MessageType::DATASPACE));
        let Some((header, spot)) = first else { return Ok(None) };
        let version = {
            let header = header.read();
            let plain = header.messages.get(spot).filter(|message| !message.flags.is_shared());
            plain.and_then(|message| DataspaceMessage::version_of(&message.body))
        };
        let Some(version) = version else { return Ok(None) };
        let body = encode_transient(&mut DataspaceMessage { version, dataspace: spec.dataspace.clone() }, widths)?;
        Ok(Some((header, ExtentMessage { spot, body })))
    }

    /// The position of the message.
    pub fn message_index(&self) -> usize {
        self.spot
    }

    /// The body of the message.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Puts it there, and says whether there was a place for it.
    pub fn apply(&self, header: &mut ObjectHeader) -> bool {
        let message = header.messages.get_mut(self.spot).filter(|message| message.kind == MessageType::DATASPACE);
        let place = message.and_then(|message| message.body.get_mut(..self.body.len()));
        place.map(|place| place.copy_from_slice(&self.body)).is_some()
    }
}

/// Most chunks that are looked up, and then dropped, in one operation.
const MAX_CHUNKS_DROPPED_AT_ONCE: usize = 4096;

impl NativeDataset {
    /// Puts a new extent into the header, and says whether some dimension has become smaller.
    pub(super) fn put_extent(&self, dims: &[u64]) -> Result<bool> {
        let _operation = self.session.cache.begin_operation();
        let _lock = self.session.header_lock(self.addr);
        let mut state = self.state.write();
        let spec = with_extent(&state.spec, dims)?;
        let written = match ExtentMessage::new(&state, &spec, self.session.cache.widths())? {
            Some((header, said)) => header.update(|header| said.apply(header)),
            None => false,
        };
        if !written {
            let mut header = self.session.header(self.addr)?;
            let old = header.require::<DataspaceMessage>("a dataset has a dataspace")?;
            header.put(&DataspaceMessage { dataspace: spec.dataspace.clone(), ..old })?;
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
        let (Some(grid), NativeLayout::Single(..) | NativeLayout::Chunked(..)) = (state.spec.grid(), &state.layout)
        else {
            return Ok(());
        };
        state.layout.for_each_with_unpublished(state.spec.dataspace.rank(), &mut |coord, element| {
            let begins = coord.scaled().iter().zip(grid.dims()).map(|(at, size)| at.saturating_mul(*size));
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
        Ok(found || state.layout.recount_index(false)?)
    }

    /// Drops the chunks that a writer that died has left outside of the extent, and has the index count its blocks
    /// right.
    ///
    /// # Errors
    /// If the index cannot be read or changed.
    pub(crate) fn free_unpublished_chunks(&self) -> Result<()> {
        let state = self.state();
        self.free_chunks_outside(&state, state.spec.dataspace.dims())?;
        let _operation = self.session.cache.begin_operation();
        state.layout.recount_index(true).map(drop)
    }

    /// Drops the chunks that lie wholly outside of the extent `dims`, some at a time. Where the index has no way to drop
    /// one, its elements become fill values. Call it between operations.
    pub(super) fn free_chunks_outside(&self, state: &DatasetState, dims: &[u64]) -> Result<()> {
        self.forget_preallocated();
        if !state.layout.can_remove() {
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
            let operation = cache.begin_operation();
            for chunk in outside {
                if let (Some(offset), true) = (chunk.offset, state.layout.remove(&chunk.coord)?) {
                    cache.discard_raw(Addr::new(offset));
                    cache.space().free_raw_owned(Owner::new(self.addr), Addr::new(offset), chunk.size);
                    dropped += 1;
                }
            }
            drop(operation);
            if found < MAX_CHUNKS_DROPPED_AT_ONCE || dropped == 0 {
                return Ok(());
            }
            cache.flush_excess()?;
        }
    }

    /// Overwrites the chunks that lie wholly outside of the extent `dims` with fill values, as far as the file has
    /// bytes of them. The chunks come in the order of their addresses, and nothing of them waits to be written.
    fn clear_chunks_outside(&self, state: &DatasetState, dims: &[u64]) -> Result<()> {
        let cache = &self.session.cache;
        let end = cache.storage().len().map_err(Error::io("ask for the length of the file"))?;
        let mut cleared = 0;
        let mut clear = |chunk: StoredChunk| {
            let at = chunk.offset.map_or(Addr::UNDEFINED, Addr::new);
            cache.check_allocation(at, chunk.size)?;
            let bytes = state.spec.fill_bytes(chunk.size as usize);
            self.overwrite(state, at, (0, bytes), Visibility::BeyondExtent)?;
            cleared += 1;
            match cleared % MAX_CHUNKS_DROPPED_AT_ONCE {
                0 => self.session.flush(FlushScope::Owner(Owner::new(self.addr))),
                _ => Ok(()),
            }
        };
        let mut done = Ok(());
        self.for_each_chunk_outside(state, dims, &mut |chunk| {
            if chunk.offset.is_none_or(|at| at >= end) {
                return false;
            }
            done = clear(chunk);
            done.is_ok()
        })?;
        done
    }
}

//! How far a dataset reaches, and what is left outside of that.

use std::sync::Arc;

use h5live_cache::{Beneath, Handle, Owner};
use h5live_format::messages::{DataspaceMessage, MessageType};
use h5live_format::{Addr, ObjectHeader, Widths, encode_briefly};
use h5live_model::{DatasetSpec, Dataspace, Layout, StoredChunk};

use super::place::Place;
use super::{NativeDataset, State, invalid};
use crate::Result;

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
pub(super) fn resized(spec: &DatasetSpec, dims: &[u64]) -> Result<DatasetSpec> {
    let mut spec = DatasetSpec::clone(spec);
    if !resize(&mut spec, dims) && dims != spec.dataspace.dims() {
        return Err(invalid(format!("{dims:?} is not within the maximum {:?}", spec.dataspace.max())));
    }
    Ok(spec)
}

/// What the first chunk of a header is to say of an extent, in the place of what it says.
pub(super) struct Said {
    spot: usize,
    body: Vec<u8>,
}

impl Said {
    /// Of the extent of `spec`; `None` if the first chunk says nothing of it.
    ///
    /// # Errors
    /// If the extent does not fit the format.
    pub fn of<'a>(
        state: &'a State,
        spec: &DatasetSpec,
        widths: Widths,
    ) -> Result<Option<(&'a Handle<ObjectHeader>, Self)>> {
        let first = state.place.header().and_then(|header| header.in_first(MessageType::DATASPACE));
        let Some((header, spot)) = first else { return Ok(None) };
        let version = {
            let header = header.read();
            let plain = header.messages.get(spot).filter(|message| !message.flags.is_shared());
            plain.and_then(|message| DataspaceMessage::version_of(&message.body))
        };
        let Some(version) = version else { return Ok(None) };
        let body = encode_briefly(&mut DataspaceMessage { version, dataspace: spec.dataspace.clone() }, widths)?;
        Ok(Some((header, Said { spot, body })))
    }

    /// The position of the message.
    pub fn spot(&self) -> usize {
        self.spot
    }

    /// The body of the message.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Puts it there, and says whether there was a place for it.
    pub fn put(&self, header: &mut ObjectHeader) -> bool {
        let message = header.messages.get_mut(self.spot).filter(|message| message.kind == MessageType::DATASPACE);
        let place = message.and_then(|message| message.body.get_mut(..self.body.len()));
        place.map(|place| place.copy_from_slice(&self.body)).is_some()
    }
}

impl NativeDataset {
    /// Puts a new extent into the header, and says whether some dimension has become smaller.
    pub(super) fn put_extent(&self, dims: &[u64]) -> Result<bool> {
        let _operation = self.session.cache.operation();
        let _lock = self.session.header_lock(self.addr);
        let mut state = self.state.write();
        let spec = resized(&state.spec, dims)?;
        let written = match Said::of(&state, &spec, self.session.cache.widths())? {
            Some((header, said)) => header.update(|header| said.put(header)),
            None => false,
        };
        if !written {
            let mut header = self.session.header(self.addr)?;
            let old = header.require::<DataspaceMessage>("a dataset has a dataspace")?;
            header.put(&DataspaceMessage { dataspace: spec.dataspace.clone(), ..old })?;
        }
        let shrunk = dims.iter().zip(state.spec.dataspace.dims()).any(|(new, old)| new < old);
        *state = Arc::new(State { spec: Arc::new(spec), ..State::clone(&state) });
        Ok(shrunk)
    }

    /// The chunks that lie wholly outside of the extent `dims`, also those that the index does not count.
    pub(super) fn outside(&self, state: &State, dims: &[u64]) -> Result<Vec<StoredChunk>> {
        let (Some(grid), Place::Single(..) | Place::Chunked(..)) = (state.spec.grid(), &state.place) else {
            return Ok(Vec::new());
        };
        let mut outside = Vec::new();
        state.place.for_each_left(state.spec.dataspace.rank(), &mut |coord, element| {
            let begins = coord.scaled().iter().zip(grid.dims()).map(|(at, size)| at.saturating_mul(*size));
            if begins.zip(dims).any(|(begin, end)| begin >= *end) {
                outside.push(self.stored(state, &coord, element));
            }
            true
        })?;
        Ok(outside)
    }

    /// Whether a writer that died has left chunks outside of the extent, which would come back when the dataset grows, or
    /// an index that counts its blocks wrong.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub(crate) fn has_left(&self) -> Result<bool> {
        let state = self.state();
        Ok(!self.outside(&state, state.spec.dataspace.dims())?.is_empty() || state.place.recount_index(false)?)
    }

    /// Drops the chunks that a writer that died has left outside of the extent, and has the index count its blocks right.
    ///
    /// # Errors
    /// If the index cannot be read or changed.
    pub(crate) fn drop_left(&self) -> Result<()> {
        let _operation = self.session.cache.operation();
        let state = self.state();
        self.drop_outside(&state, state.spec.dataspace.dims())?;
        state.place.recount_index(true).map(drop)
    }

    /// Drops the chunks that lie wholly outside of the extent `dims`.
    pub(super) fn drop_outside(&self, state: &State, dims: &[u64]) -> Result<()> {
        let cache = &self.session.cache;
        self.forget_ready();
        for chunk in self.outside(state, dims)? {
            let Some(offset) = chunk.offset else { continue };
            if state.place.remove(&chunk.coord)? {
                cache.discard_raw(Addr::new(offset));
                cache.space().free_raw_of(Owner::new(self.addr), Addr::new(offset), chunk.size);
            } else {
                let at = Addr::new(offset);
                cache.check_allocation(at, chunk.size)?;
                let bytes = state.spec.filled(chunk.size as usize);
                let proxy = cache.overwrite_raw(Owner::new(self.addr), at, (0, bytes), Beneath::Unseen);
                state.place.depend(&proxy)?;
            }
        }
        Ok(())
    }
}

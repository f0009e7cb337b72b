//! The short way of small appends: elements into a chunk that is there, and then the extent, with nothing else to write.

use std::sync::Arc;

use h5live_cache::{Beneath, UnseenPart};
use h5live_model::ChunkCoord;

use super::extent::{Said, resized};
use super::{NativeDataset, State};
use crate::Result;

impl NativeDataset {
    /// Writes elements that nobody can see yet, and then the larger extent that has them. `false` where more is to be
    /// done, or where nobody may follow.
    pub(super) fn append_shortly(&self, coord: &ChunkCoord, at: u64, bytes: &[u8], dims: &[u64]) -> Result<bool> {
        let (session, old) = (&self.session, self.state());
        let grows = old.spec.dataspace.dims().iter().zip(dims).all(|(old, new)| old <= new);
        let is_plain = old.spec.filters.is_empty() && !old.spec.datatype.is_indirect();
        let end = at.saturating_add(bytes.len() as u64);
        let fits = old.spec.chunk_bytes().is_some_and(|size| end <= size);
        if !session.is_followed() || !grows || !is_plain || !fits {
            return Ok(false);
        }
        if self.beneath(&old, coord, at..end) != Beneath::Unseen {
            return Ok(false);
        }
        let spec = resized(&old.spec, dims)?;
        let Some((header, said)) = Said::of(&old, &spec, session.cache.widths())? else { return Ok(false) };
        let Some(element) = old.place.get(coord)? else { return Ok(false) };
        let new = Arc::new(State { spec: Arc::new(spec), ..State::clone(&old) });
        let part = UnseenPart { chunk: element.addr, offset: at, bytes };
        session.publish_shortly(part, header, |header| {
            let mut state = self.state.write();
            let done = Arc::ptr_eq(&state, &old) && said.put(header);
            if done {
                *state = new;
            }
            done
        })
    }
}

//! The short way of small appends: elements into a chunk that is there, and then the extent, with nothing else to
//! write.

use std::sync::Arc;

use h5live_cache::{EntryPatch, ReplacedBytesVisibility, UnpublishedChunkData};
use h5live_format::encode_with_size_hint;
use h5live_model::ChunkCoord;
use smallvec::SmallVec;

use super::NativeDataset;
use super::extent_message::{ExtentMessage, resize_spec, spec_with_extent};
use super::extent_overlap::visibility_of;
use super::repeated_append::{FastAppendState, MIN_APPENDS_BEFORE_REUSE, RepeatedAppend};
use super::state::DatasetState;
use crate::Result;

impl NativeDataset {
    /// The fast path of an append: writes elements that no reader can see yet, and then the larger extent. Returns
    /// `false` if more must be done, or if nobody may follow the file.
    pub(super) fn try_append_in_place(&self, coord: &ChunkCoord, at: u64, bytes: &[u8], dims: &[u64]) -> Result<bool> {
        let session = &self.session;
        let mut fast_append = self.shared.fast_append.lock();
        let (part, old) = {
            let state = self.state();
            let old = state.spec.dataspace.dims();
            let grows = old.len() == dims.len() && old.iter().zip(dims).all(|(old, new)| old <= new);
            let is_plain = !state.spec.datatype.has_vlen_or_references();
            let end = at.saturating_add(bytes.len() as u64);
            let fits = state.spec.chunk_bytes_or_total().is_some_and(|size| end <= size)
                && state.oversized_for_version.is_none();
            if !session.may_be_followed() || !grows || !is_plain || !fits {
                return Ok(false);
            }
            if visibility_of(&state.spec, session.may_be_followed(), coord, at..end)
                != ReplacedBytesVisibility::BeyondExtent
            {
                return Ok(false);
            }
            let ready = self.shared.preallocated_chunk(coord, old);
            let chunk = match ready {
                Some((place, true)) => Some(place),
                _ => match state.layout.locate_chunk(coord)? {
                    None => self.preallocate_and_flush(&state, &mut fast_append.sequential_appends, coord, dims)?,
                    // A chunk that went through filters has no room for elements.
                    found => {
                        found.filter(|element| state.skips_all_filters(element.filter_mask)).map(|element| element.addr)
                    }
                },
            };
            let Some(chunk) = chunk else { return Ok(false) };
            let part = UnpublishedChunkData { chunk, offset: at, bytes, is_chunk_prefilled: ready.is_some() };
            (part, SmallVec::<[u64; 4]>::from_slice(old))
        };
        if let Some(repeated_append) =
            fast_append.repeated_append.as_mut().filter(|repeated_append| repeated_append.continues(&old, dims))
            && self.append_in_place_again(repeated_append, part, dims)?
        {
            return Ok(true);
        }
        fast_append.repeated_append = None;
        let repeated_append =
            self.append_in_place_once(part, dims, fast_append.consecutive_appends + 1 >= MIN_APPENDS_BEFORE_REUSE);
        let (done, repeated_append) = repeated_append.inspect_err(|_| *fast_append = FastAppendState::default())?;
        fast_append.consecutive_appends = if done { fast_append.consecutive_appends.saturating_add(1) } else { 0 };
        fast_append.repeated_append = repeated_append.map(Box::new);
        Ok(done)
    }

    /// Appends, and says whether it could; and what the next append may have in common with this one, if that is
    /// `wanted`.
    fn append_in_place_once(
        &self,
        part: UnpublishedChunkData<'_>,
        dims: &[u64],
        wanted: bool,
    ) -> Result<(bool, Option<RepeatedAppend>)> {
        let (session, old) = (&self.session, self.state());
        let widths = session.cache.widths();
        let spec = spec_with_extent(&old.spec, dims)?;
        let Some((header, extent_message)) = ExtentMessage::encode_if_in_first_chunk(&old, &spec, widths)? else {
            return Ok((false, None));
        };
        let new = Arc::new(DatasetState { spec: Arc::new(spec), ..DatasetState::clone(&old) });
        let mut repeated_append = None;
        let done = session.try_publish_in_place(part, header, |first, edition| {
            let mut state = self.shared.state.write();
            if !Arc::ptr_eq(&state, &old) || !extent_message.write_into(first) {
                return None;
            }
            *state = new.clone();
            let image = encode_with_size_hint(first, widths);
            if let (true, Ok(image)) = (wanted, &image) {
                repeated_append = RepeatedAppend::new(
                    &old,
                    &new,
                    (header, first, edition + 1),
                    &extent_message,
                    image.clone(),
                    widths,
                );
            }
            Some(image.map(EntryPatch::from))
        })?;
        Ok((done, repeated_append.filter(|_| done)))
    }

    /// Appends as the appends before.
    fn append_in_place_again(
        &self,
        repeated_append: &mut RepeatedAppend,
        part: UnpublishedChunkData<'_>,
        dims: &[u64],
    ) -> Result<bool> {
        let RepeatedAppend { axis, dims: last_dims, header, header_version, message_index, extent_range, header_image } =
            repeated_append;
        let Some(extent) = dims.get(*axis) else { return Ok(false) };
        let stated = extent.to_le_bytes();
        let Some(stated) = stated.get(..extent_range.len()) else { return Ok(false) };
        let done = self.session.try_publish_in_place(part, header, |first, found| {
            let mut state = self.shared.state.write();
            let message =
                first.messages.get_mut(*message_index).and_then(|message| message.body.get_mut(extent_range.clone()));
            let message =
                message.filter(|_| found == *header_version && state.spec.dataspace.dims() == &last_dims[..])?;
            let state = Arc::make_mut(&mut *state);
            if !resize_spec(Arc::make_mut(&mut state.spec), dims) {
                return None;
            }
            message.copy_from_slice(stated);
            if !header_image.patch(stated) {
                return Some(encode_with_size_hint(first, self.session.cache.widths()).map(EntryPatch::from));
            }
            Some(Ok(EntryPatch { image: header_image.image().into(), changed_range: header_image.range_to_rewrite() }))
        })?;
        if done {
            *last_dims = SmallVec::from_slice(dims);
            *header_version += 1;
        }
        Ok(done)
    }
}

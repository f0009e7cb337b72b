//! The short way of small appends: elements into a chunk that is there, and then the extent, with nothing else to
//! write.

use std::ops::Range;
use std::sync::Arc;

use h5live_cache::{EntryPatch, Handle, UnpublishedPart, Visibility};
use h5live_format::messages::DataspaceMessage;
use h5live_format::{ObjectHeader, PatchableImage, Widths, encode_transient};
use h5live_model::{ChunkCoord, Dataspace, Shape, UNLIMITED};
use smallvec::SmallVec;

use super::extent::{ExtentMessage, resize, with_extent};
use super::preallocation::SequentialAppends;
use super::{DatasetState, NativeDataset};
use crate::Result;

/// After this many short appends in a row, it is worth keeping what they have in common.
const MIN_REPEATED_APPENDS: u32 = 2;

/// The parts that successive short appends have in common.
#[derive(Debug, Default)]
pub(super) struct FastAppendState {
    repeated: u32,
    run: Option<RepeatedAppend>,
    /// The chunks that they fill.
    chunks: Option<SequentialAppends>,
}

/// Appends along one dimension, by which nothing else changes in the header.
#[derive(Debug)]
struct RepeatedAppend {
    axis: usize,
    /// The extent after the last of them.
    dims: SmallVec<[u64; 4]>,
    header: Handle<ObjectHeader>,
    /// The header's edition then.
    version: u64,
    /// The message with the extent, and where its body states that of the dimension.
    spot: usize,
    place: Range<usize>,
    header_image: PatchableImage,
}

impl NativeDataset {
    /// The fast path of an append: writes elements that no reader can see yet, and then the larger extent. Returns
    /// `false` if more must be done, or if nobody may follow the file.
    pub(super) fn append_fast(&self, coord: &ChunkCoord, at: u64, bytes: &[u8], dims: &[u64]) -> Result<bool> {
        let session = &self.session;
        let mut shorts = self.fast_append.lock();
        let (part, old) = {
            let state = self.state();
            let old = state.spec.dataspace.dims();
            let grows = old.len() == dims.len() && old.iter().zip(dims).all(|(old, new)| old <= new);
            let is_plain = state.spec.filters.is_empty() && !state.spec.datatype.is_indirect();
            let end = at.saturating_add(bytes.len() as u64);
            let fits = state.spec.chunk_bytes().is_some_and(|size| end <= size) && state.oversized_chunks.is_none();
            if !session.has_followers() || !grows || !is_plain || !fits {
                return Ok(false);
            }
            if self.visibility_of(&state, coord, at..end) != Visibility::BeyondExtent {
                return Ok(false);
            }
            let ready = self.preallocated(coord, old);
            let chunk = match ready {
                Some((place, true)) => Some(place),
                _ => match state.layout.get(coord)? {
                    None => self.begin_chunk(&state, &mut shorts.chunks, coord, dims)?,
                    found => found.map(|element| element.addr),
                },
            };
            let Some(chunk) = chunk else { return Ok(false) };
            let part = UnpublishedPart { chunk, offset: at, bytes, is_prefilled: ready.is_some() };
            (part, SmallVec::<[u64; 4]>::from_slice(old))
        };
        if let Some(run) = shorts.run.as_mut().filter(|run| run.continues(&old, dims))
            && self.append_repeated(run, part, dims)?
        {
            return Ok(true);
        }
        shorts.run = None;
        let run = self.append_single(part, dims, shorts.repeated + 1 >= MIN_REPEATED_APPENDS);
        let (done, run) = run.inspect_err(|_| *shorts = FastAppendState::default())?;
        shorts.repeated = if done { shorts.repeated.saturating_add(1) } else { 0 };
        shorts.run = run;
        Ok(done)
    }

    /// Appends, and says whether it could; and what the next append may have in common with this one, if that is
    /// `wanted`.
    fn append_single(
        &self,
        part: UnpublishedPart<'_>,
        dims: &[u64],
        wanted: bool,
    ) -> Result<(bool, Option<RepeatedAppend>)> {
        let (session, old) = (&self.session, self.state());
        let widths = session.cache.widths();
        let spec = with_extent(&old.spec, dims)?;
        let Some((header, said)) = ExtentMessage::new(&old, &spec, widths)? else { return Ok((false, None)) };
        let new = Arc::new(DatasetState { spec: Arc::new(spec), ..DatasetState::clone(&old) });
        let mut run = None;
        let done = session.publish_fast(part, header, |first, edition| {
            let mut state = self.state.write();
            if !Arc::ptr_eq(&state, &old) || !said.apply(first) {
                return None;
            }
            *state = new.clone();
            let image = encode_transient(first, widths);
            if let (true, Ok(image)) = (wanted, &image) {
                run = RepeatedAppend::new(&old, &new, (header, first, edition + 1), &said, image.clone(), widths);
            }
            Some(image.map(EntryPatch::from))
        })?;
        Ok((done, run.filter(|_| done)))
    }

    /// Appends as the appends before.
    fn append_repeated(&self, run: &mut RepeatedAppend, part: UnpublishedPart<'_>, dims: &[u64]) -> Result<bool> {
        let RepeatedAppend { axis, dims: last, header, version: edition, spot, place, header_image: imprint } = run;
        let Some(extent) = dims.get(*axis) else { return Ok(false) };
        let stated = extent.to_le_bytes();
        let Some(stated) = stated.get(..place.len()) else { return Ok(false) };
        let done = self.session.publish_fast(part, header, |first, found| {
            let mut state = self.state.write();
            let message = first.messages.get_mut(*spot).and_then(|message| message.body.get_mut(place.clone()));
            let message = message.filter(|_| found == *edition && state.spec.dataspace.dims() == &last[..])?;
            let state = Arc::make_mut(&mut *state);
            if !resize(Arc::make_mut(&mut state.spec), dims) {
                return None;
            }
            message.copy_from_slice(stated);
            if !imprint.patch(stated) {
                return Some(encode_transient(first, self.session.cache.widths()).map(EntryPatch::from));
            }
            Some(Ok(EntryPatch { image: imprint.image().into(), changed: imprint.changed_range() }))
        })?;
        if done {
            *last = SmallVec::from_slice(dims);
            *edition += 1;
        }
        Ok(done)
    }
}

impl RepeatedAppend {
    /// Prepares for further appends that change only the extent, along the same dimension. `header` is the header after
    /// this append, and has that edition.
    fn new(
        old: &DatasetState,
        new: &DatasetState,
        (header, first, edition): (&Handle<ObjectHeader>, &ObjectHeader, u64),
        said: &ExtentMessage,
        image: Vec<u8>,
        widths: Widths,
    ) -> Option<Self> {
        let (before, dims) = (old.spec.dataspace.dims(), new.spec.dataspace.dims());
        let axis = before.iter().zip(dims).position(|(before, now)| before != now)?;
        let body = said.body();
        let place = extent_range(DataspaceMessage::version_of(body)?, (axis, dims.len()), widths)?;
        let stated = dims.get(axis)?.to_le_bytes();
        let as_expected = stated.get(..place.len()) == body.get(place.clone());
        let from = first.body_at(said.message_index())? + place.start;
        let imprint = PatchableImage::new(image, from..from + place.len()).filter(|_| as_expected)?;
        let header = header.clone();
        Some(RepeatedAppend {
            axis,
            dims: SmallVec::from_slice(dims),
            header,
            version: edition,
            spot: said.message_index(),
            place,
            header_image: imprint,
        })
    }

    /// Whether an append from `old` to `new` is one like those before.
    fn continues(&self, old: &[u64], new: &[u64]) -> bool {
        let others = |(dim, _): &(usize, _)| *dim != self.axis;
        let same = old.iter().zip(new).enumerate().filter(others).all(|(_, (old, new))| old == new);
        same && self.dims[..] == *old
    }
}

/// Where the body of a dataspace message states the extent along dimension `axis` of `rank` that can all grow: where
/// the bodies differ of two that state others.
fn extent_range(version: u8, (axis, rank): (usize, usize), widths: Widths) -> Option<Range<usize>> {
    let largest = u64::MAX >> (64 - 8 * widths.length.bytes().min(8));
    let body = |extent: u64| {
        let mut dims = SmallVec::<[u64; 4]>::from_elem(0, rank);
        *dims.get_mut(axis)? = extent;
        let shape = Shape::with_max(&dims, &SmallVec::<[u64; 4]>::from_elem(UNLIMITED, rank))?;
        encode_transient(&mut DataspaceMessage { version, dataspace: Dataspace::Simple(shape) }, widths).ok()
    };
    // All bytes of one and the other differ.
    let (zeros, other) = (body(0)?, body(largest / 2)?);
    let differ = |(zeros, other): (&u8, &u8)| zeros != other;
    let first = zeros.iter().zip(&other).position(differ)?;
    let last = zeros.iter().zip(&other).rposition(differ)?;
    (last + 1 - first == widths.length.bytes()).then_some(first..last + 1)
}

#[cfg(test)]
mod tests {
    use h5live_format::encode;

    use super::*;

    #[test]
    fn the_place_of_an_extent_is_where_it_is_stated() {
        let widths = Widths::default();
        for rank in 1..=5 {
            for axis in 0..rank {
                for version in [1, 2] {
                    let place = extent_range(version, (axis, rank), widths).unwrap();
                    let dims: Vec<u64> = (0..rank as u64).map(|dim| 0x0102_0304_0506_0700 + dim).collect();
                    let shape = Shape::with_max(&dims, &vec![UNLIMITED; rank]).unwrap();
                    let message = DataspaceMessage { version, dataspace: Dataspace::Simple(shape) };
                    let body = encode(&message, widths).unwrap();
                    assert_eq!(body[place], dims[axis].to_le_bytes(), "{axis} of {rank}, version {version}");
                }
            }
        }
    }
}

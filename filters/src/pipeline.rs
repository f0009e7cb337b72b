//! The filters of one dataset, in order.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use h5live_model::FilterSpec;

use crate::registry::unavailable_error;
use crate::scratch::{self, Scratch};
use crate::{DecodeOutcome, EncodeOutcome, Error, Filter, FilterFault, Registry, Result};

/// The most filters that a pipeline has: a chunk's mask has one bit for each.
pub const MAX_FILTERS: usize = 32;

/// Room for an intermediate result beyond twice the chunk (bytes).
const INTERMEDIATE_SLACK_BYTES: usize = 64 << 10;
/// Most bytes of an intermediate result, if the chunk itself has fewer: what may be allocated at once by default.
const MAX_INTERMEDIATE_BYTES: usize = 256 << 20;

/// The filters of one dataset, looked up once. Applied in order on writing, undone in reverse order on
/// reading; bit `i` of a chunk's mask says that filter `i` was left out.
#[derive(Clone)]
pub struct Pipeline {
    steps: Vec<PipelineStep>,
}

#[derive(Clone)]
struct PipelineStep {
    spec: FilterSpec,
    filter: Option<Arc<dyn Filter>>,
}

impl PipelineStep {
    fn step_error(&self, fault: FilterFault) -> Error {
        let name = self.filter.as_ref().map_or("", |filter| filter.name()).to_owned();
        Error::Filter { id: self.spec.id, name, fault }
    }

    fn required_filter(&self) -> Result<&dyn Filter> {
        self.filter.as_deref().ok_or_else(|| unavailable_error(&self.spec))
    }
}

/// Room for what is between two filters of a chunk of `expected` bytes: twice as many, for filters that make data
/// longer, but of large chunks no more than [`MAX_INTERMEDIATE_BYTES`] or little more than the chunk.
fn intermediate_bytes(expected: usize) -> usize {
    let room = expected.saturating_mul(2).saturating_add(INTERMEDIATE_SLACK_BYTES);
    room.min(MAX_INTERMEDIATE_BYTES.max(expected.saturating_add(INTERMEDIATE_SLACK_BYTES)))
}

impl Pipeline {
    /// Looks the filters up. One that the registry does not have is an error only when a chunk needs it.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyFilters`].
    pub fn new(specs: &[FilterSpec], registry: &Registry) -> Result<Self> {
        if specs.len() > MAX_FILTERS {
            return Err(Error::TooManyFilters(specs.len()));
        }
        let step = |spec: &FilterSpec| PipelineStep { spec: spec.clone(), filter: registry.get(spec.id).cloned() };
        Ok(Pipeline { steps: specs.iter().map(step).collect() })
    }

    /// Whether there are no filters: then the chunk is stored unchanged.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether a chunk with this mask is stored unchanged.
    pub fn is_identity(&self, mask: u32) -> bool {
        self.active_steps(mask).next().is_none()
    }

    /// The filters that a chunk with this mask went through, in order.
    fn active_steps(&self, mask: u32) -> impl DoubleEndedIterator<Item = &PipelineStep> {
        self.steps.iter().enumerate().filter(move |(i, _)| mask >> i & 1 == 0).map(|(_, step)| step)
    }

    /// The chunk of `chunk_bytes` bytes that is stored as `stored` with this mask.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if a filter is missing, [`Error::Filter`] if one fails, [`Error::WrongSize`] if
    /// the result is not a chunk, [`Error::OutOfMemory`].
    pub fn decode(&self, mask: u32, stored: &[u8], chunk_bytes: usize) -> Result<Vec<u8>> {
        if self.is_identity(mask) && stored.len() != chunk_bytes {
            return Err(Error::WrongSize { expected: chunk_bytes, found: stored.len() });
        }
        let mut chunk = scratch::zeroed(chunk_bytes).ok_or(Error::OutOfMemory(chunk_bytes))?;
        self.decode_into(mask, stored, &mut chunk)?;
        Ok(chunk)
    }

    /// Decodes straight into `chunk`, which has the size of a chunk. After an error it holds anything.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    pub fn decode_into(&self, mask: u32, stored: &[u8], chunk: &mut [u8]) -> Result<()> {
        if let Some(step) = self.active_steps(mask).find(|step| step.filter.is_none()) {
            return Err(unavailable_error(&step.spec));
        }
        scratch::with(|scratch| self.run_decode(mask, stored, chunk, scratch))
    }

    fn run_decode(&self, mask: u32, stored: &[u8], chunk: &mut [u8], scratch: &mut Scratch) -> Result<()> {
        let expected = chunk.len();
        let limit = intermediate_bytes(expected);
        let Scratch { decoded, room, .. } = scratch;
        let mut at = DecodeLocation::Stored(0..stored.len());
        let mut steps = self.active_steps(mask).rev().peekable();
        while let Some(step) = steps.next() {
            let input = at.bytes(stored, decoded);
            let last = steps.peek().is_none();
            let output = if last {
                &mut *chunk
            } else {
                scratch::resize_buffer(room, limit).map_err(|fault| step.step_error(fault))?
            };
            match step
                .required_filter()?
                .decode(&step.spec.params, input, output)
                .map_err(|fault| step.step_error(fault))?
            {
                DecodeOutcome::InputRange(range) => at = at.part(range),
                DecodeOutcome::Decoded(found) if last => {
                    return if found == expected { Ok(()) } else { Err(Error::WrongSize { expected, found }) };
                }
                DecodeOutcome::Decoded(found) => {
                    std::mem::swap(decoded, room);
                    at = DecodeLocation::Decoded(0..found);
                }
            }
        }
        let result = at.bytes(stored, decoded);
        if result.len() != expected {
            return Err(Error::WrongSize { expected, found: result.len() });
        }
        chunk.copy_from_slice(result);
        Ok(())
    }

    /// Encodes a chunk. Returns the stored bytes and the mask.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] or [`Error::Filter`] for a filter that is not optional.
    pub fn encode(&self, chunk: &[u8]) -> Result<(Vec<u8>, u32)> {
        let mut stored = Vec::new();
        let mask = self.encode_into(chunk, &mut stored)?;
        stored.shrink_to_fit();
        Ok((stored, mask))
    }

    /// Encodes a chunk into `stored`, and replaces its contents. Returns the mask. The vector is exchanged with one of
    /// the thread's own, so that encoding chunk after chunk allocates nothing.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode).
    pub fn encode_into(&self, chunk: &[u8], stored: &mut Vec<u8>) -> Result<u32> {
        scratch::with(|scratch| {
            let (result, mask) = self.run_encode(chunk, scratch)?;
            match result {
                EncodeLocation::Scratch => std::mem::swap(stored, &mut scratch.encoded),
                EncodeLocation::Chunk => {
                    stored.clear();
                    stored.extend_from_slice(chunk);
                }
            }
            Ok(mask)
        })
    }

    fn run_encode(&self, chunk: &[u8], scratch: &mut Scratch) -> Result<(EncodeLocation, u32)> {
        let Scratch { encoded, next, .. } = scratch;
        let mut result = EncodeLocation::Chunk;
        let mut mask = 0;
        for (i, step) in self.steps.iter().enumerate() {
            let input = match result {
                EncodeLocation::Chunk => chunk,
                EncodeLocation::Scratch => encoded,
            };
            next.clear();
            let outcome = match &step.filter {
                None => Err(unavailable_error(&step.spec)),
                Some(filter) => match filter.encode(&step.spec.params, input, next) {
                    Ok(EncodeOutcome::Incompressible) => Err(step.step_error(FilterFault::Incompressible)),
                    outcome => outcome.map_err(|fault| step.step_error(fault)),
                },
            };
            match outcome {
                Ok(EncodeOutcome::Encoded) => {
                    std::mem::swap(encoded, next);
                    result = EncodeLocation::Scratch;
                }
                Ok(_) => {}
                Err(_) if step.spec.optional => mask |= 1 << i,
                Err(error) => return Err(error),
            }
        }
        Ok((result, mask))
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.steps.iter().map(|step| &step.spec)).finish()
    }
}

/// The place of the result of the decoding steps so far.
enum DecodeLocation {
    Stored(Range<usize>),
    Decoded(Range<usize>),
}

impl DecodeLocation {
    fn bytes<'a>(&self, stored: &'a [u8], decoded: &'a [u8]) -> &'a [u8] {
        match self {
            DecodeLocation::Stored(range) => stored.get(range.clone()).unwrap_or_default(),
            DecodeLocation::Decoded(range) => decoded.get(range.clone()).unwrap_or_default(),
        }
    }

    /// A part of this location, counted from its start; empty if the part reaches beyond it.
    fn part(self, part: Range<usize>) -> Self {
        let within = |whole: Range<usize>| {
            let start = whole.start.saturating_add(part.start).min(whole.end);
            start..whole.start.saturating_add(part.end).clamp(start, whole.end)
        };
        match self {
            DecodeLocation::Stored(range) => DecodeLocation::Stored(within(range)),
            DecodeLocation::Decoded(range) => DecodeLocation::Decoded(within(range)),
        }
    }
}

/// The place of the result of the encoding steps so far.
enum EncodeLocation {
    Chunk,
    Scratch,
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn an_intermediate_result_of_a_large_chunk_has_little_more_room_than_the_chunk() {
        assert_eq!(intermediate_bytes(0), INTERMEDIATE_SLACK_BYTES);
        assert_eq!(intermediate_bytes(100 << 20), (200 << 20) + INTERMEDIATE_SLACK_BYTES);
        assert_eq!(intermediate_bytes(254 << 20), MAX_INTERMEDIATE_BYTES);
        assert_eq!(intermediate_bytes(1 << 30), (1 << 30) + INTERMEDIATE_SLACK_BYTES);
        assert_eq!(intermediate_bytes(usize::MAX), usize::MAX);
    }
}

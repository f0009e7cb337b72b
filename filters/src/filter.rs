//! One step of a pipeline.

use std::ops::Range;

use h5live_model::{Datatype, FillValue};

use crate::FilterFault;

/// A filter: encodes the bytes of a chunk to stored bytes, and decodes them.
///
/// A filter keeps no state between chunks. Many threads call it at once.
pub trait Filter: Send + Sync {
    /// The registered number of the filter.
    fn id(&self) -> u16;

    /// The name of the filter in files.
    fn name(&self) -> &str;

    /// Whether the filter can encode. If not, chunks that it has filtered can only be read.
    fn can_encode(&self) -> bool {
        true
    }

    /// Whether values may be others after they were encoded and decoded, with these parameters.
    fn is_lossy(&self, params: &[u32]) -> bool {
        let _ = params;
        false
    }

    /// Undoes the filter. `output` is all the room that the result may take; it holds leftovers.
    ///
    /// # Errors
    ///
    /// Any [`FilterFault`]; [`FilterFault::TooLarge`] if the result does not fit `output`.
    fn decode(&self, params: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutcome, FilterFault>;

    /// Applies the filter. `output` is empty; the filter appends its result.
    ///
    /// # Errors
    ///
    /// Any [`FilterFault`]. In an optional filter a fault counts as [`EncodeOutcome::Incompressible`].
    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault>;

    /// Completes the parameters that the user gave with those that follow from the dataset, as is done
    /// once when the dataset is created. Returns all parameters.
    ///
    /// # Errors
    ///
    /// [`FilterFault::AppliesOnlyTo`] if the filter does not fit the dataset, [`FilterFault::InvalidParameter`] or
    /// [`FilterFault::MissingParameter`] if the parameters given make no sense.
    fn complete_params(&self, params: &[u32], target: &FilterTarget<'_>) -> Result<Vec<u32>, FilterFault> {
        let _ = target;
        Ok(params.to_vec())
    }
}

/// The dataset that a filter's parameters are completed for.
#[derive(Debug, Clone, Copy)]
pub struct FilterTarget<'a> {
    /// The type of an element.
    pub datatype: &'a Datatype,
    /// The dimensions of a chunk (`[rank]`, elements).
    pub chunk_dims: &'a [u64],
    /// The value of elements that were never written.
    pub fill: &'a FillValue,
}

impl FilterTarget<'_> {
    /// Elements of a chunk, if they can be counted in 32 bits.
    pub fn chunk_element_count(&self) -> Option<u32> {
        let product = self.chunk_dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d))?;
        u32::try_from(product).ok()
    }

    /// Bytes of a chunk, if they can be counted in 32 bits.
    pub fn chunk_bytes(&self) -> Option<u32> {
        self.chunk_element_count()?.checked_mul(self.datatype.size())
    }
}

/// Where the result of decoding is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeOutcome {
    /// The result is in the first bytes of the output: this many.
    Decoded(usize),
    /// In this part of the input, unchanged.
    InputRange(Range<usize>),
}

/// Where the result of encoding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncodeOutcome {
    /// In the output.
    Encoded,
    /// The result is the unchanged input, and the filter counts as applied.
    AppliedWithoutChange,
    /// Nowhere: the filter gains nothing on this chunk. An optional filter is then left out and its mask bit
    /// set; a mandatory one fails with [`FilterFault::Incompressible`].
    Incompressible,
}

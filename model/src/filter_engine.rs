//! Filters below the seam: some structures of a store go through the filters of its users' choice.

use std::fmt;

use crate::FilterSpec;

/// The answer of an [`FilterEngine`] that does not know a filter. This is no fault of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("filter {0} is not available")]
pub struct UnknownFilter(pub u16);

/// The answer of an [`FilterEngine`] that knows a filter, and not this form of its data. This is no fault of the file.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnsupportedFilterData(pub Box<dyn std::error::Error + Send + Sync>);

/// Why filters were not undone, if that is no fault of the file: an [`UnknownFilter`], [`UnsupportedFilterData`], or an
/// [`AllocationError`](crate::AllocationError).
pub fn is_unfilter_limitation(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    error.is::<UnknownFilter>() || error.is::<UnsupportedFilterData>() || error.is::<crate::AllocationError>()
}

/// The result of applying filters: the bytes, and the mask of the filters that were skipped.
pub type FilterResult = std::result::Result<(Vec<u8>, u32), Box<dyn std::error::Error + Send + Sync>>;

/// Applies and undoes filters for a store that keeps filtered structures of its own.
pub trait FilterEngine: Send + Sync + fmt::Debug {
    /// The `unfiltered_size` bytes that went through `filters` to become `bytes`; bit `i` of `filter_mask` set: filter `i` was skipped.
    ///
    /// # Errors
    /// [`UnknownFilter`], [`UnsupportedFilterData`]; others if the bytes are damaged, or they are not `unfiltered_size` in the end.
    fn unfilter(
        &self,
        filters: &[FilterSpec],
        filter_mask: u32,
        bytes: Vec<u8>,
        unfiltered_size: u64,
    ) -> std::result::Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>>;

    /// Applies `filters` to `bytes`. Returns the result and the mask: bit `i` is set if filter `i` was skipped. Unknown
    /// filters are skipped. By default, no filter is known.
    ///
    /// # Errors
    /// If a filter that is not optional is not known, or fails.
    fn filter(&self, filters: &[FilterSpec], bytes: &[u8]) -> FilterResult {
        match filters.iter().find(|filter| !filter.optional) {
            None => Ok((
                bytes.to_vec(),
                (0..filters.len()).fold(0, |mask, i| mask | 1u32.checked_shl(i as u32).unwrap_or(0)),
            )),
            Some(filter) => Err(UnknownFilter(filter.id).into()),
        }
    }
}

/// Knows no filter.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFilters;

impl FilterEngine for NoFilters {
    fn unfilter(
        &self,
        filters: &[FilterSpec],
        mask: u32,
        bytes: Vec<u8>,
        _size: u64,
    ) -> std::result::Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        let applied = |(i, _): &(usize, &FilterSpec)| mask.checked_shr(*i as u32).unwrap_or(0) & 1 == 0;
        match filters.iter().enumerate().find(applied) {
            None => Ok(bytes),
            Some((_, filter)) => Err(UnknownFilter(filter.id).into()),
        }
    }
}

//! Filters below the seam: some structures of a store go through the filters of its users' choice.

use std::fmt;

use crate::FilterSpec;

/// What comes of applying filters: the bytes, and the mask of those that were skipped.
pub type FilterResult = std::result::Result<(Vec<u8>, u32), Box<dyn std::error::Error + Send + Sync>>;

/// What applies and undoes filters for a store that keeps structures of its own behind some.
pub trait Unfilter: Send + Sync + fmt::Debug {
    /// The `size` bytes that went through `filters` to become `bytes`; bit `i` of `mask` set: filter `i` was skipped.
    ///
    /// # Errors
    /// If a filter is not known, the bytes are damaged, or they are not `size` in the end.
    fn unfilter(
        &self,
        filters: &[FilterSpec],
        mask: u32,
        bytes: Vec<u8>,
        size: u64,
    ) -> std::result::Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>>;

    /// What `bytes` become behind `filters`, and the mask: bit `i` set if filter `i` was skipped, as all are that are
    /// not known. By default none is.
    ///
    /// # Errors
    /// If a filter that is not optional is not known, or fails.
    fn filter(&self, filters: &[FilterSpec], bytes: &[u8]) -> FilterResult {
        match filters.iter().find(|filter| !filter.optional) {
            None => Ok((
                bytes.to_vec(),
                (0..filters.len()).fold(0, |mask, i| mask | 1u32.checked_shl(i as u32).unwrap_or(0)),
            )),
            Some(filter) => Err(format!("filter {} is not known here", filter.id).into()),
        }
    }
}

/// Knows no filter.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFilters;

impl Unfilter for NoFilters {
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
            Some((_, filter)) => Err(format!("filter {} is not known here", filter.id).into()),
        }
    }
}

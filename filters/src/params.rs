//! The parameters of a filter.

use crate::FilterFault;

/// Parameter number `index`.
pub(crate) fn param(params: &[u32], index: usize) -> Result<u32, FilterFault> {
    params.get(index).copied().ok_or(FilterFault::MissingParameter { index })
}

/// A count of bytes or elements: on every supported machine `usize` has at least 32 bits.
pub(crate) const fn param_to_usize(value: u32) -> usize {
    value as usize
}
/// Parameter number `index`, or its default if it is missing.
pub(crate) fn param_or(params: &[u32], index: usize, default: u32) -> u32 {
    params.get(index).copied().unwrap_or(default)
}

//! Which requests read which ranges of an object: without I/O.

use std::ops::Range;

/// How ranges become requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeMergeLimits {
    /// Bytes between two ranges that are worth reading, so that one request does for both.
    pub max_gap_bytes: u64,
    /// Most bytes of a request that was merged from several ranges.
    pub max_bytes: u64,
}

impl Default for RangeMergeLimits {
    fn default() -> Self {
        RangeMergeLimits { max_gap_bytes: 1 << 20, max_bytes: 8 << 20 }
    }
}

/// A request, and which of the ranges lie in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedRange {
    /// The bytes of the object that are read.
    pub range: Range<u64>,
    /// The numbers of the ranges in it.
    pub range_indices: Vec<usize>,
}

/// The requests for ranges, in the order of the object. No range is cut; empty ones are in no request.
pub fn merge_ranges(ranges: &[Range<u64>], merge_limits: &RangeMergeLimits) -> Vec<MergedRange> {
    let mut order: Vec<usize> = (0..ranges.len()).filter(|number| !ranges[*number].is_empty()).collect();
    order.sort_by_key(|number| (ranges[*number].start, ranges[*number].end));
    let mut merged: Vec<MergedRange> = Vec::new();
    for number in order {
        let range = ranges[number].clone();
        if let Some(last) = merged.last_mut() {
            let end = last.range.end.max(range.end);
            let is_near = range.start <= last.range.end.saturating_add(merge_limits.max_gap_bytes);
            let is_inside = range.end <= last.range.end;
            if is_inside || is_near && end - last.range.start <= merge_limits.max_bytes {
                last.range.end = end;
                last.range_indices.push(number);
                continue;
            }
        }
        merged.push(MergedRange { range, range_indices: vec![number] });
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(gap: u64, max_bytes: u64) -> RangeMergeLimits {
        RangeMergeLimits { max_gap_bytes: gap, max_bytes }
    }

    #[test]
    #[allow(clippy::single_range_in_vec_init, reason = "a list of one range")]
    fn ranges_that_are_near_become_one_request() {
        let merged = |ranges: &[Range<u64>], plan: RangeMergeLimits| {
            merge_ranges(ranges, &plan)
                .into_iter()
                .map(|merged| (merged.range, merged.range_indices))
                .collect::<Vec<_>>()
        };
        assert_eq!(merged(&[10..20, 0..10, 25..30], plan(5, 100)), [(0..30, vec![1, 0, 2])]);
        assert_eq!(merged(&[0..10, 16..20], plan(5, 100)), [(0..10, vec![0]), (16..20, vec![1])]);
        assert_eq!(merged(&[0..10, 10..20], plan(5, 15)), [(0..10, vec![0]), (10..20, vec![1])]);
        assert_eq!(merged(&[0..40, 5..6, 7..7], plan(0, 15)), [(0..40, vec![0, 1])]);
        assert_eq!(merged(&[0..4, 0..4], plan(0, 1)), [(0..4, vec![0, 1])]);
        assert_eq!(merged(&[u64::MAX - 1..u64::MAX], plan(u64::MAX, u64::MAX)), [(u64::MAX - 1..u64::MAX, vec![0])]);
    }
}

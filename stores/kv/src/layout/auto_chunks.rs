//! The chunks of datasets that were asked for as one run of bytes.

/// Bytes that a chunk is to have.
const TARGET_BYTES: u64 = 1 << 20;
/// Most bytes of a dataset that stays one run of bytes: the target, times the square root of 2.
const MAX_CONTIGUOUS_BYTES: u64 = 1_482_910;
/// Fewest bytes of a chunk: the target, divided by the square root of 2.
const MIN_CHUNK_BYTES: u64 = 741_455;

/// The chunks (`[rank]`, elements) that a contiguous dataset of this shape gets, as the connector cuts it. `None` if it is
/// small enough to stay as it is. `element_bytes` is the size of an element (bytes).
pub fn large_contiguous_chunk_dims(dims: &[u64], element_bytes: u32) -> Option<Vec<u64>> {
    let element = u64::from(element_bytes);
    let bytes = dims.iter().fold(element, |n, dim| n.saturating_mul(*dim));
    if bytes <= MAX_CONTIGUOUS_BYTES || bytes <= element {
        return None;
    }
    let mut chunk = vec![1; dims.len()];
    let mut spanned = element;
    for (dim, side) in dims.iter().zip(&mut chunk).rev() {
        spanned = spanned.saturating_mul(*dim);
        if spanned < MIN_CHUNK_BYTES {
            *side = *dim;
            continue;
        }
        let rest = spanned.checked_rem(TARGET_BYTES).unwrap_or(0);
        let pieces = (spanned / TARGET_BYTES).saturating_add((rest > TARGET_BYTES / 3).into()).clamp(1, (*dim).max(1));
        *side = dim.div_ceil(pieces);
        break;
    }
    Some(chunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_datasets_stay_as_they_are() {
        assert_eq!(large_contiguous_chunk_dims(&[185_363], 8), None);
        assert_eq!(large_contiguous_chunk_dims(&[], 1 << 30), None);
        assert_eq!(large_contiguous_chunk_dims(&[1], 1 << 30), None);
        assert_eq!(large_contiguous_chunk_dims(&[u64::MAX, 0], 8), None);
    }

    #[test]
    fn large_datasets_are_cut_along_the_first_dimension_that_is_large_enough() {
        // 185,364 elements of 8 bytes have 1,482,912 bytes: one chunk of a MiB, and more than a third of another.
        assert_eq!(large_contiguous_chunk_dims(&[185_364], 8), Some(vec![92_682]));
        assert_eq!(large_contiguous_chunk_dims(&[1000, 1000], 8), Some(vec![125, 1000]));
        assert_eq!(large_contiguous_chunk_dims(&[7, 3, 1 << 20], 8), Some(vec![1, 1, 131_072]));
        assert_eq!(large_contiguous_chunk_dims(&[4, 50, 10], 4096), Some(vec![1, 25, 10]));
    }
}

//! The dimensions of chunks for which none were given.

use h5live_model::UNLIMITED;

/// Bytes that a guessed chunk has: at least, at most, and for a dataset of 1 MiB.
const MIN_CHUNK_BYTES: u64 = 8 << 10;
const MAX_CHUNK_BYTES: u64 = 1 << 20;
const BASE_CHUNK_BYTES: f64 = 16_384.0;
/// Bytes of small rows that go in one chunk: little enough to be written anew by each flush, much enough to be read fast.
const ROWS_BYTES: u64 = 64 << 10;

/// Guesses the dimensions of a chunk (`[rank]`, elements) from those of the dataset and the size of an element (bytes).
pub(crate) fn guess_chunk(dims: &[u64], max: &[u64], size: u64) -> Vec<u64> {
    match (dims, max) {
        ([_, row @ ..], [UNLIMITED, max_row @ ..]) if !row.is_empty() && row == max_row && !row.contains(&0) => {
            whole_rows(row, size)
        }
        _ => part_of_each_dimension(dims, max, size),
    }
}

/// Some rows, one row, or a part of one whose elements follow each other in it. So a row that is appended changes one
/// chunk, or only new ones.
fn whole_rows(row: &[u64], size: u64) -> Vec<u64> {
    let mut chunk = [&[1], row].concat();
    chunk[0] = (ROWS_BYTES / chunk_bytes(&chunk, size)).max(1);
    for dim in 1..chunk.len() {
        while chunk[dim] > 1 && chunk_bytes(&chunk, size) > MAX_CHUNK_BYTES {
            chunk[dim] = chunk[dim].div_ceil(2);
        }
    }
    chunk
}

/// As h5py does: starts with the shape, and halves one dimension after the other until a chunk has a size that grows
/// with the logarithm of the dataset's size. Dimensions of zero count as 1024, because they will grow.
fn part_of_each_dimension(dims: &[u64], max: &[u64], size: u64) -> Vec<u64> {
    let mut chunk: Vec<u64> = dims.iter().map(|n| if *n == 0 { 1024 } else { *n }).collect();
    let mebibytes = (chunk_bytes(&chunk, size) as f64 / 1_048_576.0).max(1e-9);
    let target = BASE_CHUNK_BYTES * mebibytes.log10().exp2();
    let target = target.clamp(MIN_CHUNK_BYTES as f64, MAX_CHUNK_BYTES as f64);
    let mut dim = 0;
    loop {
        let now = chunk_bytes(&chunk, size);
        let near = (now as f64) < target || (now as f64 - target).abs() / target < 0.5;
        if (near && now < MAX_CHUNK_BYTES) || chunk.iter().all(|n| *n == 1) {
            break;
        }
        let rank = chunk.len();
        chunk[dim % rank] = chunk[dim % rank].div_ceil(2);
        dim += 1;
    }
    chunk.iter().zip(max).map(|(n, max)| (*n).min(*max).max(1)).collect()
}

fn chunk_bytes(chunk: &[u64], size: u64) -> u64 {
    chunk.iter().fold(size.max(1), |n, d| n.saturating_mul(*d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_guessed_as_h5py_does() {
        // From h5py._hl.filters.guess_chunk, version 3.16.
        assert_eq!(guess_chunk(&[100, 1024], &[100, 1024], 4), [13, 256]);
        assert_eq!(guess_chunk(&[1_000_000], &[1_000_000], 8), [3907]);
        assert_eq!(guess_chunk(&[0], &[UNLIMITED], 8), [1024]);
        assert_eq!(guess_chunk(&[0, 512, 512], &[UNLIMITED; 3], 2), [64, 32, 32]);
        assert_eq!(guess_chunk(&[3], &[3], 1 << 20), [1]);
    }

    #[test]
    fn rows_that_only_grow_in_number_stay_whole() {
        let grown = |row: &[u64], size| guess_chunk(&[&[0], row].concat(), &[&[UNLIMITED], row].concat(), size);
        assert_eq!(grown(&[512, 512], 2), [1, 512, 512]);
        assert_eq!(grown(&[2048, 2048], 2), [1, 256, 2048], "parts of a large frame");
        assert_eq!(grown(&[3], 4), [5461, 3]);
        assert_eq!(grown(&[1024], 8), [8, 1024]);
        assert_eq!(grown(&[1], 1 << 21), [1, 1], "an element is never split");
        assert_eq!(grown(&[u64::MAX, 1 << 40], 8), [1, 1, 1 << 17], "sizes beyond what can be counted");
        assert_eq!(guess_chunk(&[7, 100], &[UNLIMITED, 100], 8), [81, 100], "rows that are there change nothing");
        assert_eq!(grown(&[0], 8), [64, 1], "no elements at all");
    }
}

//! Bytes and bits of elements, gathered by their position in the element.

use std::array;

use wide::u8x16;

/// Elements that are moved together.
const GROUP_ELEMENTS: usize = 16;
/// Bytes of the elements that are moved before going on to the next ones, so that they stay in the cache.
const TILE_BYTES: usize = 16 << 10;

/// Gathers byte `i` of every element into run `i`. Both slices have the same length.
pub(crate) fn shuffle(size: usize, input: &[u8], output: &mut [u8]) {
    let Some(elements) = element_count(size, input, output) else {
        return output.copy_from_slice(input);
    };
    let (input, input_rest) = input.split_at(elements * size);
    let (output, output_rest) = output.split_at_mut(elements * size);
    output_rest.copy_from_slice(input_rest);
    let tile = tile_elements(size);
    for (i, input) in input.chunks(tile * size).enumerate() {
        let runs = ByteRuns { size, elements, start: i * tile };
        let groups = input.len() / size / GROUP_ELEMENTS * GROUP_ELEMENTS;
        let (whole, rest) = input.split_at(groups * size);
        for (offset, width) in word_offsets(size) {
            match width {
                8 => runs.gather::<8>(offset, whole, output),
                4 => runs.gather::<4>(offset, whole, output),
                2 => runs.gather::<2>(offset, whole, output),
                _ => runs.gather::<1>(offset, whole, output),
            }
        }
        for (run, output) in output.chunks_exact_mut(elements).enumerate() {
            let to = output.iter_mut().skip(runs.start + groups);
            to.zip(rest.iter().skip(run).step_by(size)).for_each(|(to, byte)| *to = *byte);
        }
    }
}

/// Undoes [`shuffle`].
pub(crate) fn unshuffle(size: usize, input: &[u8], output: &mut [u8]) {
    let Some(elements) = element_count(size, input, output) else {
        return output.copy_from_slice(input);
    };
    let (input, input_rest) = input.split_at(elements * size);
    let (output, output_rest) = output.split_at_mut(elements * size);
    output_rest.copy_from_slice(input_rest);
    let tile = tile_elements(size);
    for (i, output) in output.chunks_mut(tile * size).enumerate() {
        let runs = ByteRuns { size, elements, start: i * tile };
        let groups = output.len() / size / GROUP_ELEMENTS * GROUP_ELEMENTS;
        let (whole, rest) = output.split_at_mut(groups * size);
        for (offset, width) in word_offsets(size) {
            match width {
                8 => runs.scatter::<8>(offset, input, whole),
                4 => runs.scatter::<4>(offset, input, whole),
                2 => runs.scatter::<2>(offset, input, whole),
                _ => runs.scatter::<1>(offset, input, whole),
            }
        }
        for (run, input) in input.chunks_exact(elements).enumerate() {
            let from = input.iter().skip(runs.start + groups);
            rest.iter_mut().skip(run).step_by(size).zip(from).for_each(|(to, byte)| *to = *byte);
        }
    }
}

/// The number of elements, if there is anything to move.
fn element_count(size: usize, input: &[u8], output: &[u8]) -> Option<usize> {
    let elements = input.len().checked_div(size)?;
    (size > 1 && elements > 1 && input.len() == output.len()).then_some(elements)
}

/// Elements of a tile: whole groups.
fn tile_elements(size: usize) -> usize {
    (TILE_BYTES / size / GROUP_ELEMENTS * GROUP_ELEMENTS).max(GROUP_ELEMENTS)
}

/// An element as words of 8, 4, 2 and 1 bytes: where each begins, and its width.
fn word_offsets(size: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let width = [8, 4, 2, 1].into_iter().find(|width| *width <= size - offset)?;
        offset += width;
        Some((offset - width, width))
    })
}

/// One run for each byte of an element; a tile begins at element `start`.
struct ByteRuns {
    size: usize,
    elements: usize,
    start: usize,
}

impl ByteRuns {
    /// Where the bytes of a group are in a run.
    fn run_range(&self, run: usize, group: usize) -> std::ops::Range<usize> {
        let at = run * self.elements + self.start + group * GROUP_ELEMENTS;
        at..at + GROUP_ELEMENTS
    }

    /// Moves the words of `WIDTH` bytes at an offset of whole groups of elements into their runs.
    fn gather<const WIDTH: usize>(&self, offset: usize, elements: &[u8], runs: &mut [u8]) {
        for (group, elements) in elements.chunks_exact(GROUP_ELEMENTS * self.size).enumerate() {
            let mut words = [[0; WIDTH]; GROUP_ELEMENTS];
            if self.size == WIDTH {
                words.as_flattened_mut().copy_from_slice(elements);
            } else {
                for (word, element) in words.iter_mut().zip(elements.chunks_exact(self.size)) {
                    if let Some(bytes) = element.get(offset..).and_then(|bytes| bytes.first_chunk()) {
                        *word = *bytes;
                    }
                }
            }
            let mut vectors = [u8x16::default(); WIDTH];
            for (vector, bytes) in vectors.iter_mut().zip(words.as_flattened().as_chunks::<GROUP_ELEMENTS>().0) {
                *vector = u8x16::new(*bytes);
            }
            // Positions are (element, byte), four bits the element: four rotations make them (byte, element).
            for _ in 0..GROUP_ELEMENTS.ilog2() {
                vectors = rotate_vectors(vectors);
            }
            for (i, vector) in vectors.into_iter().enumerate() {
                if let Some(to) = runs.get_mut(self.run_range(offset + i, group)) {
                    to.copy_from_slice(&vector.to_array());
                }
            }
        }
    }

    /// Undoes [`gather`](Self::gather).
    fn scatter<const WIDTH: usize>(&self, offset: usize, runs: &[u8], elements: &mut [u8]) {
        for (group, elements) in elements.chunks_exact_mut(GROUP_ELEMENTS * self.size).enumerate() {
            let mut vectors = [u8x16::default(); WIDTH];
            for (i, vector) in vectors.iter_mut().enumerate() {
                if let Some(bytes) = runs.get(self.run_range(offset + i, group)).and_then(|bytes| bytes.first_chunk()) {
                    *vector = u8x16::new(*bytes);
                }
            }
            for _ in 0..WIDTH.ilog2() {
                vectors = rotate_vectors(vectors);
            }
            if self.size == WIDTH {
                for (to, vector) in elements.chunks_exact_mut(GROUP_ELEMENTS).zip(vectors) {
                    to.copy_from_slice(&vector.to_array());
                }
                continue;
            }
            let bytes = vectors.map(u8x16::to_array);
            let (words, _) = bytes.as_flattened().as_chunks::<WIDTH>();
            for (word, element) in words.iter().zip(elements.chunks_exact_mut(self.size)) {
                if let Some(bytes) = element.get_mut(offset..).and_then(|bytes| bytes.first_chunk_mut()) {
                    *bytes = *word;
                }
            }
        }
    }
}

/// Interleaves the bytes of the first half with those of the second: the highest bit of the position of each
/// byte becomes the lowest.
#[expect(clippy::indexing_slicing, reason = "the positions are below N")]
#[inline(always)]
fn rotate_vectors<const N: usize>(vectors: [u8x16; N]) -> [u8x16; N] {
    array::from_fn(|i| match (i % 2, N) {
        (_, 1) => vectors[0],
        (0, _) => u8x16::unpack_low(vectors[i / 2], vectors[i / 2 + N / 2]),
        _ => u8x16::unpack_high(vectors[i / 2], vectors[i / 2 + N / 2]),
    })
}

/// Gathers bit `i` of every element into run `i`, the lowest bit of the lowest byte first and the bits of a
/// run from the lowest one up. Both slices and the scratch have the same length, which is a multiple of 8
/// elements.
pub(crate) fn bit_shuffle(size: usize, input: &[u8], output: &mut [u8], scratch: &mut [u8]) {
    // Eight elements at a time are one large element, whose bytes are gathered first. Then, for each byte
    // of the small element, the eight runs of bytes are turned into eight runs of bits.
    let group = size.saturating_mul(8);
    shuffle(group, input, scratch);
    let Some(run) = input.len().checked_div(group).filter(|run| *run > 0) else {
        return output.copy_from_slice(scratch);
    };
    for byte in 0..size {
        transpose_runs(run, scratch, |i| i * size + byte, output, |i| byte * 8 + i);
    }
}

/// Undoes [`bit_shuffle`].
pub(crate) fn bit_unshuffle(size: usize, input: &[u8], output: &mut [u8], scratch: &mut [u8]) {
    let group = size.saturating_mul(8);
    let Some(run) = input.len().checked_div(group).filter(|run| *run > 0) else {
        return output.copy_from_slice(input);
    };
    for byte in 0..size {
        transpose_runs(run, input, |i| byte * 8 + i, scratch, |i| i * size + byte);
    }
    unshuffle(group, scratch, output);
}

/// Takes eight runs of `run` bytes to eight others: bit `k` of byte `n` of run `i` becomes bit `i` of byte
/// `n` of run `k`. The functions give the positions of the runs.
fn transpose_runs(
    run: usize,
    input: &[u8],
    from: impl Fn(usize) -> usize,
    output: &mut [u8],
    to: impl Fn(usize) -> usize,
) {
    for at in (0..run).step_by(LANES * 8) {
        let width = (run - at).min(LANES * 8);
        let mut lanes = [[0u64; LANES]; 8];
        for (i, lane) in lanes.iter_mut().enumerate() {
            let start = from(i) * run + at;
            let bytes = input.get(start..start + width).unwrap_or_default();
            let (words, rest) = bytes.as_chunks::<8>();
            for (lane, word) in lane.iter_mut().zip(words) {
                *lane = u64::from_le_bytes(*word);
            }
            if let Some(lane) = lane.get_mut(words.len()) {
                *lane = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            }
        }
        transpose_lanes(&mut lanes);
        for (i, lane) in lanes.iter().enumerate() {
            let start = to(i) * run + at;
            let bytes = output.get_mut(start..start + width).unwrap_or_default();
            let (words, rest) = bytes.as_chunks_mut::<8>();
            let mut lane = lane.iter();
            for (word, lane) in words.iter_mut().zip(&mut lane) {
                *word = lane.to_le_bytes();
            }
            for (byte, last) in rest.iter_mut().zip(lane.next().copied().unwrap_or_default().to_le_bytes()) {
                *byte = last;
            }
        }
    }
}

/// Words of a run that are taken at once.
const LANES: usize = 8;

/// Transposes the 8 by 8 bits that each byte of the lanes holds.
fn transpose_lanes([a, b, c, d, e, f, g, h]: &mut [[u64; LANES]; 8]) {
    for (low, high) in [(&mut *a, &mut *e), (&mut *b, &mut *f), (&mut *c, &mut *g), (&mut *d, &mut *h)] {
        exchange::<4>(0x0f0f_0f0f_0f0f_0f0f, low, high);
    }
    for (low, high) in [(&mut *a, &mut *c), (&mut *b, &mut *d), (&mut *e, &mut *g), (&mut *f, &mut *h)] {
        exchange::<2>(0x3333_3333_3333_3333, low, high);
    }
    for (low, high) in [(a, b), (c, d), (e, f), (g, h)] {
        exchange::<1>(0x5555_5555_5555_5555, low, high);
    }
}

/// Exchanges the high bits of each byte of one lane with the low bits of the other.
fn exchange<const SHIFT: u32>(mask: u64, low: &mut [u64; LANES], high: &mut [u64; LANES]) {
    for (low, high) in low.iter_mut().zip(high) {
        let bits = (*low >> SHIFT ^ *high) & mask;
        *high ^= bits;
        *low ^= bits << SHIFT;
    }
}

//! Bytes and bits of elements, gathered by their position in the element.

/// Elements that are moved together when their size has no path of its own, so that they stay in the cache.
const TILE: usize = 256;

/// Gathers byte `i` of every element into run `i`. Both slices have the same length.
pub(crate) fn shuffle(size: usize, input: &[u8], output: &mut [u8]) {
    let elements = input.len().checked_div(size).unwrap_or(0);
    if size < 2 || elements < 2 || input.len() != output.len() {
        return output.copy_from_slice(input);
    }
    let (input, input_rest) = input.split_at(elements * size);
    let (output, output_rest) = output.split_at_mut(elements * size);
    output_rest.copy_from_slice(input_rest);
    match size {
        2 => gather::<2>(elements, input, output),
        4 => gather::<4>(elements, input, output),
        8 => gather::<8>(elements, input, output),
        16 => gather::<16>(elements, input, output),
        _ => gather_any(size, elements, input, output),
    }
}

/// Undoes [`shuffle`].
pub(crate) fn unshuffle(size: usize, input: &[u8], output: &mut [u8]) {
    let elements = input.len().checked_div(size).unwrap_or(0);
    if size < 2 || elements < 2 || input.len() != output.len() {
        return output.copy_from_slice(input);
    }
    let (input, input_rest) = input.split_at(elements * size);
    let (output, output_rest) = output.split_at_mut(elements * size);
    output_rest.copy_from_slice(input_rest);
    match size {
        2 => scatter::<2>(elements, input, output),
        4 => scatter::<4>(elements, input, output),
        8 => scatter::<8>(elements, input, output),
        16 => scatter::<16>(elements, input, output),
        _ => scatter_any(size, elements, input, output),
    }
}

fn gather<const SIZE: usize>(elements: usize, input: &[u8], output: &mut [u8]) {
    let (input, _) = input.as_chunks::<SIZE>();
    for (tile, input) in input.chunks(TILE).enumerate() {
        for (i, run) in output.chunks_exact_mut(elements).enumerate().take(SIZE) {
            let run = run.get_mut(tile * TILE..).unwrap_or_default();
            for (byte, element) in run.iter_mut().zip(input) {
                *byte = element.get(i).copied().unwrap_or_default();
            }
        }
    }
}

fn scatter<const SIZE: usize>(elements: usize, input: &[u8], output: &mut [u8]) {
    let (output, _) = output.as_chunks_mut::<SIZE>();
    for (tile, output) in output.chunks_mut(TILE).enumerate() {
        for (i, run) in input.chunks_exact(elements).enumerate().take(SIZE) {
            let run = run.get(tile * TILE..).unwrap_or_default();
            for (element, byte) in output.iter_mut().zip(run) {
                if let Some(to) = element.get_mut(i) {
                    *to = *byte;
                }
            }
        }
    }
}

fn gather_any(size: usize, elements: usize, input: &[u8], output: &mut [u8]) {
    for (tile, input) in input.chunks(TILE * size).enumerate() {
        for (i, run) in output.chunks_exact_mut(elements).enumerate() {
            let run = run.get_mut(tile * TILE..).unwrap_or_default();
            for (byte, from) in run.iter_mut().zip(input.iter().skip(i).step_by(size)) {
                *byte = *from;
            }
        }
    }
}

fn scatter_any(size: usize, elements: usize, input: &[u8], output: &mut [u8]) {
    for (tile, output) in output.chunks_mut(TILE * size).enumerate() {
        for (i, run) in input.chunks_exact(elements).enumerate() {
            let run = run.get(tile * TILE..).unwrap_or_default();
            for (to, byte) in output.iter_mut().skip(i).step_by(size).zip(run) {
                *to = *byte;
            }
        }
    }
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
    let mut at = 0;
    while at < run {
        let width = (run - at).min(LANES);
        let mut lanes = [[0u8; LANES]; 8];
        for (i, lane) in lanes.iter_mut().enumerate() {
            let start = from(i) * run + at;
            if let (Some(lane), Some(bytes)) = (lane.get_mut(..width), input.get(start..start + width)) {
                lane.copy_from_slice(bytes);
            }
        }
        transpose_lanes(&mut lanes);
        for (i, lane) in lanes.iter().enumerate() {
            let start = to(i) * run + at;
            if let (Some(lane), Some(bytes)) = (lane.get(..width), output.get_mut(start..start + width)) {
                bytes.copy_from_slice(lane);
            }
        }
        at += width;
    }
}

/// Bytes of a run that are taken at once.
const LANES: usize = 64;

/// Transposes the 8 by 8 bits that each position of the lanes holds.
fn transpose_lanes([a, b, c, d, e, f, g, h]: &mut [[u8; LANES]; 8]) {
    for (low, high) in [(&mut *a, &mut *e), (&mut *b, &mut *f), (&mut *c, &mut *g), (&mut *d, &mut *h)] {
        exchange::<4>(0x0f, low, high);
    }
    for (low, high) in [(&mut *a, &mut *c), (&mut *b, &mut *d), (&mut *e, &mut *g), (&mut *f, &mut *h)] {
        exchange::<2>(0x33, low, high);
    }
    for (low, high) in [(a, b), (c, d), (e, f), (g, h)] {
        exchange::<1>(0x55, low, high);
    }
}

/// Exchanges the high bits of one lane with the low bits of the other.
fn exchange<const SHIFT: u32>(mask: u8, low: &mut [u8; LANES], high: &mut [u8; LANES]) {
    for (low, high) in low.iter_mut().zip(high) {
        let bits = (*low >> SHIFT ^ *high) & mask;
        *high ^= bits;
        *low ^= bits << SHIFT;
    }
}

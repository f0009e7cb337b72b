//! Finds the parts of the data that deflate cannot compress.

use std::ops::Range;

use super::piece::{MIN_PIECES_APART, PIECE_BYTES, STEP_BYTES, SegmentKind, fixed_size_pieces};
use super::repeats::RepeatCounts;

/// A segment of the data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct DataSegment {
    pub(super) kind: SegmentKind,
    pub(super) bytes: Range<usize>,
}

/// Splits data into segments, which follow each other.
pub(super) fn split_into_segments(data: &[u8]) -> Vec<DataSegment> {
    if data.len() < PIECE_BYTES {
        return vec![DataSegment { kind: SegmentKind::Other, bytes: 0..data.len() }];
    }
    let kind = |piece| if is_uniform(piece) { SegmentKind::Noise } else { SegmentKind::Other };
    let mut kinds: Vec<SegmentKind> = fixed_size_pieces(data).map(kind).collect();
    let repeats =
        if kinds.contains(&SegmentKind::Noise) { RepeatCounts::new(data, &kinds) } else { RepeatCounts::default() };
    for (kind, found) in kinds.iter_mut().zip(&repeats.of_pieces) {
        // Noise has two in one of many thousand pieces.
        if *kind == SegmentKind::Noise && *found > 1 {
            *kind = SegmentKind::Other;
        }
    }
    merge_close_pieces(&mut kinds);
    let mut end = 0;
    let next = |same: &[SegmentKind]| {
        let start = end;
        end += same.len() * PIECE_BYTES;
        DataSegment { kind: same.first().copied().unwrap_or(SegmentKind::Other), bytes: start..end }
    };
    let mut found: Vec<DataSegment> = kinds.chunk_by(|a, b| a == b).map(next).collect();
    if let Some(last) = found.last_mut() {
        last.bytes.end = data.len();
    }
    extend_noise(data, &repeats, &mut found);
    found
}

/// Whether all bytes are about equally frequent: a Huffman code would save less than half a hundredth.
fn is_uniform(piece: &[u8]) -> bool {
    // Most of what is not is found out by a few bytes.
    let some = piece.get(piece.len() / 2..).unwrap_or_default();
    if distinct_values(some.get(..STEP_BYTES).unwrap_or_default()) < 128 {
        return false;
    }
    let mut counts = [0u16; 256];
    for byte in piece {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    // Pearson's chi-squared, which is 255 +- 23 of noise. Above that it is about what is saved, in bits, times 1.4.
    let squares: usize = counts.iter().map(|count| usize::from(*count).pow(2)).sum();
    (squares * 256 / piece.len()).saturating_sub(piece.len()) < 255 + 200
}

/// How many values these bytes have. A step of noise has 162 +- 5.
fn distinct_values(bytes: &[u8]) -> u32 {
    let mut seen = [0u64; 4];
    for byte in bytes {
        if let Some(word) = seen.get_mut(usize::from(byte >> 6)) {
            *word |= 1 << (byte & 63);
        }
    }
    seen.iter().map(|word| word.count_ones()).sum()
}

/// Gives libdeflate the data between two parts if the later part may refer to the earlier one.
fn merge_close_pieces(kinds: &mut [SegmentKind]) {
    let mut before = None;
    for i in 0..kinds.len() {
        if kinds.get(i) == Some(&SegmentKind::Other) {
            let between = before.map_or(i, |before| before + 1);
            if i - between < MIN_PIECES_APART {
                kinds.iter_mut().take(i).skip(between).for_each(|kind| *kind = SegmentKind::Other);
            }
            before = Some(i);
        }
    }
}

/// Adds to noise the steps beside it that are noise, of less than a piece on each side.
fn extend_noise(data: &[u8], repeats: &RepeatCounts, segments: &mut [DataSegment]) {
    let is_noise = |step: usize| {
        let bytes = data.get(step * STEP_BYTES..(step + 1) * STEP_BYTES).unwrap_or_default();
        repeats.of_steps.get(step) == Some(&0) && (140..185).contains(&distinct_values(bytes))
    };
    for i in 1..segments.len() {
        let Some([left, right]) = segments.get_mut(i - 1..=i) else { break };
        let edge = right.bytes.start;
        let step = edge / STEP_BYTES;
        let edge = match (left.kind, right.kind) {
            (SegmentKind::Noise, SegmentKind::Other) => {
                let steps = (right.bytes.len() - 1).min(PIECE_BYTES - 1) / STEP_BYTES;
                edge + (step..step + steps).take_while(|step| is_noise(*step)).count() * STEP_BYTES
            }
            (SegmentKind::Other, SegmentKind::Noise) => {
                let steps = (left.bytes.len() - 1).min(PIECE_BYTES - 1) / STEP_BYTES;
                edge - (step - steps..step).rev().take_while(|step| is_noise(*step)).count() * STEP_BYTES
            }
            _ => edge,
        };
        left.bytes.end = edge;
        right.bytes.start = edge;
    }
}

//! Which parts of the data are worth libdeflate's time.

use std::ops::Range;

use super::repeats::Repeats;

/// How far back a match may begin (bytes).
pub(super) const WINDOW_BYTES: usize = 1 << 15;

/// What is judged at once (bytes). libdeflate's own blocks have 5000 and more: what changes in less than that cannot
/// help it.
pub(super) const PIECE_BYTES: usize = 1 << 12;

/// How exactly noise is cut from what libdeflate gets (bytes): a few thousand bytes of it in one of libdeflate's blocks
/// would spoil the code of the rest.
pub(super) const STEP_BYTES: usize = 1 << 8;

/// Pieces between two that libdeflate gets, across which the later cannot refer to the earlier.
pub(super) const MIN_PIECES_APART: usize = WINDOW_BYTES / PIECE_BYTES;

/// The fewest pieces of runs next to another kind that are worth a block of their own.
const MIN_RUN_PIECES: usize = 4;

/// Of how many words one may have another byte than that before, in runs.
const MAX_CHANGED_WORDS: usize = 21;

/// What kind of data this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SegmentKind {
    /// Nothing would be gained by compressing it.
    Noise,
    /// Mostly long runs of one byte.
    Runs,
    /// What is left.
    Other,
}

/// Data of one kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct DataSegment {
    pub(super) kind: SegmentKind,
    pub(super) bytes: Range<usize>,
}

/// Splits data into stretches, which follow each other. Without `runs` these are not told apart.
pub(super) fn segments(data: &[u8], runs: bool) -> Vec<DataSegment> {
    if data.len() < PIECE_BYTES {
        return vec![DataSegment { kind: SegmentKind::Other, bytes: 0..data.len() }];
    }
    let mut kinds: Vec<SegmentKind> = pieces(data)
        .map(|piece| match () {
            _ if runs && is_runs(piece) => SegmentKind::Runs,
            _ if is_uniform(piece) => SegmentKind::Noise,
            _ => SegmentKind::Other,
        })
        .collect();
    let repeats = if kinds.contains(&SegmentKind::Noise) { Repeats::new(data, &kinds) } else { Repeats::default() };
    for (kind, found) in kinds.iter_mut().zip(&repeats.of_pieces) {
        // Noise has two in one of many thousand pieces.
        if *kind == SegmentKind::Noise && *found > 1 {
            *kind = SegmentKind::Other;
        }
    }
    merge_small(&mut kinds);
    let mut end = 0;
    let stretch = |same: &[SegmentKind]| {
        let start = end;
        end += same.len() * PIECE_BYTES;
        DataSegment { kind: same.first().copied().unwrap_or(SegmentKind::Other), bytes: start..end }
    };
    let mut stretches: Vec<DataSegment> = kinds.chunk_by(|a, b| a == b).map(stretch).collect();
    if let Some(last) = stretches.last_mut() {
        last.bytes.end = data.len();
    }
    extend_noise(data, &repeats, &mut stretches);
    stretches
}

/// What is judged at once. The last piece has what fills no other; of less than a piece there is none.
pub(super) fn pieces(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let count = data.len() / PIECE_BYTES;
    let (others, last) = data.split_at(count.saturating_sub(1) * PIECE_BYTES);
    others.chunks_exact(PIECE_BYTES).chain((count > 0).then_some(last))
}

/// Whether few words have a byte that differs from the one before.
fn is_runs(piece: &[u8]) -> bool {
    let after = piece.get(1..).unwrap_or_default();
    let most = piece.len() / 8 / MAX_CHANGED_WORDS;
    let mut changes = piece.chunks_exact(8).zip(after.chunks_exact(8)).filter(|(a, b)| a != b);
    changes.nth(most).is_none()
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

/// Gives libdeflate what is not worth taking from it: few runs, and what lies between two parts of which the later may
/// refer to the earlier.
fn merge_small(kinds: &mut [SegmentKind]) {
    let mut start = 0;
    while let Some(kind) = kinds.get(start).copied() {
        let end = kinds.iter().skip(start).position(|other| *other != kind).map_or(kinds.len(), |same| start + same);
        let mut beside = [start.checked_sub(1), Some(end)].into_iter().flatten();
        let has_other = beside.any(|i| kinds.get(i) == Some(&SegmentKind::Other));
        if kind == SegmentKind::Runs && end - start < MIN_RUN_PIECES && has_other {
            kinds.iter_mut().take(end).skip(start).for_each(|kind| *kind = SegmentKind::Other);
        }
        start = end;
    }
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
fn extend_noise(data: &[u8], repeats: &Repeats, stretches: &mut [DataSegment]) {
    let is_noise = |step: usize| {
        let bytes = data.get(step * STEP_BYTES..(step + 1) * STEP_BYTES).unwrap_or_default();
        repeats.of_steps.get(step) == Some(&0) && (140..185).contains(&distinct_values(bytes))
    };
    for i in 1..stretches.len() {
        let Some([left, right]) = stretches.get_mut(i - 1..=i) else { break };
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

//! Parts of a chunk's bytes.

use std::{borrow::Cow, collections::BTreeMap, iter::Peekable, ops::Range};

use smallvec::{SmallVec, smallvec};

/// Looking a piece up takes about as long as going past this many.
const MAX_PIECES_WALKED_PER_PART: usize = 8;

/// What a piece takes beside its bytes.
const PIECE_MEMORY_BYTES: usize = 64;

/// Whether readers can see the bytes that a write replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplacedBytesVisibility {
    /// Nobody else reads the file while it is written.
    #[default]
    NoFollowers,
    /// Nothing that readers look at: they have not come to the end of the extent, or the space is in nobody's use.
    BeyondExtent,
    /// Space that was just allocated, to which nothing in the file leads yet.
    NotYetReachable,
    /// Data that readers may be reading: they are to find the old or the new.
    Visible,
}

impl ReplacedBytesVisibility {
    /// The visibility of two writes that wait at the same time.
    pub(super) fn combine(self, other: ReplacedBytesVisibility) -> ReplacedBytesVisibility {
        match (self, other) {
            (ReplacedBytesVisibility::NotYetReachable, _) | (_, ReplacedBytesVisibility::NotYetReachable) => {
                ReplacedBytesVisibility::NotYetReachable
            }
            (ReplacedBytesVisibility::Visible, _) | (_, ReplacedBytesVisibility::Visible) => {
                ReplacedBytesVisibility::Visible
            }
            (ReplacedBytesVisibility::BeyondExtent, _) | (_, ReplacedBytesVisibility::BeyondExtent) => {
                ReplacedBytesVisibility::BeyondExtent
            }
            _ => ReplacedBytesVisibility::NoFollowers,
        }
    }
}

/// Bytes at offsets, neither overlapping nor touching.
#[derive(Debug, Clone, Default)]
pub(crate) struct MergedWrites {
    by_offset: BTreeMap<u64, Vec<u8>>,
    weight: usize,
    /// The visibility of the bytes that are replaced.
    pub(super) visibility: ReplacedBytesVisibility,
}

fn piece_end(offset: u64, bytes: &[u8]) -> u64 {
    offset.saturating_add(bytes.len() as u64)
}

/// Puts `bytes` into a piece, from `from` on, or over its end. Returns by how much it has grown.
fn overwrite_piece(piece: &mut Vec<u8>, from: usize, bytes: &[u8]) -> usize {
    let (over, behind) = bytes.split_at(bytes.len().min(piece.len() - from));
    piece[from..from + over.len()].copy_from_slice(over);
    piece.extend_from_slice(behind);
    behind.len()
}

/// Puts those parts into pieces that begin in one or right behind it and do not reach the next one, up to the first
/// part that does not. It looks for them along the pieces, from the one at `first` on. Returns by how many bytes the
/// pieces have grown.
fn overwrite_along<'a>(
    by_offset: &mut BTreeMap<u64, Vec<u8>>,
    first: u64,
    parts: &mut Peekable<impl Iterator<Item = (u64, Cow<'a, [u8]>)>>,
) -> usize {
    let Some((&near, _)) = by_offset.range(..=first).next_back() else { return 0 };
    let mut pieces = by_offset.range_mut(near..);
    let (mut piece, mut next) = (pieces.next(), pieces.next());
    let mut grown = 0;
    while let Some((offset, bytes)) = parts.peek() {
        for _ in 0..MAX_PIECES_WALKED_PER_PART {
            if next.as_ref().is_none_or(|(near, _)| *near > offset) {
                break;
            }
            (piece, next) = (next, pieces.next());
        }
        let Some((near, there)) = &mut piece else { break };
        let is_within = **near <= *offset && *offset <= piece_end(**near, there);
        if !is_within || next.as_ref().is_some_and(|(next, _)| **next <= piece_end(*offset, bytes)) {
            break;
        }
        grown += overwrite_piece(there, (*offset - **near) as usize, bytes);
        parts.next();
    }
    grown
}

impl MergedWrites {
    /// Bytes in all pieces.
    pub(crate) fn byte_count(&self) -> usize {
        self.weight
    }

    /// Bytes of memory that the pieces take, about: short ones take far more than their bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.weight + self.by_offset.len() * PIECE_MEMORY_BYTES
    }

    /// Where the last piece ends.
    pub(super) fn end_offset(&self) -> u64 {
        self.by_offset.last_key_value().map_or(0, |(offset, bytes)| piece_end(*offset, bytes))
    }

    /// Puts `bytes` over the present pieces.
    pub(crate) fn insert_bytes<'a>(&mut self, offset: u64, bytes: impl Into<Cow<'a, [u8]>>) {
        let bytes = bytes.into();
        if bytes.is_empty() {
            return;
        }
        // Of the pieces that begin before the end of the new bytes, or there, the last.
        match self.by_offset.range_mut(..=piece_end(offset, &bytes)).next_back() {
            Some((near, _)) if *near > offset => self.insert_joined(offset, bytes.into_owned()),
            Some((near, there)) if piece_end(*near, there) >= offset => {
                self.weight += overwrite_piece(there, (offset - near) as usize, &bytes);
            }
            _ => {
                self.weight += bytes.len();
                self.by_offset.insert(offset, bytes.into_owned());
            }
        }
    }

    /// As [`MergedWrites::insert_bytes`], of many parts, each over the ones before. Fastest if they are in order and
    /// most of them lie in pieces or directly behind.
    pub(super) fn insert_parts<'a>(
        &mut self,
        parts: impl IntoIterator<Item = (u64, Cow<'a, [u8]>), IntoIter: ExactSizeIterator>,
    ) {
        let mut parts = parts.into_iter().peekable();
        let mut is_in_order = true;
        while let Some(first) = parts.peek().map(|(offset, _)| *offset) {
            if is_in_order && parts.len() > 1 && parts.len() * MAX_PIECES_WALKED_PER_PART >= self.by_offset.len() {
                self.weight += overwrite_along(&mut self.by_offset, first, &mut parts);
            }
            if let Some((offset, bytes)) = parts.next() {
                let pieces = self.by_offset.len();
                self.insert_bytes(offset, bytes);
                is_in_order = self.by_offset.len() == pieces;
            }
        }
    }

    /// As [`MergedWrites::insert_bytes`], if a piece begins in the new bytes or right behind them.
    fn insert_joined(&mut self, offset: u64, mut bytes: Vec<u8>) {
        let mut start = offset;
        let last = piece_end(offset, &bytes);
        while let Some((&near, _)) = self.by_offset.range(..=last).next_back() {
            let Some(there) = self.by_offset.get_mut(&near) else { break };
            if piece_end(near, there) < start {
                break;
            }
            let mut older = self.by_offset.remove(&near).unwrap_or_default();
            self.weight -= older.len();
            if near <= start {
                // The new bytes go into or behind the older ones, which keep their allocation.
                overwrite_piece(&mut older, (start - near) as usize, &bytes);
                (start, bytes) = (near, older);
            } else {
                let covered = (piece_end(start, &bytes) - near) as usize;
                bytes.extend_from_slice(older.get(covered..).unwrap_or_default());
            }
        }
        self.weight += bytes.len();
        self.by_offset.insert(start, bytes);
    }

    /// As [`MergedWrites::insert_bytes`]; fastest for bytes that directly follow the last piece. A new piece takes `spare`
    /// memory.
    pub(super) fn append_bytes(&mut self, offset: u64, bytes: &[u8], spare: impl FnOnce() -> Vec<u8>) {
        match self.by_offset.last_entry() {
            Some(mut last) if piece_end(*last.key(), last.get()) == offset => {
                last.get_mut().extend_from_slice(bytes);
                self.weight += bytes.len();
            }
            _ => {
                let mut piece = spare();
                piece.extend_from_slice(bytes);
                self.insert_bytes(offset, piece);
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.by_offset.iter().map(|(offset, bytes)| (*offset, bytes.as_slice()))
    }

    /// The pieces, cut at multiples of `size` bytes.
    pub(crate) fn split_at_multiples(&self, size: usize) -> impl Iterator<Item = (u64, &[u8])> {
        self.iter().flat_map(move |(offset, bytes)| {
            let first = bytes.len().min(size - (offset % size as u64) as usize);
            let (first, rest) = bytes.split_at(first);
            let behind = offset + first.len() as u64;
            std::iter::once((offset, first)).chain((behind..).step_by(size).zip(rest.chunks(size)))
        })
    }

    pub(crate) fn into_iter(self) -> impl Iterator<Item = (u64, Vec<u8>)> {
        self.by_offset.into_iter()
    }

    /// The pieces that have bytes in `range`, from the last.
    fn overlapping(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &[u8])> {
        self.by_offset
            .range(..range.end)
            .rev()
            .map(|(offset, bytes)| (*offset, bytes.as_slice()))
            .take_while(move |(offset, bytes)| piece_end(*offset, bytes) > range.start)
    }
}

/// Ranges of a buffer.
pub(super) type MissingRanges = SmallVec<[Range<usize>; 4]>;

/// Fills `into`, which begins at `offset`, from `layers`, the newest first; returns what none of them covers.
pub(super) fn overlay_layers<'a>(
    layers: impl Iterator<Item = &'a MergedWrites>,
    offset: u64,
    into: &mut [u8],
) -> MissingRanges {
    let mut gaps: MissingRanges = smallvec![0..into.len()];
    // A damaged file may lead to the end of all addresses, where nothing is written.
    if offset.checked_add(into.len() as u64).is_none() {
        return gaps;
    }
    for layer in layers {
        let mut left = MissingRanges::new();
        for gap in gaps {
            let mut open = gap.end;
            for (at, bytes) in layer.overlapping(offset + gap.start as u64..offset + gap.end as u64) {
                let from = (at.max(offset + gap.start as u64) - offset) as usize;
                let to = ((piece_end(at, bytes) - offset) as usize).min(open);
                let skip = (offset + from as u64 - at) as usize;
                into[from..to].copy_from_slice(&bytes[skip..skip + to - from]);
                if to < open {
                    left.push(to..open);
                }
                open = from;
            }
            if gap.start < open {
                left.push(gap.start..open);
            }
        }
        gaps = left;
    }
    gaps
}

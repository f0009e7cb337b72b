//! The pieces in which data is judged.

/// How far back a match of deflate may begin (bytes; RFC 1951, 2).
pub(super) const WINDOW_BYTES: usize = 1 << 15;

/// Data is judged in pieces of this size (bytes). libdeflate's own blocks have 5,000 bytes and more.
pub(super) const PIECE_BYTES: usize = 1 << 12;

/// The end of noise is found to this many bytes: a few thousand bytes of noise in one of libdeflate's blocks make the
/// code of its other bytes worse.
pub(super) const STEP_BYTES: usize = 1 << 8;

/// If this many pieces lie between two pieces, the later one cannot have a match with the earlier one.
pub(super) const MIN_PIECES_APART: usize = WINDOW_BYTES / PIECE_BYTES;

/// The kind of a segment of the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SegmentKind {
    /// Bytes that are all about equally frequent, and do not repeat: compression would gain nothing.
    Noise,
    /// All other data.
    Other,
}

/// The pieces that are judged at once. The last piece also has the rest. Less than one piece gives none.
pub(super) fn fixed_size_pieces(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let count = data.len() / PIECE_BYTES;
    let (others, last) = data.split_at(count.saturating_sub(1) * PIECE_BYTES);
    others.chunks_exact(PIECE_BYTES).chain((count > 0).then_some(last))
}

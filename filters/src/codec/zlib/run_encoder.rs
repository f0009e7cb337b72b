//! Runs of one byte as a deflate block (RFC 1951, 3.2.7): matches with the byte before, and here and there with what
//! came farther before.

use std::ops::Range;

use super::bits::DeflateBitWriter;
use super::huffman::{codes, lengths};
use super::segment::WINDOW_BYTES;
use crate::codec::matches::common_prefix_len;

/// Bytes that a match may have.
const MIN_MATCH: usize = 3;
const MAX_MATCH: usize = 258;

const END_OF_BLOCK: usize = 256;
const HASH_BITS: u32 = 10;

/// How much more than a byte and the run behind it another match has to give to be worth its distance.
const MIN_MATCH_GAIN: usize = 8;

/// The order in which a header has the lengths of the code for lengths.
pub(super) const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// A byte, or the length and the distance of a match.
#[derive(Clone, Copy)]
enum Token {
    Literal(u8),
    Match(u16, u16),
}

/// Appends bytes of `data` as one block. Those before them are part of the stream already.
pub(super) fn encode(data: &[u8], bytes: Range<usize>, last: bool, writer: &mut DeflateBitWriter<'_>) {
    let tokens = tokens(data, bytes);
    let mut symbols = [0; 286];
    let mut distances = [0; 30];
    let add = |counts: &mut [u32], symbol: usize| {
        if let Some(count) = counts.get_mut(symbol) {
            *count += 1;
        }
    };
    add(&mut symbols, END_OF_BLOCK);
    for token in &tokens {
        match *token {
            Token::Literal(byte) => add(&mut symbols, usize::from(byte)),
            Token::Match(length, distance) => {
                add(&mut symbols, length_symbol(length).0);
                add(&mut distances, distance_symbol(distance).0);
            }
        }
    }
    let (symbols, distances) = (lengths(&symbols, 15), lengths(&distances, 15));
    writer.put(u32::from(last) | 2 << 1, 3);
    put_lengths(&symbols, &distances, writer);

    let (symbol_codes, distance_codes) = (codes(&symbols), codes(&distances));
    let put = |writer: &mut DeflateBitWriter<'_>, codes: &[u16], lengths: &[u8], symbol: usize| {
        if let (Some(code), Some(length)) = (codes.get(symbol), lengths.get(symbol)) {
            writer.put(u32::from(*code), u32::from(*length));
        }
    };
    for token in &tokens {
        match *token {
            Token::Literal(byte) => put(writer, &symbol_codes, &symbols, usize::from(byte)),
            Token::Match(length, distance) => {
                let (symbol, extra, count) = length_symbol(length);
                put(writer, &symbol_codes, &symbols, symbol);
                writer.put(extra, count);
                let (symbol, extra, count) = distance_symbol(distance);
                put(writer, &distance_codes, &distances, symbol);
                writer.put(extra, count);
            }
        }
    }
    put(writer, &symbol_codes, &symbols, END_OF_BLOCK);
}

/// Splits bytes of `data` into tokens.
fn tokens(data: &[u8], bytes: Range<usize>) -> Vec<Token> {
    let data = data.get(..bytes.end).unwrap_or_default();
    let from = |at: usize| data.get(at..).unwrap_or_default();
    // No farther than a match may go: what follows is compared when it is its turn.
    let near = |at: usize| data.get(at..data.len().min(at + MAX_MATCH)).unwrap_or_default();
    let mut positions = [usize::MAX; 1 << HASH_BITS];
    let mut tokens = Vec::new();
    let mut at = bytes.start;
    while at < data.len() {
        let run = at.checked_sub(1).map_or(0, |before| common_prefix_len(from(before), from(at)));
        let whole = run / MAX_MATCH;
        tokens.extend(std::iter::repeat_n(Token::Match(MAX_MATCH as u16, 1), whole));
        at += whole * MAX_MATCH;
        let rest = run % MAX_MATCH;
        if rest >= MIN_MATCH {
            tokens.push(Token::Match(rest as u16, 1));
            at += rest;
        }
        // Another byte, but for a run's last two: there what follows may have been there before.
        let Some(&byte) = data.get(at) else { break };
        if let Some(word) = from(at).first_chunk::<8>() {
            let hash = u64::from_le_bytes(*word).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - HASH_BITS);
            let before = positions.get_mut(hash as usize).map_or(usize::MAX, |slot| std::mem::replace(slot, at));
            if before < at && at - before <= WINDOW_BYTES {
                let length = common_prefix_len(near(before), near(at));
                if length > MIN_MATCH_GAIN && length > MIN_MATCH_GAIN + common_prefix_len(near(at), near(at + 1)) {
                    tokens.push(Token::Match(length as u16, (at - before) as u16));
                    at += length;
                    continue;
                }
            }
        }
        tokens.push(Token::Literal(byte));
        at += 1;
    }
    tokens
}

/// The symbol of a length, and the bits behind it.
fn length_symbol(length: u16) -> (usize, u32, u32) {
    let over = u32::from(length) - MIN_MATCH as u32;
    match over {
        ..8 => (257 + over as usize, 0, 0),
        8..255 => {
            let count = over.ilog2() - 2;
            (257 + (4 * (count + 1) + (over >> count & 3)) as usize, over & ((1 << count) - 1), count)
        }
        _ => (285, 0, 0),
    }
}

/// The symbol of a distance, and the bits behind it.
fn distance_symbol(distance: u16) -> (usize, u32, u32) {
    let over = u32::from(distance) - 1;
    match over {
        ..4 => (over as usize, 0, 0),
        _ => {
            let count = over.ilog2() - 1;
            ((2 * (count + 1) + (over >> count & 1)) as usize, over & ((1 << count) - 1), count)
        }
    }
}

/// Appends a block's header behind its kind: the lengths of both codes.
fn put_lengths(symbols: &[u8; 286], distances: &[u8; 30], writer: &mut DeflateBitWriter<'_>) {
    let used = |lengths: &[u8], least: usize| {
        lengths.iter().rposition(|length| *length > 0).map_or(least, |last| (last + 1).max(least))
    };
    let (symbols_used, distances_used) = (used(symbols, END_OF_BLOCK + 1), used(distances, 1));
    let all: Vec<u8> =
        symbols.iter().take(symbols_used).chain(distances.iter().take(distances_used)).copied().collect();

    // Symbols of the code for lengths, with the bits behind them.
    let mut coded: Vec<(u8, u32, u32)> = Vec::new();
    for same in all.chunk_by(|a, b| a == b) {
        let length = same.first().copied().unwrap_or_default();
        let mut rest = same.len();
        if length > 0 {
            coded.push((length, 0, 0));
            rest -= 1;
        }
        while rest > 0 {
            let (symbol, least, most, bits) = match (length, rest) {
                (0, 11..) => (18, 11, 138, 7),
                (0, 3..) => (17, 3, 10, 3),
                (1.., 3..) => (16, 3, 6, 2),
                _ => (length, 1, 1, 0),
            };
            let taken = rest.min(most);
            coded.push((symbol, (taken - least) as u32, bits));
            rest -= taken;
        }
    }
    let mut counts = [0; 19];
    for (symbol, ..) in &coded {
        if let Some(count) = counts.get_mut(usize::from(*symbol)) {
            *count += 1;
        }
    }
    let lengths = lengths(&counts, 7);
    let codes = codes(&lengths);
    let ordered = ORDER.map(|symbol| lengths.get(symbol).copied().unwrap_or_default());
    let ordered_used = used(&ordered, 4);
    writer.put((symbols_used - 257) as u32, 5);
    writer.put((distances_used - 1) as u32, 5);
    writer.put((ordered_used - 4) as u32, 4);
    for length in ordered.iter().take(ordered_used) {
        writer.put(u32::from(*length), 3);
    }
    for (symbol, extra, bits) in coded {
        let symbol = usize::from(symbol);
        if let (Some(code), Some(length)) = (codes.get(symbol), lengths.get(symbol)) {
            writer.put(u32::from(*code), u32::from(*length));
            writer.put(extra, bits);
        }
    }
}

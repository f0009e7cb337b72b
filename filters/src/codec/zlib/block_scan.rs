//! Where the blocks of a deflate stream (RFC 1951) lie, without the bytes that they stand for.

use std::ops::Range;

/// The order in which a block's header has the lengths of the code for lengths (RFC 1951, 3.2.7).
const CODE_LENGTH_ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Bits of a code that the table knows.
const TABLE_BITS: u32 = 10;
/// Codes in a header.
const SYMBOLS: usize = 286;
const DISTANCES: usize = 30;
const END_OF_BLOCK: usize = 256;

/// The bits of the last block. Its first bit says that it is the last. `None` if this is no stream, or its end is
/// missing.
pub(super) fn last_block_bits(stream: &[u8]) -> Option<Range<usize>> {
    let mut bits = DeflateBits { stream, at: 0 };
    loop {
        let start = bits.at;
        let last = bits.take_bits(1)? == 1;
        match bits.take_bits(2)? {
            0 => {
                bits.at = bits.at.next_multiple_of(8);
                let length = bits.take_bits(16)?;
                if bits.take_bits(16)? != length ^ 0xffff {
                    return None;
                }
                bits.skip_bits(length as usize * 8)?;
            }
            1 => {
                let length = |symbol| match symbol {
                    0..144 => 8,
                    144..256 => 9,
                    256..280 => 7,
                    _ => 8,
                };
                let symbols: [u8; 288] = std::array::from_fn(length);
                bits.skip_block_data(
                    &HuffmanCode::new(&symbols, symbol_extra)?,
                    &HuffmanCode::new(&[5; DISTANCES], distance_extra)?,
                )?;
            }
            2 => {
                let (symbols, distances) = bits.read_huffman_codes()?;
                bits.skip_block_data(&symbols.fuse_code_pairs(), &distances)?;
            }
            _ => return None,
        }
        if last {
            return Some(start..bits.at);
        }
    }
}

/// Bits that follow the code of a byte or a length, and what the code is.
fn symbol_extra(symbol: usize) -> (u32, CodeKind) {
    match symbol {
        ..END_OF_BLOCK => (0, CodeKind::Symbol),
        END_OF_BLOCK => (0, CodeKind::End),
        265..285 => ((symbol as u32 - 261) / 4, CodeKind::Distance),
        _ => (0, CodeKind::Distance),
    }
}

/// Bits that follow the code of a distance.
fn distance_extra(symbol: usize) -> (u32, CodeKind) {
    ((symbol as u32 / 2).saturating_sub(1), CodeKind::Symbol)
}

/// The bytes that follow a code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CodeKind {
    Symbol,
    Distance,
    End,
}

/// A code, and the bytes that follow it.
#[derive(Clone, Copy)]
struct CodeEntry {
    /// Bits of the code, and with those behind it; zero where there is no code.
    code: u8,
    bits: u8,
    next: CodeKind,
    symbol: u16,
}

const NO_CODE: CodeEntry = CodeEntry { code: 0, bits: 0, next: CodeKind::End, symbol: 0 };

/// A canonical code.
struct HuffmanCode {
    /// By the next bits of a stream; nothing for longer codes.
    table: [CodeEntry; 1 << TABLE_BITS],
    /// For each length the number of codes.
    counts: [u16; 16],
    /// In the order of their codes.
    entries: Vec<CodeEntry>,
}

impl HuffmanCode {
    /// `None` if there are more codes than their lengths allow.
    fn new(lengths: &[u8], extra: fn(usize) -> (u32, CodeKind)) -> Option<HuffmanCode> {
        let mut code = HuffmanCode {
            table: [NO_CODE; 1 << TABLE_BITS],
            counts: [0; 16],
            entries: Vec::with_capacity(lengths.len()),
        };
        let mut next = 0u32;
        for length in 1..=15u8 {
            for (symbol, _) in lengths.iter().enumerate().filter(|(_, of)| **of == length) {
                let (extra, then) = extra(symbol);
                let entry = CodeEntry { code: length, bits: length + extra as u8, next: then, symbol: symbol as u16 };
                if next >> length != 0 {
                    return None;
                }
                if u32::from(length) <= TABLE_BITS {
                    let first = next.reverse_bits() >> (32 - u32::from(length));
                    code.table.iter_mut().skip(first as usize).step_by(1 << length).for_each(|slot| *slot = entry);
                }
                *code.counts.get_mut(usize::from(length))? += 1;
                code.entries.push(entry);
                next += 1;
            }
            next <<= 1;
        }
        Some(code)
    }

    /// Puts bytes, and those that follow them, into one entry, if the table knows all of them.
    fn fuse_code_pairs(mut self) -> Self {
        let single = self.table;
        for (index, slot) in self.table.iter_mut().enumerate() {
            while let (CodeKind::Symbol, 1.., Some(after)) = (slot.next, slot.code, single.get(index >> slot.bits)) {
                if after.code == 0 || u32::from(slot.bits + after.code) > TABLE_BITS {
                    break;
                }
                slot.bits += after.bits;
                slot.next = after.next;
            }
        }
        self
    }

    /// The entry of the code with which these bits begin.
    #[inline]
    fn entry(&self, word: u64) -> Option<CodeEntry> {
        let entry = self.table.get(word as usize & ((1 << TABLE_BITS) - 1)).copied()?;
        if entry.code > 0 { Some(entry) } else { self.long_entry(word) }
    }

    /// As [`Self::entry`], bit by bit.
    #[cold]
    fn long_entry(&self, word: u64) -> Option<CodeEntry> {
        let (mut code, mut first, mut index) = (0u32, 0u32, 0u32);
        for (count, bit) in self.counts.iter().skip(1).zip(0..) {
            code |= (word >> bit) as u32 & 1;
            let count = u32::from(*count);
            if code < first + count {
                return self.entries.get((index + code).checked_sub(first)? as usize).copied();
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        None
    }
}

/// Takes bits from a stream.
struct DeflateBits<'a> {
    stream: &'a [u8],
    /// Bits.
    at: usize,
}

impl DeflateBits<'_> {
    /// At least the next 56 bits, zeros where the stream has ended.
    #[inline]
    fn peek_bits(&self) -> u64 {
        let rest = self.stream.get(self.at / 8..).unwrap_or_default();
        let word = rest.first_chunk::<8>().copied().unwrap_or_else(|| {
            let mut word = [0; 8];
            word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            word
        });
        u64::from_le_bytes(word) >> (self.at % 8)
    }

    #[inline]
    fn skip_bits(&mut self, bits: usize) -> Option<()> {
        self.at += bits;
        (self.at <= self.stream.len() * 8).then_some(())
    }

    fn take_bits(&mut self, bits: u32) -> Option<u64> {
        let value = self.peek_bits() & ((1 << bits) - 1);
        self.skip_bits(bits as usize)?;
        Some(value)
    }

    /// The two codes of a header.
    fn read_huffman_codes(&mut self) -> Option<(HuffmanCode, HuffmanCode)> {
        let (symbols, distances) = (self.take_bits(5)? as usize + 257, self.take_bits(5)? as usize + 1);
        let used = self.take_bits(4)? as usize + 4;
        let mut lengths = [0; 19];
        for symbol in CODE_LENGTH_ORDER.iter().take(used) {
            *lengths.get_mut(*symbol)? = self.take_bits(3)? as u8;
        }
        let code = HuffmanCode::new(&lengths, |_| (0, CodeKind::Symbol))?;
        let mut all = [0u8; SYMBOLS + DISTANCES];
        let total = symbols + distances;
        let all = all.get_mut(..total).filter(|_| symbols <= SYMBOLS && distances <= DISTANCES)?;
        let mut at = 0;
        while at < total {
            let entry = code.entry(self.peek_bits())?;
            self.skip_bits(usize::from(entry.code))?;
            let (length, times) = match entry.symbol {
                length @ 0..16 => (length as u8, 1),
                16 => (*all.get(at.checked_sub(1)?)?, 3 + self.take_bits(2)? as usize),
                17 => (0, 3 + self.take_bits(3)? as usize),
                _ => (0, 11 + self.take_bits(7)? as usize),
            };
            all.get_mut(at..at + times)?.fill(length);
            at += times;
        }
        let (symbols, distances) = all.split_at_checked(symbols)?;
        Some((HuffmanCode::new(symbols, symbol_extra)?, HuffmanCode::new(distances, distance_extra)?))
    }

    /// Goes behind the end of a block. Each step takes a bit at least.
    fn skip_block_data(&mut self, symbols: &HuffmanCode, distances: &HuffmanCode) -> Option<()> {
        loop {
            let word = self.peek_bits();
            let entry = symbols.entry(word)?;
            let mut bits = usize::from(entry.bits);
            if entry.next == CodeKind::Distance {
                bits += usize::from(distances.entry(word >> entry.bits)?.bits);
            }
            self.skip_bits(bits)?;
            if entry.next == CodeKind::End {
                return Some(());
            }
        }
    }
}

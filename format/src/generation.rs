//! Generations: the state that a live file without checksums shows. They are h5live's own addition, behind the end of
//! file that the superblock announces, where other programs do not look.

use crate::{Addr, RedoRecord, SeqlockCounter};

/// A word of eight aligned bytes, which are written and read at once. The [`RedoRecord`](crate::RedoRecord) that
/// changes the file to the next generation lies right behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation(u64);

impl Generation {
    /// Bytes of the word.
    pub const SIZE: usize = 8;

    const WORD_TAG: u64 = 0x4c48 << 48;

    /// The first generation, at rest.
    pub const FIRST: Generation = Generation(2);

    /// Where the word is in a file that announces its end at `end`.
    pub fn word_addr(end: Addr) -> Option<Addr> {
        end.get()?.checked_next_multiple_of(Self::SIZE as u64).map(Addr::new)
    }

    /// The address of the redo record in a file that announces its end at `end`.
    pub fn redo_addr(end: Addr) -> Option<Addr> {
        Self::word_addr(end)?.checked_add(Self::SIZE as u64)
    }

    /// The word with these bytes; `None` if it is none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let word = u64::from_le_bytes(*bytes.first_chunk()?);
        let value = word ^ Self::WORD_TAG;
        (value != 0 && value >> 48 == 0).then_some(Generation(value))
    }

    /// The bytes of the word.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        (self.0 | Self::WORD_TAG).to_le_bytes()
    }

    /// The number of the generation. While the file is being [changed](Self::is_changing), it is the number to which
    /// the redo record leads.
    pub fn number(self) -> u64 {
        self.0.div_ceil(2)
    }

    /// The number of the redo record that leads to this generation: the lowest 24 bits of its own.
    pub fn redo_number(self) -> SeqlockCounter {
        let [a, b, c, d, ..] = self.number().to_le_bytes();
        SeqlockCounter::new(u32::from_le_bytes([a, b, c, d]))
    }

    /// Whether a redo record is that of this generation, or of the next one. At rest, both may be needed after a power
    /// failure: of what was written after the record, any part may have outlasted it. A record of an earlier generation
    /// would take the file back. Records that bear no number were written before there were numbers.
    pub fn has_redo(self, record: &RedoRecord) -> bool {
        let next = self.next().redo_number();
        record.seqlock == SeqlockCounter::default() || [self.redo_number(), next].contains(&record.seqlock)
    }

    /// Whether the bytes of the redo record may not be in place yet.
    pub fn is_changing(self) -> bool {
        self.0 % 2 == 1
    }

    /// The next generation, with its redo record in force.
    #[must_use]
    pub fn next(self) -> Self {
        // 47 bits of flushes are enough for anybody's session; one that has more begins anew.
        let next = self.number().saturating_mul(2).saturating_add(1);
        if next >> 48 == 0 { Generation(next) } else { Generation(1) }
    }

    /// This generation, with all bytes in place.
    #[must_use]
    pub fn settled(self) -> Self {
        Generation(self.number().saturating_mul(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_is_on_its_way_and_then_at_rest() {
        let first = Generation::FIRST;
        let second = first.next();
        assert!(!first.is_changing() && second.is_changing() && !second.settled().is_changing());
        assert_eq!((first.number(), second.number(), second.settled().number()), (1, 2, 2));
        assert_eq!(second.next().number(), 3);
        assert_eq!(second.settled().next(), second.next());
        for word in [first, second, Generation((1 << 48) - 2)] {
            assert_eq!(Generation::from_bytes(&word.to_bytes()), Some(word));
        }
    }

    #[test]
    fn zeros_and_addresses_are_no_generations() {
        for word in [0, u64::MAX, 4096, Generation::WORD_TAG] {
            assert_eq!(Generation::from_bytes(&word.to_le_bytes()), None);
        }
        assert_eq!(Generation::from_bytes(&[2]), None);
    }

    #[test]
    fn a_record_counts_for_its_generation_and_the_one_before() {
        let third = Generation::FIRST.next().settled().next().settled();
        let record = |generation: Generation| RedoRecord { seqlock: generation.redo_number(), ..RedoRecord::default() };
        for shown in [third, third.settled().next()] {
            let (last, later) = (shown.settled(), shown.settled().next());
            assert!(shown.has_redo(&record(last)) && shown.has_redo(&record(later)), "{shown:?}");
            assert!(!shown.has_redo(&record(later.settled().next())), "{shown:?}");
        }
        assert!(!third.has_redo(&record(Generation::FIRST)), "it would take the file back");
        assert!(third.has_redo(&RedoRecord::default()), "records of earlier versions bear no number");
    }
}

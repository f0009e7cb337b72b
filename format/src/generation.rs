//! Generations: the state that a live file without checksums shows. They are h5live's own addition, behind the end of
//! file that the superblock announces, where other programs do not look.

use crate::{Addr, RedoRecord, SeqlockCounter};

/// A word of eight aligned bytes, which are written and read at once. The [`RedoRecord`](crate::RedoRecord) that
/// changes the file to the next generation lies right behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GenerationWord(u64);

impl GenerationWord {
    /// Bytes of the word.
    pub const SIZE: usize = 8;

    const WORD_TAG: u64 = 0x4c48 << 48;

    /// The first generation, at rest.
    pub const FIRST: GenerationWord = GenerationWord(2);

    /// Where the word is in a file that announces its end at `end_of_file`.
    pub fn word_addr(end_of_file: Addr) -> Option<Addr> {
        end_of_file.get()?.checked_next_multiple_of(Self::SIZE as u64).map(Addr::new)
    }

    /// The address of the redo record in a file that announces its end at `end_of_file`.
    pub fn redo_record_addr(end_of_file: Addr) -> Option<Addr> {
        Self::word_addr(end_of_file)?.checked_add(Self::SIZE as u64)
    }

    /// The word with these bytes; `None` if it is none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let word = u64::from_le_bytes(*bytes.first_chunk()?);
        let value = word ^ Self::WORD_TAG;
        (value != 0 && value >> 48 == 0).then_some(GenerationWord(value))
    }

    /// The bytes of the word.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        (self.0 | Self::WORD_TAG).to_le_bytes()
    }

    /// The number of the generation. While the file is being [changed](Self::is_changing), it is the number to which
    /// the redo record leads.
    pub fn generation_number(self) -> u64 {
        self.0.div_ceil(2)
    }

    /// The number of the redo record that leads to this generation: the lowest 24 bits of its own.
    pub fn redo_record_seqlock(self) -> SeqlockCounter {
        let [a, b, c, d, ..] = self.generation_number().to_le_bytes();
        SeqlockCounter::new(u32::from_le_bytes([a, b, c, d]))
    }

    /// Whether a redo record is that of this generation, or of the next one. At rest, both may be needed after a power
    /// failure: of what was written after the record, any part may have outlasted it. A record of an earlier generation
    /// would take the file back. Records that bear no number were written before there were numbers.
    pub fn accepts_redo_record(self, record: &RedoRecord) -> bool {
        let next = self.next_changing().redo_record_seqlock();
        record.seqlock == SeqlockCounter::default() || [self.redo_record_seqlock(), next].contains(&record.seqlock)
    }

    /// Whether the bytes of the redo record may not be in place yet.
    pub fn is_changing(self) -> bool {
        self.0 % 2 == 1
    }

    /// The next generation, with its redo record in force.
    #[must_use]
    pub fn next_changing(self) -> Self {
        // 47 bits of flushes are enough for anybody's session; one that has more begins anew.
        let next = self.generation_number().saturating_mul(2).saturating_add(1);
        if next >> 48 == 0 { GenerationWord(next) } else { GenerationWord(1) }
    }

    /// This generation, with all bytes in place.
    #[must_use]
    pub fn change_completed(self) -> Self {
        GenerationWord(self.generation_number().saturating_mul(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_is_on_its_way_and_then_at_rest() {
        let first = GenerationWord::FIRST;
        let second = first.next_changing();
        assert!(!first.is_changing() && second.is_changing() && !second.change_completed().is_changing());
        assert_eq!(
            (first.generation_number(), second.generation_number(), second.change_completed().generation_number()),
            (1, 2, 2)
        );
        assert_eq!(second.next_changing().generation_number(), 3);
        assert_eq!(second.change_completed().next_changing(), second.next_changing());
        for word in [first, second, GenerationWord((1 << 48) - 2)] {
            assert_eq!(GenerationWord::from_bytes(&word.to_bytes()), Some(word));
        }
    }

    #[test]
    fn zeros_and_addresses_are_no_generations() {
        for word in [0, u64::MAX, 4096, GenerationWord::WORD_TAG] {
            assert_eq!(GenerationWord::from_bytes(&word.to_le_bytes()), None);
        }
        assert_eq!(GenerationWord::from_bytes(&[2]), None);
    }

    #[test]
    fn a_record_counts_for_its_generation_and_the_one_before() {
        let third = GenerationWord::FIRST.next_changing().change_completed().next_changing().change_completed();
        let record = |generation: GenerationWord| RedoRecord {
            seqlock: generation.redo_record_seqlock(),
            ..RedoRecord::default()
        };
        for shown in [third, third.change_completed().next_changing()] {
            let (last, later) = (shown.change_completed(), shown.change_completed().next_changing());
            assert!(shown.accepts_redo_record(&record(last)) && shown.accepts_redo_record(&record(later)), "{shown:?}");
            assert!(!shown.accepts_redo_record(&record(later.change_completed().next_changing())), "{shown:?}");
        }
        assert!(!third.accepts_redo_record(&record(GenerationWord::FIRST)), "it would take the file back");
        assert!(third.accepts_redo_record(&RedoRecord::default()), "records of earlier versions bear no number");
    }
}

//! The seqlock counter: a number that shows changes of raw data in place. It is h5live's own addition: the first word
//! of a [`RedoRecord`](crate::RedoRecord), or of the rest of one.

use crate::Addr;

/// A word of eight aligned bytes, which are written and read at once, at the address of the redo records of a file. The
/// number is odd while raw data of a redo record may not be in place, and even otherwise. A reader that finds the same
/// even number before and after its read has read no raw data that was being changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeqlockCounter(u32);

impl SeqlockCounter {
    /// Bytes of the word.
    pub const SIZE: usize = 8;

    /// The first bytes of the word if no redo record is valid.
    const IDLE_TAG: [u8; 4] = *b"H5WN";

    /// The first bytes of the word if it begins a redo record.
    pub(crate) const REDO_TAG: [u8; 4] = *b"H5WI";

    /// The version of the word, and of the redo record that begins with it.
    pub(crate) const VERSION: u8 = 0;

    /// Bits of the number.
    const COUNTER_BITS: u32 = 24;

    /// The address of the word, and of the redo record that begins with it, in a file that announces its end at `end_of_file`.
    pub fn word_addr(end_of_file: Addr) -> Option<Addr> {
        end_of_file.get()?.checked_next_multiple_of(Self::SIZE as u64).map(Addr::new)
    }

    /// The counter with this number. Its lowest 24 bits count.
    pub fn new(number: u32) -> Self {
        SeqlockCounter(number & ((1 << Self::COUNTER_BITS) - 1))
    }

    /// The number.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The counter in the first bytes of a redo record, or of the rest of one; `None` if they are neither.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [a, b, c, d, version, number @ ..] = *bytes.first_chunk::<8>()?;
        let mark = [a, b, c, d];
        let [low, middle, high] = number;
        let is_word = version == Self::VERSION && (mark == Self::REDO_TAG || mark == Self::IDLE_TAG);
        is_word.then_some(SeqlockCounter(u32::from_le_bytes([low, middle, high, 0])))
    }

    /// The bytes that replace the first bytes of a redo record when it is no longer valid.
    pub fn to_idle_bytes(self) -> [u8; Self::SIZE] {
        let [a, b, c, d] = Self::IDLE_TAG;
        let [low, middle, high, _] = self.0.to_le_bytes();
        [a, b, c, d, Self::VERSION, low, middle, high]
    }

    /// Whether raw data is on its way to its place.
    pub fn is_odd(self) -> bool {
        self.0 % 2 == 1
    }

    /// The next one with raw data on its way.
    #[must_use]
    pub fn next_odd(self) -> Self {
        SeqlockCounter::new((self.0 | 1).wrapping_add(if self.is_odd() { 2 } else { 0 }))
    }

    /// This counter, with all bytes in place.
    #[must_use]
    pub fn round_up_to_even(self) -> Self {
        SeqlockCounter::new(self.0.wrapping_add(self.0 % 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RedoRecord;
    use crate::{Widths, encode};

    #[test]
    fn a_turn_is_on_its_way_and_then_at_rest() {
        let first = SeqlockCounter::default();
        let second = first.next_odd();
        assert!(!first.is_odd() && second.is_odd() && !second.round_up_to_even().is_odd());
        assert_eq!(
            [first, second, second.round_up_to_even(), second.next_odd()].map(SeqlockCounter::number),
            [0, 1, 2, 3]
        );
        assert_eq!(first.round_up_to_even(), first);
        let last = SeqlockCounter::new(u32::MAX);
        assert_eq!((last.number(), last.round_up_to_even().number(), last.next_odd().number()), ((1 << 24) - 1, 0, 1));
    }

    #[test]
    fn an_intent_shows_its_turn_and_so_does_what_is_left_of_it() {
        let counter = SeqlockCounter::new(0x12_34_56);
        let record = RedoRecord { addr: Addr::new(64), seqlock: counter, ..RedoRecord::default() };
        let bytes = encode(&record, Widths::default()).unwrap();
        assert_eq!(SeqlockCounter::from_bytes(&bytes), Some(counter));
        assert_eq!(SeqlockCounter::from_bytes(&counter.to_idle_bytes()), Some(counter));
        assert_eq!(RedoRecord::stated_size(&[counter.to_idle_bytes(), counter.to_idle_bytes()].concat()), None);
        assert_eq!(SeqlockCounter::from_bytes(&[0; 8]), None);
        assert_eq!(SeqlockCounter::from_bytes(&bytes[..7]), None);
    }

    #[test]
    fn the_word_is_aligned() {
        assert_eq!(SeqlockCounter::word_addr(Addr::new(2049)), Some(Addr::new(2056)));
        assert_eq!(SeqlockCounter::word_addr(Addr::new(2048)), Some(Addr::new(2048)));
        assert_eq!(SeqlockCounter::word_addr(Addr::UNDEFINED), None);
    }
}

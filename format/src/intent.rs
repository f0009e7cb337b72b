//! What a writer is about to change in place: h5live's own addition, behind the end of file that the superblock
//! announces, where other programs do not look.
//!
//! A write that covers several pages of memory, or sectors of a disk, may be cut off between two of them. So it is
//! first said there what is to be written; whoever finds the file later can do it again.

use crate::{Addr, Record, Result, Turn, Width, Wire};

/// The new bytes of one place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IntendedWrite {
    /// Where they belong.
    pub at: Addr,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Record for IntendedWrite {
    const NAME: &'static str = "intended write";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.addr("address", &mut self.at)?;
        let size = w.derived("size", Width::FOUR, self.bytes.len() as u64)?;
        let size = w.bounded("bytes", size, 1)?;
        w.bytes("bytes", size, &mut self.bytes)
    }
}

/// All that is about to be changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Intent {
    /// Where the intent itself is: [behind](Turn::place) the announced end of the file. One that was left elsewhere is
    /// none.
    pub place: Addr,
    /// Whether it changes raw data that others may be reading, and which such change it is.
    pub turn: Turn,
    /// What is to be written, in this order.
    pub writes: Vec<IntendedWrite>,
}

impl Intent {
    /// The bytes with which an intent begins.
    pub const SIGNATURE: [u8; 4] = *b"H5WI";

    pub(crate) const VERSION: u8 = 0;

    /// Bytes of the beginning of an intent, which tell its size.
    pub const HEAD: usize = 16;

    /// The size of an intent, in bytes, which begins with these [`Intent::HEAD`] bytes; `None` if it is none.
    pub fn stated_size(head: &[u8]) -> Option<u64> {
        let size = head.get(8..16)?.first_chunk()?;
        head.starts_with(&Self::SIGNATURE).then(|| u64::from_le_bytes(*size))
    }

    fn size(&self, offset: usize) -> u64 {
        let fixed = Self::HEAD.saturating_add(offset).saturating_add(8);
        let each = |write: &IntendedWrite| write.bytes.len().saturating_add(offset).saturating_add(4);
        self.writes.iter().map(each).fold(fixed, usize::saturating_add) as u64
    }
}

impl Record for Intent {
    const NAME: &'static str = "intent";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.magic("H5WI")?;
        w.version(Self::VERSION..=Self::VERSION, &mut { Self::VERSION })?;
        let mut turn = self.turn.number().into();
        w.uint("turn", Width::THREE, &mut turn)?;
        self.turn = Turn::new(u32::try_from(turn).unwrap_or(0));
        let offset = w.widths().offset.bytes();
        let size = w.derived("size", Width::EIGHT, self.size(offset))?;
        w.addr("own address", &mut self.place)?;
        let count = w.derived("writes", Width::FOUR, self.writes.len() as u64)?;
        w.list("writes", count, offset.saturating_add(4), &mut self.writes)?;
        let used = w.position().saturating_add(4) as u64;
        w.require("size", used == size, size, "the size is that of the intent")?;
        w.checksum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Widths, decode, encode};

    fn intent() -> Intent {
        let write = |at, bytes: &[u8]| IntendedWrite { at: Addr::new(at), bytes: bytes.to_vec() };
        Intent { place: Addr::new(2048), turn: Turn::new(7), writes: vec![write(96, &[1, 2, 3]), write(400, &[4; 20])] }
    }

    #[test]
    fn comes_back_from_bytes() {
        let bytes = encode(&intent(), Widths::default()).unwrap();
        assert_eq!(Intent::stated_size(&bytes), Some(bytes.len() as u64));
        assert_eq!(decode::<Intent>(&bytes, Widths::default()).unwrap(), intent());
    }

    #[test]
    fn refuses_every_change_of_a_bit_and_every_cut() {
        let bytes = encode(&intent(), Widths::default()).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode::<Intent>(&damaged, Widths::default()).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(decode::<Intent>(&bytes[..len], Widths::default()).is_err(), "{len} bytes");
        }
    }
}

//! Redo records: the new bytes of changes in place. They are h5live's own addition, behind the end of file that the
//! superblock announces, where other programs do not look.
//!
//! A write of several pages of memory, or of several sectors of a disk, may be cut off between two of them. So the
//! bytes are first written to a redo record. A process that opens the file later can repeat the write.

use crate::{Addr, Record, Result, SeqlockCounter, Width, Wire};

/// The new bytes of one place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RedoWrite {
    /// The address where the bytes belong.
    pub at: Addr,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Record for RedoWrite {
    const NAME: &'static str = "redo write";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.addr("address", &mut self.at)?;
        let size = w.derived_uint("size", Width::FOUR, self.bytes.len() as u64)?;
        let size = w.bounded_count("bytes", size, 1)?;
        w.bytes("bytes", size, &mut self.bytes)
    }
}

/// All that is about to be changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RedoRecord {
    /// The address of the redo record itself: [behind](SeqlockCounter::word_addr) the announced end of the file. A
    /// record anywhere else is not valid.
    pub addr: Addr,
    /// Whether it changes raw data that others may be reading, and which such change it is.
    pub seqlock: SeqlockCounter,
    /// The number of the record: another one for each, so that a record whose write was cut off is none, whatever lay
    /// behind the part that was written. Zero in records that were written before there were numbers.
    pub serial: u32,
    /// The writes to repeat, in this order.
    pub writes: Vec<RedoWrite>,
}

impl RedoRecord {
    /// The first bytes of a redo record.
    pub const SIGNATURE: [u8; 4] = SeqlockCounter::REDO_TAG;

    /// Bytes of the head of a redo record, which states its size.
    pub const HEAD_BYTES: usize = 16;

    /// The size in bytes of a redo record that begins with these [`RedoRecord::HEAD_BYTES`] bytes; `None` if they are
    /// no head.
    pub fn stated_size(head: &[u8]) -> Option<u64> {
        let size = head.get(8..12)?.first_chunk()?;
        head.starts_with(&Self::SIGNATURE).then(|| u32::from_le_bytes(*size).into())
    }

    /// The number of the redo record that begins with these bytes, or that did before it was made invalid; zero if they
    /// are no head.
    pub fn stated_serial_even_if_idle(head: &[u8]) -> u32 {
        let serial = head.get(12..Self::HEAD_BYTES).and_then(|bytes| bytes.first_chunk());
        serial.filter(|_| SeqlockCounter::from_bytes(head).is_some()).map_or(0, |serial| u32::from_le_bytes(*serial))
    }

    fn size(&self, offset: usize) -> u64 {
        let fixed = Self::HEAD_BYTES.saturating_add(offset).saturating_add(8);
        let each = |write: &RedoWrite| write.bytes.len().saturating_add(offset).saturating_add(4);
        self.writes.iter().map(each).fold(fixed, usize::saturating_add) as u64
    }
}

impl Record for RedoRecord {
    const NAME: &'static str = "redo record";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.magic("H5WI")?;
        w.version(SeqlockCounter::VERSION..=SeqlockCounter::VERSION, &mut { SeqlockCounter::VERSION })?;
        let mut counter = self.seqlock.number().into();
        w.uint("seqlock counter", Width::THREE, &mut counter)?;
        self.seqlock = SeqlockCounter::new(u32::try_from(counter).unwrap_or(0));
        let offset = w.widths().offset.bytes();
        let size = w.derived_uint("size", Width::FOUR, self.size(offset))?;
        let mut serial = self.serial.into();
        w.uint("serial", Width::FOUR, &mut serial)?;
        self.serial = u32::try_from(serial).unwrap_or(0);
        w.addr("own address", &mut self.addr)?;
        let count = w.derived_uint("writes", Width::FOUR, self.writes.len() as u64)?;
        w.list("writes", count, offset.saturating_add(4), &mut self.writes)?;
        let used = w.position().saturating_add(4) as u64;
        w.require("size", used == size, size, "the size is that of the redo record")?;
        w.checksum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Widths, decode, encode};

    fn sample() -> RedoRecord {
        let write = |at, bytes: &[u8]| RedoWrite { at: Addr::new(at), bytes: bytes.to_vec() };
        RedoRecord {
            addr: Addr::new(2048),
            seqlock: SeqlockCounter::new(7),
            serial: 0x0102_0304,
            writes: vec![write(96, &[1, 2, 3]), write(400, &[4; 20])],
        }
    }

    #[test]
    fn comes_back_from_bytes() {
        let bytes = encode(&sample(), Widths::default()).unwrap();
        assert_eq!(RedoRecord::stated_size(&bytes), Some(bytes.len() as u64));
        assert_eq!(RedoRecord::stated_serial_even_if_idle(&bytes), 0x0102_0304);
        let idle = [&SeqlockCounter::new(8).to_idle_bytes(), &bytes[8..]].concat();
        assert_eq!(RedoRecord::stated_serial_even_if_idle(&idle), 0x0102_0304, "it outlasts the record");
        assert_eq!(RedoRecord::stated_serial_even_if_idle(&[0; 16]), 0);
        assert_eq!(decode::<RedoRecord>(&bytes, Widths::default()).unwrap(), sample());
    }

    #[test]
    fn refuses_every_change_of_a_bit_and_every_cut() {
        let bytes = encode(&sample(), Widths::default()).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode::<RedoRecord>(&damaged, Widths::default()).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(decode::<RedoRecord>(&bytes[..len], Widths::default()).is_err(), "{len} bytes");
        }
    }
}

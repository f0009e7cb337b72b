//! The driver information block, to which superblocks of versions 0 and 1 lead (format specification 4.0, II.B).

use crate::{Record, Result, Width, Wire};

/// Parameters of the virtual file driver.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DriverInfoBlock {
    /// The driver: `NCSAfami`, `NCSAmult`, or another.
    pub driver: [u8; 8],
    /// The data of the driver.
    pub data: Vec<u8>,
}

impl Record for DriverInfoBlock {
    const NAME: &'static str = "driver info block";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(0..=0, &mut 0)?;
        w.reserved(3)?;
        let len = w.derived_uint("size", Width::FOUR, self.data.len() as u64)?;
        w.byte_array("driver", &mut self.driver)?;
        let len = w.bounded_count("data", len, 1)?;
        w.bytes("data", len, &mut self.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Widths, decode, encode};

    #[test]
    fn comes_back_from_bytes() {
        let block = DriverInfoBlock { driver: *b"NCSAfami", data: vec![1, 2, 3, 4, 5, 6, 7, 8] };
        let bytes = encode(&block, Widths::default()).unwrap();
        assert_eq!(bytes.len(), 24);
        assert_eq!(decode::<DriverInfoBlock>(&bytes, Widths::default()).unwrap(), block);
    }
}

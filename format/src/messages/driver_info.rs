//! Parameters of the virtual file driver (format specification 4.0, IV.A.2.u).

use super::{Message, MessageType};
use crate::{Record, Result, Wire};

/// The driver info message, in the superblock extension.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DriverInfo {
    /// The driver: `NCSAfami`, `NCSAmult`, or another.
    pub driver: [u8; 8],
    /// The data of the driver.
    pub data: Vec<u8>,
}

impl Record for DriverInfo {
    const NAME: &'static str = "driver info";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(0..=0, &mut 0)?;
        w.byte_array("driver", &mut self.driver)?;
        let len = super::count_u16(w, "length", self.data.len())?;
        let len = w.derived_u16("length", len)?;
        w.bytes("data", len.into(), &mut self.data)
    }
}

impl Message for DriverInfo {
    const TYPE: MessageType = MessageType::DRIVER_INFO;
}

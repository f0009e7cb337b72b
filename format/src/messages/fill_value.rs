//! The value of elements that were never written (format specification 4.0, IV.A.2.e and f).

use h5live_model::{AllocationTime, Fill, FillTime, FillValue};

use super::{Message, MessageType};
use crate::{Fault, LibVer, Record, Result, Width, Wire};

/// The old fill value message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FillValueOldMessage {
    /// The bytes of an element in the file's datatype; empty if there is no fill value.
    pub value: Vec<u8>,
}

impl FillValueOldMessage {
    /// The fill value with the times that the message implies.
    pub fn fill(&self) -> Fill {
        let value = if self.value.is_empty() { FillValue::Undefined } else { FillValue::Value(self.value.clone()) };
        Fill { allocation: AllocationTime::Late, time: FillTime::IfSet, value }
    }
}

fn wire_fill_bytes(w: &mut impl Wire, bytes: &mut Vec<u8>) -> Result<()> {
    let size = w.derived_uint("size", Width::FOUR, bytes.len() as u64)?;
    let size = w.bounded_count("size", size, 1)?;
    w.bytes("fill value", size, bytes)
}

impl Record for FillValueOldMessage {
    const NAME: &'static str = "old fill value";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        wire_fill_bytes(w, &mut self.value)
    }
}

impl Message for FillValueOldMessage {
    const TYPE: MessageType = MessageType::FILL_VALUE_OLD;
}

/// The fill value message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FillValueMessage {
    /// 1 to 3.
    pub version: u8,
    /// The value, and when storage is allocated and the value written.
    pub fill: Fill,
}

const UNDEFINED: u8 = 0x10;
const PRESENT: u8 = 0x20;

impl FillValueMessage {
    /// The message that a file of this profile holds.
    pub fn new(profile: LibVer, fill: Fill) -> Self {
        FillValueMessage { version: Self::version_for(profile), fill }
    }

    /// The version in which a file of this profile holds fill values.
    pub fn version_for(profile: LibVer) -> u8 {
        if profile == LibVer::Earliest { 2 } else { 3 }
    }

    fn times(&self) -> (u8, u8) {
        let allocation = match self.fill.allocation {
            AllocationTime::Early => 1,
            AllocationTime::Late => 2,
            AllocationTime::Incremental => 3,
        };
        let time = match self.fill.time {
            FillTime::Allocation => 0,
            FillTime::Never => 1,
            FillTime::IfSet => 2,
        };
        (allocation, time)
    }

    fn set_times(&mut self, w: &impl Wire, allocation: u8, time: u8) -> Result<()> {
        self.fill.allocation = match allocation {
            0 => AllocationTime::default(),
            1 => AllocationTime::Early,
            2 => AllocationTime::Late,
            3 => AllocationTime::Incremental,
            found => {
                let rule = "allocation time is 1 (early), 2 (late) or 3 (incremental)";
                return Err(w.fault("allocation time", Fault::InvalidValue { found: found.into(), rule }));
            }
        };
        self.fill.time = match time {
            0 => FillTime::Allocation,
            1 => FillTime::Never,
            2 => FillTime::IfSet,
            found => {
                let rule = "fill time is 0 (allocation), 1 (never) or 2 (if set)";
                return Err(w.fault("fill time", Fault::InvalidValue { found: found.into(), rule }));
            }
        };
        Ok(())
    }

    fn wire_old_versions(&mut self, w: &mut impl Wire) -> Result<()> {
        let (allocation, time) = self.times();
        let allocation = w.derived_u8("allocation time", allocation)?;
        let time = w.derived_u8("fill time", time)?;
        self.set_times(w, allocation, time)?;
        let defined = u8::from(self.fill.value != FillValue::Undefined);
        if w.derived_u8("defined", defined)? == 0 {
            self.fill.value = FillValue::Undefined;
            return Ok(());
        }
        let mut bytes = match &mut self.fill.value {
            FillValue::Value(bytes) => std::mem::take(bytes),
            _ => Vec::new(),
        };
        let size = w.derived_uint("size", Width::FOUR, bytes.len() as u64)?;
        self.fill.value = if size == 0 {
            FillValue::Default
        } else if size > u64::from(i32::MAX.cast_unsigned()) {
            FillValue::Undefined
        } else {
            let size = w.bounded_count("size", size, 1)?;
            w.bytes("fill value", size, &mut bytes)?;
            FillValue::Value(bytes)
        };
        Ok(())
    }

    fn wire_version_3(&mut self, w: &mut impl Wire) -> Result<()> {
        let (allocation, time) = self.times();
        let state = match &self.fill.value {
            FillValue::Default => 0,
            FillValue::Undefined => UNDEFINED,
            FillValue::Value(_) => PRESENT,
        };
        let flags = w.derived_u8("flags", allocation | (time << 2) | state)?;
        w.require("flags", flags & 0xc0 == 0, flags.into(), "bits 6 and 7 are zero")?;
        self.set_times(w, flags & 0x03, (flags >> 2) & 0x03)?;
        match flags & (UNDEFINED | PRESENT) {
            0 => self.fill.value = FillValue::Default,
            UNDEFINED => self.fill.value = FillValue::Undefined,
            PRESENT => {
                let mut bytes = match &mut self.fill.value {
                    FillValue::Value(bytes) => std::mem::take(bytes),
                    _ => Vec::new(),
                };
                wire_fill_bytes(w, &mut bytes)?;
                self.fill.value = FillValue::Value(bytes);
            }
            both => {
                let rule = "a fill value is not both undefined and present";
                return Err(w.fault("flags", Fault::InvalidValue { found: both.into(), rule }));
            }
        }
        Ok(())
    }
}

impl Record for FillValueMessage {
    const NAME: &'static str = "fill value";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(1..=3, &mut self.version)?;
        if self.version < 3 { self.wire_old_versions(w) } else { self.wire_version_3(w) }
    }
}

impl Message for FillValueMessage {
    const TYPE: MessageType = MessageType::FILL_VALUE;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Widths, decode, encode};

    #[test]
    fn comes_back_from_bytes() {
        let widths = Widths::default();
        for value in [FillValue::Default, FillValue::Undefined, FillValue::Value(vec![1, 2, 3])] {
            for version in 1..=3 {
                for (allocation, time) in
                    [(AllocationTime::Early, FillTime::Allocation), (AllocationTime::Late, FillTime::Never)]
                {
                    let fill = Fill { allocation, time, value: value.clone() };
                    let message = FillValueMessage { version, fill };
                    let bytes = encode(&message, widths).unwrap();
                    assert_eq!(decode::<FillValueMessage>(&bytes, widths).unwrap(), message);
                }
            }
        }
    }

    #[test]
    fn refuses_a_value_that_is_both_undefined_and_present() {
        let error = decode::<FillValueMessage>(&[3, 0x3a, 0, 0, 0, 0], Widths::default()).unwrap_err();
        assert!(matches!(error.fault, Fault::InvalidValue { found: 0x30, .. }), "{error}");
    }
}

//! The fill value of a dataset's property list, with its times.

use h5live_format::{Fault, Record, Result as WireResult, Width, Widths, Wire, encoded_len};
use h5live_model::{AllocationTime, Datatype, Fill, FillTime, FillValue, Layout};

use super::datatype::EncodedDatatype;
use super::property_list::wire_count;

/// The size that stands for an undefined fill value.
const UNDEFINED: u64 = u64::MAX;

/// The fill value, and the type of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EncodedFill {
    /// When storage is allocated; `None` for the default of the layout.
    pub allocation: Option<AllocationTime>,
    pub time: FillTime,
    pub value: FillValue,
    pub datatype: Datatype,
}

impl Default for EncodedFill {
    fn default() -> Self {
        EncodedFill {
            allocation: Some(AllocationTime::Late),
            time: FillTime::IfSet,
            value: FillValue::Default,
            datatype: Datatype::default(),
        }
    }
}

/// When storage is allocated if the user has not said it.
pub(super) fn default_allocation(layout: &Layout) -> AllocationTime {
    match layout {
        Layout::Compact => AllocationTime::Early,
        Layout::Contiguous | Layout::External(_) => AllocationTime::Late,
        Layout::Chunked(_) | Layout::Virtual(_) => AllocationTime::Incremental,
    }
}

/// Whether storage is allocated then if the user has not said it. Mappings of a virtual dataset leave the time as it was.
pub(super) fn is_default_allocation(layout: &Layout, time: AllocationTime) -> bool {
    time == default_allocation(layout) || (matches!(layout, Layout::Virtual(_)) && time == AllocationTime::Late)
}

impl EncodedFill {
    /// The fill value of a dataset. One that leads elsewhere is undefined here, as the connector has it: its bytes are
    /// in the record of the fill value.
    pub fn new(fill: &Fill, datatype: &Datatype) -> Self {
        let value = match &fill.value {
            FillValue::Value(_) if datatype.has_vlen_or_references() => FillValue::Undefined,
            // The library has no value of no bytes.
            FillValue::Value(bytes) if bytes.is_empty() => FillValue::Default,
            value => value.clone(),
        };
        EncodedFill { allocation: Some(fill.allocation), time: fill.time, value, datatype: datatype.clone() }
    }

    fn wire_times(&mut self, w: &mut impl Wire) -> WireResult<()> {
        let allocation = match self.allocation {
            None => 0,
            Some(AllocationTime::Early) => 1,
            Some(AllocationTime::Late) => 2,
            Some(AllocationTime::Incremental) => 3,
        };
        self.allocation = match w.derived_u8("allocation time", allocation)? {
            0 => None,
            1 => Some(AllocationTime::Early),
            2 => Some(AllocationTime::Late),
            3 => Some(AllocationTime::Incremental),
            found => {
                let rule = "0 (default), 1 (early), 2 (late) or 3 (incremental)";
                return Err(w.fault("allocation time", Fault::InvalidValue { found: found.into(), rule }));
            }
        };
        let time = match self.time {
            FillTime::Allocation => 0,
            FillTime::Never => 1,
            FillTime::IfSet => 2,
        };
        self.time = match w.derived_u8("fill time", time)? {
            0 => FillTime::Allocation,
            1 => FillTime::Never,
            2 => FillTime::IfSet,
            found => {
                let rule = "0 (allocation), 1 (never) or 2 (if set)";
                return Err(w.fault("fill time", Fault::InvalidValue { found: found.into(), rule }));
            }
        };
        Ok(())
    }
}

impl Record for EncodedFill {
    const NAME: &'static str = "fill value property";

    fn wire(&mut self, w: &mut impl Wire) -> WireResult<()> {
        self.wire_times(w)?;
        let mut bytes = match &mut self.value {
            FillValue::Value(bytes) => std::mem::take(bytes),
            _ => Vec::new(),
        };
        let size = match &self.value {
            FillValue::Undefined => UNDEFINED,
            FillValue::Default => 0,
            FillValue::Value(_) => bytes.len() as u64,
        };
        let size = w.derived_uint("size", Width::EIGHT, size)?;
        if size == 0 || size.cast_signed() < 0 {
            self.value = if size == 0 { FillValue::Default } else { FillValue::Undefined };
            return Ok(());
        }
        let size = w.bounded_count("size", size, 1)?;
        w.bytes("fill value", size, &mut bytes)?;
        self.value = FillValue::Value(bytes);
        let mut datatype = EncodedDatatype::new(&self.datatype);
        // What cannot be encoded fails below, with the name of the field.
        let length = if w.is_decoding() { 0 } else { encoded_len(&datatype, Widths::default()).unwrap_or(0) };
        let length = wire_count(w, "datatype length", length, 1)?;
        let start = w.position();
        w.record(&mut datatype)?;
        let used = w.position().saturating_sub(start);
        w.require("datatype length", length == used, length as u64, "that of the datatype")?;
        self.datatype = datatype.container_datatype();
        Ok(())
    }
}

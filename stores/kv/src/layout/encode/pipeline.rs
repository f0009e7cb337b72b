//! The filters of a property list. Their names are not in it: the library looks them up.

use h5live_format::{Fault, Record, Result as WireResult, Width, Wire};
use h5live_model::{FilterSpec, FilterSpecs};

use super::property_list::wire_count;

/// Bytes of a filter's name, where there is one.
const NAME_BYTES: usize = 12;
/// Most filters of a pipeline (`H5Z_MAX_NFILTERS`).
const MAX_FILTERS: usize = 32;
/// The flag of a filter that may be left out where it fails.
const OPTIONAL: u32 = 1;

/// One filter.
#[derive(Debug, Clone, Default)]
struct EncodedFilter(FilterSpec);

impl Record for EncodedFilter {
    const NAME: &'static str = "filter";

    fn wire(&mut self, w: &mut impl Wire) -> WireResult<()> {
        let id = w.derived_uint("filter number", Width::FOUR, self.0.id.into())?;
        let fault = Fault::InvalidValue { found: id, rule: "at most 65535" };
        self.0.id = u16::try_from(id).map_err(|_| w.fault("filter number", fault))?;
        let flags = w.derived_uint("flags", Width::FOUR, if self.0.optional { OPTIONAL.into() } else { 0 })?;
        w.require("flags", flags <= OPTIONAL.into(), flags, "only the flag 1 exists")?;
        self.0.optional = flags != 0;
        match w.derived_u8("has a name", 0)? {
            0 => {}
            1 => w.reserved(NAME_BYTES)?,
            found => w.require("has a name", false, found.into(), "0 or 1")?,
        }
        let count = wire_count(w, "parameters", self.0.params.len(), 4)?;
        if w.is_decoding() {
            self.0.params.resize(count, 0);
        }
        self.0.params.iter_mut().try_for_each(|param| w.u32("parameter", param))
    }
}

/// The filters, without names.
pub(super) fn wire_pipeline(w: &mut impl Wire, filters: &mut FilterSpecs) -> WireResult<()> {
    let bytes = w.derived_u8("size of numbers", 4)?;
    w.require("size of numbers", bytes == 4, bytes.into(), "4")?;
    let count = wire_count(w, "filters", filters.len(), 10)?;
    w.require("filters", count <= MAX_FILTERS, count as u64, "at most 32")?;
    if w.is_decoding() {
        filters.clear();
        filters.resize(count, FilterSpec::default());
    }
    for filter in filters {
        let mut encoded = EncodedFilter(std::mem::take(filter));
        w.record(&mut encoded)?;
        *filter = encoded.0;
    }
    Ok(())
}

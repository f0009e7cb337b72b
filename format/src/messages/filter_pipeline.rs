//! The filters of a dataset's chunks or of a group's heap (format specification 4.0, IV.A.2.l).

use h5live_model::{FilterSpec, FilterSpecs};

use super::{Message, MessageType};
use crate::{Fault, LibVer, Record, Result, Wire};

/// The filter pipeline message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilterPipelineMessage {
    /// 1 or 2.
    pub version: u8,
    /// The filters, in the order in which they are applied on writing.
    pub filters: FilterSpecs,
}

/// Most filters of a pipeline.
const MAX_FILTERS: u64 = 32;

/// The first filter number whose name version 2 stores.
const FIRST_REGISTERED: u16 = 256;

const OPTIONAL: u16 = 0x0001;

impl FilterPipelineMessage {
    /// The message that a file of this profile holds.
    pub fn new(profile: LibVer, filters: FilterSpecs) -> Self {
        FilterPipelineMessage { version: Self::version_for(profile), filters }
    }

    /// The version in which a file of this profile holds pipelines.
    pub fn version_for(profile: LibVer) -> u8 {
        if profile == LibVer::Earliest { 1 } else { 2 }
    }
}

/// The filter with the version of its pipeline.
#[derive(Default)]
struct VersionedFilter {
    version: u8,
    spec: FilterSpec,
}

impl VersionedFilter {
    fn wire_name(&mut self, w: &mut impl Wire, stored: usize) -> Result<()> {
        let end = w.position().saturating_add(stored);
        let mut name = self.spec.name.take().unwrap_or_default();
        w.nul_terminated_name("name", &mut name)?;
        self.spec.name = Some(name);
        let padding = end.checked_sub(w.position());
        let fault = Fault::TooLarge { found: w.position() as u64, limit: end as u64 };
        match padding.ok_or_else(|| w.fault("name length", fault))? {
            0 => Ok(()),
            padding => w.reserved(padding),
        }
    }
}

impl Record for VersionedFilter {
    const NAME: &'static str = "filter";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.u16("filter number", &mut self.spec.id)?;
        let named = self.version == 1 || self.spec.id >= FIRST_REGISTERED;
        let name_length = if named {
            let bytes = self.spec.name.as_ref().map_or(0, |name| name.as_bytes().len().saturating_add(1));
            let stored = if self.version == 1 { super::padded_len(bytes) } else { bytes };
            let length = super::count_u16(w, "name length", stored)?;
            w.derived_u16("name length", length)?
        } else {
            0
        };
        let aligned = self.version != 1 || name_length % 8 == 0;
        w.require("name length", aligned, name_length.into(), "a multiple of 8 in version 1")?;
        let flags = w.derived_u16("flags", if self.spec.optional { OPTIONAL } else { 0 })?;
        self.spec.optional = flags & OPTIONAL != 0;
        let params = super::count_u16(w, "parameters", self.spec.params.len())?;
        let params = w.derived_u16("parameters", params)?;
        if name_length > 0 {
            self.wire_name(w, name_length.into())?;
        } else {
            self.spec.name = None;
        }
        let count = w.bounded_count("parameters", params.into(), 4)?;
        self.spec.params.resize(if w.is_decoding() { count } else { self.spec.params.len() }, 0);
        self.spec.params.iter_mut().try_for_each(|param| w.u32("parameter", param))?;
        if self.version == 1 && params % 2 == 1 { w.reserved(4) } else { Ok(()) }
    }
}

impl Record for FilterPipelineMessage {
    const NAME: &'static str = "filter pipeline";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(1..=2, &mut self.version)?;
        let count = u8::try_from(self.filters.len()).unwrap_or(u8::MAX);
        let count = w.derived_u8("filters", count)?;
        if u64::from(count) > MAX_FILTERS {
            return Err(w.fault("filters", Fault::TooLarge { found: count.into(), limit: MAX_FILTERS }));
        }
        if self.version == 1 {
            w.reserved(6)?;
        }
        self.filters.resize(count.into(), FilterSpec::default());
        for spec in &mut self.filters {
            let mut filter = VersionedFilter { version: self.version, spec: std::mem::take(spec) };
            w.record(&mut filter)?;
            *spec = filter.spec;
        }
        Ok(())
    }
}

impl Message for FilterPipelineMessage {
    const TYPE: MessageType = MessageType::FILTER_PIPELINE;
}

#[cfg(test)]
mod tests {
    use h5live_model::Name;

    use super::*;
    use crate::{Widths, decode, encode};

    fn sample(version: u8) -> FilterPipelineMessage {
        let name = |name: &str| Some(Name::from(name));
        FilterPipelineMessage {
            version,
            filters: vec![
                FilterSpec { id: 2, optional: true, name: name("shuffle").filter(|_| version == 1), params: vec![4] },
                FilterSpec { id: 1, optional: false, name: None, params: vec![6, 7] },
                FilterSpec { id: 32001, optional: true, name: name("blosc"), params: vec![] },
            ],
        }
    }

    #[test]
    fn comes_back_from_bytes() {
        for version in [1, 2] {
            let bytes = encode(&sample(version), Widths::default()).unwrap();
            assert_eq!(decode::<FilterPipelineMessage>(&bytes, Widths::default()).unwrap(), sample(version));
        }
    }

    #[test]
    fn refuses_more_than_32_filters() {
        let message = FilterPipelineMessage { version: 2, filters: vec![FilterSpec::default(); 33] };
        assert!(encode(&message, Widths::default()).is_err());
        assert!(decode::<FilterPipelineMessage>(&[2, 33], Widths::default()).is_err());
    }

    #[test]
    fn refuses_a_name_that_runs_over_its_length() {
        let bytes = [2, 1, 0, 1, 2, 0, 0, 0, 0, 0, b'a', b'b', b'c', 0];
        let error = decode::<FilterPipelineMessage>(&bytes, Widths::default()).unwrap_err();
        assert_eq!(error.field, "name length");
    }
}

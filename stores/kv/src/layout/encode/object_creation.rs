//! The properties with which every object is created, and the classes that have no others.

use h5live_format::{Fault, Result as WireResult, Wire};
use h5live_model::{CreationOrder, FilterSpecs, LinkOrAttributeStorageSpec};

use super::pipeline::wire_pipeline;
use super::property_list::{PropertyClass, wire_unsigned};

/// The properties with which every object is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectCreationProperties {
    /// How its attributes are kept.
    pub attribute_storage: LinkOrAttributeStorageSpec,
    /// Whether it is kept when it was touched.
    pub track_times: bool,
    /// The filters. Their names are not encoded.
    pub filters: FilterSpecs,
}

impl Default for ObjectCreationProperties {
    /// The library's defaults: times are kept.
    fn default() -> Self {
        ObjectCreationProperties {
            attribute_storage: LinkOrAttributeStorageSpec::default(),
            track_times: true,
            filters: FilterSpecs::new(),
        }
    }
}

pub(super) const PIPELINE: &str = "pline";
const MIN_DENSE: &str = "min dense attr";
const MAX_COMPACT: &str = "max compact attr";
const HEADER_FLAGS: &str = "object header flags";

/// The flags of object headers that are properties.
const ORDER_TRACKED: u8 = 0x04;
const ORDER_INDEXED: u8 = 0x08;
const TIMES: u8 = 0x20;

impl ObjectCreationProperties {
    /// The names of the properties, by hash.
    pub(super) const NAMES: &'static [&'static str] = &[PIPELINE, MIN_DENSE, MAX_COMPACT, HEADER_FLAGS];

    pub(super) fn is_set(&self, property: &str) -> bool {
        let default = LinkOrAttributeStorageSpec::default();
        match property {
            PIPELINE => !self.filters.is_empty(),
            MIN_DENSE | MAX_COMPACT => {
                (self.attribute_storage.min_dense, self.attribute_storage.max_compact)
                    != (default.min_dense, default.max_compact)
            }
            HEADER_FLAGS => self.attribute_storage.order != CreationOrder::Untracked || !self.track_times,
            _ => false,
        }
    }

    pub(super) fn wire_value(&mut self, property: &str, w: &mut impl Wire) -> WireResult<()> {
        match property {
            PIPELINE => wire_pipeline(w, &mut self.filters),
            MIN_DENSE => wire_phase_change(w, &mut self.attribute_storage.min_dense),
            MAX_COMPACT => wire_phase_change(w, &mut self.attribute_storage.max_compact),
            _ => self.wire_header_flags(w),
        }
    }

    fn wire_header_flags(&mut self, w: &mut impl Wire) -> WireResult<()> {
        let order = match self.attribute_storage.order {
            CreationOrder::Untracked => 0,
            CreationOrder::Tracked => ORDER_TRACKED,
            CreationOrder::Indexed => ORDER_TRACKED | ORDER_INDEXED,
        };
        let flags = w.derived_u8("header flags", order | if self.track_times { TIMES } else { 0 })?;
        self.track_times = flags & TIMES != 0;
        self.attribute_storage.order = match flags & !TIMES {
            0 => CreationOrder::Untracked,
            ORDER_TRACKED => CreationOrder::Tracked,
            0x0c => CreationOrder::Indexed,
            _ => {
                let rule = "only the flags 4, 8 and 32 are properties, and an indexed order is tracked";
                return Err(w.fault("header flags", Fault::InvalidValue { found: flags.into(), rule }));
            }
        };
        Ok(())
    }
}

/// A number of attributes, which the library keeps as an `unsigned`.
fn wire_phase_change(w: &mut impl Wire, value: &mut u16) -> WireResult<()> {
    let mut wide = u32::from(*value);
    wire_unsigned(w, "phase change", &mut wide)?;
    let fault = Fault::InvalidValue { found: wide.into(), rule: "at most 65535" };
    *value = u16::try_from(wide).map_err(|_| w.fault("phase change", fault))?;
    Ok(())
}

/// The properties of a committed datatype.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DatatypeCreationProperties(pub ObjectCreationProperties);

/// The properties of a map.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MapCreationProperties(pub ObjectCreationProperties);

impl PropertyClass for DatatypeCreationProperties {
    const CLASS: u8 = 11;
    const LEVELS: &'static [&'static [&'static str]] = &[ObjectCreationProperties::NAMES];

    fn is_encoded_before_defaults(&self, property: &str) -> bool {
        self.0.is_set(property)
    }

    fn wire_value(&mut self, property: &str, w: &mut impl Wire) -> WireResult<()> {
        self.0.wire_value(property, w)
    }
}

impl PropertyClass for MapCreationProperties {
    const CLASS: u8 = 20;
    const LEVELS: &'static [&'static [&'static str]] = &[ObjectCreationProperties::NAMES];

    fn is_encoded_before_defaults(&self, property: &str) -> bool {
        self.0.is_set(property)
    }

    fn wire_value(&mut self, property: &str, w: &mut impl Wire) -> WireResult<()> {
        self.0.wire_value(property, w)
    }
}

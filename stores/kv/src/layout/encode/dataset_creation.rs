//! The properties of a dataset.

use h5live_format::{Record, Result as WireResult, Wire};
use h5live_model::{Dataspace, Datatype, ExternalPiece, Fill, Layout};

use super::dataset_layout::EncodedLayout;
use super::external_files::wire_external_files;
use super::fill::{EncodedFill, default_allocation, is_default_allocation};
use super::object_creation::{ObjectCreationProperties, PIPELINE};
use super::property_list::{PropertyClass, wire_unsigned};

/// The properties of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DatasetCreationProperties {
    /// Those of every object.
    pub object: ObjectCreationProperties,
    layout: EncodedLayout,
    external: Vec<ExternalPiece>,
    fill: EncodedFill,
    /// Whether the user has said when storage is allocated.
    states_allocation: bool,
    /// Whether the library is to make the header as small as it can.
    minimized_header: bool,
}

const LAYOUT: &str = "layout";
const EXTERNAL_FILES: &str = "efl";
const MINIMIZE_HEADER: &str = "dset_oh_minimize";
const ALLOCATION_STATE: &str = "alloc_time_state";
const FILL_VALUE: &str = "fill_value";

impl DatasetCreationProperties {
    /// The properties of a dataset of this type and shape.
    pub fn new(
        object: ObjectCreationProperties,
        layout: &Layout,
        fill: &Fill,
        datatype: &Datatype,
        space: &Dataspace,
    ) -> Self {
        let (encoded, external) = match layout {
            Layout::External(files) => (Layout::Contiguous, files.clone()),
            other => (other.clone(), Vec::new()),
        };
        DatasetCreationProperties {
            object,
            layout: EncodedLayout { layout: encoded, space: space.clone() },
            external,
            fill: EncodedFill::new(fill, datatype),
            states_allocation: !is_default_allocation(layout, fill.allocation),
            minimized_header: false,
        }
    }

    /// The layout.
    pub fn layout(&self) -> Layout {
        match &self.layout.layout {
            Layout::Contiguous if !self.external.is_empty() => Layout::External(self.external.clone()),
            other => other.clone(),
        }
    }

    /// The fill value, except for one that leads elsewhere.
    pub fn fill(&self) -> Fill {
        let allocation = self.fill.allocation.unwrap_or_else(|| default_allocation(&self.layout.layout));
        Fill { allocation, time: self.fill.time, value: self.fill.value.clone() }
    }

    /// Whether every property has its default. The library then encodes its own list, of which nothing was copied.
    fn is_default(&self) -> bool {
        let DatasetCreationProperties { object, layout, external, fill, states_allocation, minimized_header } = self;
        let default = DatasetCreationProperties::default();
        // Shape and type are no properties.
        (*states_allocation, *minimized_header) == (default.states_allocation, default.minimized_header)
            && (fill.allocation, fill.time, &fill.value)
                == (default.fill.allocation, default.fill.time, &default.fill.value)
            && *object == default.object
            && layout.layout == default.layout.layout
            && *external == default.external
    }
}

impl PropertyClass for DatasetCreationProperties {
    const CLASS: u8 = 5;
    const LEVELS: &'static [&'static [&'static str]] =
        &[&[LAYOUT, EXTERNAL_FILES, MINIMIZE_HEADER, ALLOCATION_STATE, FILL_VALUE], ObjectCreationProperties::NAMES];

    /// The connector copies a list that is not the default one. The copy has these four properties of its own.
    fn is_encoded_before_defaults(&self, property: &str) -> bool {
        match property {
            LAYOUT | EXTERNAL_FILES | FILL_VALUE => !self.is_default(),
            ALLOCATION_STATE => self.states_allocation,
            MINIMIZE_HEADER => self.minimized_header,
            other => self.object.is_set(other) || (other == PIPELINE && !self.is_default()),
        }
    }

    fn wire_value(&mut self, property: &str, w: &mut impl Wire) -> WireResult<()> {
        match property {
            LAYOUT => self.layout.wire(w),
            EXTERNAL_FILES => wire_external_files(w, &mut self.external),
            FILL_VALUE => self.fill.wire(w),
            ALLOCATION_STATE => {
                let mut is_default = u32::from(!self.states_allocation);
                wire_unsigned(w, "allocation state", &mut is_default)?;
                self.states_allocation = is_default == 0;
                w.require("allocation state", is_default <= 1, is_default.into(), "0 or 1")
            }
            MINIMIZE_HEADER => {
                let minimized = w.derived_u8("minimized header", self.minimized_header.into())?;
                self.minimized_header = minimized != 0;
                w.require("minimized header", minimized <= 1, minimized.into(), "0 or 1")
            }
            other => self.object.wire_value(other, w),
        }
    }
}

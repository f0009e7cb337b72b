//! The properties of a group.

use h5live_format::{Fault, Result as WireResult, Wire};
use h5live_model::{CreationOrder, LinkOrAttributeStorageSpec};

use super::object_creation::ObjectCreationProperties;
use super::property_list::{PropertyClass, wire_unsigned};

/// The properties of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupCreationProperties {
    /// Those of every object.
    pub object: ObjectCreationProperties,
    /// How its links are kept.
    pub link_storage: LinkOrAttributeStorageSpec,
    /// Bytes that the local heap of an old group begins with; 0 for the library's choice.
    pub local_heap_size_hint: u32,
    /// Links that are expected.
    pub estimated_link_count: u16,
    /// Bytes of a name that are expected.
    pub estimated_name_length: u16,
}

impl Default for GroupCreationProperties {
    fn default() -> Self {
        GroupCreationProperties {
            object: ObjectCreationProperties::default(),
            link_storage: LinkOrAttributeStorageSpec::default(),
            local_heap_size_hint: 0,
            estimated_link_count: 4,
            estimated_name_length: 8,
        }
    }
}

const LINK_INFO: &str = "link info";
const GROUP_INFO: &str = "group info";

const ORDER_TRACKED: u32 = 1;
const ORDER_INDEXED: u32 = 2;

impl GroupCreationProperties {
    /// The names of the properties of this class, by hash.
    pub(super) const NAMES: &'static [&'static str] = &[LINK_INFO, GROUP_INFO];

    fn wire_link_info(&mut self, w: &mut impl Wire) -> WireResult<()> {
        let mut flags = match self.link_storage.order {
            CreationOrder::Untracked => 0,
            CreationOrder::Tracked => ORDER_TRACKED,
            CreationOrder::Indexed => ORDER_TRACKED | ORDER_INDEXED,
        };
        wire_unsigned(w, "creation order", &mut flags)?;
        self.link_storage.order = match flags {
            0 => CreationOrder::Untracked,
            ORDER_TRACKED => CreationOrder::Tracked,
            3 => CreationOrder::Indexed,
            found => {
                let rule = "0, 1 (tracked) or 3 (tracked and indexed)";
                return Err(w.fault("creation order", Fault::InvalidValue { found: found.into(), rule }));
            }
        };
        Ok(())
    }

    fn wire_group_info(&mut self, w: &mut impl Wire) -> WireResult<()> {
        w.u32("heap hint", &mut self.local_heap_size_hint)?;
        w.u16("most compact links", &mut self.link_storage.max_compact)?;
        w.u16("fewest dense links", &mut self.link_storage.min_dense)?;
        w.u16("expected links", &mut self.estimated_link_count)?;
        w.u16("expected bytes of a name", &mut self.estimated_name_length)
    }
}

impl PropertyClass for GroupCreationProperties {
    const CLASS: u8 = 9;
    const LEVELS: &'static [&'static [&'static str]] =
        &[GroupCreationProperties::NAMES, ObjectCreationProperties::NAMES];

    fn is_encoded_before_defaults(&self, property: &str) -> bool {
        let default = GroupCreationProperties::default();
        match property {
            LINK_INFO => self.link_storage.order != default.link_storage.order,
            GROUP_INFO => {
                let order = default.link_storage.order;
                let (object, links) =
                    (default.object.clone(), LinkOrAttributeStorageSpec { order, ..self.link_storage });
                GroupCreationProperties { object, link_storage: links, ..self.clone() } != default
            }
            other => self.object.is_set(other),
        }
    }

    fn wire_value(&mut self, property: &str, w: &mut impl Wire) -> WireResult<()> {
        match property {
            LINK_INFO => self.wire_link_info(w),
            GROUP_INFO => self.wire_group_info(w),
            other => self.object.wire_value(other, w),
        }
    }
}

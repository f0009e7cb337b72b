//! The properties of a container. The root group has them in the place of those of a group.

use h5live_format::{Result as WireResult, Wire};

use super::group_creation::GroupCreationProperties;
use super::object_creation::ObjectCreationProperties;
use super::property_list::{PropertyClass, wire_sized, wire_unsigned};

/// The properties of a container. Those of files, which a container does not use, have the library's defaults, and are
/// checked and passed over on decoding.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileCreationProperties {
    /// Those of the root group.
    pub root: GroupCreationProperties,
}

/// How the value of a property is encoded, with its default.
#[derive(Debug, Clone, Copy)]
enum FileProperty {
    Byte(u8),
    Sized(u64),
    /// Numbers of 4 bytes after one size: the first one, and the others.
    Unsigned(u32, &'static [u32]),
}

/// The properties of files, by hash.
const NAMES: &[&str] = &[
    "file_space_strategy",
    "btree_rank",
    "block_size",
    "symbol_leaf",
    "file_space_page_size",
    "free_space_persist",
    "shmsg_message_types",
    "obj_byte_num",
    "free_space_threshold",
    "addr_byte_num",
    "shmsg_message_minsize",
    "shmsg_btree_min",
    "shmsg_list_max",
    "num_shmsg_indexes",
];

fn file_property(name: &str) -> Option<FileProperty> {
    Some(match name {
        "file_space_strategy" | "free_space_persist" => FileProperty::Byte(0),
        "obj_byte_num" | "addr_byte_num" => FileProperty::Byte(8),
        "block_size" => FileProperty::Sized(0),
        "file_space_page_size" => FileProperty::Sized(4096),
        "free_space_threshold" => FileProperty::Sized(1),
        "btree_rank" => FileProperty::Unsigned(16, &[32]),
        "symbol_leaf" => FileProperty::Unsigned(4, &[]),
        "shmsg_message_types" => FileProperty::Unsigned(0, &[0; 7]),
        "shmsg_message_minsize" => FileProperty::Unsigned(250, &[250, 250, 250, 250, 250, 0, 0]),
        "shmsg_btree_min" => FileProperty::Unsigned(40, &[]),
        "shmsg_list_max" => FileProperty::Unsigned(50, &[]),
        "num_shmsg_indexes" => FileProperty::Unsigned(0, &[]),
        _ => return None,
    })
}

impl PropertyClass for FileCreationProperties {
    const CLASS: u8 = 3;
    const LEVELS: &'static [&'static [&'static str]] =
        &[NAMES, GroupCreationProperties::NAMES, ObjectCreationProperties::NAMES];

    fn is_encoded_before_defaults(&self, property: &str) -> bool {
        file_property(property).is_none() && self.root.is_encoded_before_defaults(property)
    }

    fn wire_value(&mut self, property: &str, w: &mut impl Wire) -> WireResult<()> {
        match file_property(property) {
            Some(FileProperty::Byte(mut value)) => w.u8("property of files", &mut value),
            Some(FileProperty::Sized(mut value)) => wire_sized(w, "property of files", &mut value),
            Some(FileProperty::Unsigned(mut first, rest)) => {
                wire_unsigned(w, "property of files", &mut first)?;
                rest.iter().try_for_each(|value| w.u32("property of files", &mut { *value }))
            }
            None => self.root.wire_value(property, w),
        }
    }
}

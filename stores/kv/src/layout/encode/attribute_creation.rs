//! The properties of an attribute.

use h5live_format::{Result as WireResult, Wire};

use super::property_list::PropertyClass;

/// The properties of an attribute.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AttributeCreationProperties {
    /// The character set of the name: 0 for ASCII, 1 for UTF-8.
    pub name_character_set: u8,
}

const CHARACTER_ENCODING: &str = "character_encoding";

impl PropertyClass for AttributeCreationProperties {
    const CLASS: u8 = 14;
    const LEVELS: &'static [&'static [&'static str]] = &[&[CHARACTER_ENCODING]];

    fn is_encoded_before_defaults(&self, _: &str) -> bool {
        self.name_character_set != 0
    }

    fn wire_value(&mut self, _: &str, w: &mut impl Wire) -> WireResult<()> {
        w.u8("character encoding", &mut self.name_character_set)
    }
}

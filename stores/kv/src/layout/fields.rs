//! The records that describe an object or an attribute, by their akeys.

use h5live_model::ObjectKind;
use strum::VariantArray;

/// A record of an object under the dkey `/Internal Metadata`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, VariantArray)]
pub enum MetadataField {
    /// In the global metadata object: the version of the layout. It recognises a store. Ours.
    ContainerFormat,
    /// In the global metadata object: the identity of the root group. The connector names it, and does not write it.
    RootGroup,
    /// In the global metadata object: the first index that no writer has reserved (u64). Ours.
    FirstUnreservedObjectIndex,
    /// The type of a dataset, or of a committed datatype.
    Datatype,
    /// The shape of a dataset.
    Dataspace,
    /// The property list with which the object was created.
    CreationProperties,
    /// The value of elements that were never written, as an element of the dataset.
    FillValue,
    /// The number of hard links that lead to the object (u64).
    RefCount,
    /// The type of a map's keys.
    KeyDatatype,
    /// The type of a map's values.
    ValueDatatype,
    /// The identity of the committed datatype that is the type of a dataset. Ours.
    CommittedDatatype,
    /// In a map, the identity of the committed datatype that is the type of the keys. Ours.
    CommittedKeyDatatype,
    /// In a map, the identity of the committed datatype that is the type of the values. Ours.
    CommittedValueDatatype,
    /// The number of pairs of a map (u64). Ours.
    PairCount,
    /// The comment on an object. Ours.
    Comment,
    /// When an object was touched. Ours.
    Times,
    /// What a description has beyond property lists. Ours.
    ExtraProperties,
}

impl MetadataField {
    /// All of them, in the order of engine keys.
    pub const ALL: &'static [MetadataField] = <MetadataField as VariantArray>::VARIANTS;

    /// Whether objects of a kind have it. The global metadata object is none of them.
    pub const fn applies_to_kind(self, kind: ObjectKind) -> bool {
        match self {
            MetadataField::ContainerFormat | MetadataField::RootGroup | MetadataField::FirstUnreservedObjectIndex => {
                false
            }
            MetadataField::Datatype => matches!(kind, ObjectKind::Dataset | ObjectKind::Datatype),
            MetadataField::Dataspace | MetadataField::FillValue | MetadataField::CommittedDatatype => {
                matches!(kind, ObjectKind::Dataset)
            }
            MetadataField::KeyDatatype
            | MetadataField::ValueDatatype
            | MetadataField::CommittedKeyDatatype
            | MetadataField::CommittedValueDatatype
            | MetadataField::PairCount => matches!(kind, ObjectKind::Map),
            MetadataField::CreationProperties
            | MetadataField::RefCount
            | MetadataField::Comment
            | MetadataField::Times
            | MetadataField::ExtraProperties => true,
        }
    }

    /// The akey.
    pub const fn akey(self) -> &'static [u8] {
        match self {
            MetadataField::ContainerFormat => b"Layout Version",
            MetadataField::RootGroup => b"Root Group OID",
            MetadataField::FirstUnreservedObjectIndex => b"Next Object Index",
            MetadataField::Datatype => b"Datatype",
            MetadataField::Dataspace => b"Dataspace",
            MetadataField::CreationProperties => b"Creation Property List",
            MetadataField::FillValue => b"Fill Value",
            MetadataField::RefCount => b"Ref Count",
            MetadataField::KeyDatatype => b"Key Datatype",
            MetadataField::ValueDatatype => b"Value Datatype",
            MetadataField::CommittedDatatype => b"Committed Datatype",
            MetadataField::CommittedKeyDatatype => b"Committed Key Datatype",
            MetadataField::CommittedValueDatatype => b"Committed Value Datatype",
            MetadataField::PairCount => b"Num Pairs",
            MetadataField::Comment => b"Comment",
            MetadataField::Times => b"Times",
            MetadataField::ExtraProperties => b"Extras",
        }
    }

    /// The akey as text.
    pub const fn akey_text(self) -> &'static str {
        match std::str::from_utf8(self.akey()) {
            Ok(name) => name,
            Err(_) => "",
        }
    }

    /// The field of an akey.
    pub fn from_akey(akey: &[u8]) -> Option<Self> {
        Self::ALL.iter().copied().find(|field| field.akey() == akey)
    }

    /// The byte that stands for the field in engine keys.
    pub(super) const fn tag(self) -> u8 {
        match self {
            MetadataField::ContainerFormat => 0x01,
            MetadataField::RootGroup => 0x02,
            MetadataField::FirstUnreservedObjectIndex => 0x03,
            MetadataField::Datatype => 0x10,
            MetadataField::Dataspace => 0x11,
            MetadataField::CreationProperties => 0x12,
            MetadataField::FillValue => 0x13,
            MetadataField::RefCount => 0x14,
            MetadataField::KeyDatatype => 0x18,
            MetadataField::ValueDatatype => 0x19,
            MetadataField::CommittedDatatype => 0x20,
            MetadataField::CommittedKeyDatatype => 0x21,
            MetadataField::CommittedValueDatatype => 0x22,
            MetadataField::PairCount => 0x28,
            MetadataField::Comment => 0x30,
            MetadataField::Times => 0x31,
            MetadataField::ExtraProperties => 0x32,
        }
    }

    /// The field of a tag.
    pub(super) fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|field| field.tag() == tag)
    }
}

/// A record of an attribute under the dkey `/Attribute`. The akey is a prefix and the name of the attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, VariantArray)]
pub enum AttributeField {
    /// The type.
    Datatype,
    /// The shape.
    Dataspace,
    /// The property list with which it was created.
    CreationProperties,
    /// The position in the order of creation (u64), if the object tracks it.
    CreationOrder,
    /// The identity of the committed datatype that is the type. Ours.
    CommittedDatatype,
    /// The elements.
    Value,
}

impl AttributeField {
    /// All of them, in the order of engine keys.
    pub const ALL: &'static [AttributeField] = <AttributeField as VariantArray>::VARIANTS;

    /// What the akey begins with.
    pub const fn akey_prefix(self) -> &'static [u8; 2] {
        match self {
            AttributeField::Datatype => b"T-",
            AttributeField::Dataspace => b"S-",
            AttributeField::CreationProperties => b"P-",
            AttributeField::CreationOrder => b"C-",
            AttributeField::CommittedDatatype => b"D-",
            AttributeField::Value => b"V-",
        }
    }

    /// What the akey begins with, as text.
    pub const fn akey_prefix_text(self) -> &'static str {
        match std::str::from_utf8(self.akey_prefix()) {
            Ok(name) => name,
            Err(_) => "",
        }
    }

    /// The field and the attribute's name of an akey.
    pub fn from_akey(akey: &[u8]) -> Option<(Self, &[u8])> {
        let (prefix, name) = akey.split_first_chunk()?;
        let field = Self::ALL.iter().copied().find(|field| field.akey_prefix() == prefix)?;
        Some((field, name))
    }

    /// The byte that stands for the field in engine keys.
    pub(super) const fn tag(self) -> u8 {
        match self {
            AttributeField::Datatype => 1,
            AttributeField::Dataspace => 2,
            AttributeField::CreationProperties => 3,
            AttributeField::CreationOrder => 4,
            AttributeField::CommittedDatatype => 5,
            AttributeField::Value => 6,
        }
    }

    /// The field of a tag.
    pub(super) fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|field| field.tag() == tag)
    }
}

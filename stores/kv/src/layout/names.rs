//! The dkeys and akeys that are fixed strings. None of them ends with a NUL.

/// The dkey of what describes an object.
pub const INTERNAL_METADATA_DKEY: &[u8] = b"/Internal Metadata";
/// The dkey of attributes.
pub const ATTRIBUTE_DKEY: &[u8] = b"/Attribute";
/// The dkey of a group's creation order, and the akey of a link's position in it.
pub const LINK_ORDER_DKEY_AND_AKEY: &[u8] = b"/Link Creation Order";

/// The akey of a link.
pub const LINK_AKEY: &[u8] = b"Link";
/// The akey of the number of links.
pub const LINK_COUNT_AKEY: &[u8] = b"Num Links";
/// The akey of the position that the next link gets in the order of creation.
pub const NEXT_LINK_ORDER_AKEY: &[u8] = b"Max Link Creation Order";
/// The akey of the number of attributes.
pub const ATTRIBUTE_COUNT_AKEY: &[u8] = b"Num Attributes";
/// The akey of the position that the next attribute gets in the order of creation.
pub const NEXT_ATTRIBUTE_ORDER_AKEY: &[u8] = b"Max Attribute Creation Order";
/// The akey of a key and its value in a map.
pub const MAP_RECORD_AKEY: &[u8] = b"Map Record";
/// The akey of the elements of a variable-length element.
pub const BLOB_AKEY: &[u8] = b"Blob";
/// The akey of the elements of a chunk without filters.
pub const UNFILTERED_CHUNK_AKEY: &[u8] = b"\0";
/// The akey of a chunk that has passed filters. Ours.
pub const FILTERED_CHUNK_AKEY: &[u8] = b"\x01";

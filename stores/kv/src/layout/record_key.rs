//! The records of an object: what a dkey and an akey say.

use std::borrow::Cow;
use std::fmt;

use h5live_model::MAX_RANK;

use super::fields::{AttributeField, MetadataField};
use super::names;

/// The UUID under which the elements of a variable-length element are kept. All zeros: there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BlobId(pub [u8; 16]);

impl BlobId {
    /// The blob of an element that is null.
    pub const NULL: BlobId = BlobId([0; 16]);

    /// Whether it is the blob of an element that is null.
    pub fn is_null(self) -> bool {
        self == Self::NULL
    }
}

impl fmt::Display for BlobId {
    /// The digits of the UUID.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A record of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RecordKey<'a> {
    /// What describes the object.
    Metadata(MetadataField),
    /// The number of attributes (u64).
    AttributeCount,
    /// The position that the next attribute gets in the order of creation (u64).
    NextAttributeOrder,
    /// The name of the attribute at a position in the order of creation.
    AttributeNameAtRank(u64),
    /// A record of the attribute of this name.
    Attribute(AttributeField, Cow<'a, [u8]>),
    /// The number of links (u64).
    LinkCount,
    /// The position that the next link gets in the order of creation (u64).
    NextLinkOrder,
    /// The name of the link at a position in the order of creation.
    LinkNameAtRank(u64),
    /// The target of the link at a position in the order of creation.
    LinkTargetAtRank(u64),
    /// The target of the link of this name.
    Link(Cow<'a, [u8]>),
    /// The position of the link of this name in the order of creation (u64).
    LinkOrder(Cow<'a, [u8]>),
    /// Elements of a chunk without filters.
    ChunkPiece {
        /// The first element of the chunk (`[rank]`).
        start: Cow<'a, [u64]>,
        /// The piece, counted from 0. Each has [`CHUNK_PIECE_BYTES`](super::CHUNK_PIECE_BYTES).
        piece: u32,
    },
    /// A chunk as filters left it.
    FilteredChunk {
        /// The first element of the chunk (`[rank]`).
        start: Cow<'a, [u64]>,
    },
    /// The value of a key of a map. The bytes of the key are those that sort as keys do.
    MapRecord(Cow<'a, [u8]>),
    /// The elements of a variable-length element.
    Blob(BlobId),
    /// A record that the layout does not have.
    Unknown {
        /// The dkey.
        dkey: Cow<'a, [u8]>,
        /// The akey.
        akey: Cow<'a, [u8]>,
    },
}

impl<'a> RecordKey<'a> {
    /// The record of a dkey and an akey. Of a chunk without filters it is the first piece. The key of a map stays as it
    /// is: the caller makes the bytes of it that sort.
    pub fn from_dkey_and_akey(dkey: &'a [u8], akey: &'a [u8]) -> Self {
        let unknown = RecordKey::Unknown { dkey: dkey.into(), akey: akey.into() };
        let known = match (dkey, akey) {
            (_, names::MAP_RECORD_AKEY) => Some(RecordKey::MapRecord(dkey.into())),
            (names::INTERNAL_METADATA_DKEY, _) => MetadataField::from_akey(akey).map(RecordKey::Metadata),
            (names::ATTRIBUTE_DKEY, _) => attribute_record(akey),
            (names::LINK_ORDER_DKEY_AND_AKEY, _) => link_order_record(akey),
            (_, names::LINK_AKEY) => Some(RecordKey::Link(dkey.into())),
            (_, names::LINK_ORDER_DKEY_AND_AKEY) => Some(RecordKey::LinkOrder(dkey.into())),
            (_, names::UNFILTERED_CHUNK_AKEY) => {
                chunk_start(dkey).map(|start| RecordKey::ChunkPiece { start: start.into(), piece: 0 })
            }
            (_, names::FILTERED_CHUNK_AKEY) => {
                chunk_start(dkey).map(|start| RecordKey::FilteredChunk { start: start.into() })
            }
            (_, names::BLOB_AKEY) => dkey.try_into().ok().map(|uuid| RecordKey::Blob(BlobId(uuid))),
            _ => None,
        };
        known.unwrap_or(unknown)
    }

    /// The dkey. That of a map's record are the bytes of the key that sort; the caller makes the key of them.
    pub fn dkey_or_ordered_key(&self) -> Cow<'_, [u8]> {
        match self {
            RecordKey::Metadata(_) => names::INTERNAL_METADATA_DKEY.into(),
            RecordKey::AttributeCount
            | RecordKey::NextAttributeOrder
            | RecordKey::AttributeNameAtRank(_)
            | RecordKey::Attribute(..) => names::ATTRIBUTE_DKEY.into(),
            RecordKey::LinkCount
            | RecordKey::NextLinkOrder
            | RecordKey::LinkNameAtRank(_)
            | RecordKey::LinkTargetAtRank(_) => names::LINK_ORDER_DKEY_AND_AKEY.into(),
            RecordKey::Link(name) | RecordKey::LinkOrder(name) => name[..].into(),
            RecordKey::ChunkPiece { start, .. } | RecordKey::FilteredChunk { start } => chunk_dkey(start).into(),
            RecordKey::MapRecord(key) => key[..].into(),
            RecordKey::Blob(uuid) => uuid.0[..].into(),
            RecordKey::Unknown { dkey, .. } => dkey[..].into(),
        }
    }

    /// The akey.
    pub fn akey(&self) -> Cow<'_, [u8]> {
        match self {
            RecordKey::Metadata(field) => field.akey().into(),
            RecordKey::AttributeCount => names::ATTRIBUTE_COUNT_AKEY.into(),
            RecordKey::NextAttributeOrder => names::NEXT_ATTRIBUTE_ORDER_AKEY.into(),
            RecordKey::AttributeNameAtRank(at) => [&[0][..], &at.to_le_bytes()].concat().into(),
            RecordKey::Attribute(field, name) => [&field.akey_prefix()[..], name].concat().into(),
            RecordKey::LinkCount => names::LINK_COUNT_AKEY.into(),
            RecordKey::NextLinkOrder => names::NEXT_LINK_ORDER_AKEY.into(),
            RecordKey::LinkNameAtRank(at) => at.to_le_bytes().to_vec().into(),
            RecordKey::LinkTargetAtRank(at) => [&at.to_le_bytes()[..], &[0]].concat().into(),
            RecordKey::Link(_) => names::LINK_AKEY.into(),
            RecordKey::LinkOrder(_) => names::LINK_ORDER_DKEY_AND_AKEY.into(),
            RecordKey::ChunkPiece { .. } => names::UNFILTERED_CHUNK_AKEY.into(),
            RecordKey::FilteredChunk { .. } => names::FILTERED_CHUNK_AKEY.into(),
            RecordKey::MapRecord(_) => names::MAP_RECORD_AKEY.into(),
            RecordKey::Blob(_) => names::BLOB_AKEY.into(),
            RecordKey::Unknown { akey, .. } => akey[..].into(),
        }
    }
}

impl RecordKey<'_> {
    /// Its akey and its dkey, for people.
    pub fn describe_key(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).escape_debug().to_string();
        match self {
            RecordKey::ChunkPiece { start, piece } => format!("of piece {piece} of the chunk at {start:?}"),
            RecordKey::FilteredChunk { start } => format!("of the chunk at {start:?}"),
            RecordKey::Blob(id) => format!("of the variable-length data {id}"),
            _ => format!("{} of {}", text(&self.akey()), text(&self.dkey_or_ordered_key())),
        }
    }
}

/// Whether a dkey is a fixed string of the layout, which no link can have as its name.
pub(super) fn is_reserved(dkey: &[u8]) -> bool {
    [names::INTERNAL_METADATA_DKEY, names::ATTRIBUTE_DKEY, names::LINK_ORDER_DKEY_AND_AKEY].contains(&dkey)
}

/// The record of an akey under the dkey of attributes.
fn attribute_record(akey: &[u8]) -> Option<RecordKey<'_>> {
    match akey {
        names::ATTRIBUTE_COUNT_AKEY => Some(RecordKey::AttributeCount),
        names::NEXT_ATTRIBUTE_ORDER_AKEY => Some(RecordKey::NextAttributeOrder),
        [0, at @ ..] => at.try_into().ok().map(|at| RecordKey::AttributeNameAtRank(u64::from_le_bytes(at))),
        _ => AttributeField::from_akey(akey).map(|(field, name)| RecordKey::Attribute(field, name.into())),
    }
}

/// The record of an akey under the dkey of a group's creation order.
fn link_order_record(akey: &[u8]) -> Option<RecordKey<'_>> {
    match akey {
        names::LINK_COUNT_AKEY => Some(RecordKey::LinkCount),
        names::NEXT_LINK_ORDER_AKEY => Some(RecordKey::NextLinkOrder),
        [at @ .., 0] if at.len() == 8 => {
            at.try_into().ok().map(|at| RecordKey::LinkTargetAtRank(u64::from_le_bytes(at)))
        }
        _ => akey.try_into().ok().map(|at| RecordKey::LinkNameAtRank(u64::from_le_bytes(at))),
    }
}

/// The dkey of a chunk: a zero byte, then its first element, u64 little-endian for each dimension.
fn chunk_dkey(start: &[u64]) -> Vec<u8> {
    std::iter::once(0).chain(start.iter().flat_map(|at| at.to_le_bytes())).collect()
}

/// The first element of the chunk of a dkey.
fn chunk_start(dkey: &[u8]) -> Option<Vec<u64>> {
    let (offsets, []) = dkey.strip_prefix(&[0])?.as_chunks::<8>() else { return None };
    (offsets.len() <= MAX_RANK).then(|| offsets.iter().map(|at| u64::from_le_bytes(*at)).collect())
}

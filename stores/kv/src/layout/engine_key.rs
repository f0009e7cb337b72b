//! The keys of an engine that has one ordered byte string for each record.
//!
//! The order of the keys keeps the records of an object together: what describes it, attributes by name, the order of
//! creation of links, links by name, chunks in row-major order, pairs of a map in the order of the keys, blobs.

use std::borrow::{Borrow, Cow};
use std::fmt;

use h5live_model::{MAX_RANK, ObjectId};

use super::fields::{AttributeField, MetadataField};
use super::ordered::{KeyBytes, KeyReader, put_flagged_uint, put_string, put_uint};
use super::record_key::{BlobId, RecordKey, is_reserved};
use super::{Result, oid};

/// What the records of an object are grouped by, in the order of the keys.
pub(super) mod section_tag {
    pub const METADATA: u8 = 0x10;
    pub const ATTRIBUTE: u8 = 0x20;
    pub const LINKS_BY_CREATION_ORDER: u8 = 0x30;
    pub const LINK: u8 = 0x40;
    pub const CHUNK: u8 = 0x50;
    pub const MAP: u8 = 0x60;
    pub const BLOB: u8 = 0x70;
    pub const UNKNOWN: u8 = 0xf0;
    /// Above all of them.
    pub const UPPER_BOUND: u8 = 0xff;
}

/// The second byte of the records of attributes.
pub(super) mod attribute_tag {
    pub const ATTRIBUTE_COUNT: u8 = 1;
    pub const NEXT_ORDER: u8 = 2;
    pub const NAME_AT_RANK: u8 = 3;
    pub const BY_NAME: u8 = 4;
}

/// The second byte of the records of a group's creation order. The name and the target at a position lie together.
pub(super) mod link_order_tag {
    pub const LINK_COUNT: u8 = 1;
    pub const NEXT_ORDER: u8 = 2;
    pub const AT_RANK: u8 = 3;
    pub const AT_RANK_NAME: u8 = 1;
    pub const AT_RANK_TARGET: u8 = 2;
}

/// The byte after the name of a link.
mod link_tag {
    pub const TARGET: u8 = 1;
    pub const ORDER: u8 = 2;
}

/// The byte after the position of a chunk. It is above the numbers of bytes of integers.
mod chunk_tag {
    pub const PIECE: u8 = 0x10;
    pub const FILTERED_CHUNK: u8 = 0x11;
}

/// In the first byte of a key: the two bits of the kind, whether DAOS has bits of its own, bytes of the index.
mod object {
    pub const KIND_SHIFT: u32 = 6;
    pub const HAS_DAOS_BITS: u8 = 0x20;
    pub const INDEX_LENGTH_MASK: u8 = 0x1f;
}

/// The key of a record in an ordered engine.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EngineKey(KeyBytes);

impl EngineKey {
    /// The key of a record of an object.
    pub fn new(object: ObjectId, record: &RecordKey<'_>) -> Self {
        let mut key = KeyBytes::new();
        put_object(&mut key, object);
        put_record(&mut key, record);
        EngineKey(key)
    }

    /// The object and the record of a key.
    ///
    /// # Errors
    /// [`RecordFormatError::InvalidKey`](super::RecordFormatError::InvalidKey) if the bytes are not a key of the layout. Every key has one form.
    pub fn parse(bytes: &[u8]) -> Result<(ObjectId, RecordKey<'_>)> {
        let mut reader = KeyReader::new(bytes);
        let object = read_object(&mut reader)?;
        let record = read_record(&mut reader)?;
        reader.end()?;
        Ok((object, record))
    }

    /// The object of a key, whatever record it is.
    ///
    /// # Errors
    /// [`RecordFormatError::InvalidKey`](super::RecordFormatError::InvalidKey) if the key does not begin with an object.
    pub fn object_of(bytes: &[u8]) -> Result<ObjectId> {
        read_object(&mut KeyReader::new(bytes))
    }

    /// The record of a key, for people.
    pub fn describe_key(bytes: &[u8]) -> String {
        match EngineKey::parse(bytes) {
            Ok((object, record)) => format!("the record {} of object {object}", record.describe_key()),
            Err(_) => format!("the record with an engine key of {} bytes", bytes.len()),
        }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes of an object's identity and `rest`.
    pub(super) fn prefix(object: ObjectId, rest: impl FnOnce(&mut KeyBytes)) -> Self {
        let mut key = KeyBytes::new();
        put_object(&mut key, object);
        rest(&mut key);
        EngineKey(key)
    }
}

impl AsRef<[u8]> for EngineKey {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for EngineKey {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for EngineKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The keys from `start` on, below `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineKeyRange {
    /// The first one that is in the range.
    pub start: EngineKey,
    /// The first one that is above it.
    pub end: EngineKey,
}

impl EngineKeyRange {
    /// Whether a key is in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.as_bytes() <= key && key < self.end.as_bytes()
    }
}

fn put_object(key: &mut KeyBytes, object: ObjectId) {
    let class = oid::daos_bits(object);
    let flags =
        oid::kind_bits(oid::kind(object)) << object::KIND_SHIFT | if class == 0 { 0 } else { object::HAS_DAOS_BITS };
    put_flagged_uint(key, oid::index(object), flags);
    if class != 0 {
        key.extend_from_slice(&class.to_be_bytes());
    }
}

fn read_object(reader: &mut KeyReader<'_>) -> Result<ObjectId> {
    let first = reader.byte()?;
    let index = reader.uint_of(first & object::INDEX_LENGTH_MASK)?;
    let class = if first & object::HAS_DAOS_BITS == 0 { 0 } else { u64::from_be_bytes(reader.array()?) };
    let id = oid::from_parts(first >> object::KIND_SHIFT, index, class);
    if oid::daos_bits(id) != class || (first & object::HAS_DAOS_BITS != 0) != (class != 0) {
        return Err(reader.fault("the class of an object is not zero, and has no bits of the kind"));
    }
    Ok(id)
}

fn put_record(key: &mut KeyBytes, record: &RecordKey<'_>) {
    match record {
        RecordKey::Metadata(field) => key.extend_from_slice(&[section_tag::METADATA, field.tag()]),
        RecordKey::AttributeCount => key.extend_from_slice(&[section_tag::ATTRIBUTE, attribute_tag::ATTRIBUTE_COUNT]),
        RecordKey::NextAttributeOrder => key.extend_from_slice(&[section_tag::ATTRIBUTE, attribute_tag::NEXT_ORDER]),
        RecordKey::AttributeNameAtRank(at) => {
            key.extend_from_slice(&[section_tag::ATTRIBUTE, attribute_tag::NAME_AT_RANK]);
            put_uint(key, *at);
        }
        RecordKey::Attribute(field, name) => {
            key.extend_from_slice(&[section_tag::ATTRIBUTE, attribute_tag::BY_NAME]);
            put_string(key, name);
            key.push(field.tag());
        }
        RecordKey::LinkCount => {
            key.extend_from_slice(&[section_tag::LINKS_BY_CREATION_ORDER, link_order_tag::LINK_COUNT])
        }
        RecordKey::NextLinkOrder => {
            key.extend_from_slice(&[section_tag::LINKS_BY_CREATION_ORDER, link_order_tag::NEXT_ORDER])
        }
        RecordKey::LinkNameAtRank(at) => put_link_order(key, *at, link_order_tag::AT_RANK_NAME),
        RecordKey::LinkTargetAtRank(at) => put_link_order(key, *at, link_order_tag::AT_RANK_TARGET),
        RecordKey::Link(name) => put_link(key, name, link_tag::TARGET),
        RecordKey::LinkOrder(name) => put_link(key, name, link_tag::ORDER),
        RecordKey::ChunkPiece { start, piece } => {
            put_chunk(key, start, chunk_tag::PIECE);
            key.extend_from_slice(&piece.to_be_bytes());
        }
        RecordKey::FilteredChunk { start } => put_chunk(key, start, chunk_tag::FILTERED_CHUNK),
        RecordKey::MapRecord(map_key) => {
            key.push(section_tag::MAP);
            key.extend_from_slice(map_key);
        }
        RecordKey::Blob(uuid) => {
            key.push(section_tag::BLOB);
            key.extend_from_slice(&uuid.0);
        }
        RecordKey::Unknown { dkey, akey } => {
            key.push(section_tag::UNKNOWN);
            put_string(key, dkey);
            key.push(1);
            key.extend_from_slice(akey);
        }
    }
}

fn put_link_order(key: &mut KeyBytes, at: u64, what: u8) {
    key.extend_from_slice(&[section_tag::LINKS_BY_CREATION_ORDER, link_order_tag::AT_RANK]);
    put_uint(key, at);
    key.push(what);
}

fn put_link(key: &mut KeyBytes, name: &[u8], what: u8) {
    key.push(section_tag::LINK);
    put_string(key, name);
    key.push(what);
}

fn put_chunk(key: &mut KeyBytes, start: &[u64], what: u8) {
    key.push(section_tag::CHUNK);
    start.iter().for_each(|at| put_uint(key, *at));
    key.push(what);
}

fn read_record<'a>(reader: &mut KeyReader<'a>) -> Result<RecordKey<'a>> {
    match reader.byte()? {
        section_tag::METADATA => {
            let tag = reader.byte()?;
            MetadataField::from_tag(tag).map(RecordKey::Metadata).ok_or_else(|| reader.fault("no such record"))
        }
        section_tag::ATTRIBUTE => read_attribute(reader),
        section_tag::LINKS_BY_CREATION_ORDER => read_link_order(reader),
        section_tag::LINK => {
            let name = reader.string()?;
            if is_reserved(&name) {
                return Err(reader.fault("a dkey of the layout is no link"));
            }
            match reader.byte()? {
                link_tag::TARGET => Ok(RecordKey::Link(name)),
                link_tag::ORDER => Ok(RecordKey::LinkOrder(name)),
                _ => Err(reader.fault("no such record of a link")),
            }
        }
        section_tag::CHUNK => read_chunk(reader),
        section_tag::MAP => Ok(RecordKey::MapRecord(reader.take_rest().into())),
        section_tag::BLOB => Ok(RecordKey::Blob(BlobId(reader.array()?))),
        section_tag::UNKNOWN => read_unknown(reader),
        _ => Err(reader.fault("no such section")),
    }
}

fn read_attribute<'a>(reader: &mut KeyReader<'a>) -> Result<RecordKey<'a>> {
    match reader.byte()? {
        attribute_tag::ATTRIBUTE_COUNT => Ok(RecordKey::AttributeCount),
        attribute_tag::NEXT_ORDER => Ok(RecordKey::NextAttributeOrder),
        attribute_tag::NAME_AT_RANK => reader.uint().map(RecordKey::AttributeNameAtRank),
        attribute_tag::BY_NAME => {
            let name = reader.string()?;
            let field = AttributeField::from_tag(reader.byte()?);
            field.map(|field| RecordKey::Attribute(field, name)).ok_or_else(|| reader.fault("no such record"))
        }
        _ => Err(reader.fault("no such record of attributes")),
    }
}

fn read_link_order<'a>(reader: &mut KeyReader<'a>) -> Result<RecordKey<'a>> {
    match reader.byte()? {
        link_order_tag::LINK_COUNT => Ok(RecordKey::LinkCount),
        link_order_tag::NEXT_ORDER => Ok(RecordKey::NextLinkOrder),
        link_order_tag::AT_RANK => {
            let at = reader.uint()?;
            match reader.byte()? {
                link_order_tag::AT_RANK_NAME => Ok(RecordKey::LinkNameAtRank(at)),
                link_order_tag::AT_RANK_TARGET => Ok(RecordKey::LinkTargetAtRank(at)),
                _ => Err(reader.fault("no such record of a position")),
            }
        }
        _ => Err(reader.fault("no such record of a creation order")),
    }
}

fn read_chunk<'a>(reader: &mut KeyReader<'a>) -> Result<RecordKey<'a>> {
    let mut start = Vec::new();
    while reader.peek().is_some_and(|bytes| bytes < chunk_tag::PIECE) {
        if start.len() == MAX_RANK {
            return Err(reader.fault("a chunk has at most 32 dimensions"));
        }
        start.push(reader.uint()?);
    }
    match reader.byte()? {
        chunk_tag::PIECE => {
            let piece = u32::from_be_bytes(reader.array()?);
            Ok(RecordKey::ChunkPiece { start: start.into(), piece })
        }
        chunk_tag::FILTERED_CHUNK => Ok(RecordKey::FilteredChunk { start: start.into() }),
        _ => Err(reader.fault("no such record of a chunk")),
    }
}

fn read_unknown<'a>(reader: &mut KeyReader<'a>) -> Result<RecordKey<'a>> {
    let dkey = reader.string()?;
    if reader.byte()? != 1 {
        return Err(reader.fault("the byte after a dkey is 1"));
    }
    let akey = reader.take_rest();
    let known = !matches!(RecordKey::from_dkey_and_akey(&dkey, akey), RecordKey::Unknown { .. });
    if known {
        Err(reader.fault("the layout has a key for this record"))
    } else {
        Ok(RecordKey::Unknown { dkey, akey: Cow::Borrowed(akey) })
    }
}

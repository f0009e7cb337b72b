//! The engine keys of records, and the ranges of keys that scans need.

use h5live_model::ObjectId;

use super::engine_key::{EngineKey, EngineKeyRange, attribute_tag, link_order_tag, section_tag};
use super::fields::{AttributeField, MetadataField};
use super::oid;
use super::ordered::{KeyBytes, put_string, put_uint};
use super::record_key::{BlobId, RecordKey};

/// What describes an object.
pub fn metadata(object: ObjectId, field: MetadataField) -> EngineKey {
    EngineKey::new(object, &RecordKey::Metadata(field))
}

/// A record of an attribute.
pub fn attribute(object: ObjectId, field: AttributeField, name: &[u8]) -> EngineKey {
    EngineKey::new(object, &RecordKey::Attribute(field, name.into()))
}

/// The number of attributes.
pub fn attribute_count(object: ObjectId) -> EngineKey {
    EngineKey::new(object, &RecordKey::AttributeCount)
}

/// The position that the next attribute gets in the order of creation.
pub fn next_attribute_order(object: ObjectId) -> EngineKey {
    EngineKey::new(object, &RecordKey::NextAttributeOrder)
}

/// The name of the attribute at a position in the order of creation.
pub fn attribute_name_at_rank(object: ObjectId, rank: u64) -> EngineKey {
    EngineKey::new(object, &RecordKey::AttributeNameAtRank(rank))
}

/// The number of links.
pub fn link_count(group: ObjectId) -> EngineKey {
    EngineKey::new(group, &RecordKey::LinkCount)
}

/// The position that the next link gets in the order of creation.
pub fn next_link_order(group: ObjectId) -> EngineKey {
    EngineKey::new(group, &RecordKey::NextLinkOrder)
}

/// The name of the link at a position in the order of creation.
pub fn link_name_at_rank(group: ObjectId, rank: u64) -> EngineKey {
    EngineKey::new(group, &RecordKey::LinkNameAtRank(rank))
}

/// The target of the link at a position in the order of creation.
pub fn link_target_at_rank(group: ObjectId, rank: u64) -> EngineKey {
    EngineKey::new(group, &RecordKey::LinkTargetAtRank(rank))
}

/// The target of a link.
pub fn link(group: ObjectId, name: &[u8]) -> EngineKey {
    EngineKey::new(group, &RecordKey::Link(name.into()))
}

/// The position of a link in the order of creation.
pub fn link_order(group: ObjectId, name: &[u8]) -> EngineKey {
    EngineKey::new(group, &RecordKey::LinkOrder(name.into()))
}

/// A piece of a chunk without filters. `start` is the first element of the chunk (`[rank]`).
pub fn chunk_piece(dataset: ObjectId, start: &[u64], piece: u32) -> EngineKey {
    EngineKey::new(dataset, &RecordKey::ChunkPiece { start: start.into(), piece })
}

/// A chunk as filters left it. `start` is the first element of the chunk (`[rank]`).
pub fn filtered_chunk(dataset: ObjectId, start: &[u64]) -> EngineKey {
    EngineKey::new(dataset, &RecordKey::FilteredChunk { start: start.into() })
}

/// The value of a key of a map. `ordered_key` are the bytes of the key that sort as keys do.
pub fn map_record(map: ObjectId, ordered_key: &[u8]) -> EngineKey {
    EngineKey::new(map, &RecordKey::MapRecord(ordered_key.into()))
}

/// The elements of a variable-length element: in the global metadata object.
pub fn blob(id: BlobId) -> EngineKey {
    EngineKey::new(oid::GLOBAL_METADATA, &RecordKey::Blob(id))
}

/// All records of an object.
pub fn object_records(object: ObjectId) -> EngineKeyRange {
    EngineKeyRange {
        start: EngineKey::prefix(object, |_| ()),
        end: EngineKey::prefix(object, |key| key.push(section_tag::UPPER_BOUND)),
    }
}

/// What describes an object.
pub fn all_metadata(object: ObjectId) -> EngineKeyRange {
    of_section(object, section_tag::METADATA)
}

/// All records of all attributes, by name; those of one attribute lie together.
pub fn attributes(object: ObjectId) -> EngineKeyRange {
    let bounded = |tag: u8| move |key: &mut KeyBytes| key.extend_from_slice(&[section_tag::ATTRIBUTE, tag]);
    between(object, bounded(attribute_tag::BY_NAME), bounded(attribute_tag::BY_NAME + 1))
}

/// All records of the attribute of this name.
pub fn attribute_records(object: ObjectId, name: &[u8]) -> EngineKeyRange {
    let named = |key: &mut KeyBytes| {
        key.extend_from_slice(&[section_tag::ATTRIBUTE, attribute_tag::BY_NAME]);
        put_string(key, name);
    };
    up_to_next(object, named)
}

/// The names of attributes in the order of creation.
pub fn attribute_names_by_creation_order(object: ObjectId) -> EngineKeyRange {
    let bounded = |tag: u8| move |key: &mut KeyBytes| key.extend_from_slice(&[section_tag::ATTRIBUTE, tag]);
    between(object, bounded(attribute_tag::NAME_AT_RANK), bounded(attribute_tag::NAME_AT_RANK + 1))
}

/// The order of creation of links: the name, then the target at each position.
pub fn links_by_creation_order(group: ObjectId) -> EngineKeyRange {
    let bounded =
        |tag: u8| move |key: &mut KeyBytes| key.extend_from_slice(&[section_tag::LINKS_BY_CREATION_ORDER, tag]);
    between(group, bounded(link_order_tag::AT_RANK), bounded(link_order_tag::AT_RANK + 1))
}

/// All links, by name: of each the target, then the position.
pub fn links(group: ObjectId) -> EngineKeyRange {
    of_section(group, section_tag::LINK)
}

/// The links whose names are above this one.
pub fn links_after(group: ObjectId, name: &[u8]) -> EngineKeyRange {
    let after = |key: &mut KeyBytes| {
        key.push(section_tag::LINK);
        put_string(key, name);
        // Above what follows the end of a name, below what an escaped NUL begins with.
        key.push(AFTER_STRING);
    };
    between(group, after, |key| key.push(section_tag::LINK + 1))
}

/// All chunks, in row-major order: of each the pieces, or the filtered bytes.
pub fn chunks(dataset: ObjectId) -> EngineKeyRange {
    of_section(dataset, section_tag::CHUNK)
}

/// The chunks from the one that begins at `start` on (`[rank]`, elements).
pub fn chunks_from(dataset: ObjectId, start: &[u64]) -> EngineKeyRange {
    let first = |key: &mut KeyBytes| put_start(key, start);
    between(dataset, first, |key| key.push(section_tag::CHUNK + 1))
}

/// All records of the chunk that begins at `start` (`[rank]`, elements).
pub fn chunk_records(dataset: ObjectId, start: &[u64]) -> EngineKeyRange {
    up_to_next(dataset, |key| put_start(key, start))
}

/// All pairs of a map, in the order of the keys.
pub fn map_records(map: ObjectId) -> EngineKeyRange {
    of_section(map, section_tag::MAP)
}

/// The pairs of a map from a key on. `ordered_key` are the bytes of the key that sort as keys do.
pub fn map_records_from(map: ObjectId, ordered_key: &[u8]) -> EngineKeyRange {
    between(map, |key| put_map_key(key, ordered_key), |key| key.push(section_tag::MAP + 1))
}

/// The pairs of a map whose keys are above this one. `ordered_key` are the bytes of the key that sort as keys do.
pub fn map_records_after(map: ObjectId, ordered_key: &[u8]) -> EngineKeyRange {
    let after = |key: &mut KeyBytes| {
        put_map_key(key, ordered_key);
        key.push(0);
    };
    between(map, after, |key| key.push(section_tag::MAP + 1))
}

/// All blobs, by UUID.
pub fn blobs() -> EngineKeyRange {
    of_section(oid::GLOBAL_METADATA, section_tag::BLOB)
}

/// Above the byte that follows a string, and below the one that follows a NUL in it.
const AFTER_STRING: u8 = 0xfe;

fn put_start(key: &mut KeyBytes, start: &[u64]) {
    key.push(section_tag::CHUNK);
    start.iter().for_each(|at| put_uint(key, *at));
}

fn put_map_key(key: &mut KeyBytes, ordered: &[u8]) {
    key.push(section_tag::MAP);
    key.extend_from_slice(ordered);
}

fn of_section(object: ObjectId, section: u8) -> EngineKeyRange {
    between(object, |key| key.push(section), |key| key.push(section.saturating_add(1)))
}

/// The keys that begin with `prefix` and a byte below [`AFTER_STRING`].
fn up_to_next(object: ObjectId, prefix: impl Fn(&mut KeyBytes)) -> EngineKeyRange {
    let end = |key: &mut KeyBytes| {
        prefix(key);
        key.push(AFTER_STRING);
    };
    between(object, &prefix, end)
}

fn between(object: ObjectId, start: impl FnOnce(&mut KeyBytes), end: impl FnOnce(&mut KeyBytes)) -> EngineKeyRange {
    EngineKeyRange { start: EngineKey::prefix(object, start), end: EngineKey::prefix(object, end) }
}

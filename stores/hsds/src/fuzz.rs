//! The bodies of fuzz targets: a domain in which one object has other bytes. Whatever they are, reading it ends, with errors or
//! values.

use std::sync::{Arc, OnceLock};

use h5live_model::{
    AllocationLimit, AttributeData, ByteOrder, CharacterSet, ChunkCoord, CreationOrder, DatasetSpec, Dataspace,
    Datatype, GroupSpec, Layout, LinkOrAttributeStorageSpec, LinkTarget, Mode, NewObject, NoFilters, ObjectKindSpec,
    ObjectSpec, Result, Shape, Sign, Store, StoreCheckOptions, StringPadding, VarLenKind, VarLenType, conformance,
};

use crate::HsdsOpenRequest;
use crate::check::check_domain;
use crate::engine::{MemoryEngine, ObjectEngine, ObjectPut};
use crate::session::HsdsSession;
use crate::store::HsdsStore;

/// Most bytes that a length in an object may make the reader allocate.
const MAX_ALLOCATION: u64 = 1 << 24;

fn request(mode: Mode) -> HsdsOpenRequest {
    let order = LinkOrAttributeStorageSpec { order: CreationOrder::Indexed, ..LinkOrAttributeStorageSpec::default() };
    let root = ObjectKindSpec::Group(GroupSpec { link_storage: order });
    HsdsOpenRequest {
        mode,
        root: ObjectSpec { attribute_storage: order, ..root.into() },
        domain: "run".to_owned(),
        new_domain_owner: "fuzz".to_owned(),
        creates_draft: false,
        acl_user: None,
        shard_above: 0,
        cache_bytes: 128 << 20,
        max_allocation: AllocationLimit::new(MAX_ALLOCATION),
        filter_engine: Arc::new(NoFilters),
    }
}

fn text() -> Datatype {
    let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: CharacterSet::Utf8 };
    Datatype::VarLen(VarLenType { kind, size: 16, base: Box::new(Datatype::fixed_string(1, CharacterSet::Utf8)) })
}

fn make_sample() -> Result<Vec<ObjectPut>> {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew))?;
    let (writer, root) = (store.writer()?, store.session().root);
    let numbers = DatasetSpec {
        datatype: Datatype::integer(4, ByteOrder::Little, Sign::Signed),
        dataspace: Dataspace::Simple(Shape::fixed(&[8])),
        layout: Layout::Chunked(vec![4]),
        ..DatasetSpec::default()
    };
    let texts =
        DatasetSpec { datatype: text(), dataspace: Dataspace::Simple(Shape::fixed(&[2])), ..DatasetSpec::default() };
    let numbers = writer.create(&NewObject::linked(root, &"numbers".into(), &numbers.into()))?;
    store.dataset(numbers)?.write_whole_chunk(&ChunkCoord::new(&[1]), 0, &[7; 16])?;
    let texts = writer.create(&NewObject::linked(root, &"texts".into(), &texts.into()))?;
    let elements = [writer.put_blob(b"one", 3)?, writer.put_blob(b"", 0)?].concat();
    store.dataset(texts)?.write_whole_chunk(&ChunkCoord::new(&[0]), 0, &elements)?;
    let value = writer.put_blob(b"a title", 7)?;
    let (name, dataspace, committed, creation_order) = ("title".into(), Dataspace::Scalar, None, None);
    writer.set_attribute(
        root,
        &AttributeData { name, datatype: text(), committed_datatype: committed, dataspace, value, creation_order },
    )?;
    writer.add_link(root, &"soft".into(), &LinkTarget::Soft("/numbers".into()))?;
    store.close()?;
    let object = |key: String| Ok(engine.get(&key)?.map(|found| ObjectPut { key, bytes: found.bytes.to_vec() }));
    engine.keys().into_iter().filter_map(|key| object(key).transpose()).collect()
}

/// The objects of a sound domain.
fn sample() -> &'static [ObjectPut] {
    static SAMPLE: OnceLock<Vec<ObjectPut>> = OnceLock::new();
    SAMPLE.get_or_init(|| make_sample().unwrap_or_default())
}

fn is_document(put: &ObjectPut) -> bool {
    put.key.ends_with(".json")
}

/// Reads a domain in which one document has other bytes: the first byte says which, the others are its bytes.
pub fn read_domain_with_changed_document(data: &[u8]) {
    read_changed(data, is_document);
}

/// The same for a chunk.
pub fn read_domain_with_changed_chunk(data: &[u8]) {
    read_changed(data, |put| !is_document(put));
}

fn read_changed(data: &[u8], which: impl Fn(&ObjectPut) -> bool) {
    let Some((number, bytes)) = data.split_first() else { return };
    let places: Vec<usize> = (0..sample().len()).filter(|at| sample().get(*at).is_some_and(&which)).collect();
    let Some(place) = places.get(usize::from(*number) % places.len().max(1)) else { return };
    let mut objects = sample().to_vec();
    if let Some(object) = objects.get_mut(*place) {
        object.bytes = bytes.to_vec();
    }
    let engine = MemoryEngine::new();
    let _ = engine.put_many(objects);
    let _ = read_domain(&engine);
}

/// Reads and checks all that can be reached.
fn read_domain(engine: &MemoryEngine) -> Result<()> {
    let session = Arc::new(HsdsSession::open(Box::new(engine.reader()), &request(Mode::Read))?);
    let _ = check_domain(&session, StoreCheckOptions { verify_data: true, ..StoreCheckOptions::default() });
    let store = HsdsStore::open(engine.reader(), &request(Mode::Read))?;
    conformance::sample_reads_ignoring_errors(&store);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sound_domain_is_read_and_changed_objects_end_no_reader() {
        assert!(sample().len() >= 6);
        let engine = MemoryEngine::new();
        engine.put_many(sample().to_vec()).unwrap();
        read_domain(&engine).unwrap();
        // A small generator of numbers, so that each run is the same.
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below.max(1)
        };
        for number in 0..500 {
            let number = number as u8;
            let documents: Vec<&ObjectPut> = sample().iter().filter(|put| is_document(put)).collect();
            let chunks: Vec<&ObjectPut> = sample().iter().filter(|put| !is_document(put)).collect();
            for (objects, read) in
                [(documents, read_domain_with_changed_document as fn(&[u8])), (chunks, read_domain_with_changed_chunk)]
            {
                let mut bytes = objects[usize::from(number) % objects.len()].bytes.clone();
                for _ in 0..=random(3) {
                    let at = random(bytes.len());
                    match random(8) {
                        0 => bytes.truncate(at),
                        1 => bytes.extend_from_slice(&[0xff; 3]),
                        _ => bytes.get_mut(at).into_iter().for_each(|byte| *byte = random(256) as u8),
                    }
                }
                read(&[&[number][..], &bytes].concat());
            }
        }
    }
}

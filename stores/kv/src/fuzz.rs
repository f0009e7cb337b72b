//! The body of a fuzz target: a container in which one value has other bytes. Whatever they are, reading it ends, with errors
//! or values.

use std::sync::{Arc, OnceLock};

use h5live_model::{
    AllocationLimit, AttributeData, ByteOrder, CharacterSet, ChunkCoord, CreationOrder, DatasetSpec, Dataspace,
    Datatype, DurabilitySupport, GroupSpec, Layout, LinkOrAttributeStorageSpec, LinkTarget, MapEdit, MapKey, MapSpec,
    Mode, NewObject, NoFilters, ObjectKindSpec, ObjectScope, ObjectSpec, PublishLevel, Result, Shape, Sign, Store,
    StoreCheckOptions, StringPadding, VarLenKind, VarLenType, conformance,
};

use crate::engine::{EditBatch, Engine, KeySpan, LongKeyEngine, MemoryEngine};
use crate::{KvOpenRequest, KvStore, check_container};

/// Most bytes that a length in a value may make the reader allocate.
const MAX_ALLOCATION: u64 = 1 << 24;

/// Keys and values.
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn request(mode: Mode) -> KvOpenRequest {
    let order = LinkOrAttributeStorageSpec { order: CreationOrder::Indexed, ..LinkOrAttributeStorageSpec::default() };
    let root = ObjectKindSpec::Group(GroupSpec { link_storage: order });
    KvOpenRequest {
        mode,
        root: ObjectSpec { attribute_storage: order, ..root.into() },
        durability: DurabilitySupport::Always,
        max_allocation: AllocationLimit::new(MAX_ALLOCATION),
        filter_engine: Arc::new(NoFilters),
        max_uncommitted_bytes: KvOpenRequest::DEFAULT_MAX_UNCOMMITTED_BYTES,
        blob_id_seed: 1,
        // With checksums, no other value would be looked at.
        checksum_new_container: false,
    }
}

fn text(size: u32) -> Datatype {
    let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: CharacterSet::Utf8 };
    Datatype::VarLen(VarLenType { kind, size, base: Box::new(Datatype::fixed_string(1, CharacterSet::Utf8)) })
}

fn fill(store: &KvStore) -> Result<()> {
    let (writer, root) = (store.writer()?, store.session().root);
    let integer = Datatype::integer(4, ByteOrder::Little, Sign::Signed);
    let text = text(store.session().vlen_and_reference_sizes.vlen);
    let numbers = DatasetSpec {
        datatype: integer.clone(),
        dataspace: Dataspace::Simple(Shape::fixed(&[8])),
        layout: Layout::Chunked(vec![4]),
        ..DatasetSpec::default()
    };
    let numbers = writer.create(&NewObject::linked(root, &"numbers".into(), &numbers.into()))?;
    store.dataset(numbers)?.write_whole_chunk(&ChunkCoord::new(&[1]), 0, &[7; 16])?;
    let texts = DatasetSpec {
        datatype: text.clone(),
        dataspace: Dataspace::Simple(Shape::fixed(&[2])),
        ..DatasetSpec::default()
    };
    let texts = writer.create(&NewObject::linked(root, &"texts".into(), &texts.into()))?;
    let elements = [writer.put_blob(b"one", 3)?, writer.put_blob(b"", 0)?].concat();
    store.dataset(texts)?.write_whole_chunk(&ChunkCoord::new(&[0]), 0, &elements)?;
    let value = writer.put_blob(b"a title", 7)?;
    let (name, dataspace, committed, creation_order) = ("title".into(), Dataspace::Scalar, None, None);
    let title =
        AttributeData { name, datatype: text.clone(), committed_datatype: committed, dataspace, value, creation_order };
    writer.set_attribute(root, &title)?;
    writer.add_link(root, &"soft".into(), &LinkTarget::Soft("/numbers".into()))?;
    let map = ObjectSpec::from(MapSpec { key_type: integer, value_type: text });
    let map = writer.create(&NewObject::linked(root, &"map".into(), &map))?;
    let value = writer.put_blob(b"a value", 7)?;
    if let Some(maps) = store.maps() {
        maps.write(map, &[MapEdit::Put { key: MapKey::Bytes(&[1, 0, 0, 0]), value: &value }])?;
    }
    writer.commit(ObjectScope::All, PublishLevel::Visible)
}

fn make_sample() -> Result<Pairs> {
    let engine = MemoryEngine::new();
    let store = KvStore::open(LongKeyEngine::new(engine.clone()), &request(Mode::CreateNew))?;
    fill(&store)?;
    store.close()?;
    let mut pairs = Pairs::new();
    let scanned = engine.view().and_then(|view| {
        view.scan(&KeySpan::all(), &mut |key, value| {
            pairs.push((key.to_vec(), value.to_vec()));
            true
        })
    });
    scanned.map(|()| pairs).map_err(Into::into)
}

/// The keys and values of a sound container.
fn sample() -> &'static Pairs {
    static SAMPLE: OnceLock<Pairs> = OnceLock::new();
    SAMPLE.get_or_init(|| make_sample().unwrap_or_default())
}

fn engine_of(pairs: &Pairs) -> Result<MemoryEngine> {
    let (engine, mut edits) = (MemoryEngine::new(), EditBatch::new());
    for (key, value) in pairs {
        edits.put(key, value.clone());
    }
    engine.commit(&edits, PublishLevel::Visible)?;
    Ok(engine)
}

/// Reads a container in which one value has other bytes: the first byte says which, the others are its bytes.
pub fn read_container_with_changed_value(data: &[u8]) {
    let Some((number, bytes)) = data.split_first() else { return };
    let mut pairs = sample().clone();
    let place = usize::from(*number) % pairs.len().max(1);
    if let Some((_, value)) = pairs.get_mut(place) {
        *value = bytes.to_vec();
    }
    if let Ok(engine) = engine_of(&pairs) {
        let _ = read_container(&engine);
    }
}

/// Reads and checks all that can be reached.
fn read_container(engine: &MemoryEngine) -> Result<()> {
    let what = StoreCheckOptions { verify_data: true, find_lost_domains: true };
    let _ =
        check_container(&LongKeyEngine::new(engine.reader()), what, &NoFilters, AllocationLimit::new(MAX_ALLOCATION));
    let store = KvStore::open(LongKeyEngine::new(engine.reader()), &request(Mode::Read))?;
    conformance::sample_reads_ignoring_errors(&store);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sound_container_is_read_and_changed_values_end_no_reader() {
        assert!(sample().len() >= 20, "{} values", sample().len());
        let engine = engine_of(sample()).unwrap();
        read_container(&engine).unwrap();
        let what = StoreCheckOptions { verify_data: true, find_lost_domains: true };
        let report = check_container(
            &LongKeyEngine::new(engine.reader()),
            what,
            &NoFilters,
            AllocationLimit::new(MAX_ALLOCATION),
        )
        .unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        // A small generator of numbers, so that each run is the same.
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below.max(1)
        };
        for number in 0..2000 {
            let place = number % sample().len();
            let mut bytes = sample()[place].1.clone();
            for _ in 0..=random(3) {
                let at = random(bytes.len());
                match random(8) {
                    0 => bytes.truncate(at),
                    1 => bytes.extend_from_slice(&[0xff; 3]),
                    _ => bytes.get_mut(at).into_iter().for_each(|byte| *byte = random(256) as u8),
                }
            }
            read_container_with_changed_value(&[&[place as u8][..], &bytes].concat());
        }
    }
}

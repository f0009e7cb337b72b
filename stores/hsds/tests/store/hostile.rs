//! Objects with other bytes than they should have: errors, and never a panic.

use crate::shared;

use h5live_hsds::HsdsStore;
use h5live_hsds::engine::{MemoryEngine, ObjectEngine, ObjectPut};
use h5live_model::{
    AttributeData, ByteOrder, CharacterSet, ChunkCoord, CompoundMember, CompoundType, DatasetSpec, Dataspace, Datatype,
    Fill, FillValue, FilterSpec, Layout, LinkTarget, Mode, Name, NewObject, ObjectId, Shape, Sign, Store,
    StringPadding, VarLenKind, VarLenType,
};

use self::shared::request;

fn text() -> Datatype {
    let character_set = CharacterSet::Utf8;
    let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set };
    Datatype::VarLen(VarLenType { kind, size: 16, base: Box::new(Datatype::fixed_string(1, character_set)) })
}

/// A domain with a group, a compressed dataset, one of texts, and attributes.
fn sample() -> MemoryEngine {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "run")).unwrap();
    let (writer, root) = (store.writer().unwrap(), store.session().root);
    let number = Datatype::integer(4, ByteOrder::Little, Sign::Signed);
    let members = ["a", "b"].into_iter().zip([0, 4]);
    let members = members.map(|(name, offset)| CompoundMember { name: name.into(), offset, datatype: number.clone() });
    let record = Datatype::Compound(CompoundType { size: 12, members: members.collect() });
    let deflate = FilterSpec { id: 1, params: vec![6], ..FilterSpec::default() };
    let zipped = DatasetSpec {
        datatype: record,
        dataspace: Dataspace::Simple(Shape::fixed(&[64])),
        layout: Layout::Chunked(vec![64]),
        filters: vec![deflate],
        fill: Fill { value: FillValue::Value(vec![1; 12]), ..Fill::default() },
        ..DatasetSpec::default()
    };
    let texts =
        DatasetSpec { datatype: text(), dataspace: Dataspace::Simple(Shape::fixed(&[3])), ..DatasetSpec::default() };
    let zipped = writer.create(&NewObject::linked(root, &"zipped".into(), &zipped.into())).unwrap();
    let zeros: Vec<u8> = (0..64u32).flat_map(|n| [(n % 7) as u8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]).collect();
    store.dataset(zipped).unwrap().write_whole_chunk(&ChunkCoord::new(&[0]), 0, &zeros).unwrap();
    let texts = writer.create(&NewObject::linked(root, &"texts".into(), &texts.into())).unwrap();
    let elements: Vec<u8> = ["one", "", "three"]
        .iter()
        .flat_map(|text| writer.put_blob(text.as_bytes(), text.len() as u32).unwrap())
        .collect();
    store.dataset(texts).unwrap().write_whole_chunk(&ChunkCoord::new(&[0]), 0, &elements).unwrap();
    let value = writer.put_blob("attribute".as_bytes(), 9).unwrap();
    let attribute = AttributeData {
        name: "title".into(),
        datatype: text(),
        committed_datatype: None,
        dataspace: Dataspace::Scalar,
        value,
        creation_order: None,
    };
    writer.set_attribute(texts, &attribute).unwrap();
    store.close().unwrap();
    engine
}

/// Reads all that can be reached. Says whether everything could be read.
fn read_all(engine: &MemoryEngine) -> bool {
    let Ok(store) = HsdsStore::open(engine.reader(), &request(Mode::Read, "run")) else { return false };
    let mut links: Vec<(Name, ObjectId)> = Vec::new();
    let listed = store.for_each_link(store.session().root, &mut |link| {
        if let LinkTarget::Hard(id) = link.target {
            links.push((link.name, id));
        }
        true
    });
    let mut is_sound = listed.is_ok() && links.len() == 2;
    for (_, id) in links {
        is_sound &= store.spec(id).is_ok() & store.info(id).is_ok();
        let mut values = Vec::new();
        is_sound &= store
            .for_each_attribute(id, &mut |found| {
                values.push(found);
                true
            })
            .is_ok();
        for value in values.iter().filter(|found| found.datatype.has_vlen()) {
            is_sound &= store.read_blobs(&[&value.value], &mut |_, _| {}).is_ok();
        }
        let Ok(data) = store.dataset(id) else {
            is_sound = false;
            continue;
        };
        is_sound &= match data.locate(&ChunkCoord::new(&[0])) {
            Ok(Some(chunk)) => {
                let mut bytes = vec![0; (chunk.size as usize).min(1 << 20)];
                let read = data.read(&chunk, 0, &mut bytes);
                let is_text = data.spec().is_ok_and(|spec| spec.datatype.has_vlen());
                let elements: Vec<&[u8]> = if is_text { bytes.chunks(16).collect() } else { Vec::new() };
                read.is_ok() && store.read_blobs(&elements, &mut |_, _| {}).is_ok()
            }
            _ => false,
        };
    }
    is_sound
}

#[test]
fn damaged_objects_are_errors_or_other_values() {
    let engine = sample();
    assert!(read_all(&engine));
    let mut refused = 0;
    for key in engine.keys() {
        let sound = engine.get(&key).unwrap().unwrap().bytes.to_vec();
        let put = |bytes: Vec<u8>| drop(engine.put_many(vec![ObjectPut { key: key.clone(), bytes }]).unwrap());
        let mut damaged: Vec<Vec<u8>> =
            (0..sound.len()).step_by(1 + sound.len() / 64).map(|end| sound[..end].into()).collect();
        for at in 0..sound.len() {
            for byte in [0, b'"', b'9', b'-', b'}', 0xff] {
                let mut bytes = sound.clone();
                bytes[at] = byte;
                damaged.push(bytes);
            }
        }
        for bytes in damaged {
            put(bytes);
            refused += u32::from(!read_all(&engine));
        }
        put(sound);
    }
    assert!(refused > 1000, "{refused}");
    assert!(read_all(&engine));
}

#[test]
fn members_of_every_other_form_are_errors_or_other_values() {
    let engine = sample();
    let keys = engine.keys().into_iter().filter(|key| key.ends_with(".json"));
    for key in keys {
        let sound = engine.get(&key).unwrap().unwrap().bytes.to_vec();
        let document: serde_json::Value = serde_json::from_slice(&sound).unwrap();
        let mut paths = Vec::new();
        collect_paths(&document, String::new(), &mut paths);
        for path in paths {
            for other in ["null", "1", "-1", "1e300", "18446744073709551615", "\"x\"", "[]", "{}", "[[1]]", "true"] {
                let mut changed = document.clone();
                *changed.pointer_mut(&path).unwrap() = serde_json::from_str(other).unwrap();
                let bytes = serde_json::to_vec(&changed).unwrap();
                engine.put_many(vec![ObjectPut { key: key.clone(), bytes }]).unwrap();
                read_all(&engine);
            }
        }
        engine.put_many(vec![ObjectPut { key: key.clone(), bytes: sound }]).unwrap();
    }
    assert!(read_all(&engine));
}

fn collect_paths(value: &serde_json::Value, at: String, into: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, value) in members {
                collect_paths(value, format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), into);
            }
        }
        serde_json::Value::Array(list) => {
            for (number, value) in list.iter().enumerate() {
                collect_paths(value, format!("{at}/{number}"), into);
            }
        }
        _ => {}
    }
    into.push(at);
}

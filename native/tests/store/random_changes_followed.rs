//! Every kind of change of a live file, in random order, followed by a reader that was there from the start: after each
//! flush it finds what the writer has, while space that was given up is used again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use h5live_cache::MemoryStorage;
use h5live_model::{
    AllocationTime, AttributeData, ByteOrder, ChunkCoord, ChunkStore, DatasetSpec, Dataspace, Datatype, FilterSpec,
    Layout, Link, LinkTarget, Name, NewObject, ObjectId, ObjectKind, ObjectKindSpec, ObjectScope, ObjectSpec,
    PublishLevel, Shape, Sign, Store, StoreWriter, UNLIMITED, VarLenKind, VarLenType, read_blob,
};
use h5live_native::{Clock, Mode, NativeFile, OpenOptions};

/// A small generator, so that each run is the same.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn byte() -> Datatype {
    Datatype::integer(1, ByteOrder::Little, Sign::Unsigned)
}

fn texts() -> Datatype {
    Datatype::VarLen(VarLenType { kind: VarLenKind::Sequence, size: 16, base: Box::new(byte()) })
}

/// One dataset of each way to store one.
fn dataset(kind: u64) -> DatasetSpec {
    let shape = |dims: &[u64], max: &[u64]| Dataspace::Simple(Shape::with_max(dims, max).unwrap());
    let chunked = |dims: &[u64], max: &[u64], chunk: &[u64]| DatasetSpec {
        datatype: byte(),
        dataspace: shape(dims, max),
        layout: Layout::Chunked(chunk.to_vec()),
        ..DatasetSpec::default()
    };
    let filters = vec![FilterSpec { id: 1, ..FilterSpec::default() }];
    match kind {
        0 => chunked(&[0, 40], &[UNLIMITED, 40], &[2, 20]),
        1 => DatasetSpec { filters, ..chunked(&[0, 40], &[UNLIMITED, 40], &[2, 20]) },
        2 => chunked(&[0, 0], &[UNLIMITED, UNLIMITED], &[2, 20]),
        3 => DatasetSpec { filters, ..chunked(&[0, 0], &[UNLIMITED, UNLIMITED], &[2, 20]) },
        4 => chunked(&[6, 40], &[60, 40], &[2, 20]),
        5 => DatasetSpec { filters, ..chunked(&[6, 40], &[60, 40], &[2, 20]) },
        6 => chunked(&[4, 40], &[4, 40], &[4, 40]),
        7 => DatasetSpec { filters, ..chunked(&[4, 40], &[4, 40], &[4, 40]) },
        8 => {
            let mut spec = chunked(&[6, 40], &[60, 40], &[2, 20]);
            spec.fill.allocation = AllocationTime::Early;
            spec
        }
        9 => DatasetSpec { layout: Layout::Contiguous, ..chunked(&[6, 40], &[6, 40], &[2, 20]) },
        10 => DatasetSpec { layout: Layout::Compact, ..chunked(&[6, 4], &[6, 4], &[2, 4]) },
        _ => DatasetSpec { datatype: texts(), ..chunked(&[0], &[UNLIMITED], &[2]) },
    }
}

const KINDS: u64 = 12;

fn hard(target: &LinkTarget) -> Option<ObjectId> {
    match target {
        LinkTarget::Hard(id) => Some(*id),
        _ => None,
    }
}

fn links(file: &NativeFile, group: ObjectId) -> BTreeMap<Name, LinkTarget> {
    let mut links = BTreeMap::new();
    file.for_each_link(group, &mut |Link { name, target, .. }| {
        assert!(links.insert(name, target).is_none(), "a link is there twice");
        true
    })
    .unwrap();
    links
}

fn values(file: &NativeFile, datatype: &Datatype, bytes: &[u8]) -> String {
    match datatype {
        Datatype::VarLen(_) => {
            bytes.chunks(16).map(|element| format!("{:?} ", read_blob(file, element).unwrap())).collect()
        }
        _ => format!("{bytes:?}"),
    }
}

/// All that is in a file, by path.
fn tell(file: &NativeFile, held: &mut BTreeMap<ObjectId, Arc<dyn ChunkStore>>) -> BTreeMap<String, String> {
    let mut contents = BTreeMap::new();
    let mut waiting = vec![(String::new(), file.session().root)];
    while let Some((path, id)) = waiting.pop() {
        file.for_each_attribute(id, &mut |attribute: AttributeData| {
            let value = values(file, &attribute.datatype, &attribute.value);
            contents
                .insert(format!("{path} @{:?}", attribute.name), value)
                .is_none_or(|_| panic!("an attribute is there twice"))
        })
        .unwrap();
        match file.kind(id).unwrap() {
            ObjectKind::Group => {
                for (name, target) in links(file, id) {
                    let path = format!("{path}/{name:?}");
                    contents.insert(path.clone(), format!("{target:?}"));
                    waiting.extend(hard(&target).map(|id| (path, id)));
                }
            }
            ObjectKind::Dataset => {
                let data = held.entry(id).or_insert_with(|| file.dataset(id).unwrap());
                data.refresh().unwrap();
                let spec = data.spec().unwrap();
                contents.insert(format!("{path} dims"), format!("{:?}", spec.dataspace.dims()));
                let mut chunks = Vec::new();
                data.for_each_chunk(&mut |chunk| {
                    chunks.push(chunk);
                    true
                })
                .unwrap();
                for chunk in chunks {
                    let mut bytes = vec![0; chunk.size as usize];
                    data.read(&chunk, 0, &mut bytes).unwrap();
                    assert_eq!(data.locate(&chunk.coord).unwrap().as_ref(), Some(&chunk));
                    contents.insert(format!("{path} {:?}", chunk.coord), values(file, &spec.datatype, &bytes));
                }
            }
            _ => drop(
                contents
                    .insert(format!("{path} type"), format!("{:?}", file.spec(id).unwrap().into_datatype().unwrap())),
            ),
        }
    }
    contents
}

/// The groups and datasets of a file.
fn objects(file: &NativeFile) -> (Vec<ObjectId>, Vec<ObjectId>) {
    let (mut groups, mut datasets) = (vec![file.session().root], Vec::new());
    let mut next = 0;
    while let Some(group) = groups.get(next).copied() {
        next += 1;
        for id in links(file, group).values().filter_map(hard) {
            match file.kind(id).unwrap() {
                ObjectKind::Group if !groups.contains(&id) => groups.push(id),
                ObjectKind::Dataset if !datasets.contains(&id) => datasets.push(id),
                _ => {}
            }
        }
    }
    (groups, datasets)
}

fn write(file: &NativeFile, id: ObjectId, random: &mut Random) {
    let data = file.dataset(id).unwrap();
    let spec = data.spec().unwrap();
    let (dims, max) = (spec.dataspace.dims().to_vec(), spec.dataspace.max_dims().to_vec());
    let grown: Vec<u64> = dims.iter().zip(&max).map(|(now, max)| (now + random.below(9)).min(*max)).collect();
    let Some(grid) = spec.grid_or_single_chunk() else { return };
    for _ in 0..1 + random.below(4) {
        if grown.contains(&0) {
            break;
        }
        let ends = grown.iter().zip(h5live_model::ChunkGrid::chunk_dims(&grid));
        let coord: Vec<u64> = ends.map(|(end, chunk)| random.below(end.div_ceil(*chunk))).collect();
        let bytes = if let Datatype::VarLen(_) = spec.datatype {
            (0..2)
                .flat_map(|_| {
                    let text = vec![random.below(256) as u8; random.below(300) as usize];
                    file.put_blob(&text, text.len() as u32).unwrap()
                })
                .collect()
        } else {
            let len =
                if spec.filters.is_empty() { spec.chunk_bytes_or_total().unwrap() } else { 1 + random.below(100) };
            vec![random.below(256) as u8; len as usize]
        };
        data.write_whole_chunk(&ChunkCoord::new(&coord), 0, &bytes).unwrap();
    }
    if grown != dims {
        data.set_extent(&grown).unwrap();
    }
}

fn change(file: &NativeFile, random: &mut Random, serial: u64) {
    let (groups, datasets) = objects(file);
    let group = groups[random.below(groups.len() as u64) as usize];
    let name = |prefix: &str, n: u64| Name::from(&*format!("{prefix} {n} {}", "x".repeat(n as usize % 23)));
    let some = links(file, group);
    let pick = |random: &mut Random| some.iter().nth(random.below(some.len().max(1) as u64) as usize);
    match random.below(14) {
        0 => drop(file.create(&NewObject::linked(group, &name("group", serial), &ObjectSpec::group())).unwrap()),
        1 => {
            let spec = ObjectSpec { body: ObjectKindSpec::Datatype(texts()), ..ObjectSpec::group() };
            file.create(&NewObject::linked(group, &name("type", serial), &spec)).unwrap();
        }
        2 | 3 => {
            let spec = dataset(random.below(KINDS));
            file.create(&NewObject::linked(group, &name("data", serial), &spec.into())).unwrap();
        }
        4 => file.add_link(group, &name("soft", serial), &LinkTarget::Soft("/nowhere".into())).unwrap(),
        5 => {
            if let Some(id) = datasets.first() {
                file.add_link(group, &name("again", serial), &LinkTarget::Hard(*id)).unwrap();
            }
        }
        6 => {
            if let Some((name, _)) = pick(random) {
                file.remove_link(group, name).unwrap();
            }
        }
        7 => {
            if let Some((old, LinkTarget::Soft(_))) = pick(random) {
                file.rename_link((group, old), (file.session().root, &name("renamed", serial))).unwrap();
            }
        }
        8 | 9 => {
            let value = vec![random.below(256) as u8; 1 + random.below(200) as usize];
            let dataspace = Dataspace::Simple(Shape::fixed(&[value.len() as u64]));
            let attribute = AttributeData {
                name: name("attribute", random.below(30)),
                datatype: byte(),
                committed_datatype: None,
                dataspace,
                value,
                creation_order: None,
            };
            file.set_attribute(group, &attribute).unwrap();
        }
        10 => {
            let names = file.attribute_names(group).unwrap();
            if let Some(name) = names.get(random.below(names.len().max(1) as u64) as usize) {
                file.remove_attribute(group, name).unwrap();
            }
        }
        11 => {
            if let Some(id) = datasets.get(random.below(datasets.len().max(1) as u64) as usize) {
                let data = file.dataset(*id).unwrap();
                let dims = data.spec().unwrap().dataspace.dims().to_vec();
                if matches!(data.spec().unwrap().layout, Layout::Chunked(_))
                    && data.spec().unwrap().dataspace.max_dims() != dims
                {
                    data.set_extent(&dims.iter().map(|n| n - random.below(n + 1).min(*n)).collect::<Vec<_>>()).unwrap();
                }
            }
        }
        _ => {
            if let Some(id) = datasets.get(random.below(datasets.len().max(1) as u64) as usize) {
                write(file, *id, random);
            }
        }
    }
}

fn follow(seed: u64, changes: u64) {
    let time = Arc::new(AtomicU64::new(0));
    let shown = time.clone();
    let clock = Clock::new(move || Duration::from_millis(shown.load(Relaxed)));
    let storage = MemoryStorage::new();
    let options = |mode| OpenOptions { mode, clock: clock.clone(), ..OpenOptions::default() };
    let writer = NativeFile::open_storage(Arc::new(storage.clone()), &options(Mode::Create)).unwrap();
    writer.start_swmr().unwrap();
    let reader = NativeFile::open_storage(Arc::new(storage.clone()), &options(Mode::SwmrRead)).unwrap();
    let (mut random, mut held) = (Random(seed), BTreeMap::new());
    for n in 0..changes {
        change(&writer, &mut random, n);
        if random.below(3) == 0 {
            writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            let (contents, seen) = (tell(&writer, &mut BTreeMap::new()), tell(&reader, &mut held));
            if contents != seen {
                let only = |a: &BTreeMap<String, String>, b: &BTreeMap<String, String>| {
                    a.iter()
                        .filter(|(key, value)| b.get(*key) != Some(value))
                        .map(|(key, _)| key.clone())
                        .collect::<Vec<_>>()
                };
                panic!(
                    "seed {seed}, change {n}: the writer alone has {:?}, the reader {:?}",
                    only(&contents, &seen),
                    only(&seen, &contents)
                );
            }
            // Handles of what is no more are dropped, as their addresses are never used for another object.
            held.retain(|id, _| reader.kind(*id).is_ok());
            time.fetch_add(random.below(4000), Relaxed);
        }
    }
    writer.close().unwrap();
    let last = tell(&NativeFile::open_storage(Arc::new(storage), &options(Mode::Read)).unwrap(), &mut BTreeMap::new());
    assert_eq!(last, tell(&reader, &mut held), "seed {seed}");
}

#[test]
fn a_reader_follows_every_kind_of_change() {
    (0..8).for_each(|seed| follow(seed, 400));
}

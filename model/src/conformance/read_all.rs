//! Reads everything that can be reached in a store, whatever it is: for stores whose objects were damaged.

use std::collections::{BTreeSet, VecDeque};

use crate::{LinkTarget, MapKeyBuf, MapScan, ObjectId, Store, StoredChunk};

/// Most objects that are read.
const MAX_OBJECTS: usize = 256;
/// Most chunks of a dataset, and pairs of a map, that are read.
const MAX_PARTS: usize = 16;
/// Most bytes of a chunk that are read.
const MAX_CHUNK_BYTES: u64 = 1 << 24;
/// Most elements of which it is looked up where they lead.
const MAX_ELEMENTS: usize = 64;

/// Reads all objects, attributes, chunks, pairs and variable-length data. Errors are passed over: a damaged store may have
/// any.
pub fn sample_reads_ignoring_errors(store: &dyn Store) {
    let (mut seen, mut next) = (BTreeSet::new(), VecDeque::from([store.session().root]));
    while let Some(id) = next.pop_front() {
        if seen.len() >= MAX_OBJECTS || !seen.insert(id) {
            continue;
        }
        read_object(store, id);
        let mut links = Vec::new();
        let _ = store.for_each_link(id, &mut |link| {
            links.push(link);
            links.len() < MAX_OBJECTS
        });
        for link in links {
            let _ = store.link(id, &link.name);
            if let LinkTarget::Hard(id) = link.target {
                next.push_back(id);
            }
        }
    }
}

fn read_object(store: &dyn Store, id: ObjectId) {
    let _ = (store.spec(id), store.info(id), store.attribute_names(id));
    let mut values = Vec::new();
    let _ = store.for_each_attribute(id, &mut |found| {
        values.push(found);
        values.len() < MAX_OBJECTS
    });
    for value in values.iter().filter(|found| found.datatype.has_vlen()) {
        read_blobs(store, &value.value);
    }
    read_pairs(store, id);
    let Ok(data) = store.dataset(id) else { return };
    let mut chunks: Vec<StoredChunk> = Vec::new();
    let _ = data.for_each_chunk(&mut |chunk| {
        chunks.push(chunk);
        chunks.len() < MAX_PARTS
    });
    for chunk in chunks {
        let mut bytes = vec![0; chunk.size.min(MAX_CHUNK_BYTES) as usize];
        if data.read(&chunk, 0, &mut bytes).is_ok() {
            read_blobs(store, &bytes);
        }
    }
}

/// Looks up where elements lead.
fn read_blobs(store: &dyn Store, bytes: &[u8]) {
    let size = (store.session().vlen_and_reference_sizes.vlen as usize).max(1);
    let elements: Vec<&[u8]> = bytes.chunks_exact(size).take(MAX_ELEMENTS).collect();
    let _ = store.read_blobs(&elements, &mut |_, _| {});
}

fn read_pairs(store: &dyn Store, id: ObjectId) {
    let Some(maps) = store.maps() else { return };
    let _ = maps.len(id);
    let mut pairs: Vec<(MapKeyBuf, Vec<u8>)> = Vec::new();
    let _ = maps.for_each(id, &MapScan::default(), &mut |key, value| {
        pairs.push((key.to_buf(), value.to_vec()));
        pairs.len() < MAX_PARTS
    });
    for (key, value) in pairs {
        read_blobs(store, &value);
        let _ = maps.get(id, &[key.as_key()], &mut |_, _| {});
    }
}

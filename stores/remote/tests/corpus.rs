//! Real files, read as objects, are what they are as files: `H5LIVE_SHARED`, else `shared` beside the repository or in it,
//! with a folder `corpus`.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use h5live_model::{
    AttributeData, ChunkCoord, ChunkReadRequest, ChunkReadStrategy, ChunkStore, Error, LinkTarget, Mode, ObjectId,
    ObjectKind, ObjectSpec, Store,
};
use h5live_native::{NativeFile, OpenOptions};
use h5live_objects::ObjectClient;
use h5live_remote::{ObjectBackedStorage, Remote};

/// Files that name other files of this machine, which nobody opens for what is on an object store.
const CUT_FILES: &str = "cut into several";
const RAW_FILES: &str = "is not in the file system";

/// What the names of files have that are cut into several. Old ones do not say so: alone, they are too short.
const FAMILY: &str = "family";

/// Most chunks of a dataset that are compared.
const MAX_CHUNKS: usize = 3000;

fn open_as_object(path: &Path) -> Result<NativeFile, String> {
    let client = ObjectClient::folder(path.parent().unwrap(), false).map_err(|error| error.to_string())?;
    // So that there are many blocks, and few of them are kept.
    let options = Remote { block_size: 4 << 10, first_read: 4 << 10, cache_size: 64 << 10, ..Remote::default() };
    let key = path.file_name().unwrap().to_str().unwrap();
    let storage = ObjectBackedStorage::open(client, key, &options).map_err(|error| error.to_string())?;
    let options = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
    NativeFile::open_storage(Arc::new(storage), &options).map_err(|error| error.to_string())
}

/// What an object is, apart from its elements.
type Described = (ObjectKind, ObjectSpec, Vec<AttributeData>, Vec<(Vec<u8>, LinkTarget)>);

fn describe(store: &dyn Store, id: ObjectId) -> Result<Described, Error> {
    let (mut attributes, mut links) = (Vec::new(), Vec::new());
    store.for_each_attribute(id, &mut |attribute| {
        attributes.push(attribute);
        true
    })?;
    if store.kind(id)? == ObjectKind::Group {
        store.for_each_link(id, &mut |link| {
            links.push((link.name.as_bytes().to_vec(), link.target));
            true
        })?;
    }
    Ok((store.kind(id)?, store.spec(id)?, attributes, links))
}

/// The stored bytes of chunks by many reads at a time.
fn read_together(chunks: &dyn ChunkStore, coords: &[ChunkCoord]) -> Result<Vec<Vec<u8>>, Error> {
    let wanted: Vec<_> = coords.iter().map(|coord| ChunkReadRequest { coord, byte_range: None }).collect();
    let found = Mutex::new(vec![Vec::new(); coords.len()]);
    chunks.read_many(&wanted, 512 << 20, &|number, bytes| {
        found.lock().unwrap()[number] = bytes.map_or_else(Vec::new, |found| found.bytes.to_vec());
        Ok(())
    })?;
    Ok(found.into_inner().unwrap())
}

fn read_alone(chunks: &dyn ChunkStore, coords: &[ChunkCoord]) -> Result<Vec<Vec<u8>>, Error> {
    let read = |coord: &ChunkCoord| -> Result<Vec<u8>, Error> {
        // In a damaged file, a chunk may be listed and not be found.
        let Some(chunk) = chunks.locate(coord)? else { return Ok(Vec::new()) };
        let mut bytes = vec![0; chunk.size as usize];
        chunks.read(&chunk, 0, &mut bytes)?;
        Ok(bytes)
    };
    coords.iter().map(read).collect()
}

fn compare_chunks(path: &Path, file: &dyn ChunkStore, object: &dyn ChunkStore) -> usize {
    let (mut coords, mut bytes) = (Vec::new(), 0);
    let list = |chunks: &dyn ChunkStore, coords: &mut Vec<ChunkCoord>, bytes: &mut u64| {
        chunks.for_each_chunk(&mut |chunk| {
            *bytes += chunk.size;
            coords.push(chunk.coord);
            coords.len() < MAX_CHUNKS && *bytes < 64 << 20
        })
    };
    if list(file, &mut coords, &mut bytes).is_err() {
        assert!(list(object, &mut Vec::new(), &mut 0).is_err(), "{}", path.display());
        return 0;
    }
    match (read_alone(file, &coords), read_together(object, &coords)) {
        (Ok(alone), Ok(together)) => assert!(alone == together, "{}: {}", path.display(), file.id()),
        (Err(_), Err(_)) => {}
        (Ok(_), Err(error)) => assert!(format!("{error:?}").contains(RAW_FILES), "{}: {error:?}", path.display()),
        (Err(error), Ok(_)) => panic!("{}: only the file is damaged: {error}", path.display()),
    }
    coords.len()
}

/// Compares all objects. Returns their number, and that of chunks.
fn compare(path: &Path, file: &NativeFile, object: &NativeFile) -> (usize, usize) {
    let reads = object.session().capabilities.reads;
    assert!(matches!(reads, ChunkReadStrategy::Batched { .. }), "{}: {reads:?}", path.display());
    let (mut left, mut seen, mut chunks) = (vec![file.session().root], HashSet::new(), 0);
    while let Some(id) = left.pop() {
        if !seen.insert(id) {
            continue;
        }
        match (describe(file, id), describe(object, id)) {
            (Ok(of_file), Ok(of_object)) => {
                assert!(of_file == of_object, "{}: {id}", path.display());
                for (_, target) in of_file.3 {
                    left.extend(if let LinkTarget::Hard(id) = target { Some(id) } else { None });
                }
            }
            (Err(_), Err(_)) => continue,
            (of_file, of_object) => panic!("{}: {id}: {of_file:?} {of_object:?}", path.display()),
        }
        if let (Ok(file), Ok(object)) = (file.dataset(id), object.dataset(id)) {
            chunks += compare_chunks(path, &*file, &*object);
        }
    }
    (seen.len(), chunks)
}

fn is_of_family(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().contains(FAMILY))
}

#[test]
fn a_file_is_the_same_as_an_object() {
    let Some(corpus) = h5live_test_support::corpus() else { return };
    let paths = h5live_test_support::files_below(&corpus);
    let (mut opened, mut objects, mut chunks, mut cut) = (0, 0, 0, 0);
    for path in paths {
        let options = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
        let (file, object) = (NativeFile::open(&path, &options), open_as_object(&path));
        let (file, object) = match (file, object) {
            (Ok(file), Ok(object)) => (file, object),
            (Ok(_), Err(error)) if error.contains(CUT_FILES) || is_of_family(&path) => {
                cut += 1;
                continue;
            }
            (Err(_), Err(_)) => continue,
            (file, object) => panic!("{}: {:?} {:?}", path.display(), file.err(), object.err()),
        };
        let found = compare(&path, &file, &object);
        (opened, objects, chunks) = (opened + 1, objects + found.0, chunks + found.1);
    }
    println!("{opened} files, {objects} objects, {chunks} chunks; {cut} files are cut into several");
    assert!(opened > 250, "{opened}");
}

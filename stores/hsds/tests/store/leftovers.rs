//! What a dead writer has left beyond the extent of a dataset does not become elements when the dataset grows.

use std::sync::Arc;

use h5live_hsds::HsdsStore;
use h5live_hsds::engine::MemoryEngine;
use h5live_model::{
    ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Dataspace, Datatype, Fill, FillValue,
    Layout, LinkTarget, Mode, NewObject, PublishLevel, Shape, Sign, Store, UNLIMITED,
};

use crate::shared::request;

const FILL: u8 = 7;

/// A domain with a dataset of this extent, in chunks of these dimensions, whose elements are all 1.
fn domain(extent: &[u64], chunk: &[u64]) -> MemoryEngine {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "run")).unwrap();
    let spec = DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::with_max(extent, &vec![UNLIMITED; extent.len()]).unwrap()),
        layout: Layout::Chunked(chunk.to_vec()),
        fill: Fill { value: FillValue::Value(vec![FILL]), ..Fill::default() },
        ..DatasetSpec::default()
    };
    let counts = spec.grid_or_single_chunk().unwrap().chunk_counts(extent);
    let new = (store.session().root, "a".into(), spec.into());
    let id = store.writer().unwrap().create(&NewObject::linked(new.0, &new.1, &new.2)).unwrap();
    let data = store.dataset(id).unwrap();
    for coord in coords(&counts) {
        let mut bytes = vec![1; chunk.iter().product::<u64>() as usize];
        // As the facade does it, nothing but fill values lies beyond the extent.
        each_element(chunk, &coord, |at, position| {
            if position.iter().zip(extent).any(|(at, end)| at >= end) {
                bytes[at] = FILL;
            }
        });
        data.write_whole_chunk(&coord, 0, &bytes).unwrap();
    }
    store.close().unwrap();
    engine
}

/// All chunks of a grid.
fn coords(counts: &[u64]) -> Vec<ChunkCoord> {
    let mut found = vec![Vec::new()];
    for count in counts {
        found = found.iter().flat_map(|at: &Vec<u64>| (0..*count).map(|n| [at.as_slice(), &[n]].concat())).collect();
    }
    found.iter().map(|at| ChunkCoord::new(at)).collect()
}

/// Calls `each` with the number of each element in a chunk, and its position in the dataset.
fn each_element(chunk: &[u64], coord: &ChunkCoord, mut each: impl FnMut(usize, &[u64])) {
    for (number, within) in coords(chunk).iter().enumerate() {
        let position: Vec<u64> = within
            .scaled()
            .iter()
            .zip(coord.scaled())
            .zip(chunk)
            .map(|((within, at), dim)| at * dim + within)
            .collect();
        each(number, &position);
    }
}

fn open(engine: MemoryEngine, mode: Mode) -> (HsdsStore, Arc<dyn ChunkStore>) {
    let store = HsdsStore::open(engine, &request(mode, "run")).unwrap();
    let link = store.link(store.session().root, &"a".into()).unwrap().unwrap();
    let LinkTarget::Hard(id) = link.target else { panic!("a hard link") };
    let data = store.dataset(id).unwrap();
    (store, data)
}

/// A writer puts chunks full of 99, and dies before it commits anything.
fn die(engine: &MemoryEngine, chunks: &[ChunkCoord], bytes: usize) {
    let (store, data) = open(engine.reopen_writer(), Mode::Write);
    chunks.iter().for_each(|coord| data.write_whole_chunk(coord, 0, &vec![99; bytes]).unwrap());
    drop((data, store));
}

fn grow(data: &dyn ChunkStore, extent: &[u64]) {
    let publish = Some(PublishLevel::Visible);
    data.write(&ChunkBatch { writes: &[], extent: Some(extent), publish_after: &[], publish }).unwrap();
}

fn read_chunk(data: &dyn ChunkStore, coord: &ChunkCoord, bytes: usize) -> Vec<u8> {
    let mut found = vec![FILL; bytes];
    if let Some(chunk) = data.locate(coord).unwrap() {
        data.read(&chunk, 0, &mut found).unwrap();
    }
    found
}

/// The elements of a dataset of one dimension, as a reader sees them.
fn elements(engine: &MemoryEngine) -> Vec<u8> {
    let (_store, data) = open(engine.reader(), Mode::Read);
    let extent = data.spec().unwrap().dataspace.dims()[0];
    let chunks = (0..extent.div_ceil(4)).flat_map(|at| read_chunk(&*data, &ChunkCoord::new(&[at]), 4));
    chunks.take(extent as usize).collect()
}

fn in_line(at: u64) -> ChunkCoord {
    ChunkCoord::new(&[at])
}

#[test]
fn a_dataset_that_grows_without_being_written_has_fill_values_there() {
    let engine = domain(&[6], &[4]);
    // The last chunk with rows that were not committed, and two whole ones.
    die(&engine, &[in_line(2), in_line(5)], 4);
    let (store, data) = open(engine.reopen_writer(), Mode::Write);
    data.write_whole_chunk(&in_line(1), 0, &[1, 1, 99, 99]).unwrap();
    drop((data, store));
    let (store, data) = open(engine.reopen_writer(), Mode::Write);
    let before = store.request_counts();
    grow(&*data, &[30]);
    let after = store.request_counts();
    assert_eq!((after.lists - before.lists, after.gets - before.gets), (1, 1), "a listing, and the chunk at the edge");
    let expected: Vec<u8> = (0..30).map(|at| if at < 6 { 1 } else { FILL }).collect();
    assert_eq!(elements(&engine), expected);
    // Once in a session is enough.
    grow(&*data, &[50]);
    assert_eq!(store.request_counts().lists, after.lists);
    store.close().unwrap();
    assert_eq!(elements(&engine)[..30], expected);
}

#[test]
fn rows_that_are_appended_need_no_listing() {
    let engine = domain(&[6], &[4]);
    die(&engine, &[in_line(2)], 4);
    let (store, data) = open(engine.reopen_writer(), Mode::Write);
    let last = [1, 1, 2, FILL];
    let (coord, extent, before) = (in_line(1), [7], store.request_counts());
    let writes = [ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: &last }];
    let publish = Some(PublishLevel::Visible);
    data.write(&ChunkBatch { writes: &writes, extent: Some(&extent), publish_after: &[], publish }).unwrap();
    let after = store.request_counts();
    assert_eq!((after.puts - before.puts, after.lists, after.gets - before.gets), (2, 0, 0));
    grow(&*data, &[12]);
    assert_eq!(elements(&engine), [1, 1, 1, 1, 1, 1, 2, FILL, FILL, FILL, FILL, FILL]);
}

#[test]
fn what_a_session_has_written_ahead_of_the_extent_stays() {
    let engine = domain(&[6], &[4]);
    let (store, data) = open(engine.reopen_writer(), Mode::Write);
    data.write_whole_chunk(&in_line(1), 0, &[1, 1, 3, 4]).unwrap();
    data.write_whole_chunk(&in_line(2), 0, &[5, 6, 7, 8]).unwrap();
    drop(data);
    let LinkTarget::Hard(id) = store.link(store.session().root, &"a".into()).unwrap().unwrap().target else { panic!() };
    let data = store.dataset(id).unwrap();
    assert_eq!(read_chunk(&*data, &in_line(1), 4), [1, 1, 3, 4]);
    grow(&*data, &[16]);
    assert_eq!(elements(&engine), [1, 1, 1, 1, 1, 1, 3, 4, 5, 6, 7, 8, FILL, FILL, FILL, FILL]);
}

#[test]
fn a_dataset_of_this_session_is_not_listed() {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "run")).unwrap();
    let spec = DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::with_max(&[1], &[UNLIMITED]).unwrap()),
        layout: Layout::Chunked(vec![4]),
        ..DatasetSpec::default()
    };
    let new = (store.session().root, "a".into(), spec.into());
    let id = store.writer().unwrap().create(&NewObject::linked(new.0, &new.1, &new.2)).unwrap();
    let data = store.dataset(id).unwrap();
    (1..9).for_each(|extent| grow(&*data, &[10 * extent]));
    assert_eq!(store.request_counts().lists, 0);
}

#[test]
fn in_two_dimensions_the_old_elements_stay_and_all_others_are_fill_values() {
    let chunk = [2, 3];
    for seed in 0..40u64 {
        let at = |salt: u64, sides: u64| (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (8 * salt)) % sides;
        let (old, grown) = ([1 + at(1, 5), 1 + at(2, 6)], [at(3, 5), at(4, 5)]);
        let new = [old[0] + grown[0], old[1] + grown[1]];
        let engine = domain(&old, &chunk);
        let counts = |extent: [u64; 2]| [extent[0].div_ceil(2), extent[1].div_ceil(3)];
        // Everything that is not wholly inside was overwritten, as far as it lies beyond the extent.
        let inside = |position: &[u64]| position.iter().zip(&old).all(|(at, end)| at < end);
        let (store, data) = open(engine.reopen_writer(), Mode::Write);
        for coord in coords(&counts([new[0] + 3, new[1] + 4])) {
            let mut bytes = vec![99; 6];
            each_element(&chunk, &coord, |at, position| bytes[at] = if inside(position) { 1 } else { 99 });
            data.write_whole_chunk(&coord, 0, &bytes).unwrap();
        }
        drop((data, store));
        let (store, data) = open(engine.reopen_writer(), Mode::Write);
        // A chunk that is written, though it lies in the old extent, is no part of the growth.
        let (first, extent) = (ChunkCoord::new(&[0, counts(old)[1] - 1]), new);
        let mut bytes = read_chunk(&*data, &first, 6);
        each_element(&chunk, &first, |at, position| bytes[at] = if inside(position) { bytes[at] } else { FILL });
        let writes = [ChunkWrite::Whole { coord: &first, filter_mask: 0, bytes: &bytes }];
        let publish = Some(PublishLevel::Visible);
        data.write(&ChunkBatch { writes: &writes, extent: Some(&extent), publish_after: &[], publish }).unwrap();
        store.close().unwrap();
        let (_reader, data) = open(engine.reader(), Mode::Read);
        for coord in coords(&counts(new)) {
            let found = read_chunk(&*data, &coord, 6);
            each_element(&chunk, &coord, |at, position| {
                if position.iter().zip(&new).all(|(at, end)| at < end) {
                    let expected = if inside(position) { 1 } else { FILL };
                    assert_eq!(found[at], expected, "{old:?} to {new:?}: {position:?}");
                }
            });
        }
    }
}

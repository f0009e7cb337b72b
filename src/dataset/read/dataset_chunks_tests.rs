use h5live_filters::Registry;
use h5live_model::{ChunkCoord, Hyperslab, Selection};

use crate::{Dataset, ErrorKind, File};

fn squares() -> (File, Dataset) {
    let file = File::in_memory();
    let data = file.new_dataset::<u16>().shape(&[5, 6]).chunk_shape(&[2, 3]).deflate(3).create("squares").unwrap();
    data.write(&(0..30).collect::<Vec<u16>>()).unwrap();
    (file, data)
}

#[test]
fn chunks_are_copied_as_they_are() {
    let (file, data) = squares();
    let copy = file.new_dataset::<u16>().shape(&[5, 6]).chunk_shape(&[2, 3]).deflate(3).create("copy").unwrap();
    copy.write_slice((0, 0), &[99u16]).unwrap();
    for chunk in data.stored_chunks().unwrap() {
        copy.write_chunk(&chunk.coord, chunk.filter_mask, &data.read_chunk(&chunk).unwrap()).unwrap();
        assert_eq!(copy.stored_chunk(&chunk.coord).unwrap().unwrap().size, chunk.size);
    }
    assert_eq!(copy.read::<u16>().unwrap(), data.read::<u16>().unwrap());
    let bare: Vec<u8> = (0..6u16).flat_map(u16::to_le_bytes).collect();
    copy.write_chunk(&ChunkCoord::new(&[0, 1]), 1, &bare).unwrap();
    assert_eq!(copy.read_slice::<u16>((0..2, 3..)).unwrap(), [0, 1, 2, 3, 4, 5]);
    assert!(data.stored_chunk(&ChunkCoord::new(&[9, 9])).unwrap().is_none());
}

#[test]
fn parts_have_every_element_once_chunk_by_chunk() {
    let (_file, data) = squares();
    let all = |n: u64, m: u64| [n, m].into_iter().collect();
    let every = Hyperslab { start: all(0, 1), stride: all(2, 2), count: all(3, 3), block: all(1, 1) };
    let points = Selection::Points([[4, 5], [0, 0], [4, 4], [0, 0]].iter().map(|at| at[..].into()).collect());
    for selection in [Selection::All, Selection::Hyperslab(every), points, Selection::block(&[1, 2], &[3, 3])] {
        let mut parts = 0;
        let mut found = Vec::new();
        data.for_each_chunk_part(&selection, |part| {
            parts += 1;
            found.extend(data.read_slice::<u16>(part)?);
            Ok(())
        })
        .unwrap();
        let mut want = data.read_slice::<u16>(&selection).unwrap();
        found.sort_unstable();
        want.sort_unstable();
        assert_eq!(found, want);
        assert!((2..=6).contains(&parts), "{parts}");
    }
}

#[test]
fn an_unknown_filter_is_named_and_its_dataset_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("unknown.h5");
    let file = File::create(&path).unwrap();
    let data = file.new_dataset::<u16>().shape(&[4]).chunk_shape(&[4]).deflate(3).create("data").unwrap();
    data.write(&[1u16, 2, 3, 4]).unwrap();
    file.close().unwrap();
    let file = File::options().filters(Registry::empty()).open(&path).unwrap();
    let data = file.dataset("data").unwrap();
    assert_eq!(data.shape().unwrap(), [4]);
    assert_eq!(data.spec().unwrap().filters[0].id, 1);
    assert_eq!(data.stored_chunks().unwrap().len(), 1);
    let error = data.read::<u16>().unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Filter(crate::filters::Error::Unavailable { id: 1, name }) if name == "deflate")
    );
}

use super::*;
use crate::{Widths, decode, encode};

fn slab(start: &[u64], stride: &[u64], count: &[u64], block: &[u64]) -> Hyperslab {
    Hyperslab { start: start.into(), stride: stride.into(), count: count.into(), block: block.into() }
}

fn stored(profile: LibVer, selection: Selection) -> StoredSelection {
    let rank = match &selection {
        Selection::Hyperslab(slab) => slab.start.len(),
        Selection::Blocks(blocks) => blocks[0].start.len(),
        Selection::Points(points) => points[0].len(),
        _ => 0,
    };
    StoredSelection::new(profile, rank, selection)
}

#[test]
fn comes_back_from_bytes_in_every_profile() {
    let block = |start: &[u64], count: &[u64]| Block { start: start.into(), count: count.into() };
    let selections = [
        Selection::All,
        Selection::None,
        Selection::Hyperslab(slab(&[1, 2], &[3, 4], &[5, 6], &[1, 2])),
        Selection::Hyperslab(slab(&[1 << 40], &[1], &[1], &[7])),
        Selection::Hyperslab(slab(&[0, 0], &[1, 10], &[1, UNLIMITED], &[70_000, 10])),
        Selection::Blocks(vec![block(&[1, 2], &[3, 4]), block(&[9, 0], &[1, 1])]),
        Selection::Blocks(vec![block(&[1 << 33], &[3])]),
        Selection::Points(vec![[3u64, 4].as_slice().into(), [0u64, 70_000].as_slice().into()]),
        Selection::Points(vec![[1u64 << 50].as_slice().into()]),
    ];
    for selection in selections {
        for profile in LibVer::ALL {
            let stored = stored(profile, selection.clone());
            let bytes = encode(&stored, Widths::default()).unwrap();
            assert_eq!(decode::<StoredSelection>(&bytes, Widths::default()).unwrap(), stored);
        }
    }
}

#[test]
fn versions_are_those_that_libhdf5_chooses() {
    let few = Selection::Hyperslab(slab(&[0], &[2], &[3], &[1]));
    let many = Selection::Hyperslab(slab(&[0], &[2], &[4], &[1]));
    let version = |profile, selection: &Selection| stored(profile, selection.clone()).version;
    assert_eq!(LibVer::ALL.map(|profile| version(profile, &few)), [1, 1, 1, 3, 3, 3]);
    assert_eq!(LibVer::ALL.map(|profile| version(profile, &many)), [1, 1, 2, 3, 3, 3]);
    let endless = Selection::Hyperslab(slab(&[0], &[2], &[UNLIMITED], &[1]));
    assert_eq!(LibVer::ALL.map(|profile| version(profile, &endless)), [2, 2, 2, 3, 3, 3]);
}

#[test]
fn version_1_cuts_a_hyperslab_into_blocks() {
    let stored = stored(LibVer::V18, Selection::Hyperslab(slab(&[1, 2], &[10, 5], &[2, 2], &[3, 1])));
    let Selection::Blocks(blocks) = &stored.selection else { panic!() };
    let starts: Vec<_> = blocks.iter().map(|block| block.start.to_vec()).collect();
    assert_eq!(starts, [[1, 2], [1, 7], [11, 2], [11, 7]]);
    assert!(blocks.iter().all(|block| block.count[..] == [3, 1]));
}

#[test]
fn widths_of_version_3_leave_room_for_no_limit() {
    let len = |count| {
        let selection = stored(LibVer::V112, Selection::Hyperslab(slab(&[0], &[1], &[count], &[1])));
        encode(&selection, Widths::default()).unwrap().len()
    };
    assert_eq!(len(0xfffe) + 8, len(0xffff));
}

#[test]
fn refuses_blocks_that_end_before_they_start() {
    let block = Block { start: [5u64].as_slice().into(), count: [1u64].as_slice().into() };
    let mut bytes = encode(&stored(LibVer::V18, Selection::Blocks(vec![block])), Widths::default()).unwrap();
    let end = bytes.len() - 4;
    bytes[end] = 4;
    assert_eq!(decode::<StoredSelection>(&bytes, Widths::default()).unwrap_err().field, "end");
}

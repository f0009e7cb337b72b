use h5live_model::ChunkCoord;

use super::*;
use crate::{Addr, Fault, Record, Width, Widths, decode, decode_with, encode};

const WIDTHS: Widths = Widths { offset: Width::EIGHT, length: Width::EIGHT };

fn header(depth: u16) -> Btree2Header {
    Btree2Header { depth, root: Addr::new(100), root_record_count: 3, total_record_count: 1000, ..Default::default() }
}

fn link(i: u32) -> LinkNameRecord {
    LinkNameRecord { hash: i, heap_id: [i as u8; 7] }
}

#[test]
fn header_comes_back_from_bytes() {
    let bytes = encode(&header(2), WIDTHS).unwrap();
    assert_eq!(bytes.len(), Btree2Header::size(WIDTHS));
    assert_eq!(decode::<Btree2Header>(&bytes, WIDTHS).unwrap(), header(2));
}

#[test]
fn nodes_hold_what_libhdf5_puts_into_them() {
    let geometry = Btree2Geometry::from_header(&header(3), WIDTHS).unwrap();
    assert_eq!((0..=4).map(|depth| geometry.max_records(depth)).collect::<Vec<_>>(), [45, 24, 22, 22, 0]);
    assert_eq!(geometry.child_pointer_size(1), 9);
    assert_eq!(
        (geometry.subtree_record_count_width(1), geometry.subtree_record_count_width(2)),
        (None, Some(Width::TWO))
    );
    assert_eq!((geometry.split_threshold(0), geometry.merge_threshold(0)), (45, 18));
    assert_eq!(Btree2Geometry::from_header(&header(2), WIDTHS).unwrap().with_next_level().unwrap(), geometry);
}

#[test]
fn leaves_come_back_from_bytes() {
    let geometry = Btree2Geometry::from_header(&header(0), WIDTHS).unwrap();
    let mut leaf = geometry.empty_leaf();
    for i in 0..45 {
        assert!(leaf.records.insert(i as usize, &link(i), WIDTHS));
    }
    let bytes = encode(&leaf, WIDTHS).unwrap();
    assert_eq!(bytes.len(), 512);
    let decoded = decode_with(geometry.blank_leaf(45), &bytes, WIDTHS).unwrap();
    assert_eq!(decoded, leaf);
    assert_eq!(decoded.records.decode_record(7, LinkNameRecord::default(), WIDTHS), Some(Ok(link(7))));
    assert!(decoded.records.decode_record(45, LinkNameRecord::default(), WIDTHS).is_none());
    assert!(matches!(decode_with(geometry.blank_leaf(44), &bytes, WIDTHS).unwrap_err().fault, Fault::Checksum { .. }));
    assert!(leaf.records.insert(0, &link(99), WIDTHS));
    assert!(encode(&leaf, WIDTHS).is_err());
}

#[test]
fn internal_nodes_come_back_from_bytes() {
    let geometry = Btree2Geometry::from_header(&header(2), WIDTHS).unwrap();
    for depth in [1, 2] {
        let mut node = geometry.blank_internal(depth, 0);
        let child = |i: u64| {
            let total = if depth == 1 { i } else { i * 50 };
            Btree2ChildPointer { addr: Addr::new(i * 512), record_count: i as u16, subtree_record_count: total }
        };
        for i in 0..5 {
            assert!(node.records.insert(i as usize, &link(i), WIDTHS));
        }
        node.children = (0..6).map(child).collect();
        let bytes = encode(&node, WIDTHS).unwrap();
        assert_eq!(decode_with(geometry.blank_internal(depth, 5), &bytes, WIDTHS).unwrap(), node);
        assert_eq!(node.is_above_leaves(), depth == 1);
        node.children.pop();
        assert!(encode(&node, WIDTHS).is_err());
    }
}

#[test]
fn records_can_be_moved_between_nodes() {
    let mut records = Btree2Geometry::from_header(&header(0), WIDTHS).unwrap().empty_leaf().records;
    for i in 0..10 {
        assert!(records.insert(i as usize, &link(i), WIDTHS));
    }
    let mut right = records.split_off(6);
    assert_eq!((records.len(), right.len()), (6, 4));
    assert_eq!(right.remove(0), encode(&link(6), WIDTHS).ok());
    assert!(right.set(0, &link(70), WIDTHS) && !right.set(3, &link(0), WIDTHS));
    records.append(&mut right);
    let hashes: Vec<_> = records.iter().map(|bytes| bytes[0]).collect();
    assert_eq!(hashes, [0, 1, 2, 3, 4, 5, 70, 8, 9]);
    assert!(!records.insert(10, &link(0), WIDTHS) && !records.insert(0, &LinkOrderRecord::default(), WIDTHS));
}

#[test]
fn records_have_the_sizes_of_the_format() {
    fn size<R: Record + Clone>(record: &R) -> usize {
        encode(record, WIDTHS).unwrap().len()
    }
    assert_eq!(size(&HugeIndirectRecord::default()), 24);
    assert_eq!(size(&HugeIndirectFilteredRecord::default()), 36);
    assert_eq!(size(&HugeDirectRecord::default()), 16);
    assert_eq!(size(&HugeDirectFilteredRecord::default()), 28);
    assert_eq!(size(&LinkNameRecord::default()), 11);
    assert_eq!(size(&LinkOrderRecord::default()), 15);
    assert_eq!(size(&AttributeNameRecord::default()), 17);
    assert_eq!(size(&AttributeOrderRecord::default()), 13);
    assert_eq!(size(&ChunkRecord::blank(2)), 24);
    assert_eq!(size(&FilteredChunkRecord::blank(3, Width::FOUR)), 40);
    let record = ChunkRecord { addr: Addr::new(9), coord: ChunkCoord::new(&[5, 6]) };
    assert_eq!(decode_with(ChunkRecord::blank(2), &encode(&record, WIDTHS).unwrap(), WIDTHS).unwrap(), record);
}

#[test]
fn refuses_nodes_too_small_for_a_record_and_trees_too_deep() {
    assert!(encode(&Btree2Header { node_size: 20, ..header(0) }, WIDTHS).is_err());
    assert!(encode(&Btree2Header { depth: 65, ..header(0) }, WIDTHS).is_err());
    assert!(encode(&Btree2Header { root_record_count: 46, ..header(0) }, WIDTHS).is_err());
}

#[test]
fn the_bytes_of_a_chunks_record_tell_where_it_belongs() {
    let coords = [[0, 0], [0, 1], [0, 256], [1, 0], [1, u64::MAX], [255, 3], [256, 2]].map(|at| ChunkCoord::new(&at));
    for (stored, sought) in coords.iter().flat_map(|stored| coords.iter().map(move |sought| (stored, sought))) {
        let plain = ChunkRecord { addr: Addr::new(77), coord: stored.clone() };
        let filtered =
            FilteredChunkRecord { addr: Addr::new(77), stored_size: 5, ..FilteredChunkRecord::blank(2, Width::TWO) };
        let filtered = FilteredChunkRecord { coord: stored.clone(), ..filtered };
        let expected = stored.scaled().cmp(sought.scaled());
        assert_eq!(compare_chunk_coord(&encode(&plain, WIDTHS).unwrap(), sought), expected);
        assert_eq!(compare_chunk_coord(&encode(&filtered, WIDTHS).unwrap(), sought), expected);
    }
    assert_eq!(compare_chunk_coord(&[0; 15], &coords[1]), std::cmp::Ordering::Equal);
}

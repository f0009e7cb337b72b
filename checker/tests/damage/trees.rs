//! Damage to B-trees.

use h5live_format::{
    Addr, AttributeNameRecord, Btree1ChunkKey, Btree1ChunkRank, Btree1GroupKey, Btree1Key, Btree1Node, Btree2Geometry,
    Btree2Header, ChunkRecord,
};

use crate::files::{File, WIDTHS};

const HEADER: &str = "version 2 B-tree header";
const LEAF: &str = "version 2 B-tree leaf";
const NODE: &str = "version 1 B-tree node";

/// The header of a tree, and the left-most node of a level above the leaves.
fn node(file: &File, path: &str, depth: u16) -> (Btree2Header, Btree2Geometry, u64, u16) {
    let header = file.get(file.at(path, HEADER), Btree2Header::default());
    let geometry = Btree2Geometry::from_header(&header, WIDTHS).unwrap();
    let (mut at, mut records) = (header.root.get().unwrap(), header.root_record_count);
    for above in (depth + 1..=header.depth).rev() {
        let child = file.get(at, geometry.blank_internal(above, records)).children[0];
        (at, records) = (child.addr.get().unwrap(), child.record_count);
    }
    (header, geometry, at, records)
}

/// Swaps the first two records of a tree.
fn swap_records(file: &mut File, path: &str) {
    let (_, geometry, at, records) = node(file, path, 0);
    file.edit(at, geometry.blank_leaf(records), |leaf| {
        let (first, second) = (leaf.records.bytes_at(0).unwrap().to_vec(), leaf.records.bytes_at(1).unwrap().to_vec());
        assert!(leaf.records.set_bytes(0, &second) && leaf.records.set_bytes(1, &first));
    });
}

/// Changes the keys of a version 1 node.
fn edit_keys<K: Btree1Key>(file: &mut File, at: u64, blank: Btree1Node<K>, change: impl FnOnce(&mut [K])) {
    file.edit(at, blank, |node| {
        let mut keys: Vec<_> = (0..=node.len()).map(|i| node.key(i).unwrap()).collect();
        let children: Vec<_> = (0..node.len()).map(|i| node.child(i).unwrap()).collect();
        change(&mut keys);
        assert!(node.set_entries(&keys, &children));
    });
}

#[test]
fn a_wrong_count_of_all_records_is_found() {
    let Some(mut file) = File::open("new") else { return };
    for path in ["/group", "/grid", "/grid_deflated"] {
        let at = file.at(path, HEADER);
        let header = file.get(at, Btree2Header::default());
        file.edit(at, Btree2Header::default(), |header| header.total_record_count += 1);
        file.expect(HEADER, at, "count");
        file.edit(at, Btree2Header::default(), |same| *same = header);
    }
    file.report().expect_clean();
}

#[test]
fn a_wrong_count_below_a_node_is_found() {
    let Some(mut file) = File::open("new") else { return };
    let (header, geometry, at, records) = node(&file, "/grid", 2);
    assert_eq!(header.depth, 2);
    file.edit(at, geometry.blank_internal(2, records), |node| node.children[1].subtree_record_count += 1);
    let child = file.get(at, geometry.blank_internal(2, records)).children[1].addr.get().unwrap();
    file.expect("version 2 B-tree internal node", child, "count");
}

#[test]
fn records_that_are_out_of_order_are_found() {
    let Some(mut file) = File::open("new") else { return };
    swap_records(&mut file, "/grid");
    file.expect_only("chunk record", file.at("/grid", HEADER), "order");
}

#[test]
fn names_that_are_out_of_order_are_found() {
    let Some(mut file) = File::open("new") else { return };
    swap_records(&mut file, "/group");
    let findings = file.report().findings;
    assert!(findings.iter().any(|finding| finding.cause.kind() == "order"), "{findings:#?}");
}

#[test]
fn a_record_with_the_hash_of_another_name_is_found() {
    let Some(mut file) = File::open("new") else { return };
    let (_, geometry, at, records) = node(&file, "/group", 0);
    file.edit(at, geometry.blank_leaf(records), |leaf| {
        let mut record = leaf.records.decode_record(0, AttributeNameRecord::default(), WIDTHS).unwrap().unwrap();
        record.hash -= 1;
        assert!(leaf.records.set(0, &record, WIDTHS));
    });
    let findings = file.report().findings;
    assert!(findings.iter().all(|finding| finding.cause.kind() == "hash") && findings.len() == 1, "{findings:#?}");
}

#[test]
fn two_chunks_at_one_place_are_found() {
    let Some(mut file) = File::open("new") else { return };
    let (_, geometry, at, records) = node(&file, "/grid", 0);
    file.edit(at, geometry.blank_leaf(records), |leaf| {
        let get = |i| leaf.records.decode_record(i, ChunkRecord::blank(2), WIDTHS).unwrap().unwrap();
        let (first, mut second) = (get(0), get(1));
        second.addr = first.addr;
        assert!(leaf.records.set(1, &second, WIDTHS));
    });
    let findings = file.report().findings;
    assert!(findings.iter().all(|f| f.cause.kind() == "overlap" && f.structure == "chunk"), "{findings:#?}");
    assert_eq!((findings.len(), &*findings[0].object_path), (1, "/grid"));
}

#[test]
fn a_node_that_is_reached_twice_is_found() {
    let Some(mut file) = File::open("new") else { return };
    let (_, geometry, at, records) = node(&file, "/grid", 1);
    file.edit(at, geometry.blank_internal(1, records), |node| node.children[1] = node.children[0]);
    let child = file.get(at, geometry.blank_internal(1, records)).children[0].addr.get().unwrap();
    file.expect(LEAF, child, "overlap");
}

#[test]
fn keys_of_chunks_that_are_out_of_order_are_found() {
    let Some(mut file) = File::open("old") else { return };
    let at = leaf(&file, "/chunks");
    let blank = Btree1Node::<Btree1ChunkKey>::empty(32, Btree1ChunkRank(2), WIDTHS);
    edit_keys(&mut file, at, blank, |keys| keys.swap(1, 2));
    file.expect(NODE, at, "order");
}

/// The left-most leaf of a dataset's chunks.
fn leaf(file: &File, path: &str) -> u64 {
    let mut at = file.at(path, NODE);
    loop {
        let node = file.get(at, Btree1Node::<Btree1ChunkKey>::empty(32, Btree1ChunkRank(2), WIDTHS));
        if node.level == 0 && node.left_sibling == Addr::UNDEFINED {
            return at;
        }
        at = if node.level == 0 { node.left_sibling.get().unwrap() } else { node.child(0).unwrap().get().unwrap() };
    }
}

#[test]
fn a_chunk_with_a_size_that_it_cannot_have_is_found() {
    let Some(mut file) = File::open("old") else { return };
    let at = leaf(&file, "/chunks");
    let blank = Btree1Node::<Btree1ChunkKey>::empty(32, Btree1ChunkRank(2), WIDTHS);
    edit_keys(&mut file, at, blank, |keys| keys[1].stored_size += 8);
    let findings = file.report().findings;
    assert!(findings.iter().any(|f| f.structure == NODE && f.cause.kind() == "count"), "{findings:#?}");
}

#[test]
fn siblings_that_are_none_and_levels_that_are_wrong_are_found() {
    let Some(mut file) = File::open("old") else { return };
    let at = leaf(&file, "/chunks");
    let blank = || Btree1Node::<Btree1ChunkKey>::empty(32, Btree1ChunkRank(2), WIDTHS);
    let right = file.get(at, blank()).right_sibling;
    file.edit(at, blank(), |node| node.right_sibling = Addr::UNDEFINED);
    file.expect_only(NODE, at, "rule");
    file.edit(at, blank(), |node| (node.right_sibling, node.left_sibling) = (right, right));
    file.expect_only(NODE, at, "rule");
    file.edit(at, blank(), |node| (node.level, node.left_sibling) = (1, Addr::UNDEFINED));
    file.expect(NODE, at, "count");
}

#[test]
fn keys_of_groups_that_are_out_of_order_are_found() {
    let Some(mut file) = File::open("old") else { return };
    let at = file.at("/group", NODE);
    let blank = Btree1Node::<Btree1GroupKey>::empty(16, (), WIDTHS);
    edit_keys(&mut file, at, blank, |keys| keys.swap(0, 1));
    file.expect(NODE, at, "order");
}

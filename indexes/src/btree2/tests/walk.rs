//! The bytes of a tree, read without the code that is tested.

use std::collections::HashSet;

use h5live_format::{Addr, Btree2Geometry, Btree2Header, Widths, decode, decode_with};

use super::Kind;

/// A reader of the bytes of a tree that checks all that must hold of them.
pub(super) struct Walk<'a, R> {
    bytes: &'a [u8],
    geometry: Btree2Geometry,
    seen: HashSet<u64>,
    records: Vec<R>,
}

impl<R: Kind> Walk<'_, R> {
    pub(super) fn over(bytes: &[u8], header: Addr) -> Vec<R> {
        let widths = Widths::default();
        let header: Btree2Header = decode(block(bytes, header, Btree2Header::size(widths)), widths).unwrap();
        let geometry = Btree2Geometry::from_header(&header, widths).unwrap();
        let mut walk = Walk::<R> { bytes, geometry, seen: HashSet::new(), records: Vec::new() };
        if header.root.is_defined() {
            assert!(header.root_record_count > 0);
            let below = walk.node(header.root, header.depth, header.root_record_count, true);
            assert_eq!(below, header.total_record_count);
        } else {
            assert_eq!((header.total_record_count, header.root_record_count, header.depth), (0, 0, 0));
        }
        assert!(walk.records.windows(2).all(|pair| pair[0].key() < pair[1].key()), "records are sorted");
        walk.records
    }

    fn node(&mut self, addr: Addr, depth: u16, records: u16, root: bool) -> u64 {
        let widths = Widths::default();
        assert!(self.seen.insert(addr.get().unwrap()), "a node has one parent");
        assert!(records <= self.geometry.split_threshold(depth));
        assert!(root || records >= self.geometry.merge_threshold(depth), "{records} at depth {depth}");
        let bytes = block(self.bytes, addr, self.geometry.node_size() as usize);
        let before = self.records.len();
        if depth == 0 {
            let leaf = decode_with(self.geometry.blank_leaf(records), bytes, widths).unwrap();
            self.records.extend(leaf.records.iter().map(|bytes| decode_with(R::blank(), bytes, widths).unwrap()));
        } else {
            let node = decode_with(self.geometry.blank_internal(depth, records), bytes, widths).unwrap();
            for (index, child) in node.children.iter().enumerate() {
                let below = self.node(child.addr, depth - 1, child.record_count, false);
                assert_eq!(below, child.subtree_record_count);
                self.records
                    .extend(node.records.decode_record(index, R::blank(), widths).map(|record| record.unwrap()));
            }
        }
        (self.records.len() - before) as u64
    }
}

pub(super) fn block(bytes: &[u8], addr: Addr, len: usize) -> &[u8] {
    &bytes[addr.get().unwrap() as usize..][..len]
}

/// Where the nodes of a tree are, with their depths and numbers of records.
pub(super) fn nodes(bytes: &[u8], header: Addr) -> Vec<(Addr, u16, u16)> {
    let widths = Widths::default();
    let header: Btree2Header = decode(block(bytes, header, Btree2Header::size(widths)), widths).unwrap();
    let geometry = Btree2Geometry::from_header(&header, widths).unwrap();
    let mut nodes = vec![(header.root, header.depth, header.root_record_count)];
    let mut next = 0;
    while let Some(&(addr, depth, records)) = nodes.get(next) {
        next += 1;
        if depth > 0 {
            let bytes = block(bytes, addr, geometry.node_size() as usize);
            let node = decode_with(geometry.blank_internal(depth, records), bytes, widths).unwrap();
            nodes.extend(node.children.iter().map(|child| (child.addr, depth - 1, child.record_count)));
        }
    }
    nodes
}

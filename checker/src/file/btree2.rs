//! Version 2 B-trees: order, counts, and how full the nodes are.

use h5live_format::{
    Addr, Btree2ChildPointer, Btree2Geometry, Btree2Header, Btree2Internal, Btree2Leaf, Btree2Record, Record,
    encoded_len,
};

use super::FindingCause;
use super::walk::FileWalk;

/// The state of a walk over a tree.
struct Btree2Check<'t, R> {
    geometry: Btree2Geometry,
    blank: R,
    /// Records so far.
    record_count: u64,
    each_record: &'t mut dyn FnMut(&mut FileWalk<'_>, u64, R),
}

impl FileWalk<'_> {
    /// Walks over the records of a tree, in order. Returns its header, if it has one and all nodes could be followed.
    pub fn check_and_walk_btree2<R: Btree2Record>(
        &mut self,
        addr: Addr,
        blank: R,
        each_record: &mut dyn FnMut(&mut FileWalk<'_>, u64, R),
    ) -> Option<Btree2Header> {
        let header = self.claim_and_decode(Btree2Header::default(), addr, Btree2Header::size(self.widths) as u64)?;
        const NAME: &str = Btree2Header::NAME;
        self.check_equal(NAME, addr, "record type", header.kind.into(), R::KIND.into());
        let size = encoded_len(&blank, self.widths).unwrap_or_default() as u64;
        self.check_equal(NAME, addr, "record size", header.record_size.into(), size);
        if header.kind != R::KIND || u64::from(header.record_size) != size {
            return None;
        }
        let geometry = match Btree2Geometry::from_header(&header, self.widths) {
            Ok(geometry) => geometry,
            Err(_) => return None,
        };
        let mut tree = Btree2Check { geometry, blank, record_count: 0, each_record };
        let mut whole = true;
        if header.root.is_defined() {
            let root = Btree2ChildPointer {
                addr: header.root,
                record_count: header.root_record_count,
                subtree_record_count: header.total_record_count,
            };
            whole = self.check_btree2_node(&mut tree, root, header.depth, true);
        } else if header.total_record_count != 0 || header.root_record_count != 0 {
            self.report(NAME, addr, FindingCause::UndefinedAddr("root"));
            return None;
        }
        if whole {
            self.check_equal(NAME, addr, "records", header.total_record_count, tree.record_count);
        }
        whole.then_some(header)
    }

    fn check_btree2_node<R: Btree2Record>(
        &mut self,
        tree: &mut Btree2Check<'_, R>,
        node: Btree2ChildPointer,
        depth: u16,
        root: bool,
    ) -> bool {
        let name = if depth == 0 { Btree2Leaf::NAME } else { Btree2Internal::NAME };
        let max_records = tree.geometry.max_records(depth);
        if node.record_count > max_records {
            let (found, limit) = (node.record_count.into(), max_records.into());
            let cause = FindingCause::ExceedsLimit { what: "records", found, limit };
            self.report(name, node.addr, cause);
            return false;
        }
        // An empty tree keeps its root; other nodes are merged long before they are empty.
        if node.record_count == 0 && !(root && depth == 0) {
            self.report(name, node.addr, FindingCause::Missing("record in it"));
            return false;
        }
        if !root && node.record_count < tree.geometry.merge_threshold(depth) / 2 {
            let (stated, found) = (tree.geometry.merge_threshold(depth).into(), node.record_count.into());
            self.add_note(name, node.addr, FindingCause::NumberMismatch { what: "fewest records", stated, found });
        }
        let size = tree.geometry.node_size().into();
        if depth == 0 {
            let Some(leaf) = self.claim_and_decode(tree.geometry.blank_leaf(node.record_count), node.addr, size) else {
                return false;
            };
            return leaf.records.iter().all(|bytes| self.check_btree2_record(tree, node.addr, bytes));
        }
        let Some(inner) =
            self.claim_and_decode(tree.geometry.blank_internal(depth, node.record_count), node.addr, size)
        else {
            return false;
        };
        let below = inner
            .children
            .iter()
            .fold(u64::from(node.record_count), |n, child| n.saturating_add(child.subtree_record_count));
        self.check_equal(name, node.addr, "records below", node.subtree_record_count, below);
        let mut whole = true;
        for (i, child) in inner.children.iter().enumerate() {
            whole &= self.check_btree2_node(tree, *child, depth - 1, false);
            if let Some(bytes) = inner.records.bytes_at(i) {
                whole &= self.check_btree2_record(tree, node.addr, bytes);
            }
            if self.report.has_max_findings() {
                return false;
            }
        }
        whole
    }

    fn check_btree2_record<R: Btree2Record>(
        &mut self,
        tree: &mut Btree2Check<'_, R>,
        addr: Addr,
        bytes: &[u8],
    ) -> bool {
        let Some(record) = self.decode(tree.blank.clone(), addr, bytes) else { return false };
        (tree.each_record)(self, tree.record_count, record);
        tree.record_count += 1;
        true
    }
}

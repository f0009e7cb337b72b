//! Version 2 B-trees: order, counts, and how full the nodes are.

use h5live_format::{
    Addr, Btree2Child, Btree2Geometry, Btree2Header, Btree2Internal, Btree2Leaf, Btree2Record, Record, encoded_len,
};

use super::Cause;
use super::walk::Walk;

/// What is known of a tree while it is walked over.
struct Tree<'t, R> {
    geometry: Btree2Geometry,
    blank: R,
    /// Records so far.
    seen: u64,
    record: &'t mut dyn FnMut(&mut Walk<'_>, u64, R),
}

impl Walk<'_> {
    /// Walks over the records of a tree, in order. Returns its header, if it has one and all nodes could be followed.
    pub fn btree2<R: Btree2Record>(
        &mut self,
        addr: Addr,
        blank: R,
        record: &mut dyn FnMut(&mut Walk<'_>, u64, R),
    ) -> Option<Btree2Header> {
        let header = self.load(Btree2Header::default(), addr, Btree2Header::size(self.widths) as u64)?;
        const NAME: &str = Btree2Header::NAME;
        self.agree(NAME, addr, "record type", header.kind.into(), R::KIND.into());
        let size = encoded_len(&blank, self.widths).unwrap_or_default() as u64;
        self.agree(NAME, addr, "record size", header.record_size.into(), size);
        if header.kind != R::KIND || u64::from(header.record_size) != size {
            return None;
        }
        let geometry = match Btree2Geometry::of(&header, self.widths) {
            Ok(geometry) => geometry,
            Err(_) => return None,
        };
        let mut tree = Tree { geometry, blank, seen: 0, record };
        let mut whole = true;
        if header.root.is_defined() {
            let root = Btree2Child { addr: header.root, records: header.root_records, total: header.records };
            whole = self.btree2_node(&mut tree, root, header.depth, true);
        } else if header.records != 0 || header.root_records != 0 {
            self.found(NAME, addr, Cause::Undefined("root"));
            return None;
        }
        if whole {
            self.agree(NAME, addr, "records", header.records, tree.seen);
        }
        whole.then_some(header)
    }

    fn btree2_node<R: Btree2Record>(
        &mut self,
        tree: &mut Tree<'_, R>,
        node: Btree2Child,
        depth: u16,
        root: bool,
    ) -> bool {
        let name = if depth == 0 { Btree2Leaf::NAME } else { Btree2Internal::NAME };
        let most = tree.geometry.max_records(depth);
        if node.records > most {
            let cause = Cause::Above { what: "records", found: node.records.into(), limit: most.into() };
            self.found(name, node.addr, cause);
            return false;
        }
        // An empty tree keeps its root; other nodes are merged long before they are empty.
        if node.records == 0 && !(root && depth == 0) {
            self.found(name, node.addr, Cause::Missing("record in it"));
            return false;
        }
        if !root && node.records < tree.geometry.merge_at(depth) / 2 {
            let fewest = tree.geometry.merge_at(depth).into();
            self.note(
                name,
                node.addr,
                Cause::Count { what: "fewest records", stated: fewest, found: node.records.into() },
            );
        }
        let size = tree.geometry.node_size().into();
        if depth == 0 {
            let Some(leaf) = self.load(tree.geometry.leaf(node.records), node.addr, size) else { return false };
            return leaf.records.iter().all(|bytes| self.btree2_record(tree, node.addr, bytes));
        }
        let Some(inner) = self.load(tree.geometry.internal(depth, node.records), node.addr, size) else { return false };
        let below = inner.children.iter().fold(u64::from(node.records), |n, child| n.saturating_add(child.total));
        self.agree(name, node.addr, "records below", node.total, below);
        let mut whole = true;
        for (i, child) in inner.children.iter().enumerate() {
            whole &= self.btree2_node(tree, *child, depth - 1, false);
            if let Some(bytes) = inner.records.bytes(i) {
                whole &= self.btree2_record(tree, node.addr, bytes);
            }
            if self.report.is_full() {
                return false;
            }
        }
        whole
    }

    fn btree2_record<R: Btree2Record>(&mut self, tree: &mut Tree<'_, R>, addr: Addr, bytes: &[u8]) -> bool {
        let Some(record) = self.decode(tree.blank.clone(), addr, bytes) else { return false };
        (tree.record)(self, tree.seen, record);
        tree.seen += 1;
        true
    }
}

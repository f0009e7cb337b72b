//! Version 1 B-trees: levels, siblings, and the order of keys.

use h5live_format::{Addr, Btree1Key, Btree1Node, Record};

use super::FindingCause;
use super::walk::FileWalk;

/// A tree deeper than this has more leaves than a file has room for.
const MAX_DEPTH: usize = 64;

/// The state of a walk over a tree.
pub(super) struct Btree1Check<'t, K: Btree1Key> {
    k: u16,
    shape: K::Shape,
    /// Whether a key may stand before another.
    sorted: &'t dyn Fn(&K, &K) -> bool,
    /// The last node of each level that was seen, and its right sibling.
    last: Vec<(Addr, Addr)>,
    /// Children of leaves so far.
    children: u64,
}

impl<'t, K: Btree1Key> Btree1Check<'t, K> {
    /// A tree with at most `2 * k` children in each node, whose keys `is_key_before` puts in order.
    pub fn new(k: u16, shape: K::Shape, is_key_before: &'t dyn Fn(&K, &K) -> bool) -> Self {
        Btree1Check { k, shape, sorted: is_key_before, last: Vec::new(), children: 0 }
    }
}

impl FileWalk<'_> {
    /// Walks over the children of the leaves of a tree, in order, each with the keys beside it. Returns whether all
    /// nodes could be followed.
    pub fn check_and_walk_btree1<K: Btree1Key>(
        &mut self,
        addr: Addr,
        mut tree: Btree1Check<'_, K>,
        each_leaf_child: &mut dyn FnMut(&mut FileWalk<'_>, &K, Addr, &K),
    ) -> bool {
        let Some(root) = self.load_btree1_node(&tree, addr) else { return false };
        let levels = usize::from(root.level) + 1;
        if levels > MAX_DEPTH {
            let cause = FindingCause::ExceedsLimit { what: "level", found: root.level.into(), limit: MAX_DEPTH as u64 };
            self.report(Btree1Node::<K>::NAME, addr, cause);
            return false;
        }
        tree.last = vec![(Addr::UNDEFINED, Addr::UNDEFINED); levels];
        let whole = self.check_btree1_node(&mut tree, addr, root, None, each_leaf_child);
        for (node, right) in tree.last.clone() {
            if whole && right.is_defined() {
                self.report(
                    Btree1Node::<K>::NAME,
                    node,
                    FindingCause::BrokenRule("the last node of a level has no right sibling"),
                );
            }
        }
        whole
    }

    fn load_btree1_node<K: Btree1Key>(&mut self, tree: &Btree1Check<'_, K>, addr: Addr) -> Option<Btree1Node<K>> {
        let blank = Btree1Node::<K>::empty(tree.k, tree.shape, self.widths);
        let size = blank.node_size() as u64;
        self.claim_and_decode(blank, addr, size)
    }

    fn check_btree1_node<K: Btree1Key>(
        &mut self,
        tree: &mut Btree1Check<'_, K>,
        addr: Addr,
        node: Btree1Node<K>,
        between: Option<(&K, &K)>,
        child: &mut dyn FnMut(&mut FileWalk<'_>, &K, Addr, &K),
    ) -> bool {
        const fn btree1_structure_name<K: Btree1Key>() -> &'static str {
            Btree1Node::<K>::NAME
        }
        self.check_btree1_siblings(tree, addr, &node);
        if node.is_empty() {
            if between.is_some() || node.level > 0 {
                self.report(btree1_structure_name::<K>(), addr, FindingCause::Missing("child of it"));
            }
            return true;
        }
        let (first, last) = (node.key(0), node.key(node.len()));
        if let (Some((from, to)), Some(first), Some(last)) = (between, &first, &last)
            && ((tree.sorted)(first, from) || (tree.sorted)(to, last))
        {
            // A writer that moves entries to a new node takes them out of the old one last.
            let cause = FindingCause::BrokenRule("the keys of a node lie between those beside it in its parent");
            self.report_or_note_if_live(self.owner, btree1_structure_name::<K>(), addr, cause);
        }
        let mut whole = true;
        for index in 0..node.len() {
            let (Some(from), Some(at), Some(to)) = (node.key(index), node.child(index), node.key(index + 1)) else {
                break;
            };
            if !(tree.sorted)(&from, &to) {
                self.report(
                    btree1_structure_name::<K>(),
                    addr,
                    FindingCause::OutOfOrder { what: "key", index: index as u64 + 1 },
                );
            }
            if node.level == 0 {
                tree.children += 1;
                child(self, &from, at, &to);
            } else {
                whole &= self.check_btree1_child(tree, &node, at, (&from, &to), child);
            }
            if self.report.has_max_findings() {
                return false;
            }
        }
        whole
    }

    fn check_btree1_child<K: Btree1Key>(
        &mut self,
        tree: &mut Btree1Check<'_, K>,
        parent: &Btree1Node<K>,
        at: Addr,
        between: (&K, &K),
        child: &mut dyn FnMut(&mut FileWalk<'_>, &K, Addr, &K),
    ) -> bool {
        let Some(below) = self.load_btree1_node(tree, at) else { return false };
        if below.level.checked_add(1) != Some(parent.level) {
            let (stated, found) = (below.level.into(), u64::from(parent.level).saturating_sub(1));
            self.report(Btree1Node::<K>::NAME, at, FindingCause::NumberMismatch { what: "level", stated, found });
            return false;
        }
        self.check_btree1_node(tree, at, below, Some(between), child)
    }

    fn check_btree1_siblings<K: Btree1Key>(&mut self, tree: &mut Btree1Check<'_, K>, addr: Addr, node: &Btree1Node<K>) {
        let Some(last) = tree.last.get_mut(usize::from(node.level)) else { return };
        let before = std::mem::replace(last, (addr, node.right_sibling));
        if node.left_sibling != before.0 {
            self.report(
                Btree1Node::<K>::NAME,
                addr,
                FindingCause::BrokenRule("the left sibling is the node before it"),
            );
        }
        if before.0.is_defined() && before.1 != addr {
            self.report(
                Btree1Node::<K>::NAME,
                before.0,
                FindingCause::BrokenRule("the right sibling is the node behind it"),
            );
        }
    }
}

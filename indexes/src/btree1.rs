//! Version 1 B-trees: the names of old-style groups, and chunks.
//!
//! A tree is changed in place, as its nodes point to each other on every level. What keeps a file whole whose writer
//! dies is the order: new nodes first, then what leads to them, then the nodes whose entries have moved to them.

mod edit;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use h5live_cache::Handle;
use h5live_format::{Addr, Btree1Key, Btree1Node};

use crate::{Error, ObjectMetadata, Result};

pub(crate) use self::edit::{Entries, Leaf};

/// One step of the way from the root to a leaf.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub addr: Addr,
    /// The child that leads on; in the leaf, the place that was chosen.
    pub index: usize,
}

/// A tree whose nodes are sorted by keys `K` (format specification 4.0, III.A.1).
#[derive(Debug, Clone)]
pub struct Btree1<K: Btree1Key> {
    metadata: ObjectMetadata,
    root: Addr,
    k: u16,
    shape: K::Shape,
}

impl<K: Btree1Key> Btree1<K> {
    /// The tree with its root at `root`. Its nodes have at most `2 * k` children.
    pub fn new(metadata: ObjectMetadata, root: Addr, k: u16, shape: K::Shape) -> Self {
        Btree1 { metadata, root, k, shape }
    }

    fn contradiction(&self, at: Addr, rule: &'static str) -> Error {
        Error::Contradiction { record: "version 1 B-tree node", at, other: "its parent", rule }
    }

    pub(crate) fn node(&self, addr: Addr, level: Option<u8>) -> Result<Handle<Btree1Node<K>>> {
        let empty = Btree1Node::empty(self.k, self.shape, self.metadata.widths());
        let node = self.metadata.load(addr, empty.size() as u64, || empty)?;
        let found = node.read().level;
        if level.is_some_and(|level| level != found) {
            return Err(self.contradiction(addr, "it is one level below"));
        }
        Ok(node)
    }

    /// Goes down from the root, in each node to the child that `choose` names, to what a leaf's entry leads to.
    ///
    /// # Errors
    /// The first error of `choose`; if a node cannot be read.
    pub fn find(&self, mut choose: impl FnMut(&Btree1Node<K>) -> Result<Option<usize>>) -> Result<Option<(K, Addr)>> {
        let (mut at, mut level) = (self.root, None);
        while at.is_defined() {
            let node = self.node(at, level)?;
            let node = node.read();
            let Some(chosen) = choose(&node)? else { return Ok(None) };
            let Some(child) = node.child(chosen) else { return Ok(None) };
            match node.level.checked_sub(1) {
                None => return Ok(node.key(chosen).map(|key| (key, child))),
                below => (at, level) = (child, below),
            }
        }
        Ok(None)
    }

    /// Calls `each` with every entry of the leaves in order, until it returns `false`.
    ///
    /// # Errors
    /// The first error of `each`; if a node cannot be read.
    pub fn for_each<E: From<Error>>(&self, each: &mut dyn FnMut(K, Addr) -> Result<bool, E>) -> Result<(), E> {
        self.visit(None, each).map(|_| ())
    }

    /// As [`Btree1::for_each`], for the entries that are in a range.
    ///
    /// # Errors
    /// As [`Btree1::for_each`].
    pub(crate) fn for_each_in<E: From<Error>>(
        &self,
        range: &dyn Range<K>,
        each: &mut dyn FnMut(K, Addr) -> Result<bool, E>,
    ) -> Result<(), E> {
        self.visit(Some(range), each).map(|_| ())
    }

    fn visit<E: From<Error>>(
        &self,
        range: Option<&dyn Range<K>>,
        each: &mut dyn FnMut(K, Addr) -> Result<bool, E>,
    ) -> Result<HashSet<Addr>, E> {
        let mut visit = Visit { tree: self, seen: HashSet::new(), range, each };
        if self.root.is_defined() {
            visit.below(self.root, None, [None, None])?;
        }
        Ok(visit.seen)
    }

    /// Where all nodes are.
    ///
    /// # Errors
    /// If a node cannot be read.
    pub(crate) fn nodes(&self) -> Result<Vec<Addr>> {
        let seen = self.visit(None, &mut |_, _| Ok::<_, Error>(true))?;
        Ok(seen.into_iter().collect())
    }

    /// Bytes of a node.
    pub(crate) fn node_size(&self) -> u64 {
        Btree1Node::<K>::empty(self.k, self.shape, self.metadata.widths()).size() as u64
    }
}

/// Which entries are to be visited, in a tree in which a writer that died may have left entries that had moved.
pub(crate) trait Range<K> {
    /// Whether a key comes before another.
    fn is_before(&self, key: &K, other: &K) -> bool;

    /// Whether a child of a node of this level, between these keys, may hold what is wanted.
    fn wants(&self, level: u8, key: &K, next: &K) -> bool;
}

/// A walk over entries in order.
struct Visit<'a, K: Btree1Key, E> {
    tree: &'a Btree1<K>,
    /// The nodes that were visited, if there is no range.
    seen: HashSet<Addr>,
    range: Option<&'a dyn Range<K>>,
    each: &'a mut dyn FnMut(K, Addr) -> Result<bool, E>,
}

impl<K: Btree1Key, E: From<Error>> Visit<'_, K, E> {
    /// Goes through what is below a node; `false` if `each` has had enough. No deeper than the root's level.
    ///
    /// With a range, only what is between `bounds`, the keys beside the node in its parent: the rest has moved to another
    /// node, or the node has moved from another place. No two nodes have bounds in common, so that nothing is seen twice,
    /// and damaged nodes that lead to the same are not gone through without end.
    fn below(&mut self, at: Addr, level: Option<u8>, bounds: [Option<K>; 2]) -> Result<bool, E> {
        if self.range.is_none() && !self.seen.insert(at) {
            return Err(self.tree.contradiction(at, "it has one parent").into());
        }
        let node = self.tree.node(at, level)?.read().clone();
        let [mut begin, end] = bounds;
        for index in 0..node.len() {
            let (Some(mut key), Some(child), Some(mut next)) =
                (node.key(index), node.child(index), node.key(index + 1))
            else {
                break;
            };
            if let Some(range) = self.range {
                let is_before_all = begin.as_ref().is_some_and(|begin| range.is_before(&key, begin));
                let is_behind_all = end.as_ref().is_some_and(|end| !range.is_before(&key, end));
                if is_behind_all || node.level == 0 && is_before_all {
                    continue;
                }
                if node.level > 0 {
                    key = begin.take_if(|_| is_before_all).unwrap_or(key);
                    next = end.clone().filter(|end| range.is_before(end, &next)).unwrap_or(next);
                    if !range.is_before(&key, &next) {
                        begin = Some(key);
                        continue;
                    }
                    begin = Some(next.clone());
                }
                if !range.wants(node.level, &key, &next) {
                    continue;
                }
            }
            let goes_on = match node.level.checked_sub(1) {
                None => (self.each)(key, child)?,
                below => self.below(child, below, [Some(key), Some(next)])?,
            };
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl<K: Btree1Key> Btree1<K> {
    /// A new tree without entries.
    ///
    /// # Errors
    /// If there is no room in the file.
    pub(crate) fn create(metadata: ObjectMetadata, k: u16, shape: K::Shape) -> Result<(Self, impl h5live_cache::Node)> {
        let empty = Btree1Node::<K>::empty(k, shape, metadata.widths());
        let root = metadata.create(empty.size() as u64, empty)?;
        Ok((Btree1 { metadata, root: root.addr(), k, shape }, root))
    }

    /// The root.
    pub(crate) fn root(&self) -> Addr {
        self.root
    }

    /// The root, for flush dependencies.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn entry(&self) -> Result<impl h5live_cache::Node + use<K>> {
        self.node(self.root, None)
    }

    /// The way from the root to a leaf, in each node by way of the child that `choose` names, or of the last.
    ///
    /// # Errors
    /// The first error of `choose`; if a node cannot be read.
    pub(crate) fn path(&self, mut choose: impl FnMut(&Btree1Node<K>) -> Result<usize>) -> Result<Vec<Step>> {
        let mut path = Vec::new();
        let (mut addr, mut level) = (self.root, None);
        loop {
            let node = self.node(addr, level)?;
            let node = node.read();
            let index = choose(&node)?;
            let Some(below) = node.level.checked_sub(1) else {
                path.push(Step { addr, index });
                return Ok(path);
            };
            let index = index.min(node.len().saturating_sub(1));
            path.push(Step { addr, index });
            addr = node.child(index).ok_or_else(|| self.contradiction(addr, "an internal node has children"))?;
            level = Some(below);
        }
    }
}

//! Version 1 B-trees: the names of old-style groups, and chunks (format specification, III.A.1).
//!
//! A tree is changed in place, because its nodes point to each other on every level. The order of the writes keeps a
//! file whole whose writer dies: first new nodes, then the structures that lead to them, then the nodes whose entries
//! have moved there.

mod edit;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use h5live_cache::Handle;
use h5live_format::{Addr, Btree1Key, Btree1Node};

use crate::{Error, ObjectMetadataAccess, Result};

pub(crate) use self::edit::{LeafCallbacks, NodeEntries};

/// One step of the way from the root to a leaf.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Btree1PathStep {
    pub addr: Addr,
    /// The child that leads on; in the leaf, the place that was chosen.
    pub index: usize,
}

/// A tree whose nodes are sorted by keys `K` (format specification 4.0, III.A.1).
#[derive(Debug, Clone)]
pub struct Btree1<K: Btree1Key> {
    metadata: ObjectMetadataAccess,
    root: Addr,
    k: u16,
    shape: K::Shape,
}

impl<K: Btree1Key> Btree1<K> {
    /// The tree with its root at `root`. Its nodes have at most `2 * k` children.
    pub fn new(metadata: ObjectMetadataAccess, root: Addr, k: u16, shape: K::Shape) -> Self {
        Btree1 { metadata, root, k, shape }
    }

    fn contradiction(&self, at: Addr, rule: &'static str) -> Error {
        Error::Contradiction { record: "version 1 B-tree node", at, other: "its parent", rule }
    }

    pub(crate) fn load_node(&self, addr: Addr, level: Option<u8>) -> Result<Handle<Btree1Node<K>>> {
        let empty = Btree1Node::empty(self.k, self.shape, self.metadata.widths());
        let node = self.metadata.load(addr, empty.node_size() as u64, || empty)?;
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
    pub fn find_entry(
        &self,
        mut choose: impl FnMut(&Btree1Node<K>) -> Result<Option<usize>>,
    ) -> Result<Option<(K, Addr)>> {
        let (mut at, mut level) = (self.root, None);
        while at.is_defined() {
            let node = self.load_node(at, level)?;
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

    /// Calls `each` with the entries of the leaves that are in a range, in order, until it returns `false`.
    ///
    /// # Errors
    /// The first error of `each`; if a node cannot be read.
    pub(crate) fn for_each_in_range<E: From<Error>>(
        &self,
        range: &dyn KeyRange<K>,
        each: &mut EntryVisitor<'_, K, E>,
    ) -> Result<(), E> {
        if self.root.is_defined() {
            Btree1Walk { tree: self, range, each }.visit_subtree(
                self.root,
                None,
                KeyBounds { begin: None, end: None },
            )?;
        }
        Ok(())
    }

    /// Everything to which the root leads, also what a writer that died has left in two places.
    ///
    /// # Errors
    /// If a node cannot be read.
    pub(crate) fn all_blocks(&self) -> Result<Btree1Blocks> {
        let mut reached = Btree1Blocks::default();
        let mut left = vec![(self.root, None)];
        left.retain(|(root, _)| root.is_defined());
        while let Some((addr, level)) = left.pop() {
            if !reached.nodes.insert(addr) {
                continue;
            }
            let node = self.load_node(addr, level)?;
            let node = node.read();
            let children = (0..node.len()).filter_map(|index| node.child(index));
            match node.level.checked_sub(1) {
                None => reached.children.extend(children),
                below => left.extend(children.map(|child| (child, below))),
            }
        }
        Ok(reached)
    }

    /// Bytes of a node.
    pub(crate) fn node_size(&self) -> u64 {
        Btree1Node::<K>::empty(self.k, self.shape, self.metadata.widths()).node_size() as u64
    }
}

/// The blocks of a tree.
#[derive(Debug, Default)]
pub(crate) struct Btree1Blocks {
    pub nodes: HashSet<Addr>,
    /// The children of the leaves.
    pub children: HashSet<Addr>,
}

/// The keys around an entry. Whether a key belongs to the entry before or after it depends on the keys (see
/// [`Btree1Key::KEY_FOLLOWS_CHILD`]).
#[derive(Debug, Clone)]
pub(crate) struct KeyBounds<K> {
    pub begin: Option<K>,
    pub end: Option<K>,
}

/// The entries to visit. A writer that died may have left entries in the tree that had moved.
pub(crate) trait KeyRange<K> {
    /// Whether a key comes before another.
    ///
    /// # Errors
    /// If it cannot be read what a key leads to.
    fn is_before(&self, key: &K, other: &K) -> Result<bool>;

    /// Whether a child of a node of this level, between these keys, may hold a wanted entry.
    fn may_contain(&self, level: u8, between: &KeyBounds<K>) -> bool;
}

/// Called with the keys around an entry, its own key and the child. Returns `false` to stop.
pub(crate) type EntryVisitor<'a, K, E> = dyn FnMut(&KeyBounds<K>, K, Addr) -> Result<bool, E> + 'a;

/// A walk over entries in order.
struct Btree1Walk<'a, K: Btree1Key, E> {
    tree: &'a Btree1<K>,
    range: &'a dyn KeyRange<K>,
    each: &'a mut EntryVisitor<'a, K, E>,
}

impl<K: Btree1Key, E: From<Error>> Btree1Walk<'_, K, E> {
    /// Visits everything below a node. Returns `false` if `each` has returned `false`. Goes no deeper than the level of
    /// the root.
    ///
    /// It visits only children within the bounds that the parent gives to the node. Other children have moved to
    /// another node, or the node has moved from another place. No two nodes have common bounds. So nothing is visited
    /// twice, and damaged nodes that lead to the same child cannot make the walk endless.
    fn visit_subtree(&mut self, at: Addr, level: Option<u8>, mut bounds: KeyBounds<K>) -> Result<bool, E> {
        let node = self.tree.load_node(at, level)?.read().clone();
        for index in 0..node.len() {
            let (Some(key), Some(child), Some(next)) = (node.key(index), node.child(index), node.key(index + 1)) else {
                break;
            };
            let is_entry = node.level == 0 && !K::KEY_FOLLOWS_CHILD;
            let between = if is_entry {
                self.entry_bounds(&bounds, &key, next)?
            } else {
                self.split_off_bounds(&mut bounds, &key, next)?
            };
            let Some(between) = between.filter(|between| self.range.may_contain(node.level, between)) else { continue };
            let goes_on = match node.level.checked_sub(1) {
                None => (self.each)(&between, key, child)?,
                below => self.visit_subtree(child, below, between)?,
            };
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The bounds of an entry with its own key, if the key is within the bounds of its node.
    fn entry_bounds(&self, bounds: &KeyBounds<K>, key: &K, next: K) -> Result<Option<KeyBounds<K>>> {
        let is_early = self.is_before(Some(key), bounds.begin.as_ref())?;
        let is_in = !is_early && (bounds.end.is_none() || self.is_before(Some(key), bounds.end.as_ref())?);
        Ok(is_in.then(|| KeyBounds { begin: Some(key.clone()), end: Some(next) }))
    }

    /// The bounds of a child between two keys, if there is anything between them. They are then taken off the node's.
    fn split_off_bounds(&self, bounds: &mut KeyBounds<K>, key: &K, next: K) -> Result<Option<KeyBounds<K>>> {
        if !K::KEY_FOLLOWS_CHILD && !self.is_before(Some(key), bounds.begin.as_ref())? {
            bounds.begin = Some(key.clone());
        }
        let is_late = bounds.end.as_ref() != Some(&next) && self.is_before(bounds.end.as_ref(), Some(&next))?;
        let end = if is_late { bounds.end.clone() } else { Some(next) };
        if bounds.begin.is_some() && !self.is_before(bounds.begin.as_ref(), end.as_ref())? {
            return Ok(None);
        }
        Ok(Some(KeyBounds { begin: std::mem::replace(&mut bounds.begin, end.clone()), end }))
    }

    /// Whether both are there, and the first comes before the other.
    fn is_before(&self, key: Option<&K>, other: Option<&K>) -> Result<bool> {
        key.zip(other).map_or(Ok(false), |(key, other)| self.range.is_before(key, other))
    }
}

impl<K: Btree1Key> Btree1<K> {
    /// A new tree without entries.
    ///
    /// # Errors
    /// If there is no room in the file.
    pub(crate) fn create(
        metadata: ObjectMetadataAccess,
        k: u16,
        shape: K::Shape,
    ) -> Result<(Self, impl h5live_cache::DependencyNode)> {
        let empty = Btree1Node::<K>::empty(k, shape, metadata.widths());
        let root = metadata.create(empty.node_size() as u64, empty)?;
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
    pub(crate) fn dependency_node(&self) -> Result<impl h5live_cache::DependencyNode + use<K>> {
        self.load_node(self.root, None)
    }

    /// The way from the root to a leaf, in each node by way of the child that `choose` names, or of the last.
    ///
    /// # Errors
    /// The first error of `choose`; if a node cannot be read.
    pub(crate) fn path_to_leaf(
        &self,
        mut choose: impl FnMut(&Btree1Node<K>) -> Result<usize>,
    ) -> Result<Vec<Btree1PathStep>> {
        let mut path = Vec::new();
        let (mut addr, mut level) = (self.root, None);
        loop {
            let node = self.load_node(addr, level)?;
            let node = node.read();
            let index = choose(&node)?;
            let Some(below) = node.level.checked_sub(1) else {
                path.push(Btree1PathStep { addr, index });
                return Ok(path);
            };
            let index = index.min(node.len().saturating_sub(1));
            path.push(Btree1PathStep { addr, index });
            addr = node.child(index).ok_or_else(|| self.contradiction(addr, "an internal node has children"))?;
            level = Some(below);
        }
    }
}

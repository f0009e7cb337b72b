//! Version 1 B-trees: the names of old-style groups, and chunks.

use std::collections::HashSet;

use h5live_cache::Handle;
use h5live_format::{Addr, Btree1Key, Btree1Node};

use crate::{Error, ObjectMetadata, Result};

/// A tree whose nodes are sorted by keys `K` (format specification 4.0, III.A.1).
#[derive(Debug, Clone)]
pub struct Btree1<K: Btree1Key> {
    metadata: ObjectMetadata,
    root: Addr,
    k: u16,
    shape: K::Shape,
}

impl<K: Btree1Key + Send + Sync + 'static> Btree1<K>
where
    K::Shape: Send + Sync,
{
    /// The tree with its root at `root`. Its nodes have at most `2 * k` children.
    pub fn new(metadata: ObjectMetadata, root: Addr, k: u16, shape: K::Shape) -> Self {
        Btree1 { metadata, root, k, shape }
    }

    fn contradiction(&self, at: Addr, rule: &'static str) -> Error {
        Error::Contradiction { record: "version 1 B-tree node", at, other: "its parent", rule }
    }

    fn node(&self, addr: Addr, level: Option<u8>) -> Result<Handle<Btree1Node<K>>> {
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
        if self.root.is_defined() {
            self.visit(self.root, None, &mut HashSet::new(), each)?;
        }
        Ok(())
    }

    /// Goes through what is below a node; `false` if `each` has had enough. No deeper than the root's level.
    fn visit<E: From<Error>>(
        &self,
        at: Addr,
        level: Option<u8>,
        seen: &mut HashSet<Addr>,
        each: &mut dyn FnMut(K, Addr) -> Result<bool, E>,
    ) -> Result<bool, E> {
        if !seen.insert(at) {
            return Err(self.contradiction(at, "it has one parent").into());
        }
        let node = self.node(at, level)?.read().clone();
        for index in 0..node.len() {
            let (Some(key), Some(child)) = (node.key(index), node.child(index)) else { break };
            let goes_on = match node.level.checked_sub(1) {
                None => each(key, child)?,
                below => self.visit(child, below, seen, each)?,
            };
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

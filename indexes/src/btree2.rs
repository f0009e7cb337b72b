//! Version 2 B-trees: dense links and attributes, huge objects, shared messages, chunks.

use std::cmp::Ordering;
use std::collections::HashSet;

use h5live_cache::Handle;
use h5live_format::{Addr, Btree2Geometry, Btree2Header, Btree2Internal, Btree2Leaf, Btree2Record, Btree2Records};

use crate::{Error, ObjectMetadata, Result};

/// A tree of records `R` (format specification 4.0, III.A.2).
#[derive(Debug, Clone)]
pub struct Btree2<R> {
    metadata: ObjectMetadata,
    addr: Addr,
    /// A record with the context that stored ones do not carry.
    blank: R,
}

/// The way to a node.
#[derive(Debug, Clone, Copy)]
struct Way {
    addr: Addr,
    depth: u16,
    records: u16,
}

/// What a node holds.
enum Node {
    Leaf(Handle<Btree2Leaf>),
    Internal(Handle<Btree2Internal>),
}

impl Node {
    /// The way to child `index` of an internal node at `depth`.
    fn child(&self, index: usize, depth: u16) -> Option<Way> {
        let Node::Internal(node) = self else { return None };
        let child = *node.read().children.get(index)?;
        Some(Way { addr: child.addr, depth: depth.checked_sub(1)?, records: child.records })
    }

    fn with<T>(&self, look: impl FnOnce(&Btree2Records) -> T) -> T {
        match self {
            Node::Leaf(node) => look(&node.read().records),
            Node::Internal(node) => look(&node.read().records),
        }
    }
}

impl<R: Btree2Record> Btree2<R> {
    /// The tree with its header at `addr`; `blank` has the context that stored records do not carry.
    pub fn new(metadata: ObjectMetadata, addr: Addr, blank: R) -> Self {
        Btree2 { metadata, addr, blank }
    }

    fn contradiction(&self, at: Addr, record: &'static str, other: &'static str, rule: &'static str) -> Error {
        Error::Contradiction { record, at, other, rule }
    }

    /// The header, and the shape of nodes that follows from it.
    fn header(&self) -> Result<(Btree2Header, Btree2Geometry)> {
        let len = Btree2Header::size(self.metadata.widths()) as u64;
        let header = self.metadata.load(self.addr, len, Btree2Header::default)?.read().clone();
        let wrong = |rule| self.contradiction(self.addr, "version 2 B-tree header", "object that it belongs to", rule);
        if header.kind != R::KIND {
            return Err(wrong("its records are of the type that belongs there"));
        }
        let geometry = Btree2Geometry::of(&header, self.metadata.widths());
        let geometry = geometry.map_err(|_| wrong("its nodes hold records"))?;
        Ok((header, geometry))
    }

    fn root(&self, header: &Btree2Header) -> Option<Way> {
        let root = Way { addr: header.root, depth: header.depth, records: header.root_records };
        root.addr.is_defined().then_some(root)
    }

    fn node(&self, way: Way, geometry: &Btree2Geometry) -> Result<Node> {
        if way.records > geometry.max_records(way.depth) {
            let rule = "a node has no more records than its size allows";
            return Err(self.contradiction(way.addr, "version 2 B-tree node", "version 2 B-tree header", rule));
        }
        let len = geometry.node_size().into();
        let (leaf, internal) = (|| geometry.leaf(way.records), || geometry.internal(way.depth, way.records));
        let node = match way.depth {
            0 => Node::Leaf(self.metadata.load(way.addr, len, leaf)?),
            _ => Node::Internal(self.metadata.load(way.addr, len, internal)?),
        };
        // A cached node may have been read on the way from a parent that was older.
        if node.with(Btree2Records::len) != usize::from(way.records) {
            let rule = "it has the number of records that its parent states";
            return Err(self.contradiction(way.addr, "version 2 B-tree node", "its parent", rule));
        }
        Ok(node)
    }

    fn record(&self, at: Addr, node: &Node, index: usize) -> Result<R> {
        let widths = self.metadata.widths();
        let record = node.with(|records| records.get(index, self.blank.clone(), widths));
        let rule = "a node has the records that are counted";
        let record = record.ok_or_else(|| self.contradiction(at, "version 2 B-tree node", "its parent", rule))?;
        record.map_err(|source| Error::Cache(h5live_cache::Error::Decode { at, source }))
    }

    /// The record for which `compare` says that it is equal to what is sought; `compare` says of any record whether it
    /// comes before (`Less`) or after it.
    ///
    /// # Errors
    /// The first error of `compare`; if a node cannot be read.
    pub fn find<E: From<Error>>(&self, mut compare: impl FnMut(&R) -> Result<Ordering, E>) -> Result<Option<R>, E> {
        let (header, geometry) = self.header()?;
        let mut next = self.root(&header);
        while let Some(way) = next {
            let node = self.node(way, &geometry)?;
            let (mut low, mut high) = (0, usize::from(way.records));
            while low < high {
                let middle = low + (high - low) / 2;
                let record = self.record(way.addr, &node, middle)?;
                match compare(&record)? {
                    Ordering::Equal => return Ok(Some(record)),
                    Ordering::Less => low = middle + 1,
                    Ordering::Greater => high = middle,
                }
            }
            next = node.child(low, way.depth);
        }
        Ok(None)
    }

    /// Calls `each` with every record in order, until it returns `false`.
    ///
    /// # Errors
    /// The first error of `each`; if a node cannot be read.
    pub fn for_each<E: From<Error>>(&self, each: &mut dyn FnMut(R) -> Result<bool, E>) -> Result<(), E> {
        let (header, geometry) = self.header()?;
        let Some(root) = self.root(&header) else { return Ok(()) };
        let mut seen = HashSet::new();
        self.visit(root, &geometry, &mut seen, each).map(|_| ())
    }

    /// Goes through what is below `way`; `false` if `each` has had enough. No deeper than the tree is.
    fn visit<E: From<Error>>(
        &self,
        way: Way,
        geometry: &Btree2Geometry,
        seen: &mut HashSet<Addr>,
        each: &mut dyn FnMut(R) -> Result<bool, E>,
    ) -> Result<bool, E> {
        if !seen.insert(way.addr) {
            let rule = "it has one parent";
            return Err(self.contradiction(way.addr, "version 2 B-tree node", "version 2 B-tree", rule).into());
        }
        let node = self.node(way, geometry)?;
        for index in 0..=usize::from(way.records) {
            if let Some(child) = node.child(index, way.depth)
                && !self.visit(child, geometry, seen, each)?
            {
                return Ok(false);
            }
            if index < way.records.into() && !each(self.record(way.addr, &node, index)?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

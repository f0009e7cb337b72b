//! Version 2 B-trees: dense links and attributes, huge objects, shared messages, chunks (format specification,
//! III.A.2).
//!
//! A tree is changed by copying. The structures to which the header in the file leads stay unchanged. The nodes on the
//! way to a change move to new space, at most once between two writes of the header. So a reader sees either the old
//! tree or the new one, also after a crash. Only the header waits: for nodes, and for everything to which records lead.

mod batch_read;
mod edit;
mod header;
mod insert;
mod leaf_insert;
mod load;
mod node;
mod pack;
mod remove;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use h5live_cache::{DependencyKind, DependencyNode as Dependent, Handle};
use h5live_format::{Addr, Btree2Geometry, Btree2Header, Btree2Record, Btree2Records, decode, encode};

use self::header::CachedBtree2Header;
use self::node::{CachedBtree2Node, NodePtr};
use crate::{Error, ObjectMetadataAccess, Result};

/// How large the nodes of a tree are, and how full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Btree2Parameters {
    /// Bytes of a node.
    pub node_size: u32,
    /// How full a node is when it is split (percent).
    pub split: u8,
    /// How full a node is when it is merged (percent).
    pub merge: u8,
}

impl Btree2Parameters {
    /// Trees of links, attributes, huge objects and shared messages, as libhdf5 makes them.
    pub const SMALL: Self = Btree2Parameters { node_size: 512, split: 100, merge: 40 };
    /// Trees of chunks, as libhdf5 makes them.
    pub const CHUNKS: Self = Btree2Parameters { node_size: 2048, split: 100, merge: 40 };
}

/// A tree of records `R` (format specification 4.0, III.A.2). Any number of threads may use trees of the same header
/// at once.
#[derive(Debug, Clone)]
pub struct Btree2<R> {
    metadata: ObjectMetadataAccess,
    addr: Addr,
    /// A record with the context that stored ones do not carry.
    blank: R,
    /// The header, once it was loaded.
    header: OnceLock<Handle<CachedBtree2Header>>,
}

impl<R: Btree2Record> Btree2<R> {
    /// The tree with its header at `addr`; `blank` has the context that stored records do not carry.
    pub fn new(metadata: ObjectMetadataAccess, addr: Addr, blank: R) -> Self {
        Btree2 { metadata, addr, blank, header: OnceLock::new() }
    }

    /// A new tree without records, with nodes of `node_size` bytes that are as full as libhdf5 has them.
    ///
    /// # Errors
    /// As [`Btree2::create_with_parameters`].
    pub fn create(metadata: ObjectMetadataAccess, blank: R, node_size: u32) -> Result<Self> {
        Self::create_with_parameters(metadata, blank, Btree2Parameters { node_size, ..Btree2Parameters::SMALL })
    }

    /// A new tree without records.
    ///
    /// # Errors
    /// If there is no room in the file, or nodes of this shape do not hold three records.
    pub fn create_with_parameters(metadata: ObjectMetadataAccess, blank: R, shape: Btree2Parameters) -> Result<Self> {
        let widths = metadata.widths();
        let record =
            encode(&blank, widths).map_err(|source| h5live_cache::Error::Encode { at: Addr::UNDEFINED, source })?;
        let header = Btree2Header {
            kind: R::KIND,
            node_size: shape.node_size,
            record_size: u16::try_from(record.len()).unwrap_or(u16::MAX),
            depth: 0,
            split_percent: shape.split,
            merge_percent: shape.merge,
            root: Addr::UNDEFINED,
            root_record_count: 0,
            total_record_count: 0,
        };
        let fits = |geometry: Btree2Geometry| geometry.split_threshold(0) >= node::MIN_NODE_CAPACITY;
        if !Btree2Geometry::from_header(&header, widths).is_ok_and(fits) {
            return Err(node::too_small_error());
        }
        let root = metadata.create(Btree2Header::size(widths) as u64, CachedBtree2Header::new(header, widths))?;
        Ok(Btree2::new(metadata, root.addr(), blank))
    }

    /// The header.
    pub fn addr(&self) -> Addr {
        self.addr
    }

    /// The number of records.
    ///
    /// # Errors
    /// If the header cannot be read.
    pub fn len(&self) -> Result<u64> {
        Ok(self.header()?.read().header.total_record_count)
    }

    /// Whether there are no records.
    ///
    /// # Errors
    /// As [`Btree2::len`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// The header, for other flush dependencies than those of [`Btree2::depend_on`] and [`Btree2::add_flush_parent`].
    ///
    /// # Errors
    /// If the header cannot be read.
    pub fn dependency_node(&self) -> Result<impl Dependent + use<R>> {
        self.header()
    }

    /// Makes all changes so far wait for `child`, to which a record leads.
    ///
    /// # Errors
    /// If the header cannot be read, or the dependency would close a circle.
    pub fn depend_on(&self, child: &impl Dependent, kind: DependencyKind) -> Result<()> {
        self.metadata.add_dependency(&self.header()?, child, kind)
    }

    /// Makes `parent`, which leads to the tree, wait for all changes so far.
    ///
    /// # Errors
    /// As [`Btree2::depend_on`].
    pub fn add_flush_parent(&self, parent: &(impl Dependent + ?Sized), kind: DependencyKind) -> Result<()> {
        self.metadata.add_dependency(parent, &self.header()?, kind)
    }

    /// As [`Btree2::depend_on`] of `child` and [`Btree2::add_flush_parent`] of each of `parents`.
    ///
    /// # Errors
    /// As [`Btree2::depend_on`].
    pub fn depend_on_with_parents<'a>(
        &self,
        child: &impl Dependent,
        parents: impl Iterator<Item = &'a dyn Dependent>,
        kind: DependencyKind,
    ) -> Result<()> {
        let root = self.header()?;
        self.metadata.add_dependency(&root, child, kind)?;
        parents.into_iter().try_for_each(|parent| self.metadata.add_dependency(parent, &root, kind))
    }

    fn contradiction(&self, at: Addr, record: &'static str, other: &'static str, rule: &'static str) -> Error {
        Error::Contradiction { record, at, other, rule }
    }

    fn header(&self) -> Result<Handle<CachedBtree2Header>> {
        if let Some(found) = self.header.get().filter(|found| !found.is_invalidated()) {
            return Ok(found.clone());
        }
        let (cache, widths) = (self.metadata.cache(), self.metadata.widths());
        let make = |bytes: &[u8]| {
            let header = decode(bytes, widths);
            header
                .map(|header| CachedBtree2Header::new(header, widths))
                .map_err(|source| h5live_cache::Error::Decode { at: self.addr, source })
        };
        let root = cache.load_block(self.addr, self.metadata.owner(), Btree2Header::size(widths), make)?;
        if root.read().header.kind != R::KIND {
            return Err(self.unfit_error("its records are of the type that belongs there"));
        }
        let _others = self.header.set(root.clone());
        Ok(root)
    }

    fn unfit_error(&self, rule: &'static str) -> Error {
        self.contradiction(self.addr, "version 2 B-tree header", "object that it belongs to", rule)
    }

    /// The shape of nodes that follows from the header.
    fn geometry(&self, root: &CachedBtree2Header) -> Result<Arc<Btree2Geometry>> {
        root.geometry.clone().ok_or_else(|| self.unfit_error("its nodes hold records"))
    }

    /// The present contents of the header.
    fn header_and_geometry(&self, root: &Handle<CachedBtree2Header>) -> Result<(Btree2Header, Arc<Btree2Geometry>)> {
        let root = root.read();
        Ok((root.header.clone(), self.geometry(&root)?))
    }

    fn root_ptr(&self, header: &Btree2Header) -> Option<NodePtr> {
        let root = NodePtr { addr: header.root, depth: header.depth, records: header.root_record_count };
        root.addr.is_defined().then_some(root)
    }

    fn decode_record(&self, at: Addr, bytes: Option<&[u8]>) -> Result<R> {
        let rule = "a node has the records that are counted";
        let bytes = bytes.ok_or_else(|| self.contradiction(at, "version 2 B-tree node", "its parent", rule))?;
        let record = h5live_format::decode_with(self.blank.clone(), bytes, self.metadata.widths());
        record.map_err(|source| Error::Cache(h5live_cache::Error::Decode { at, source }))
    }

    /// Finds the record for which `compare` returns `Equal`. For other records, `compare` says whether the record comes
    /// before (`Less`) or after the wanted one.
    ///
    /// # Errors
    /// The first error of `compare`; if a node cannot be read.
    pub fn find<E: From<Error>>(&self, compare: impl FnMut(&R) -> Result<Ordering, E>) -> Result<Option<R>, E> {
        self.find_prefiltered(|_| Ordering::Equal, compare)
    }

    /// As [`Btree2::find`], where `prefilter` says of the bytes of a record what `compare` would say of it, or `Equal`
    /// if they alone do not tell.
    ///
    /// # Errors
    /// As [`Btree2::find`].
    pub fn find_prefiltered<E: From<Error>>(
        &self,
        prefilter: impl Fn(&[u8]) -> Ordering,
        mut compare: impl FnMut(&R) -> Result<Ordering, E>,
    ) -> Result<Option<R>, E> {
        let root = self.header()?;
        let lock = root.read().tree_lock();
        let _shared = lock.read_recursive();
        let (header, geometry) = self.header_and_geometry(&root)?;
        let mut next = self.root_ptr(&header);
        while let Some(way) = next {
            let node = self.load_node(way, &geometry)?;
            let (index, found) = binary_search(usize::from(way.records), &mut compare, |range| {
                node.with_records(|records| self.narrow_by_prefilter(way.addr, records, range, &prefilter))
            })?;
            if found.is_some() {
                return Ok(found);
            }
            next = node.child_ptr(index, way.depth);
        }
        Ok(None)
    }

    /// Narrows a range of the records of a node to where `prefilter` does not tell, and returns the record in the
    /// middle of it.
    fn narrow_by_prefilter(
        &self,
        at: Addr,
        records: &Btree2Records,
        range: &mut Range<usize>,
        prefilter: &impl Fn(&[u8]) -> Ordering,
    ) -> Result<Option<(usize, R)>> {
        while range.start < range.end {
            let middle = range.start + range.len() / 2;
            let bytes = records.bytes_at(middle);
            match bytes.map_or(Ordering::Equal, prefilter) {
                Ordering::Less => range.start = middle + 1,
                Ordering::Greater => range.end = middle,
                Ordering::Equal => return Ok(Some((middle, self.decode_record(at, bytes)?))),
            }
        }
        Ok(None)
    }

    /// Calls `each` with every record in order, until it returns `false`. It must not change the tree.
    ///
    /// # Errors
    /// The first error of `each`; if a node cannot be read.
    pub fn for_each<E: From<Error>>(&self, each: &mut dyn FnMut(R) -> Result<bool, E>) -> Result<(), E> {
        self.for_each_from(&mut |_| Ok(false), each)
    }

    /// As [`Btree2::for_each`], from the first record on for which `before` is false. It must be false for all later
    /// records, too.
    ///
    /// # Errors
    /// As [`Btree2::for_each`]; the first error of `before`.
    pub fn for_each_from<E: From<Error>>(
        &self,
        before: &mut dyn FnMut(&R) -> Result<bool, E>,
        each: &mut dyn FnMut(R) -> Result<bool, E>,
    ) -> Result<(), E> {
        let root = self.header()?;
        let lock = root.read().tree_lock();
        let _shared = lock.read_recursive();
        let (header, geometry) = self.header_and_geometry(&root)?;
        let Some(way) = self.root_ptr(&header) else { return Ok(()) };
        Btree2Walk { tree: self, geometry, visited_nodes: HashSet::new(), before, each, begun: false }
            .visit_subtree(way)
            .map(|_| ())
    }

    /// Gives back the space of all nodes and of the header. The tree is no more.
    ///
    /// # Errors
    /// If a node cannot be read; nothing is given back then.
    pub fn delete_tree(&self) -> Result<()> {
        let root = self.header()?;
        let lock = root.read().tree_lock();
        let _alone = lock.write();
        let (header, geometry) = self.header_and_geometry(&root)?;
        let mut nodes = HashSet::new();
        if let Some(way) = self.root_ptr(&header) {
            self.collect_node_addrs(way, &geometry, &mut nodes)?;
        }
        for addr in nodes {
            self.metadata.free_structure(addr, header.node_size.into());
        }
        self.metadata.free_structure(self.addr, Btree2Header::size(self.metadata.widths()) as u64);
        Ok(())
    }

    /// Gathers where the nodes are. Leaves need not be read.
    fn collect_node_addrs(&self, way: NodePtr, geometry: &Btree2Geometry, found: &mut HashSet<Addr>) -> Result<()> {
        if !found.insert(way.addr) {
            return Err(self.two_parents_error(way.addr));
        }
        if way.depth > 0 {
            let node = self.load_node(way, geometry)?;
            let mut children = (0..=usize::from(way.records)).map_while(|index| node.child_ptr(index, way.depth));
            children.try_for_each(|child| self.collect_node_addrs(child, geometry, found))?;
        }
        Ok(())
    }

    fn two_parents_error(&self, at: Addr) -> Error {
        self.contradiction(at, "version 2 B-tree node", "version 2 B-tree", "it has one parent")
    }

    fn load_record(&self, at: Addr, node: &CachedBtree2Node, index: usize) -> Result<R> {
        node.with_records(|records| self.decode_record(at, records.bytes_at(index)))
    }
}

/// The place among `len` records of what `compare` seeks, and the record there if it is that. `narrow` narrows a range
/// and returns a record in it, if any is left.
fn binary_search<R, E: From<Error>>(
    len: usize,
    compare: &mut impl FnMut(&R) -> Result<Ordering, E>,
    narrow: impl Fn(&mut Range<usize>) -> Result<Option<(usize, R)>>,
) -> Result<(usize, Option<R>), E> {
    let mut range = 0..len;
    while let Some((middle, record)) = narrow(&mut range)? {
        match compare(&record)? {
            Ordering::Equal => return Ok((middle, Some(record))),
            Ordering::Less => range.start = middle + 1,
            Ordering::Greater => range.end = middle,
        }
    }
    Ok((range.start, None))
}

/// A walk over records in order.
struct Btree2Walk<'a, R, E> {
    tree: &'a Btree2<R>,
    geometry: Arc<Btree2Geometry>,
    visited_nodes: HashSet<Addr>,
    before: &'a mut dyn FnMut(&R) -> Result<bool, E>,
    each: &'a mut dyn FnMut(R) -> Result<bool, E>,
    /// The first record has been found.
    begun: bool,
}

impl<R: Btree2Record, E: From<Error>> Btree2Walk<'_, R, E> {
    /// Visits everything below `way`. Returns `false` if `each` has returned `false`. Goes no deeper than the tree is.
    fn visit_subtree(&mut self, way: NodePtr) -> Result<bool, E> {
        if !self.visited_nodes.insert(way.addr) {
            return Err(self.tree.two_parents_error(way.addr).into());
        }
        let node = self.tree.load_node(way, &self.geometry)?;
        let len = usize::from(way.records);
        let (mut first, mut end) = (0, if self.begun { 0 } else { len });
        while first < end {
            let middle = first + (end - first) / 2;
            let record = self.tree.load_record(way.addr, &node, middle)?;
            if (self.before)(&record)? { first = middle + 1 } else { end = middle }
        }
        for index in first..=len {
            if let Some(child) = node.child_ptr(index, way.depth)
                && !self.visit_subtree(child)?
            {
                return Ok(false);
            }
            self.begun = true;
            if index < len && !(self.each)(self.tree.load_record(way.addr, &node, index)?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

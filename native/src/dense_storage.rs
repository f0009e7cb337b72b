//! Dense storage: a heap of messages, an index of their names, and perhaps one of the order of creation. Links and
//! attributes have the same.

use h5live_cache::EdgeKind;
use h5live_format::{Addr, Btree2Record};
use h5live_indexes::{Btree2, FractalHeap, ObjectMetadata};

use crate::Result;
use crate::header::CachedHeader;

/// Bytes of a node of the indexes.
const INDEX_NODE_BYTES: u32 = 512;

/// The structures of dense links, or of dense attributes. `N` and `O` are the records of the two indexes.
pub(crate) struct DenseStorage<N, O> {
    pub heap: FractalHeap,
    pub names: Btree2<N>,
    pub order: Option<Btree2<O>>,
}

impl<N: Btree2Record + Default, O: Btree2Record + Default> DenseStorage<N, O> {
    /// The heap, with the indexes at these addresses.
    pub fn new(metadata: &ObjectMetadata, heap: FractalHeap, names: Addr, order: Option<Addr>) -> Self {
        let order = order.map(|order| Btree2::new(metadata.clone(), order, O::default()));
        DenseStorage { heap, names: Btree2::new(metadata.clone(), names, N::default()), order }
    }

    /// The heap, with new indexes.
    ///
    /// # Errors
    /// If there is no room.
    pub fn create(metadata: &ObjectMetadata, heap: FractalHeap, has_order: bool) -> Result<Self> {
        let names = Btree2::create(metadata.clone(), N::default(), INDEX_NODE_BYTES)?;
        let order = match has_order {
            true => Some(Btree2::create(metadata.clone(), O::default(), INDEX_NODE_BYTES)?),
            false => None,
        };
        Ok(DenseStorage { heap, names, order })
    }

    /// Makes the indexes wait for the heap.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn depend_on_heap(&self) -> Result<()> {
        let heap = self.heap.dependency_node()?;
        self.names.depend_on(&heap, EdgeKind::Dense)?;
        if let Some(order) = &self.order {
            order.depend_on(&heap, EdgeKind::Dense)?;
        }
        Ok(())
    }

    /// Makes the header wait for the indexes, and these for the heap. Call it before an entry is added, because a
    /// structure to which the entry leads may already wait for the header.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn add_parent(&self, header: &CachedHeader) -> Result<()> {
        let heap = self.heap.dependency_node()?;
        self.names.depend_on_with_parents(&heap, header.chunk_nodes(), EdgeKind::Dense)?;
        if let Some(order) = &self.order {
            order.depend_on_with_parents(&heap, header.chunk_nodes(), EdgeKind::Dense)?;
        }
        Ok(())
    }

    /// The number of entries.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn len(&self) -> Result<u64> {
        Ok(self.names.len()?)
    }

    /// Gives back the space of the heap and of the indexes.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn delete(&self) -> Result<()> {
        self.names.delete_tree()?;
        if let Some(order) = self.order.as_ref().filter(|order| order.addr().is_defined()) {
            order.delete_tree()?;
        }
        Ok(self.heap.delete_heap()?)
    }
}

//! The kinds of flush dependencies: the rows of the table of flush dependencies.

use strum::VariantArray;

/// Why a parent must not be written before its child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, VariantArray)]
#[repr(u8)]
#[non_exhaustive]
pub enum DependencyKind {
    /// An object header states the extent and the address of the chunk index, whose root is the child.
    ObjectHeaderIndex,
    /// An object header (chunk) points to a continuation chunk.
    Continuation,
    /// An object header points to the fractal heap or v2 B-tree of dense links or attributes.
    DenseStorage,
    /// A group's link points to the header of a new object.
    Link,
    /// A v1 B-tree node points to a child node; or entries of the parent have moved to a node to which the child leads.
    BTree1Node,
    /// A v1 B-tree leaf points to a symbol table node.
    BTree1Symbols,
    /// A v1 B-tree leaf points to a chunk, whose proxy is the child.
    BTree1Chunk,
    /// A v2 B-tree header points to its root node.
    BTree2Root,
    /// A v2 B-tree header leads to a node by way of others, which are only reached through it.
    BTree2HeaderToNode,
    /// A record of a v2 B-tree, to whose header it belongs, points to a chunk, whose proxy is the child.
    BTree2Chunk,
    /// An extensible array's header points to its index block.
    ExtensibleArrayIndexBlock,
    /// An extensible array's index block points to a super block.
    ExtensibleArraySuperBlock,
    /// An extensible array's index block or super block points to a data block.
    ExtensibleArrayDataBlock,
    /// An extensible array's super block says that a page of a data block is in use.
    ExtensibleArrayPage,
    /// An element of an extensible array points to a chunk, whose proxy is the child.
    ExtensibleArrayChunk,
    /// A fixed array's header points to its data block.
    FixedArrayDataBlock,
    /// A fixed array's data block says that a page is in use.
    FixedArrayPage,
    /// An element of a fixed array points to a chunk, whose proxy is the child.
    FixedArrayChunk,
    /// An object header's layout message points to raw data (single chunk, contiguous, implicit), whose proxy is
    /// the child.
    LayoutRaw,
    /// Elements of a chunk (the parent is its proxy) point into a global heap collection.
    ChunkGlobalHeap,
    /// A message or an element in metadata points into a global heap collection.
    MetadataGlobalHeap,
    /// A fractal heap's header or indirect block points to a block.
    FractalHeapBlock,
    /// The superblock extension points to a free-space manager, whose header points to its sections.
    FreeSpaceSections,
    /// A group's symbol table message points to its B-tree or local heap.
    SymbolTable,
    /// The superblock announces the end of file before anything beyond the former one becomes reachable. No
    /// entries are joined by this; every flush observes it.
    SuperblockEof,
    /// The file is as long as the superblock announces. No entries are joined by this; every flush observes it.
    FileLength,
    /// Nodes of a version 2 B-tree to which the file leads are not changed, but copied. No entries are joined by this;
    /// every change of such a tree observes it.
    BTree2Shadow,
    /// The user wants what the parent says to appear only after what the child says (`publish_after`).
    PublishAfter,
    /// In a file whose structures have no checksums, nothing is changed in place before the generation says so. No
    /// entries are joined by this; every flush observes it.
    Generation,
    /// Raw data that readers may be reading is changed in place only after a redo record has its new bytes. Joins no
    /// entries; every flush observes it.
    RawOverwriteRedo,
}

impl DependencyKind {
    /// All kinds, in declared order.
    pub const ALL: &'static [DependencyKind] = <DependencyKind as VariantArray>::VARIANTS;
}

/// A set of edge kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DependencyKinds(u32);

impl DependencyKinds {
    /// No kind.
    pub const NONE: DependencyKinds = DependencyKinds(0);

    /// Just `kind`.
    pub const fn only(kind: DependencyKind) -> Self {
        DependencyKinds(1 << kind as u8)
    }

    /// The set with `kind` added.
    #[must_use]
    pub const fn with(self, kind: DependencyKind) -> Self {
        DependencyKinds(self.0 | 1 << kind as u8)
    }

    /// Whether `kind` is in the set.
    pub const fn contains(self, kind: DependencyKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

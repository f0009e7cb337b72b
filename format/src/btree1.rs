//! Version 1 B-trees: the index of old-style groups, and of chunks (format specification 4.0, III.A.1).

use std::fmt;

use smallvec::SmallVec;

use crate::element_table::{read_addr, read_uint};
use crate::{Addr, Fault, Record, Result, Widths, Wire};

/// The sort key of a version 1 B-tree.
pub trait Btree1Key: Clone + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// The parameters on which the size of a key depends.
    type Shape: Copy + fmt::Debug + PartialEq + Default + Send + Sync;

    /// The type of node.
    const KIND: u8;

    /// Whether the key that belongs to a child is the one behind it.
    const KEY_FOLLOWS_CHILD: bool;

    /// Bytes of a key.
    fn key_size(shape: Self::Shape, widths: Widths) -> usize;

    /// Reads a key from its bytes.
    fn read_key(bytes: &[u8]) -> Self;

    /// Appends the bytes of the key. `false`, and nothing appended, if it does not have this shape.
    #[must_use]
    fn write_key(&self, shape: Self::Shape, widths: Widths, bytes: &mut Vec<u8>) -> bool;
}

/// The key of a group's B-tree: where a name begins in the group's local heap (bytes). The names below child `i` are
/// greater than key `i`, and not greater than key `i + 1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Btree1GroupKey(pub u64);

impl Btree1Key for Btree1GroupKey {
    type Shape = ();

    const KIND: u8 = 0;

    const KEY_FOLLOWS_CHILD: bool = true;

    fn key_size((): (), widths: Widths) -> usize {
        widths.length.bytes()
    }

    fn read_key(bytes: &[u8]) -> Self {
        Btree1GroupKey(read_uint(bytes))
    }

    fn write_key(&self, (): (), widths: Widths, bytes: &mut Vec<u8>) -> bool {
        let fits = self.0 <= widths.length.max_value();
        if fits {
            bytes.extend(self.0.to_le_bytes().into_iter().take(widths.length.bytes()));
        }
        fits
    }
}

/// The key of a B-tree of chunks: the first chunk below a child, or in a leaf the chunk itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Btree1ChunkKey {
    /// Stored bytes, after the filters.
    pub stored_size: u32,
    /// Bit `i` set: filter `i` was skipped.
    pub filter_mask: u32,
    /// The first element of the chunk (`[rank]`, elements).
    pub start: SmallVec<[u64; 4]>,
    /// The offset inside an element (bytes): 0, except for the last key of a node.
    pub offset_in_element: u64,
}

/// The rank of the chunks of a B-tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Btree1ChunkRank(pub u8);

impl Btree1Key for Btree1ChunkKey {
    type Shape = Btree1ChunkRank;

    const KIND: u8 = 1;

    const KEY_FOLLOWS_CHILD: bool = false;

    fn key_size(rank: Btree1ChunkRank, _: Widths) -> usize {
        usize::from(rank.0).saturating_mul(8).saturating_add(16)
    }

    fn read_key(bytes: &[u8]) -> Self {
        let (head, offsets) = bytes.split_at_checked(8).unwrap_or_default();
        let (size, mask) = head.split_at_checked(4).unwrap_or_default();
        let narrow = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes);
        let (offsets, _) = offsets.as_chunks::<8>();
        let (last, start) = offsets.split_last().unwrap_or((&[0; 8], &[]));
        Btree1ChunkKey {
            stored_size: narrow(size),
            filter_mask: narrow(mask),
            start: start.iter().map(|offset| u64::from_le_bytes(*offset)).collect(),
            offset_in_element: u64::from_le_bytes(*last),
        }
    }

    fn write_key(&self, rank: Btree1ChunkRank, _: Widths, bytes: &mut Vec<u8>) -> bool {
        if self.start.len() != usize::from(rank.0) {
            return false;
        }
        bytes.extend_from_slice(&self.stored_size.to_le_bytes());
        bytes.extend_from_slice(&self.filter_mask.to_le_bytes());
        self.start.iter().for_each(|offset| bytes.extend_from_slice(&offset.to_le_bytes()));
        bytes.extend_from_slice(&self.offset_in_element.to_le_bytes());
        true
    }
}

/// A node: `n` children between `n + 1` keys, kept as the bytes of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Btree1Node<K: Btree1Key> {
    /// 0 for leaves. Their children are symbol table nodes or chunks.
    pub level: u8,
    /// The node to the left on the same level.
    pub left_sibling: Addr,
    /// The node to the right on the same level.
    pub right_sibling: Addr,
    shape: K::Shape,
    widths: Widths,
    capacity: u16,
    entries: Vec<u8>,
}

impl<K: Btree1Key> Btree1Node<K> {
    /// An empty leaf of a tree whose nodes have at most `2 * k` children. Context for decoding.
    pub fn empty(k: u16, shape: K::Shape, widths: Widths) -> Self {
        let (left, right) = (Addr::UNDEFINED, Addr::UNDEFINED);
        Btree1Node {
            level: 0,
            left_sibling: left,
            right_sibling: right,
            shape,
            widths,
            capacity: k.saturating_mul(2),
            entries: Vec::new(),
        }
    }

    /// Bytes of a key and of a child after it.
    fn entry_bytes(&self) -> usize {
        K::key_size(self.shape, self.widths).saturating_add(self.widths.offset.bytes())
    }

    /// Bytes of a node.
    pub fn node_size(&self) -> usize {
        let fixed = self.widths.offset.bytes().saturating_mul(2).saturating_add(8);
        let entries = usize::from(self.capacity).saturating_mul(self.entry_bytes());
        fixed.saturating_add(entries).saturating_add(K::key_size(self.shape, self.widths))
    }

    /// Most children of a node.
    pub fn capacity(&self) -> usize {
        self.capacity.into()
    }

    /// The number of children.
    pub fn len(&self) -> usize {
        self.entries.len().checked_div(self.entry_bytes()).unwrap_or(0)
    }

    /// Whether the node has no children.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Child `index`; `None` past the end.
    pub fn child(&self, index: usize) -> Option<Addr> {
        let entry = self.entries.chunks_exact(self.entry_bytes()).nth(index)?;
        entry.get(K::key_size(self.shape, self.widths)..).map(read_addr)
    }

    /// Key `index`. There is one more key than children. `None` past the end.
    pub fn key(&self, index: usize) -> Option<K> {
        let start = index.checked_mul(self.entry_bytes())?;
        let end = start.checked_add(K::key_size(self.shape, self.widths))?;
        self.entries.get(start..end).map(K::read_key)
    }

    /// Replaces keys and children: one more key than children, and no more children than the node holds. `false`,
    /// and nothing replaced, if that is not so or a key does not fit.
    #[must_use]
    pub fn set_entries(&mut self, keys: &[K], children: &[Addr]) -> bool {
        let counts = children.is_empty() && keys.is_empty() || keys.len() == children.len().saturating_add(1);
        if !counts || children.len() > self.capacity() {
            return false;
        }
        let mut entries = Vec::with_capacity(keys.len().saturating_mul(self.entry_bytes()));
        let width = self.widths.offset;
        for (i, key) in keys.iter().enumerate() {
            if !key.write_key(self.shape, self.widths, &mut entries) {
                return false;
            }
            if let Some(child) = children.get(i) {
                let at = child.get().unwrap_or(width.max_value());
                entries.extend_from_slice(at.to_le_bytes().get(..width.bytes()).unwrap_or_default());
            }
        }
        self.entries = entries;
        true
    }
}

impl<K: Btree1Key> Record for Btree1Node<K> {
    const NAME: &'static str = "version 1 B-tree node";

    fn memory_bytes(&self) -> usize {
        size_of_val(self).saturating_add(self.entries.len())
    }

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.magic("TREE")?;
        let kind = w.derived_u8("node type", K::KIND)?;
        w.require("node type", kind == K::KIND, kind.into(), "0 for groups, 1 for chunks")?;
        w.u8("level", &mut self.level)?;
        let count = w.derived_u16("children", u16::try_from(self.len()).unwrap_or(u16::MAX))?;
        if count > self.capacity {
            return Err(w.fault("children", Fault::TooLarge { found: count.into(), limit: self.capacity.into() }));
        }
        w.addr("left sibling", &mut self.left_sibling)?;
        w.addr("right sibling", &mut self.right_sibling)?;
        self.widths = w.widths();
        let key = K::key_size(self.shape, self.widths);
        let unused = self.capacity.saturating_sub(count);
        let (used, unused) = match usize::from(count).saturating_mul(self.entry_bytes()) {
            0 => (0, usize::from(unused).saturating_mul(self.entry_bytes()).saturating_add(key)),
            used => (used.saturating_add(key), usize::from(unused).saturating_mul(self.entry_bytes())),
        };
        w.bytes("keys and children", used, &mut self.entries)?;
        w.reserved(unused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Width, decode_with, encode};

    fn addrs(n: u64) -> Vec<Addr> {
        (0..n).map(|i| Addr::new(i * 100)).collect()
    }

    #[test]
    fn group_nodes_come_back_from_bytes() {
        for widths in [Widths::default(), Widths { offset: Width::FOUR, length: Width::TWO }] {
            let blank = Btree1Node::<Btree1GroupKey>::empty(16, (), widths);
            for n in [0u64, 1, 32] {
                let mut node = Btree1Node { level: 1, left_sibling: Addr::new(7), ..blank.clone() };
                let keys: Vec<_> = (0..=n).filter(|_| n > 0).map(|i| Btree1GroupKey(i * 8)).collect();
                assert!(node.set_entries(&keys, &addrs(n)));
                let bytes = encode(&node, widths).unwrap();
                assert_eq!(bytes.len(), node.node_size());
                let decoded = decode_with(blank.clone(), &bytes, widths).unwrap();
                assert_eq!(decoded, node);
                assert_eq!((decoded.len(), decoded.child(n as usize)), (n as usize, None));
                assert_eq!(decoded.key(0), keys.first().copied());
                assert_eq!(decoded.key(n as usize), keys.last().copied());
            }
        }
        assert_eq!(Btree1Node::<Btree1GroupKey>::empty(16, (), Widths::default()).node_size(), 544);
    }

    #[test]
    fn chunk_nodes_come_back_from_bytes() {
        let widths = Widths::default();
        let blank = Btree1Node::<Btree1ChunkKey>::empty(32, Btree1ChunkRank(2), widths);
        let key = |i: u64| Btree1ChunkKey {
            stored_size: i as u32,
            filter_mask: 1,
            start: [i * 10, 0].as_slice().into(),
            offset_in_element: if i == 3 { 4 } else { 0 },
        };
        let keys: Vec<_> = (0..=3).map(key).collect();
        let mut node = blank.clone();
        assert!(node.set_entries(&keys, &addrs(3)));
        let bytes = encode(&node, widths).unwrap();
        let decoded = decode_with(blank, &bytes, widths).unwrap();
        assert_eq!((0..4).filter_map(|i| decoded.key(i)).collect::<Vec<_>>(), keys);
        assert_eq!((0..4).filter_map(|i| decoded.child(i)).collect::<Vec<_>>(), addrs(3));
        assert_eq!(encode(&decoded, widths).unwrap(), bytes);
    }

    #[test]
    fn refuses_more_children_than_it_has_space_for() {
        let mut node = Btree1Node::<Btree1GroupKey>::empty(1, (), Widths::default());
        assert!(!node.set_entries(&[Btree1GroupKey(0); 4], &addrs(3)));
        assert!(!node.set_entries(&[Btree1GroupKey(0); 2], &addrs(2)));
        let big = {
            let mut node = Btree1Node::<Btree1GroupKey>::empty(2, (), Widths::default());
            assert!(node.set_entries(&[Btree1GroupKey(0); 4], &addrs(3)));
            encode(&node, Widths::default()).unwrap()
        };
        assert_eq!(decode_with(node, &big, Widths::default()).unwrap_err().field, "children");
    }
}

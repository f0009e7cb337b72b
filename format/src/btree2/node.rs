//! Version 2 B-tree nodes.

use std::ops::Range;

use super::Btree2Record;
use crate::{Addr, Fault, Record, Result, Width, Widths, Wire, decode_with, encode};

/// The records of a node, kept as the bytes of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Btree2Records {
    record_size: usize,
    bytes: Vec<u8>,
}

impl Btree2Records {
    fn empty(size: u16) -> Self {
        Btree2Records { record_size: size.into(), bytes: Vec::new() }
    }

    pub(super) fn set_blank(&mut self, records: u16) {
        self.bytes = vec![0; self.record_size.saturating_mul(records.into())];
    }

    /// A copy with room for `capacity` records.
    #[must_use]
    pub fn clone_with_capacity(&self, capacity: usize) -> Self {
        self.copy_range(0..self.len(), capacity)
    }

    /// A copy of the existing records in `range`, with room for `capacity` records.
    #[must_use]
    pub fn copy_range(&self, range: Range<usize>, capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(self.record_size.saturating_mul(capacity));
        let at = |index: usize| index.saturating_mul(self.record_size);
        bytes.extend_from_slice(self.bytes.get(at(range.start)..at(range.end)).unwrap_or_default());
        Btree2Records { record_size: self.record_size, bytes }
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.bytes.len().checked_div(self.record_size).unwrap_or(0)
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes of record `index`; `None` past the end.
    #[inline]
    pub fn bytes_at(&self, index: usize) -> Option<&[u8]> {
        let start = index.checked_mul(self.record_size)?;
        self.bytes.get(start..).and_then(|rest| rest.get(..self.record_size))
    }

    /// The bytes of all records, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        self.bytes.chunks_exact(self.record_size.max(1))
    }

    /// Record `index`, into `blank`, which holds the context that the bytes do not carry; `None` past the end.
    ///
    /// # Errors
    /// A [`crate::DecodeError`] if the bytes are not such a record.
    pub fn decode_record<R: Btree2Record>(&self, index: usize, blank: R, widths: Widths) -> Option<Result<R>> {
        self.bytes_at(index).map(|bytes| decode_with(blank, bytes, widths))
    }

    fn encode_record<R: Btree2Record>(&self, record: &R, widths: Widths) -> Option<Vec<u8>> {
        encode(record, widths).ok().filter(|bytes| bytes.len() == self.record_size)
    }

    /// Puts a record before record `index`. `false`, and nothing changed, if it does not have the size of this
    /// tree's records, or `index` is past the end.
    #[must_use]
    pub fn insert<R: Btree2Record>(&mut self, index: usize, record: &R, widths: Widths) -> bool {
        match self.encode_record(record, widths) {
            Some(bytes) => self.insert_bytes(index, &bytes),
            None => false,
        }
    }

    /// As [`Btree2Records::insert`], with the bytes of a record.
    #[must_use]
    pub fn insert_bytes(&mut self, index: usize, bytes: &[u8]) -> bool {
        let at = index.saturating_mul(self.record_size);
        let fits = bytes.len() == self.record_size && at <= self.bytes.len();
        if fits {
            let end = self.bytes.len();
            self.bytes.extend_from_slice(bytes);
            self.bytes.copy_within(at..end, at.saturating_add(self.record_size));
            self.bytes.iter_mut().skip(at).zip(bytes).for_each(|(byte, new)| *byte = *new);
        }
        fits
    }

    /// Replaces record `index`. `false`, and nothing changed, if there is none or the sizes differ.
    #[must_use]
    pub fn set<R: Btree2Record>(&mut self, index: usize, record: &R, widths: Widths) -> bool {
        self.encode_record(record, widths).is_some_and(|bytes| self.set_bytes(index, &bytes))
    }

    /// As [`Btree2Records::set`], with the bytes of a record.
    #[must_use]
    pub fn set_bytes(&mut self, index: usize, bytes: &[u8]) -> bool {
        let start = index.saturating_mul(self.record_size);
        let slot = self.bytes.get_mut(start..).and_then(|rest| rest.get_mut(..self.record_size));
        match slot.filter(|slot| slot.len() == bytes.len()) {
            Some(slot) => {
                slot.copy_from_slice(bytes);
                true
            }
            None => false,
        }
    }

    /// Takes out record `index`, and returns its bytes; `None` past the end.
    pub fn remove(&mut self, index: usize) -> Option<Vec<u8>> {
        let removed = self.bytes_at(index)?.to_vec();
        let start = index.saturating_mul(self.record_size);
        self.bytes.drain(start..start.saturating_add(self.record_size));
        Some(removed)
    }

    /// Takes out all records from `index` on.
    pub fn split_off(&mut self, index: usize) -> Btree2Records {
        let at = index.saturating_mul(self.record_size).min(self.bytes.len());
        Btree2Records { record_size: self.record_size, bytes: self.bytes.split_off(at) }
    }

    /// Puts all records of `other`, which has records of the same size, behind these.
    pub fn append(&mut self, other: &mut Btree2Records) {
        if self.record_size == other.record_size {
            self.bytes.append(&mut other.bytes);
        }
    }

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let len = self.bytes.len();
        w.bytes("records", len, &mut self.bytes)
    }
}

/// The prefix of a node. Its type must be that of the tree.
fn wire_node_prefix(w: &mut impl Wire, signature: &'static str, kind: u8) -> Result<()> {
    w.magic(signature)?;
    w.version(0..=0, &mut 0)?;
    let found = w.derived_u8("record type", kind)?;
    w.require("record type", found == kind, found.into(), "that of the header")
}

/// The checksum, and the unused rest of the node.
fn wire_node_suffix(w: &mut impl Wire, start: usize, node_size: u32) -> Result<()> {
    w.checksum()?;
    let used = w.position().saturating_sub(start);
    let size = usize::try_from(node_size).unwrap_or(usize::MAX);
    let fault = || w.fault("records", Fault::TooLarge { found: used as u64, limit: node_size.into() });
    match size.checked_sub(used).ok_or_else(fault)?.min(w.remaining()) {
        0 => Ok(()),
        rest => w.reserved(rest),
    }
}

/// A leaf. How many records it has is not stored in it, but with the pointer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Btree2Leaf {
    kind: u8,
    node_size: u32,
    /// The records, sorted.
    pub records: Btree2Records,
}

impl Btree2Leaf {
    pub(super) fn blank(kind: u8, node_size: u32, record_size: u16) -> Self {
        Btree2Leaf { kind, node_size, records: Btree2Records::empty(record_size) }
    }
}

impl Record for Btree2Leaf {
    const NAME: &'static str = "version 2 B-tree leaf";

    fn size_hint(&self) -> usize {
        usize::try_from(self.node_size).unwrap_or(usize::MAX)
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(self).saturating_add(self.records.bytes.len())
    }

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let start = w.position();
        wire_node_prefix(w, "BTLF", self.kind)?;
        self.records.wire(w)?;
        wire_node_suffix(w, start, self.node_size)
    }
}

/// The way to a child of an internal node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Btree2ChildPointer {
    /// The node.
    pub addr: Addr,
    /// Records in the node.
    pub record_count: u16,
    /// Records in the node and all nodes below it. If the node is a leaf, this is not stored.
    pub subtree_record_count: u64,
}

/// An internal node: `n` records between `n + 1` children. How many records it has is not stored in it, but with the
/// pointer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Btree2Internal {
    kind: u8,
    node_size: u32,
    count_width: Width,
    total_width: Option<Width>,
    /// The records, sorted.
    pub records: Btree2Records,
    /// The children: those of child `i` are before record `i`.
    pub children: Vec<Btree2ChildPointer>,
}

impl Btree2Internal {
    pub(super) fn blank(kind: u8, node_size: u32, record_size: u16, count: Width, total: Option<Width>) -> Self {
        let records = Btree2Records::empty(record_size);
        Btree2Internal { kind, node_size, count_width: count, total_width: total, records, children: Vec::new() }
    }

    /// Whether the children are leaves.
    pub fn is_above_leaves(&self) -> bool {
        self.total_width.is_none()
    }
}

impl Record for Btree2Internal {
    const NAME: &'static str = "version 2 B-tree internal node";

    fn size_hint(&self) -> usize {
        usize::try_from(self.node_size).unwrap_or(usize::MAX)
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(self).saturating_add(self.records.bytes.len()).saturating_add(size_of_val(&self.children[..]))
    }

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let start = w.position();
        wire_node_prefix(w, "BTIN", self.kind)?;
        self.records.wire(w)?;
        let children = self.records.len().saturating_add(1);
        if w.is_decoding() {
            self.children.resize(children, Btree2ChildPointer::default());
        }
        let counted = self.children.len();
        w.require("children", counted == children, counted as u64, "one more than records")?;
        for child in &mut self.children {
            w.addr("child", &mut child.addr)?;
            let records = w.derived_uint("records of child", self.count_width, child.record_count.into())?;
            let fault = |_| w.fault("records of child", Fault::TooLarge { found: records, limit: u16::MAX.into() });
            child.record_count = u16::try_from(records).map_err(fault)?;
            match self.total_width {
                Some(width) => w.uint("records below child", width, &mut child.subtree_record_count)?,
                None => child.subtree_record_count = records,
            }
        }
        wire_node_suffix(w, start, self.node_size)
    }
}

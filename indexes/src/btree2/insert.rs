//! Adding and replacing records of a version 2 B-tree.

use std::cmp::Ordering;

use h5live_format::{Addr, Btree2Record, with_encoded};
use smallvec::SmallVec;

use super::Btree2;
use super::edit::Btree2Edit;
use super::leaf_insert::InsertPoint;
use super::node::{NodePtr, OpenNode, RecordsAndChildren};
use crate::{Error, Result};

/// The bytes of a record.
type RecordBytes = SmallVec<[u8; 64]>;

/// What to do with a record that equals the new one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DuplicatePolicy {
    Keep,
    Replace,
}

/// The result of adding a record below a node.
struct InsertOutcome<R> {
    /// The node, if it changed.
    node: Option<OpenNode>,
    /// The equal record.
    old: Option<R>,
    /// The new record comes after all others.
    last: bool,
}

impl<R: Btree2Record> Btree2<R> {
    /// Adds a record. If there is an equal one, returns that instead. `compare` says of any record whether it comes
    /// before (`Less`) or after the new one.
    ///
    /// # Errors
    /// The first error of `compare`; if a node cannot be read, or there is no room for a new one. The tree is then
    /// unchanged.
    pub fn insert_if_absent<E: From<Error>>(
        &self,
        record: &R,
        compare: impl FnMut(&R) -> Result<Ordering, E>,
    ) -> Result<Option<R>, E> {
        self.insert_or_replace(|| Ok(Some(record.clone())), DuplicatePolicy::Keep, |_| Ordering::Equal, compare)
    }

    /// As [`Btree2::insert_if_absent`], of the record that `make` makes, which is called if there is no equal one, while the tree
    /// is being changed; if it makes none, nothing is added. `prefilter` as for [`Btree2::find_prefiltered`].
    ///
    /// # Errors
    /// As [`Btree2::insert_if_absent`]; the error of `make`.
    pub fn insert_if_absent_with<E: From<Error>>(
        &self,
        prefilter: impl Fn(&[u8]) -> Ordering,
        compare: impl FnMut(&R) -> Result<Ordering, E>,
        make: impl FnOnce() -> Result<Option<R>, E>,
    ) -> Result<Option<R>, E> {
        self.insert_or_replace(make, DuplicatePolicy::Keep, prefilter, compare)
    }

    /// Adds a record in place of the equal one, if there is one, which is then returned. `prefilter` as for
    /// [`Btree2::find_prefiltered`], `compare` as for [`Btree2::insert_if_absent`].
    ///
    /// # Errors
    /// As [`Btree2::insert_if_absent`].
    pub fn insert_or_overwrite<E: From<Error>>(
        &self,
        record: &R,
        prefilter: impl Fn(&[u8]) -> Ordering,
        compare: impl FnMut(&R) -> Result<Ordering, E>,
    ) -> Result<Option<R>, E> {
        self.insert_or_replace(|| Ok(Some(record.clone())), DuplicatePolicy::Replace, prefilter, compare)
    }

    fn insert_or_replace<E: From<Error>>(
        &self,
        make: impl FnOnce() -> Result<Option<R>, E>,
        equal: DuplicatePolicy,
        prefilter: impl Fn(&[u8]) -> Ordering,
        mut compare: impl FnMut(&R) -> Result<Ordering, E>,
    ) -> Result<Option<R>, E> {
        let root = self.header()?;
        let lock = root.read().tree_lock();
        let _alone = lock.write();
        let size = self.geometry(&root.read())?.record_size().into();
        let mut make = Some(make);
        let mut bytes = || -> Result<Option<RecordBytes>, E> {
            let Some(mut record) = make.take().map_or(Ok(None), |make| make())? else { return Ok(None) };
            let encoded = with_encoded(&mut record, self.metadata.widths(), RecordBytes::from_slice);
            let bytes =
                encoded.map_err(|source| Error::Cache(h5live_cache::Error::Encode { at: self.addr, source }))?;
            match bytes.len() == size {
                true => Ok(Some(bytes)),
                false => Err(self.unfit_error("its records have the size that belongs there").into()),
            }
        };
        match self.find_insert_point(&root, &prefilter, &mut compare)? {
            InsertPoint::Equal(old) if equal == DuplicatePolicy::Keep => return Ok(Some(old)),
            InsertPoint::Room(spot) => {
                if let Some(bytes) = bytes()? {
                    self.insert_at(&root, spot, &bytes)?;
                }
                return Ok(None);
            }
            InsertPoint::Equal(_) | InsertPoint::MustSplit => {}
        }
        self.edit_locked(root, |edit| {
            let Some(root) = edit.root_ptr() else {
                let Some(bytes) = bytes()? else { return Ok(None) };
                let mut content = RecordsAndChildren::empty(&edit.geometry);
                let _ = content.records.insert_bytes(0, &bytes);
                edit.replace_root_rebalanced(OpenNode { addr: Addr::UNDEFINED, depth: 0, content }, true)?;
                return Ok(None);
            };
            let InsertOutcome { node, old, last } =
                insert_below(edit, root, (&mut bytes, equal), (&prefilter, &mut compare))?;
            if let Some(root) = node {
                edit.replace_root_rebalanced(root, last)?;
            }
            Ok(old)
        })
    }
}

fn insert_below<R: Btree2Record, E: From<Error>>(
    edit: &mut Btree2Edit<'_, R>,
    way: NodePtr,
    (bytes, equal): (&mut impl FnMut() -> Result<Option<RecordBytes>, E>, DuplicatePolicy),
    (prefilter, compare): (&impl Fn(&[u8]) -> Ordering, &mut impl FnMut(&R) -> Result<Ordering, E>),
) -> Result<InsertOutcome<R>, E> {
    let mut node = edit.open_node(way)?;
    let len = node.content.record_count();
    let (index, old) = edit.search_node(&node, prefilter, compare)?;
    if old.is_some() {
        let new = if equal == DuplicatePolicy::Replace { bytes()? } else { None };
        let changed = new.is_some_and(|bytes| node.content.records.set_bytes(index, &bytes));
        return Ok(InsertOutcome { node: changed.then_some(node), old, last: false });
    }
    if node.depth == 0 {
        let Some(bytes) = bytes()? else { return Ok(InsertOutcome { node: None, old, last: false }) };
        let _ = node.content.records.insert_bytes(index, &bytes);
        return Ok(InsertOutcome { node: Some(node), old, last: index == len });
    }
    let below = edit.child_ptr(&node, index)?;
    let InsertOutcome { node: child, old, last } = insert_below(edit, below, (bytes, equal), (prefilter, compare))?;
    let Some(child) = child else { return Ok(InsertOutcome { node: None, old, last }) };
    let last = last && index == len;
    edit.replace_child_rebalanced(&mut node, index, child, last)?;
    Ok(InsertOutcome { node: Some(node), old, last })
}

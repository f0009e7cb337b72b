//! Taking records out of a version 2 B-tree.

use std::cmp::Ordering;

use h5live_format::Btree2Record;

use super::Btree2;
use super::edit::Btree2Edit;
use super::node::{NodePtr, OpenNode};
use crate::{Error, Result};

impl<R: Btree2Record> Btree2<R> {
    /// Removes the record for which `compare` returns `Equal`, and returns it. `compare` is as for [`Btree2::find`].
    ///
    /// # Errors
    /// The first error of `compare`; if a node cannot be read, or there is no room for a copy of one. The tree is then
    /// unchanged.
    pub fn remove<E: From<Error>>(&self, mut compare: impl FnMut(&R) -> Result<Ordering, E>) -> Result<Option<R>, E> {
        self.edit(|edit| {
            let Some(root) = edit.root_ptr() else { return Ok(None) };
            let Some((root, old)) = remove_below(edit, root, &mut compare)? else { return Ok(None) };
            edit.replace_root_rebalanced(root, false)?;
            Ok(Some(old))
        })
    }
}

fn remove_below<R: Btree2Record, E: From<Error>>(
    edit: &mut Btree2Edit<'_, R>,
    way: NodePtr,
    compare: &mut impl FnMut(&R) -> Result<Ordering, E>,
) -> Result<Option<(OpenNode, R)>, E> {
    let mut node = edit.open_node(way)?;
    let (index, found) = edit.search_node(&node, &|_| Ordering::Equal, compare)?;
    if node.depth == 0 {
        let Some(old) = found else { return Ok(None) };
        node.content.records.remove(index);
        return Ok(Some((node, old)));
    }
    let (index, child, old) = match found {
        Some(old) => {
            let below = edit.child_ptr(&node, index + 1)?;
            let (child, next) = take_first(edit, below)?;
            let _ = node.content.records.set_bytes(index, &next);
            (index + 1, child, old)
        }
        None => {
            let below = edit.child_ptr(&node, index)?;
            let Some((child, old)) = remove_below(edit, below, compare)? else { return Ok(None) };
            (index, child, old)
        }
    };
    edit.replace_child_rebalanced(&mut node, index, child, false)?;
    Ok(Some((node, old)))
}

/// Removes the first record of everything below `way`.
fn take_first<R: Btree2Record>(edit: &mut Btree2Edit<'_, R>, way: NodePtr) -> Result<(OpenNode, Vec<u8>)> {
    let mut node = edit.open_node(way)?;
    if node.depth == 0 {
        let first = node.content.records.remove(0).ok_or_else(|| edit.empty_leaf_error(way))?;
        return Ok((node, first));
    }
    let below = edit.child_ptr(&node, 0)?;
    let (child, first) = take_first(edit, below)?;
    edit.replace_child_rebalanced(&mut node, 0, child, false)?;
    Ok((node, first))
}

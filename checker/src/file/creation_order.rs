//! The index of dense links or attributes by the order in which they were made.

use std::collections::HashMap;
use std::hash::Hash;

use h5live_format::{Addr, Btree2Record};

use super::FindingCause;
use super::walk::FileWalk;

impl FileWalk<'_> {
    /// Compares the index at `at` with the `orders` of the objects to which the index by name leads. Each record of it
    /// states a heap ID and an order (`id_and_order`). `has_all_orders` says whether `orders` has all objects.
    pub fn check_creation_order_index<R: Btree2Record, I: Eq + Hash>(
        &mut self,
        at: Addr,
        blank: R,
        id_and_order: impl Fn(&R) -> (I, i64),
        mut orders: HashMap<I, i64>,
        has_all_orders: bool,
    ) {
        let mut last = None;
        let tree = self.check_and_walk_btree2(at, blank, &mut |walk, index, record| {
            let (id, stated) = id_and_order(&record);
            if last.is_some_and(|last| last >= stated) {
                walk.report(R::NAME, at, FindingCause::OutOfOrder { what: "record", index });
            }
            last = Some(stated);
            match orders.remove(&id) {
                Some(order) if order == stated => {}
                Some(order) => {
                    let (stated, found) = (stated.cast_unsigned(), order.cast_unsigned());
                    walk.report(R::NAME, at, FindingCause::NumberMismatch { what: "creation order", stated, found });
                }
                None if has_all_orders => {
                    walk.report(R::NAME, at, FindingCause::Missing("record of the name index for it"))
                }
                None => {}
            }
        });
        if tree.is_some() && has_all_orders && !orders.is_empty() {
            self.report(R::NAME, at, FindingCause::Missing("record for each of the name index"));
        }
    }
}

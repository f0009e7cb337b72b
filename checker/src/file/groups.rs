//! Groups whose links are messages, in their header or in a fractal heap.

use std::collections::{HashMap, HashSet};

use h5live_format::messages::{GroupInfo, LinkInfo, LinkMessage, LinkValue, MessageType};
use h5live_format::{Addr, FirstHeaderChunk, LinkNameRecord, LinkOrderRecord, Record, lookup3};

use super::FindingCause;
use super::header::CheckedObjectHeader;
use super::space_map::ObjectIndex;
use super::walk::FileWalk;

impl FileWalk<'_> {
    /// The links of a group.
    pub fn check_group(&mut self, group: ObjectIndex, header: &CheckedObjectHeader) {
        if header.has_message(MessageType::SYMBOL_TABLE) {
            self.check_symbol_table(group, header);
            return;
        }
        self.load_message::<GroupInfo>(header);
        let Some(info) = self.load_message::<LinkInfo>(header) else {
            self.incomplete = true;
            return;
        };
        let mut names = HashSet::new();
        let mut orders = HashSet::new();
        let tracked = info.next_creation_order.is_some();
        for message in header.messages_of(MessageType::LINK) {
            let body = message.body.clone();
            let Some(link) = self.decode(LinkMessage::default(), header.addr, &body) else {
                self.incomplete = true;
                continue;
            };
            if !names.insert(link.name.clone()) {
                self.report(LinkMessage::NAME, header.addr, FindingCause::NameRepeated(link.name.to_string()));
            }
            if tracked && link.creation_order.is_some_and(|order| !orders.insert(order)) {
                self.report(
                    LinkMessage::NAME,
                    header.addr,
                    FindingCause::BrokenRule("no two links are created at once"),
                );
            }
            self.check_link(group, header.addr, &info, &link);
        }
        if info.is_dense() {
            if !names.is_empty() {
                self.report(
                    FirstHeaderChunk::NAME,
                    header.addr,
                    FindingCause::BrokenRule("links are compact or dense, not both"),
                );
            }
            self.check_dense_links(group, header.addr, &info);
        } else if info.name_index.is_defined() || info.order_index.is_some_and(Addr::is_defined) {
            self.report(LinkInfo::NAME, header.addr, FindingCause::UndefinedAddr("fractal heap"));
        }
    }

    fn check_link(&mut self, owner: ObjectIndex, at: Addr, info: &LinkInfo, link: &LinkMessage) {
        self.check_name_has_no_nul(LinkMessage::NAME, at, &link.name);
        // What libhdf5 moves from a group that tracks the order to one that does not keeps its place in the order.
        if link.creation_order.is_none() && info.next_creation_order.is_some() {
            self.report(
                LinkMessage::NAME,
                at,
                FindingCause::BrokenRule("links have a creation order if their group tracks it"),
            );
        }
        if let (Some(order), Some(max)) = (link.creation_order, info.next_creation_order)
            && order >= max
        {
            let (found, limit) = (order.cast_unsigned(), max.cast_unsigned().saturating_sub(1));
            self.report(LinkMessage::NAME, at, FindingCause::ExceedsLimit { what: "creation order", found, limit });
        }
        if let LinkValue::Hard(target) = link.value {
            match target.get() {
                Some(target) => drop(self.objects.add_link(owner, link.name.as_bytes(), target)),
                None => self.report(LinkMessage::NAME, at, FindingCause::UndefinedAddr("object header")),
            }
        }
    }

    fn check_dense_links(&mut self, owner: ObjectIndex, at: Addr, info: &LinkInfo) {
        let Some(mut heap) = self.check_fractal_heap(info.heap) else {
            self.incomplete = true;
            return;
        };
        let indexed = info.order_index.filter(|order| order.is_defined());
        let mut orders: HashMap<[u8; 7], i64> = HashMap::new();
        let mut last: Option<(u32, Vec<u8>)> = None;
        let names =
            self.check_and_walk_btree2(info.name_index, LinkNameRecord::default(), &mut |walk, index, record| {
                let link = walk
                    .claim_and_read_heap_object(&mut heap, &record.heap_id)
                    .and_then(|bytes| walk.decode(LinkMessage::default(), info.heap, &bytes));
                let Some(link) = link else {
                    walk.incomplete = true;
                    return;
                };
                let found = lookup3(link.name.as_bytes(), 0);
                if found != record.hash {
                    let cause = FindingCause::HashMismatch { what: "name", stated: record.hash, found };
                    walk.report(LinkNameRecord::NAME, info.name_index, cause);
                }
                let key = (record.hash, link.name.as_bytes().to_vec());
                walk.check_name_record_order(LinkNameRecord::NAME, info.name_index, index, last.as_ref(), &key);
                last = Some(key);
                if indexed.is_some() {
                    orders.insert(record.heap_id, link.creation_order.unwrap_or(-1));
                }
                walk.check_link(owner, at, info, &link);
            });
        self.incomplete |= names.is_none();
        if let Some(order) = indexed {
            let place = |record: &LinkOrderRecord| (record.heap_id, record.creation_order);
            self.check_creation_order_index(order, LinkOrderRecord::default(), place, orders, names.is_some());
        } else if info.order_index.is_some() {
            self.report(LinkInfo::NAME, at, FindingCause::UndefinedAddr("creation order index"));
        }
        if names.is_some() {
            self.finish_heap_check(&heap);
        }
    }

    /// Whether a record stands behind the one before it, and is not the same.
    pub fn check_name_record_order(
        &mut self,
        structure: &'static str,
        at: Addr,
        index: u64,
        last: Option<&(u32, Vec<u8>)>,
        key: &(u32, Vec<u8>),
    ) {
        match last.map(|last| last.cmp(key)) {
            Some(std::cmp::Ordering::Equal) => {
                self.report(structure, at, FindingCause::NameRepeated(String::from_utf8_lossy(&key.1).into_owned()));
            }
            Some(std::cmp::Ordering::Greater) => {
                self.report(structure, at, FindingCause::OutOfOrder { what: "record", index })
            }
            _ => {}
        }
    }
}

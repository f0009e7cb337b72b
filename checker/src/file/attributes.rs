//! Attributes, in the header of their object or in a fractal heap.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use h5live_format::messages::{
    AttributeInfo, AttributeMessage, DataspaceMessage, DatatypeMessage, MessageType, Shareable, SharedMessageTarget,
};
use h5live_format::{Addr, AttributeNameRecord, AttributeOrderRecord, FirstHeaderChunk, Record, lookup3};
use h5live_model::{Dataspace, Datatype};

use super::FindingCause;
use super::header::CheckedObjectHeader;
use super::walk::FileWalk;

const NAME: &str = AttributeMessage::NAME;

/// The flag of dense attributes that are in the heap of shared messages.
const SHARED_FLAG: u8 = 0x02;

impl FileWalk<'_> {
    /// The attributes of an object.
    pub fn check_attributes(&mut self, header: &CheckedObjectHeader) {
        let info = self.load_message::<AttributeInfo>(header);
        let limit = info.as_ref().and_then(|info| info.next_creation_order);
        let mut names = HashSet::new();
        for message in header.messages_of(MessageType::ATTRIBUTE) {
            let Some(body) = self.load_message_body(message, header.addr) else { continue };
            let Some(attribute) = self.decode(AttributeMessage::default(), header.addr, &body) else { continue };
            if !names.insert(attribute.name.clone()) {
                self.report(NAME, header.addr, FindingCause::NameRepeated(attribute.name.to_string()));
            }
            if header.prefix.attribute_order_tracked {
                self.check_creation_order(header.addr, message.creation_index.into(), limit);
            }
            if let Shareable::Inline(datatype) = &attribute.datatype {
                self.check_datatype_uses_half_bits(header, datatype);
            }
            self.check_attribute(header.addr, &attribute, !message.flags.is_shared());
        }
        if let Some(info) = info.filter(AttributeInfo::is_dense) {
            if !names.is_empty() {
                self.report(
                    FirstHeaderChunk::NAME,
                    header.addr,
                    FindingCause::BrokenRule("attributes are compact or dense, not both"),
                );
            }
            self.check_dense_attributes(header.addr, &info);
        }
    }

    fn check_creation_order(&mut self, at: Addr, order: u64, limit: Option<u16>) {
        if let Some(limit) = limit.filter(|limit| order >= u64::from(*limit)) {
            let cause = FindingCause::ExceedsLimit {
                what: "creation order",
                found: order,
                limit: u64::from(limit).saturating_sub(1),
            };
            self.report(NAME, at, cause);
        }
    }

    /// An attribute: whether its type and shape can be found, and fit the value. `counts`: whether it is the place
    /// from which its use of a committed datatype is counted.
    fn check_attribute(&mut self, at: Addr, attribute: &AttributeMessage, counts: bool) {
        let datatype = match &attribute.datatype {
            Shareable::Inline(message) => Some(Rc::new(message.datatype.clone())),
            Shareable::Shared(shared) => {
                if counts {
                    self.add_shared_or_committed_use(MessageType::DATATYPE, &shared.place);
                }
                self.resolve_shared_datatype(&shared.place, at)
            }
        };
        let dataspace = match &attribute.dataspace {
            Shareable::Inline(message) => Some(message.dataspace.clone()),
            Shareable::Shared(shared) => {
                if counts {
                    self.add_shared_or_committed_use(MessageType::DATASPACE, &shared.place);
                }
                self.resolve_shared_dataspace(&shared.place, at)
            }
        };
        let (Some(datatype), Some(dataspace)) = (datatype, dataspace) else { return };
        let size = dataspace.element_count().and_then(|n| n.checked_mul(datatype.size().into()));
        match size.and_then(|size| attribute.data.get(..usize::try_from(size).ok()?)) {
            Some(data) => self.check_global_heap_references(&datatype, data, at),
            None => {
                let (found, stated) = (attribute.data.len() as u64, size.unwrap_or(u64::MAX));
                self.report(NAME, at, FindingCause::NumberMismatch { what: "bytes of the value", stated, found });
            }
        }
    }

    /// A datatype that is stored elsewhere.
    pub fn resolve_shared_datatype(&mut self, place: &SharedMessageTarget, from: Addr) -> Option<Rc<Datatype>> {
        let body = match place {
            SharedMessageTarget::Committed(addr) => return self.load_committed_datatype(*addr, from),
            SharedMessageTarget::Heap(id) => self.load_shared_message_body(MessageType::DATATYPE, id, from)?,
        };
        self.decode(DatatypeMessage::default(), from, &body).map(|message| Rc::new(message.datatype))
    }

    fn resolve_shared_dataspace(&mut self, place: &SharedMessageTarget, at: Addr) -> Option<Dataspace> {
        let SharedMessageTarget::Heap(id) = place else {
            self.report(NAME, at, FindingCause::BrokenRule("dataspaces are never committed"));
            return None;
        };
        let body = self.load_shared_message_body(MessageType::DATASPACE, id, at)?;
        self.decode(DataspaceMessage::default(), at, &body).map(|message| message.dataspace)
    }

    fn check_dense_attributes(&mut self, at: Addr, info: &AttributeInfo) {
        let Some(mut heap) = self.check_fractal_heap(info.heap) else {
            self.incomplete = true;
            return;
        };
        let indexed = info.order_index.filter(|order| order.is_defined());
        let mut orders: HashMap<[u8; 8], i64> = HashMap::new();
        let mut last: Option<(u32, Vec<u8>)> = None;
        let names =
            self.check_and_walk_btree2(info.name_index, AttributeNameRecord::default(), &mut |walk, index, record| {
                let shared = record.message_flags & SHARED_FLAG != 0;
                let body = if shared {
                    walk.add_shared_or_committed_use(
                        MessageType::ATTRIBUTE,
                        &SharedMessageTarget::Heap(record.heap_id),
                    );
                    walk.load_shared_message_body(MessageType::ATTRIBUTE, &record.heap_id, at)
                } else {
                    walk.claim_and_read_heap_object(&mut heap, &record.heap_id)
                };
                let decoded = body.and_then(|body| walk.decode(AttributeMessage::default(), info.heap, &body));
                let Some(attribute) = decoded else { return };
                let found = lookup3(attribute.name.as_bytes(), 0);
                if found != record.hash {
                    let cause = FindingCause::HashMismatch { what: "name", stated: record.hash, found };
                    walk.report(AttributeNameRecord::NAME, info.name_index, cause);
                }
                let key = (record.hash, attribute.name.as_bytes().to_vec());
                walk.check_name_record_order(AttributeNameRecord::NAME, info.name_index, index, last.as_ref(), &key);
                last = Some(key);
                walk.check_creation_order(at, record.creation_order.into(), info.next_creation_order);
                if indexed.is_some() {
                    orders.insert(record.heap_id, record.creation_order.into());
                }
                walk.check_attribute(at, &attribute, !shared);
            });
        if let Some(order) = indexed {
            let place = |record: &AttributeOrderRecord| (record.heap_id, record.creation_order.into());
            self.check_creation_order_index(order, AttributeOrderRecord::default(), place, orders, names.is_some());
        }
        if names.is_some() {
            self.finish_heap_check(&heap);
        }
    }
}

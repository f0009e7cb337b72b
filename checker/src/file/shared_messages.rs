//! Messages that objects share: committed datatypes, and the file's table of shared messages.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

use h5live_format::messages::{
    AttributeMessage, DatatypeMessage, MessageType, SharedMessageReference, SharedMessageTableInfo, SharedMessageTarget,
};
use h5live_format::{
    Addr, Record, SharedMessageIndex, SharedMessageIndexKind, SharedMessageList, SharedMessageLocation,
    SharedMessageRecord, SharedMessageTable, decode_prefix, lookup3,
};
use h5live_model::Datatype;

use super::FindingCause;
use super::header::CheckedObjectHeader;
use super::shared_index::{SharedIndex, UseCount};
use super::space_map::ObjectIndex;
use super::walk::FileWalk;

impl FileWalk<'_> {
    /// The file's table of shared messages.
    pub fn check_shared_message_table(&mut self, info: &SharedMessageTableInfo) {
        let each = 14 + 2 * self.widths.offset.bytes() as u64;
        let size = 8 + each * u64::from(info.index_count);
        let Some(table) = self.claim_and_decode(SharedMessageTable::blank(info.index_count), info.table, size) else {
            return;
        };
        for index in table.indexes {
            if !index.heap.is_defined() {
                if index.message_count > 0 {
                    self.report(SharedMessageIndex::NAME, info.table, FindingCause::UndefinedAddr("heap"));
                }
                continue;
            }
            let Some(heap) = self.check_fractal_heap(index.heap) else { continue };
            let mut shared = SharedIndex { index, heap, uses: HashMap::new(), by_hash: HashMap::new(), whole: false };
            self.check_shared_message_records(&mut shared);
            self.shared.push(shared);
        }
        self.count_uses_by_attributes();
    }

    fn check_shared_message_records(&mut self, shared: &mut SharedIndex) {
        let index = shared.index.clone();
        let mut seen = 0;
        match index.kind {
            SharedMessageIndexKind::List => {
                let record = SharedMessageRecord::size(self.widths) as u64;
                let size = 8 + record * u64::from(index.max_list_messages);
                let Some(list) = self.claim_and_decode(index.blank_list(), index.index, size) else { return };
                for record in &list.messages {
                    self.check_shared_message_record(shared, SharedMessageList::NAME, record);
                }
                seen = list.messages.len() as u64;
                shared.whole = true;
            }
            SharedMessageIndexKind::Btree => {
                let mut last = None;
                let tree =
                    self.check_and_walk_btree2(index.index, SharedMessageRecord::default(), &mut |walk, at, record| {
                        if last.is_some_and(|last| last > record.hash) {
                            walk.report(
                                SharedMessageRecord::NAME,
                                index.index,
                                FindingCause::OutOfOrder { what: "record", index: at },
                            );
                        }
                        last = Some(record.hash);
                        walk.check_shared_message_record(shared, SharedMessageRecord::NAME, &record);
                        seen += 1;
                    });
                shared.whole = tree.is_some();
            }
        }
        if shared.whole {
            self.check_equal(SharedMessageIndex::NAME, index.index, "messages", index.message_count.into(), seen);
            self.finish_heap_check(&shared.heap);
        }
    }

    fn check_shared_message_record(
        &mut self,
        shared: &mut SharedIndex,
        name: &'static str,
        record: &SharedMessageRecord,
    ) {
        let SharedMessageLocation::Heap { references, heap_id } = record.place else { return };
        let Some(body) = self.claim_and_read_heap_object(&mut shared.heap, &heap_id) else { return };
        let kinds = (0..16u32).filter(|kind| shared.index.message_type_flags >> kind & 1 != 0);
        let hashes: Vec<u32> = kinds.map(|kind| lookup3(&body, kind)).collect();
        if !hashes.contains(&record.hash) {
            let found = hashes.first().copied().unwrap_or(0);
            self.report(
                name,
                shared.index.index,
                FindingCause::HashMismatch { what: "message", stated: record.hash, found },
            );
        }
        if shared.index.indexes_type(MessageType::ATTRIBUTE)
            && record.hash == lookup3(&body, MessageType::ATTRIBUTE.number().into())
        {
            self.shared_attributes.push(body);
        }
        shared.uses.insert(heap_id, UseCount { stated: references, found: 0 });
        shared.by_hash.insert(record.hash, heap_id);
    }

    /// Counts what shared attributes use themselves, once all indexes are known.
    fn count_uses_by_attributes(&mut self) {
        for body in std::mem::take(&mut self.shared_attributes) {
            let decoded = decode_prefix::<AttributeMessage>(&body, self.widths);
            let Ok((attribute, _)) = decoded else { continue };
            if let Some(shared) = attribute.datatype.shared() {
                self.add_shared_or_committed_use(MessageType::DATATYPE, &shared.place);
            }
            if let Some(shared) = attribute.dataspace.shared() {
                self.add_shared_or_committed_use(MessageType::DATASPACE, &shared.place);
            }
        }
    }

    /// The body of a message in the heap of shared messages.
    pub fn load_shared_message_body(&mut self, kind: MessageType, id: &[u8; 8], from: Addr) -> Option<Vec<u8>> {
        let Some(index) = self.shared.iter().position(|shared| shared.index.indexes_type(kind)) else {
            self.report("shared message", from, FindingCause::Missing("index of shared messages of its type"));
            return None;
        };
        let mut list = std::mem::take(&mut self.shared);
        let body = list.get_mut(index).and_then(|shared| {
            if shared.whole && !shared.uses.contains_key(id) {
                self.report("shared message", from, FindingCause::Missing("record of the message in its index"));
            }
            self.read_heap_object(&mut shared.heap, id)
        });
        self.shared = list;
        body
    }

    /// Notes that a message is used.
    pub fn add_shared_or_committed_use(&mut self, kind: MessageType, place: &SharedMessageTarget) {
        match place {
            SharedMessageTarget::Committed(addr) => self.objects.add_committed_datatype_use(self.owner, *addr),
            SharedMessageTarget::Heap(id) => {
                let index = self.shared.iter_mut().find(|shared| shared.index.indexes_type(kind));
                if let Some(uses) = index.and_then(|shared| shared.uses.get_mut(id)) {
                    uses.found += 1;
                }
            }
        }
    }

    /// Notes that a header has its own copy of a message, which was the first. If it came into the heap later, for others,
    /// the header still counts as one that uses it.
    fn count_first_copy(&mut self, kind: MessageType, body: &[u8]) {
        let Some(index) = self.shared.iter_mut().find(|shared| shared.index.indexes_type(kind)) else { return };
        // Headers of version 1 pad messages with up to 7 zeros.
        let zeros = body.iter().rev().take_while(|byte| **byte == 0).count().min(7);
        let bodies = (0..=zeros).filter_map(|padding| body.get(..body.len().saturating_sub(padding)));
        let id = bodies.map(|body| lookup3(body, kind.number().into())).find_map(|hash| index.by_hash.get(&hash));
        if let Some(uses) = id.and_then(|id| index.uses.get_mut(id)) {
            uses.found += 1;
        }
    }

    /// Notes which shared messages a header uses.
    pub fn add_shared_uses_of_header(&mut self, header: &CheckedObjectHeader) {
        for message in header.messages.iter().filter(|message| message.flags.is_indexed_for_sharing()) {
            self.count_first_copy(message.kind, &message.body);
        }
        for message in header.messages.iter().filter(|message| message.flags.is_shared()) {
            if !message.kind.is_shareable() {
                continue;
            }
            if let Some(shared) = self.decode(SharedMessageReference::default(), header.addr, &message.body) {
                self.add_shared_or_committed_use(message.kind, &shared.place);
            }
        }
    }

    /// Reports shared messages that are used more often than they state.
    pub fn check_shared_message_uses(&mut self) {
        let list = std::mem::take(&mut self.shared);
        for shared in &list {
            for uses in shared.uses.values() {
                let cause =
                    FindingCause::NumberMismatch { what: "uses", stated: uses.stated.into(), found: uses.found.into() };
                let (name, at) = (SharedMessageRecord::NAME, shared.index.index);
                match uses.found.cmp(&uses.stated) {
                    Ordering::Equal => {}
                    // Some programs forget to count; the message then outlives its uses.
                    Ordering::Less => self.add_note(name, at, cause),
                    Ordering::Greater => self.report_for(ObjectIndex::FILE, name, at, cause),
                }
            }
        }
        self.shared = list;
    }

    /// The datatype at the header of a committed one.
    pub fn load_committed_datatype(&mut self, addr: Addr, from: Addr) -> Option<Rc<Datatype>> {
        let at = addr.get()?;
        if let Some(known) = self.committed.get(&at) {
            return known.clone();
        }
        let body = self.load_committed_message_body(MessageType::DATATYPE, addr, from);
        let message = body.and_then(|body| self.decode(DatatypeMessage::default(), addr, &body));
        let datatype = message.map(|message| Rc::new(message.datatype));
        self.committed.insert(at, datatype.clone());
        datatype
    }
}

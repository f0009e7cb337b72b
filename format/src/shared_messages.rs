//! Where the file keeps messages that object headers share (format specification 4.0, III.I).

use crate::messages::MessageType;
use crate::{Addr, Btree2Record, Fault, Record, Result, Widths, Wire};

/// How an index of shared messages is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SharedMessageIndexKind {
    /// As a list.
    #[default]
    List,
    /// As a version 2 B-tree.
    Btree,
}

/// An index of shared messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SharedMessageIndex {
    /// How it is kept.
    pub kind: SharedMessageIndexKind,
    /// Bit `i` set: messages of type `i` are shared here.
    pub message_type_flags: u16,
    /// Bytes of the smallest message that is shared.
    pub min_message_size: u32,
    /// Most messages of a list.
    pub max_list_messages: u16,
    /// Fewest messages of a B-tree.
    pub min_btree_messages: u16,
    /// Messages in the index.
    pub message_count: u16,
    /// The list or the B-tree.
    pub index: Addr,
    /// The fractal heap of the messages.
    pub heap: Addr,
}

impl SharedMessageIndex {
    /// Whether messages of a type are shared here.
    pub fn indexes_type(&self, kind: MessageType) -> bool {
        self.message_type_flags.checked_shr(kind.number().into()).is_some_and(|bits| bits & 1 != 0)
    }

    /// The list of the index: context for decoding.
    pub fn blank_list(&self) -> SharedMessageList {
        SharedMessageList { capacity: self.max_list_messages, message_count: self.message_count, messages: Vec::new() }
    }
}

/// Bytes of an index in the table that are neither addresses nor checksum.
const FIXED_INDEX_BYTES: usize = 14;

impl Record for SharedMessageIndex {
    const NAME: &'static str = "shared message index";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(0..=0, &mut 0)?;
        let kind = u8::from(self.kind == SharedMessageIndexKind::Btree);
        self.kind = match w.derived_u8("index type", kind)? {
            0 => SharedMessageIndexKind::List,
            1 => SharedMessageIndexKind::Btree,
            found => {
                let rule = "an index is a list (0) or a B-tree (1)";
                return Err(w.fault("index type", Fault::InvalidValue { found: found.into(), rule }));
            }
        };
        w.u16("message types", &mut self.message_type_flags)?;
        w.u32("smallest message", &mut self.min_message_size)?;
        w.u16("most messages of a list", &mut self.max_list_messages)?;
        w.u16("fewest messages of a B-tree", &mut self.min_btree_messages)?;
        w.u16("messages", &mut self.message_count)?;
        w.addr("index", &mut self.index)?;
        w.addr("heap", &mut self.heap)
    }
}

/// The table of the indexes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SharedMessageTable {
    /// The number of indexes, from the superblock extension. Context for decoding.
    pub index_count: u8,
    /// The indexes.
    pub indexes: Vec<SharedMessageIndex>,
}

impl SharedMessageTable {
    /// A table of `count` indexes: context for decoding.
    pub fn blank(count: u8) -> Self {
        SharedMessageTable { index_count: count, indexes: Vec::new() }
    }
}

impl Record for SharedMessageTable {
    const NAME: &'static str = "shared message table";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.magic("SMTB")?;
        let whole = w.is_decoding() || self.indexes.len() == usize::from(self.index_count);
        w.require("indexes", whole, self.indexes.len() as u64, "as many as the superblock extension states")?;
        let each = w.widths().offset.bytes().saturating_mul(2).saturating_add(FIXED_INDEX_BYTES);
        w.list("indexes", self.index_count.into(), each, &mut self.indexes)?;
        w.checksum()
    }
}

/// The place of a shared message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SharedMessageLocation {
    /// In the index's heap.
    Heap {
        /// How many object headers refer to it.
        references: u32,
        /// Its heap ID.
        heap_id: [u8; 8],
    },
    /// In the only object header that has it.
    Header {
        /// The type of the message.
        kind: MessageType,
        /// Which message of this type it is.
        index_in_kind: u16,
        /// The object header.
        header: Addr,
    },
}

/// A message of an index: an entry of a list, or a record of a B-tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SharedMessageRecord {
    /// The lookup3 hash of the message, begun with the number of its type.
    pub hash: u32,
    /// Its place.
    pub place: SharedMessageLocation,
}

impl Default for SharedMessageRecord {
    fn default() -> Self {
        SharedMessageRecord { hash: 0, place: SharedMessageLocation::Heap { references: 0, heap_id: [0; 8] } }
    }
}

impl SharedMessageRecord {
    /// Bytes of a record.
    pub fn size(widths: Widths) -> usize {
        widths.offset.bytes().saturating_add(4).max(12).saturating_add(5)
    }
}

impl Record for SharedMessageRecord {
    const NAME: &'static str = "shared message record";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let start = w.position();
        let location = u8::from(matches!(self.place, SharedMessageLocation::Header { .. }));
        let location = w.derived_u8("location", location)?;
        w.u32("hash", &mut self.hash)?;
        if w.is_decoding() {
            self.place = match location {
                0 => SharedMessageRecord::default().place,
                1 => {
                    SharedMessageLocation::Header { kind: MessageType::NIL, index_in_kind: 0, header: Addr::UNDEFINED }
                }
                found => {
                    let rule = "a message is in the heap (0) or in an object header (1)";
                    return Err(w.fault("location", Fault::InvalidValue { found: found.into(), rule }));
                }
            };
        }
        match &mut self.place {
            SharedMessageLocation::Heap { references, heap_id } => {
                w.u32("references", references)?;
                w.byte_array("heap ID", heap_id)?;
            }
            SharedMessageLocation::Header { kind, index_in_kind, header } => {
                w.reserved(1)?;
                let number = w.derived_u8("message type", u8::try_from(kind.number()).unwrap_or(u8::MAX))?;
                *kind = MessageType::new(number.into());
                w.u16("message", index_in_kind)?;
                w.addr("object header", header)?;
            }
        }
        let used = w.position().saturating_sub(start);
        match Self::size(w.widths()).saturating_sub(used) {
            0 => Ok(()),
            rest => w.reserved(rest),
        }
    }
}

impl Btree2Record for SharedMessageRecord {
    const KIND: u8 = 7;
}

/// A list of shared messages. How many there are is stored in the table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SharedMessageList {
    /// Messages for which the list has space. Context for decoding.
    pub capacity: u16,
    /// Messages in the list. Context for decoding.
    pub message_count: u16,
    /// The messages.
    pub messages: Vec<SharedMessageRecord>,
}

impl Record for SharedMessageList {
    const NAME: &'static str = "shared message list";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.magic("SMLI")?;
        let whole = w.is_decoding() || self.messages.len() == usize::from(self.message_count);
        w.require("messages", whole, self.messages.len() as u64, "as many as the table states")?;
        if self.message_count > self.capacity {
            return Err(
                w.fault("messages", Fault::TooLarge { found: self.message_count.into(), limit: self.capacity.into() })
            );
        }
        let each = SharedMessageRecord::size(w.widths());
        w.list("messages", self.message_count.into(), each, &mut self.messages)?;
        w.checksum()?;
        let free = usize::from(self.capacity.saturating_sub(self.message_count)).saturating_mul(each);
        match free.min(w.remaining()) {
            0 => Ok(()),
            free => w.reserved(free),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Width, decode_with, encode};

    fn messages() -> Vec<SharedMessageRecord> {
        let heap = SharedMessageLocation::Heap { references: 3, heap_id: [1, 2, 3, 4, 5, 6, 7, 8] };
        let header =
            SharedMessageLocation::Header { kind: MessageType::DATATYPE, index_in_kind: 1, header: Addr::new(800) };
        vec![SharedMessageRecord { hash: 7, place: heap }, SharedMessageRecord { hash: 8, place: header }]
    }

    #[test]
    fn table_comes_back_from_bytes() {
        let index = SharedMessageIndex {
            message_type_flags: 0x0a,
            max_list_messages: 50,
            message_count: 2,
            ..Default::default()
        };
        let btree = SharedMessageIndex { kind: SharedMessageIndexKind::Btree, heap: Addr::new(9), ..index.clone() };
        assert!(index.indexes_type(MessageType::DATATYPE) && !index.indexes_type(MessageType::ATTRIBUTE));
        let table = SharedMessageTable { index_count: 2, indexes: vec![index, btree] };
        let bytes = encode(&table, Widths::default()).unwrap();
        assert_eq!(decode_with(SharedMessageTable::blank(2), &bytes, Widths::default()).unwrap(), table);
        assert!(decode_with(SharedMessageTable::blank(1), &bytes, Widths::default()).is_err());
    }

    #[test]
    fn list_comes_back_from_bytes_in_every_width() {
        for offset in [Width::TWO, Width::EIGHT] {
            let widths = Widths { offset, length: Width::EIGHT };
            let list = SharedMessageList { capacity: 5, message_count: 2, messages: messages() };
            let bytes = encode(&list, widths).unwrap();
            assert_eq!(bytes.len(), 8 + 5 * SharedMessageRecord::size(widths));
            let blank = SharedMessageList { messages: Vec::new(), ..list.clone() };
            assert_eq!(decode_with(blank, &bytes, widths).unwrap(), list);
        }
    }

    #[test]
    fn refuses_more_messages_than_the_list_has_space_for() {
        let list = SharedMessageList { capacity: 1, message_count: 2, messages: messages() };
        assert!(encode(&list, Widths::default()).is_err());
    }
}

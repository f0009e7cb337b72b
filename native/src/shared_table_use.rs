//! A use of a shared message, and what takes it from an index of shared messages.

use std::cmp::Ordering;

use h5live_cache::Handle;
use h5live_format::messages::{AttributeMessage, MessageType, SharedMessageReference, SharedMessageTarget};
use h5live_format::{
    Addr, RawMessage, SharedMessageList, SharedMessageLocation, SharedMessageRecord, decode_prefix, lookup3,
};
use h5live_indexes::{Btree2, FractalHeap};

use crate::header::CachedHeader;
use crate::{Error, Result};

/// A use of a message in an index of shared messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SharedTableUse {
    /// The message is in the heap of the index, under this ID.
    Heap { kind: MessageType, id: [u8; 8] },
    /// The message is in this header, which was the first to have it. It may since have come into the heap, for others;
    /// then the header counts as one that uses it.
    Header { kind: MessageType, header: Addr, body: Vec<u8> },
}

/// Most bytes by which a message is padded in a header of version 1.
const MAX_PADDING_BYTES: usize = 7;

impl SharedTableUse {
    /// The type of the message.
    pub fn kind(&self) -> MessageType {
        let (SharedTableUse::Heap { kind, .. } | SharedTableUse::Header { kind, .. }) = *self;
        kind
    }

    /// Whether a record is of the message, which `heap` may hold.
    fn is_use_of(&self, record: &SharedMessageRecord, heap: &FractalHeap) -> Result<bool> {
        Ok(match (self, record.place) {
            (SharedTableUse::Heap { id, .. }, SharedMessageLocation::Heap { heap_id, .. }) => *id == heap_id,
            (SharedTableUse::Heap { .. }, SharedMessageLocation::Header { .. }) => false,
            (
                SharedTableUse::Header { kind, header, .. },
                SharedMessageLocation::Header { kind: k, header: at, .. },
            ) => (*kind, *header) == (k, at),
            (SharedTableUse::Header { kind, body, .. }, SharedMessageLocation::Heap { heap_id, .. }) => {
                let message = unpadded(body).find(|message| lookup3(message, kind.number().into()) == record.hash);
                message.is_some_and(|message| heap.read_object(&heap_id).is_ok_and(|held| held == message))
            }
        })
    }
}

/// What a message may be without its padding.
fn unpadded(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let zeros = body.iter().rev().take_while(|byte| **byte == 0).count();
    (0..=zeros.min(MAX_PADDING_BYTES)).filter_map(|padding| body.get(..body.len() - padding))
}

/// What the type and the shape of an attribute use.
pub(crate) fn uses_of_attribute(attribute: &AttributeMessage) -> impl Iterator<Item = SharedTableUse> {
    let datatype = attribute.datatype.shared().map(|shared| (MessageType::DATATYPE, &shared.place));
    let dataspace = attribute.dataspace.shared().map(|shared| (MessageType::DATASPACE, &shared.place));
    datatype.into_iter().chain(dataspace).filter_map(|(kind, place)| match place {
        SharedMessageTarget::Heap(id) => Some(SharedTableUse::Heap { kind, id: *id }),
        SharedMessageTarget::Committed(_) => None,
    })
}

/// A record with one use fewer; `None` if that was the last one.
pub(crate) fn without_use(record: &SharedMessageRecord) -> Option<SharedMessageRecord> {
    match record.place {
        SharedMessageLocation::Heap { references: references @ 2.., heap_id } => {
            let place = SharedMessageLocation::Heap { references: references - 1, heap_id };
            Some(SharedMessageRecord { place, ..*record })
        }
        _ => None,
    }
}

/// Adds what a message of a header uses.
///
/// # Errors
/// If the message cannot be decoded.
pub(crate) fn add_uses_of_message(
    header: &CachedHeader,
    raw: &RawMessage,
    uses: &mut Vec<SharedTableUse>,
) -> Result<()> {
    let kind = raw.kind;
    if raw.flags.is_shared() {
        let shared = decode_prefix::<SharedMessageReference>(&raw.body, header.widths());
        let (shared, _) = shared.map_err(|source| Error::DamagedMessage { header: header.addr(), source })?;
        if let SharedMessageTarget::Heap(id) = shared.place {
            uses.push(SharedTableUse::Heap { kind, id });
        }
        return Ok(());
    }
    if raw.flags.is_indexed_for_sharing() {
        uses.push(SharedTableUse::Header { kind, header: header.addr(), body: raw.body.to_vec() });
    }
    if kind == MessageType::ATTRIBUTE {
        uses.extend(uses_of_attribute(&header.decode_message::<AttributeMessage>(raw)?));
    }
    Ok(())
}

/// Takes a use from a list, and returns the record as it was.
///
/// # Errors
/// If a structure cannot be read or changed.
pub(crate) fn release_in_list(
    list: &Handle<SharedMessageList>,
    used: &SharedTableUse,
    heap: &FractalHeap,
) -> Result<Option<SharedMessageRecord>> {
    let records = list.read().messages.clone();
    for (at, record) in records.into_iter().enumerate() {
        if !used.is_use_of(&record, heap)? {
            continue;
        }
        list.update(|list| {
            match (without_use(&record), list.messages.get_mut(at)) {
                (Some(left), Some(record)) => *record = left,
                _ => drop(list.messages.remove(at)),
            }
            list.message_count = u16::try_from(list.messages.len()).unwrap_or(u16::MAX);
        });
        return Ok(Some(record));
    }
    Ok(None)
}

/// Takes a use from a B-tree, and returns the record as it was.
///
/// # Errors
/// If a structure cannot be read or changed.
pub(crate) fn release_in_btree(
    tree: &Btree2<SharedMessageRecord>,
    used: &SharedTableUse,
    heap: &FractalHeap,
) -> Result<Option<SharedMessageRecord>> {
    let hash = match used {
        SharedTableUse::Heap { kind, id } => Some(lookup3(&heap.read_object(id)?, kind.number().into())),
        SharedTableUse::Header { .. } => None,
    };
    let mut found = None;
    tree.for_each(&mut |record: SharedMessageRecord| {
        if hash.is_none_or(|hash| hash == record.hash) && used.is_use_of(&record, heap)? {
            found = Some(record);
        }
        Ok::<_, Error>(found.is_none() && hash.is_none_or(|hash| record.hash <= hash))
    })?;
    let Some(old) = found else { return Ok(None) };
    // Messages with the same hash are very rare. They are sorted by their contents; the others come before or after.
    let compare = |record: &SharedMessageRecord| {
        let order = record.hash.cmp(&old.hash);
        Ok::<_, Error>(if record.place == old.place { Ordering::Equal } else { order })
    };
    match without_use(&old) {
        Some(left) => tree.insert_or_overwrite(&left, |_| Ordering::Equal, compare)?,
        None => tree.remove(compare)?,
    };
    Ok(Some(old))
}

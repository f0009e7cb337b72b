//! The attributes of an object, in its header or dense in a heap.

use std::cmp::Ordering;

use h5live_format::messages::{AttributeInfo, AttributeMessage, MessageType};
use h5live_format::{AttributeNameRecord, decode_prefix, lookup3};
use h5live_indexes::{Btree2, FractalHeap};
use h5live_model::{Attribute, Name};

use crate::creation::committed;
use crate::header::{Header, Spot};
use crate::session::Session;
use crate::{Error, Result};

/// Where the attributes of an object are.
pub(crate) enum Attributes {
    /// In the header.
    Compact,
    /// In a fractal heap, with an index of names.
    Dense { heap: FractalHeap, names: Btree2<AttributeNameRecord> },
}

/// An attribute as it is stored.
pub(crate) struct Stored {
    pub message: AttributeMessage,
    pub creation_order: u16,
}

/// The flag of a dense attribute that is in the heap of shared messages.
const SHARED: u8 = 0x02;

impl Attributes {
    /// Where the attributes of the object with this header are.
    ///
    /// # Errors
    /// If a message of the header is damaged.
    pub fn of(session: &Session, header: &Header) -> Result<Self> {
        match header.get::<AttributeInfo>()? {
            Some(info) if info.is_dense() => Ok(Attributes::Dense {
                heap: session.fractal_heap(header.metadata(), info.heap),
                names: Btree2::new(header.metadata().clone(), info.names, AttributeNameRecord::default()),
            }),
            _ => Ok(Attributes::Compact),
        }
    }

    /// The attributes in the header of an object that keeps them there, and where each is.
    ///
    /// # Errors
    /// If one is damaged.
    pub fn compact(session: &Session, header: &Header) -> Result<Vec<(Spot, Stored)>> {
        let mut found = Vec::new();
        header.each(|spot, raw| {
            if raw.kind == MessageType::ATTRIBUTE {
                let message = session.resolve_raw(header, raw)?;
                found.push((spot, Stored { message, creation_order: raw.creation_index }));
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn dense(session: &Session, header: &Header, heap: &FractalHeap, record: &AttributeNameRecord) -> Result<Stored> {
        let message = if record.flags & SHARED != 0 {
            session.shared_in_heap(&record.heap_id)?
        } else {
            let bytes = heap.get(&record.heap_id)?;
            let decoded = decode_prefix::<AttributeMessage>(&bytes, header.widths());
            decoded.map_err(|source| Error::Message { header: header.addr(), source })?.0
        };
        // Positions of dense attributes take four bytes, of which two are used.
        Ok(Stored { message, creation_order: u16::try_from(record.order).unwrap_or(u16::MAX) })
    }

    /// The attribute of this name.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn find(&self, session: &Session, header: &Header, name: &Name) -> Result<Option<Stored>> {
        let (heap, names) = match self {
            Attributes::Compact => {
                let found = Attributes::compact(session, header)?;
                return Ok(found.into_iter().map(|(_, stored)| stored).find(|stored| stored.message.name == *name));
            }
            Attributes::Dense { heap, names } => (heap, names),
        };
        let hash = lookup3(name.as_bytes(), 0);
        let (mut found, mut collides) = (None, false);
        names.find(|record| {
            if record.hash != hash {
                return Ok(record.hash.cmp(&hash));
            }
            let stored = Attributes::dense(session, header, heap, record)?;
            let order = stored.message.name.cmp(name);
            collides |= order != Ordering::Equal;
            found = (order == Ordering::Equal).then_some(stored);
            Ok::<_, Error>(order)
        })?;
        if found.is_none() && collides {
            // Some programs do not sort names of the same hash.
            names.for_each(&mut |record| {
                if record.hash == hash && found.is_none() {
                    let stored = Attributes::dense(session, header, heap, &record)?;
                    found = (stored.message.name == *name).then_some(stored);
                }
                Ok::<_, Error>(record.hash <= hash && found.is_none())
            })?;
        }
        Ok(found)
    }

    /// Calls `each` with every attribute, until it returns `false` or fails.
    ///
    /// # Errors
    /// If a structure cannot be read; the error of `each`.
    pub fn for_each(
        &self,
        session: &Session,
        header: &Header,
        each: &mut dyn FnMut(Stored) -> Result<bool>,
    ) -> Result<()> {
        let (heap, names) = match self {
            Attributes::Compact => {
                for (_, stored) in Attributes::compact(session, header)? {
                    if !each(stored)? {
                        break;
                    }
                }
                return Ok(());
            }
            Attributes::Dense { heap, names } => (heap, names),
        };
        names.for_each(&mut |record| each(Attributes::dense(session, header, heap, &record)?))
    }
}

impl Attributes {
    /// Refuses to change attributes that are not in the header.
    ///
    /// # Errors
    /// [`h5live_model::Error::Unsupported`].
    pub fn check_compact(&self) -> Result<()> {
        match self {
            Attributes::Compact => Ok(()),
            Attributes::Dense { .. } => {
                Err(Error::Model(h5live_model::Error::Unsupported("changing dense attributes")))
            }
        }
    }
}

impl Session {
    /// A stored attribute with its type and shape, which may be stored elsewhere.
    ///
    /// # Errors
    /// If they are not there.
    pub fn attribute_value(&self, stored: Stored, tracked: bool) -> Result<Attribute> {
        let Stored { message, creation_order } = stored;
        let committed = committed(message.datatype.shared());
        let datatype = self.resolve(message.datatype)?.datatype;
        let dataspace = self.resolve(message.dataspace)?.dataspace;
        let mut value = message.data;
        // What follows the value in a header of version 1 is padding.
        let bytes = dataspace.elements().and_then(|n| n.checked_mul(datatype.size().into()));
        if let Some(bytes) = bytes.and_then(|bytes| usize::try_from(bytes).ok()).filter(|bytes| *bytes < value.len()) {
            value.truncate(bytes);
        }
        let creation_order = tracked.then_some(creation_order);
        Ok(Attribute { name: message.name, datatype, committed, dataspace, value, creation_order })
    }
}

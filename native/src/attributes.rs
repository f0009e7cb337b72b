//! The attributes of an object, in its header or dense in a heap.

mod dense;
mod edit;
mod stored;

use std::collections::HashSet;

use h5live_format::RawMessage;
use h5live_format::messages::{AttributeInfo, AttributeMessage, MessageType};
use h5live_model::{AttributeData, Name};

pub(crate) use self::dense::DenseAttributes;
pub(crate) use self::stored::StoredAttribute;
use crate::Result;
use crate::header::{CachedHeader, MessagePosition};
use crate::object_kind::committed_datatype;
use crate::session::NativeSession;

/// Where the attributes of an object are.
pub(crate) enum AttributeStorage {
    /// In the header.
    Compact,
    /// In a fractal heap, with an index of names.
    Dense(DenseAttributes),
}

impl AttributeStorage {
    /// Where the attributes of the object with this header are.
    ///
    /// # Errors
    /// If a message of the header is damaged.
    pub fn load(session: &NativeSession, header: &CachedHeader) -> Result<Self> {
        match header.get_message::<AttributeInfo>()? {
            Some(info) if info.is_dense() => Ok(AttributeStorage::Dense(DenseAttributes::open(session, header, &info))),
            _ => Ok(AttributeStorage::Compact),
        }
    }

    /// The attributes in the header of an object that keeps them there, and where each is.
    ///
    /// # Errors
    /// If one is damaged.
    pub fn list_compact_attributes(
        session: &NativeSession,
        header: &CachedHeader,
    ) -> Result<Vec<(MessagePosition, StoredAttribute)>> {
        let mut found = Vec::new();
        header.for_each_message(|spot, raw| {
            if raw.kind == MessageType::ATTRIBUTE {
                let message = session.resolve_raw_message(header, raw)?;
                found.push((spot, StoredAttribute { message, creation_order: raw.creation_index }));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The attribute of this name in the header of an object that keeps its attributes there, and where it is. The others
    /// are not decoded.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn find_compact_attribute(
        session: &NativeSession,
        header: &CachedHeader,
        name: &Name,
    ) -> Result<Option<(MessagePosition, StoredAttribute)>> {
        // A message that is stored elsewhere has its name there.
        let may_be = |raw: &RawMessage| {
            let told = (!raw.flags.is_shared()).then(|| AttributeMessage::peek_name(&raw.body)).flatten();
            told.is_none_or(|told| told == name.as_bytes())
        };
        let mut found = None;
        header.for_each_message(|spot, raw| {
            if found.is_none() && raw.kind == MessageType::ATTRIBUTE && may_be(raw) {
                let message: AttributeMessage = session.resolve_raw_message(header, raw)?;
                if message.name == *name {
                    found = Some((spot, StoredAttribute { message, creation_order: raw.creation_index }));
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The attribute of this name.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn find_attribute(
        &self,
        session: &NativeSession,
        header: &CachedHeader,
        name: &Name,
    ) -> Result<Option<StoredAttribute>> {
        match self {
            AttributeStorage::Compact => {
                let found = AttributeStorage::find_compact_attribute(session, header, name)?;
                Ok(found.map(|(_, stored)| stored))
            }
            AttributeStorage::Dense(dense) => dense.find_attribute(session, header, name),
        }
    }

    /// Calls `each` with every attribute, until it returns `false` or fails.
    ///
    /// # Errors
    /// If a structure cannot be read; the error of `each`.
    pub fn for_each_attribute(
        &self,
        session: &NativeSession,
        header: &CachedHeader,
        each: &mut dyn FnMut(StoredAttribute) -> Result<bool>,
    ) -> Result<()> {
        match self {
            AttributeStorage::Compact => {
                // One that moves to another chunk of the header is in both for a moment, and for longer if its writer
                // dies.
                let may_repeat = header.chunk_nodes().nth(1).is_some();
                let mut names = HashSet::new();
                for (_, stored) in AttributeStorage::list_compact_attributes(session, header)? {
                    let is_repeated = may_repeat && !names.insert(stored.message.name.clone());
                    if !is_repeated && !each(stored)? {
                        break;
                    }
                }
                Ok(())
            }
            AttributeStorage::Dense(dense) => dense.for_each_attribute(session, header, each),
        }
    }

    /// Calls `each` with the attributes that come after a name in the order in which they are kept, until it returns
    /// `false`. Returns whether there may be more. Attributes in the header are one part.
    ///
    /// # Errors
    /// If a structure cannot be read; the error of `each`.
    pub fn for_each_attribute_page(
        &self,
        (session, header): (&NativeSession, &CachedHeader),
        after: Option<&Name>,
        each: &mut dyn FnMut(StoredAttribute) -> Result<bool>,
    ) -> Result<bool> {
        match self {
            AttributeStorage::Compact => {
                self.for_each_attribute(session, header, &mut |stored| each(stored).map(|_| true))?;
                Ok(false)
            }
            AttributeStorage::Dense(dense) => dense.for_each_attribute_page((session, header), after, each),
        }
    }
}

impl NativeSession {
    /// A stored attribute with its type and shape, which may be stored elsewhere.
    ///
    /// # Errors
    /// If they are not there.
    pub fn resolve_attribute(&self, stored: StoredAttribute, has_creation_order: bool) -> Result<AttributeData> {
        let StoredAttribute { message, creation_order } = stored;
        let committed = committed_datatype(message.datatype.shared());
        let datatype = self.resolve_shareable(message.datatype)?.datatype;
        let dataspace = self.resolve_shareable(message.dataspace)?.dataspace;
        let mut value = message.data;
        // In a header of version 1, bytes after the value are padding.
        let bytes = dataspace.element_count().and_then(|n| n.checked_mul(datatype.size().into()));
        if let Some(bytes) = bytes.and_then(|bytes| usize::try_from(bytes).ok()).filter(|bytes| *bytes < value.len()) {
            value.truncate(bytes);
        }
        let creation_order = has_creation_order.then_some(creation_order);
        Ok(AttributeData {
            name: message.name,
            datatype,
            committed_datatype: committed,
            dataspace,
            value,
            creation_order,
        })
    }
}

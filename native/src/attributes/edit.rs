//! Setting and removing the attributes of an object.

use std::collections::BTreeSet;

use h5live_format::messages::{
    AttributeInfo, AttributeMessage, MessageType, SharedMessageReference, SharedMessageTarget,
};
use h5live_format::{Addr, MessageFlags, RawMessage, decode_prefix};
use h5live_indexes::Prerequisite;
use h5live_model::{Error as ModelError, Name};

use super::dense::{AttributeSource, DenseAttributes};
use super::{AttributeStorage, StoredAttribute};
use crate::header::{CachedHeader, MessagePosition};
use crate::session::NativeSession;
use crate::{Error, Result};

/// Bytes from which on an attribute is too large for a message.
const MESSAGE_SIZE_LIMIT: usize = 1 << 16;

/// The position of an attribute of an object that does not keep the order of creation.
const UNTRACKED: u16 = u16::MAX;

/// The flag of a message that must not be shared.
const NOT_SHARED: MessageFlags = MessageFlags(0x04);

/// The attribute info of the header, and the position of the next attribute in creation order.
fn attribute_info(header: &CachedHeader, held: &[(MessagePosition, StoredAttribute)]) -> Result<AttributeInfo> {
    if let Some(info) = header.get_message::<AttributeInfo>()? {
        return Ok(info);
    }
    let prefix = header.prefix();
    let next = held.iter().map(|(_, held)| held.creation_order.saturating_add(1)).max().unwrap_or(0);
    Ok(AttributeInfo {
        next_creation_order: prefix.attribute_order_tracked.then_some(next),
        order_index: prefix.attribute_order_indexed.then_some(Addr::UNDEFINED),
        ..AttributeInfo::default()
    })
}

fn encode_info_message(header: &CachedHeader, info: &AttributeInfo) -> Result<RawMessage> {
    let old = header.find_message(|message| message.kind == MessageType::ATTRIBUTE_INFO);
    header.encode_message(info, old.map_or(NOT_SHARED, |(_, message)| message.flags))
}

fn put_info_message(header: &mut CachedHeader, info: &AttributeInfo) -> Result<()> {
    let new = encode_info_message(header, info)?;
    match header.find_message(|message| message.kind == MessageType::ATTRIBUTE_INFO) {
        Some((spot, _)) => header.replace_message(spot, new),
        None => header.add_message(new),
    }
}

impl NativeSession {
    /// Adds an attribute to the object with this header, which the caller has locked, or replaces the one of its name.
    /// It is written after `before`.
    ///
    /// # Errors
    /// If it is too large for a header of version 1; if a structure cannot be read, or there is no room.
    pub fn put_attribute(
        &self,
        header: &mut CachedHeader,
        message: &AttributeMessage,
        before: &[Prerequisite<'_>],
    ) -> Result<()> {
        let old_uses = self.shared_uses_of_attribute(header, &message.name)?;
        self.put_attribute_message(header, message, before)?;
        self.release_shared_uses(old_uses)
    }

    fn put_attribute_message(
        &self,
        header: &mut CachedHeader,
        message: &AttributeMessage,
        before: &[Prerequisite<'_>],
    ) -> Result<()> {
        let new = header.encode_message(message, MessageFlags::default())?;
        if header.prefix().version == 1 {
            return match AttributeStorage::find_compact_attribute(self, header, &message.name)? {
                Some((spot, _)) => header.replace_message(spot, new),
                None => header.add_message(new),
            };
        }
        let held = match AttributeStorage::load(self, header)? {
            AttributeStorage::Compact => AttributeStorage::list_compact_attributes(self, header)?,
            AttributeStorage::Dense(_) => Vec::new(),
        };
        let old = held.iter().find(|(_, held)| held.message.name == message.name);
        let is_told = header.find_message(|message| message.kind == MessageType::ATTRIBUTE_INFO).is_some();
        let mut info = attribute_info(header, &held)?;
        let dense = info.is_dense().then(|| DenseAttributes::open_for_writing(self, header, &info));
        let is_new = match &dense {
            Some(dense) => dense.find_attribute(self, header, &message.name)?.is_none(),
            None => old.is_none(),
        };
        let tracked = info.next_creation_order.is_some();
        let position = old.map_or(info.next_creation_order.unwrap_or(UNTRACKED), |(_, held)| held.creation_order);
        if is_new && position == u16::MAX && tracked {
            let what = "an object that keeps the order of creation and has had more than 65,535 attributes";
            return Err(Error::Model(ModelError::Unsupported(what)));
        }
        if is_new {
            info.next_creation_order = info.next_creation_order.map(|next| next.saturating_add(1));
        }
        if let Some(dense) = dense {
            dense.add_flush_parent(header)?;
            let source = AttributeSource::Message(message);
            dense.insert_or_replace_attribute((self, header), &message.name, &source, position, before)?;
            return if is_new && tracked { put_info_message(header, &info) } else { Ok(()) };
        }
        let phase = header.prefix().attribute_phase_change.unwrap_or_default();
        if is_new && held.len() >= phase.max_compact.into() || new.body.len() >= MESSAGE_SIZE_LIMIT {
            return self.move_attributes_to_heap(header, info, &held, (message, position), before);
        }
        let new =
            RawMessage { creation_index: if header.prefix().attribute_order_tracked { position } else { 0 }, ..new };
        if let Some((spot, _)) = old {
            return header.replace_message(*spot, new);
        }
        // libhdf5 takes an object without this message for one without attributes when it counts them.
        if tracked || !is_told {
            put_info_message(header, &info)?;
        }
        header.add_message(new)
    }

    /// Moves attributes out of the header, together with a new one, or one in the place of one that is there.
    fn move_attributes_to_heap(
        &self,
        header: &mut CachedHeader,
        mut info: AttributeInfo,
        held: &[(MessagePosition, StoredAttribute)],
        (message, position): (&AttributeMessage, u16),
        before: &[Prerequisite<'_>],
    ) -> Result<()> {
        let dense = DenseAttributes::create_empty(self, header, &mut info)?;
        dense.add_flush_parent(header)?;
        let tracked = info.next_creation_order.is_some();
        let mut taken = BTreeSet::new();
        let mut position_of = |mut position: u16, info: &mut AttributeInfo| {
            // Some programs give attributes in a header the same position, which the index of positions cannot hold.
            while tracked && !taken.insert(position) {
                position = info.next_creation_order.unwrap_or(UNTRACKED);
                info.next_creation_order = Some(position.saturating_add(1));
                if position == UNTRACKED {
                    return Err(header.damaged_error("attributes differ in their positions"));
                }
            }
            Ok(if tracked { position } else { UNTRACKED })
        };
        let shared = self.shared_attributes(header)?;
        for (spot, StoredAttribute { message: old, creation_order }) in
            held.iter().filter(|(_, old)| old.message.name != message.name)
        {
            let source = match shared.iter().find(|(at, _)| at == spot) {
                Some((_, id)) => AttributeSource::Shared(*id),
                None => AttributeSource::Message(old),
            };
            let position = position_of(*creation_order, &mut info)?;
            dense.insert_or_replace_attribute((self, header), &old.name, &source, position, &[])?;
        }
        let position = position_of(position, &mut info)?;
        let source = AttributeSource::Message(message);
        dense.insert_or_replace_attribute((self, header), &message.name, &source, position, before)?;
        header.remove_type_and_set_message(MessageType::ATTRIBUTE, encode_info_message(header, &info)?)?;
        dense.add_flush_parent(header)
    }

    /// Attributes of a header that are in the file's heap of shared messages, and their IDs there.
    fn shared_attributes(&self, header: &CachedHeader) -> Result<Vec<(MessagePosition, [u8; 8])>> {
        let mut found = Vec::new();
        header.for_each_message(|spot, raw| {
            if raw.kind == MessageType::ATTRIBUTE && raw.flags.is_shared() {
                let shared = decode_prefix::<SharedMessageReference>(&raw.body, header.widths());
                let (shared, _) = shared.map_err(|source| Error::DamagedMessage { header: header.addr(), source })?;
                if let SharedMessageTarget::Heap(id) = shared.place {
                    found.push((spot, id));
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Removes an attribute of the object with this header, which the caller has locked.
    ///
    /// # Errors
    /// [`ModelError::NotFound`]; if a structure cannot be read.
    pub fn remove_attribute(&self, header: &mut CachedHeader, name: &Name) -> Result<()> {
        let missing = || Error::Model(ModelError::NotFound(name.clone()));
        let old_uses = self.shared_uses_of_attribute(header, name)?;
        let mut info = header.get_message::<AttributeInfo>()?;
        let left = if let Some(info) = info.as_mut().filter(|info| info.is_dense()) {
            let dense = DenseAttributes::open_for_writing(self, header, info);
            dense.add_flush_parent(header)?;
            if !dense.remove_attribute(self, header, name)? {
                return Err(missing());
            }
            self.move_attributes_to_header(header, info, &dense)?
        } else {
            let found = AttributeStorage::find_compact_attribute(self, header, name)?;
            header.remove_message(found.ok_or_else(missing)?.0)?;
            header.message_count(MessageType::ATTRIBUTE)
        };
        match header.find_message(|message| message.kind == MessageType::ATTRIBUTE_INFO) {
            Some((spot, _)) if left == 0 => header.remove_message(spot)?,
            _ => {}
        }
        self.release_shared_uses(old_uses)
    }

    /// Moves dense attributes to the header if few are left, and returns how many there are.
    fn move_attributes_to_header(
        &self,
        header: &mut CachedHeader,
        info: &mut AttributeInfo,
        dense: &DenseAttributes,
    ) -> Result<u64> {
        let left = dense.attribute_count()?;
        let phase = header.prefix().attribute_phase_change.unwrap_or_default();
        if left > 0 && (left >= phase.min_dense.into() || dense.has_shared_attributes()?) {
            return Ok(left);
        }
        let mut attributes = Vec::new();
        dense.for_each_attribute(self, header, &mut |stored| {
            attributes.push(stored);
            Ok(true)
        })?;
        attributes.sort_by_key(|stored| stored.creation_order);
        let tracked = header.prefix().attribute_order_tracked;
        let messages = attributes.iter().map(|stored| {
            let raw = header.encode_message(&stored.message, MessageFlags::default())?;
            Ok(RawMessage { creation_index: if tracked { stored.creation_order } else { 0 }, ..raw })
        });
        let messages = messages.collect::<Result<Vec<_>>>()?;
        if messages.iter().any(|message| message.body.len() >= MESSAGE_SIZE_LIMIT) {
            return Ok(left);
        }
        messages.into_iter().try_for_each(|message| header.add_message(message))?;
        *info = AttributeInfo {
            next_creation_order: info.next_creation_order,
            order_index: info.order_index.map(|_| Addr::UNDEFINED),
            ..AttributeInfo::default()
        };
        put_info_message(header, info)?;
        dense.delete_heap_and_indexes()?;
        Ok(left)
    }
}

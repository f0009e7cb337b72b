//! Adding and removing the links of a group.

use h5live_cache::DependencyKind;
use h5live_format::messages::{
    GroupInfo, LinkInfo, LinkMessage, LinkPhaseChange, LinkValue, MessageType, SymbolTableMessage,
};
use h5live_format::{MessageFlags, RawMessage};
use h5live_indexes::{Prerequisite, SymbolTable, SymbolTarget};
use h5live_model::{CharacterSet, Error as ModelError, Link, LinkTarget, Name};
use smallvec::SmallVec;

use super::{DenseLinks, LinkStorage};
use crate::header::CachedHeader;
use crate::session::NativeSession;
use crate::{Error, Result};

/// Bytes from which on a link is too large for a message.
const MESSAGE_SIZE_LIMIT: usize = 1 << 16;

/// The message `info` with the flags that the old one has.
fn encode_info_message(header: &CachedHeader, info: &LinkInfo) -> Result<RawMessage> {
    let old = header.find_message(|message| message.kind == MessageType::LINK_INFO);
    header.encode_message(info, old.map_or(MessageFlags::default(), |(_, message)| message.flags))
}

/// Adds an entry to a symbol table.
fn insert_symbol(
    table: &SymbolTable,
    name: &Name,
    value: LinkValue,
    target: Option<&CachedHeader>,
    before: &[Prerequisite<'_>],
) -> Result<()> {
    let leads_to = match value {
        LinkValue::Hard(addr) => SymbolTarget::Hard(addr),
        LinkValue::Soft(path) => SymbolTarget::Soft(path),
        LinkValue::External { .. } | LinkValue::UserDefined { .. } => {
            return Err(Error::Model(ModelError::Unsupported("such links in a symbol table")));
        }
    };
    let group = match target {
        Some(target) => target.get_message::<SymbolTableMessage>()?.map(|message| (message.btree, message.heap)),
        None => None,
    };
    Ok(table.insert_link_known_absent(name, &leads_to, group, before)?)
}

/// What is written before a link to a new object.
fn link_prerequisites(target: &CachedHeader) -> SmallVec<[Prerequisite<'_>; 1]> {
    let mut before = SmallVec::new();
    target.chunk_nodes().for_each(|node| before.push((node, DependencyKind::Link)));
    before
}

impl NativeSession {
    /// Adds a link to the group with this header, which the caller has locked. `target` is the header of the object to
    /// which it leads, if it is a hard link.
    ///
    /// # Errors
    /// [`ModelError::Exists`]; if a structure cannot be read, or there is no room.
    pub fn insert_link(
        &self,
        header: &mut CachedHeader,
        name: &Name,
        value: LinkValue,
        target: Option<&CachedHeader>,
    ) -> Result<()> {
        let exists = || Error::Model(ModelError::Exists(name.clone()));
        let before = target.filter(|target| target.is_new()).map(link_prerequisites).unwrap_or_default();
        let table = header.get_message::<SymbolTableMessage>()?;
        let mut info = header.get_message::<LinkInfo>()?.unwrap_or_default();
        // Adding a dense link finds links of the same name.
        let seeks = table.is_some() || !info.is_dense();
        if seeks && LinkStorage::load(self, header)?.find_link(header, name)?.is_some() {
            return Err(exists());
        }
        if let Some(table) = table {
            if name.is_ascii() && matches!(value, LinkValue::Hard(_) | LinkValue::Soft(_)) {
                let table = self.heaps.symbol_table_for_writing(header.metadata(), &table);
                return insert_symbol(&table, name, value, target, &before);
            }
            self.convert_to_new_group(header, &table)?;
            info = header.get_message::<LinkInfo>()?.unwrap_or_default();
        }
        let creation_order = info.next_creation_order;
        info.next_creation_order = creation_order.map(|next| next.saturating_add(1));
        let character_set = if name.is_ascii() { CharacterSet::Ascii } else { CharacterSet::Utf8 };
        let link = LinkMessage { name: name.clone(), name_character_set: character_set, creation_order, value };
        if info.is_dense() {
            let dense = DenseLinks::open_for_writing(self, header, &info);
            dense.add_flush_parent(header)?;
            if !dense.insert_link(header, link, &before)? {
                return Err(exists());
            }
        } else {
            let message = header.encode_message(&link, MessageFlags::default())?;
            let held = LinkStorage::list_compact_links(header)?;
            let phase = header.get_message::<GroupInfo>()?.and_then(|info| info.link_phase_change).unwrap_or_default();
            if held.len() >= phase.max_compact.into() || message.body.len() >= MESSAGE_SIZE_LIMIT {
                let dense = DenseLinks::create_empty(self, header, &mut info)?;
                dense.add_flush_parent(header)?;
                for (_, link) in held {
                    dense.insert_link(header, link, &[])?;
                }
                dense.insert_link(header, link, &before)?;
                header.remove_type_and_set_message(MessageType::LINK, encode_info_message(header, &info)?)?;
                return dense.add_flush_parent(header);
            }
            header.add_message(message)?;
            if let Some(target) = target {
                header.add_dependency_on(target, DependencyKind::Link);
            }
        }
        match creation_order {
            Some(_) => header.set_message(&info),
            None => Ok(()),
        }
    }

    /// Turns a group of the old style into one of the new, for links that symbol tables do not hold.
    fn convert_to_new_group(&self, header: &mut CachedHeader, message: &SymbolTableMessage) -> Result<()> {
        let mut links = Vec::new();
        LinkStorage::load(self, header)?.for_each_link(header, &mut |link| {
            links.push(link);
            true
        })?;
        let links = links.into_iter().map(|Link { name, target, .. }| {
            let value = match target {
                LinkTarget::Soft(path) => LinkValue::Soft(path),
                LinkTarget::Hard(id) => LinkValue::Hard(self.header_addr_of(id)?),
                _ => return Err(header.damaged_error("symbol tables hold hard and soft links")),
            };
            Ok(LinkMessage { name, name_character_set: CharacterSet::Ascii, creation_order: None, value })
        });
        let links = links.collect::<Result<Vec<_>>>()?;
        let mut info = LinkInfo::default();
        if header.get_message::<GroupInfo>()?.is_none() {
            let choices = header.encode_message(&GroupInfo::default(), MessageFlags::CONSTANT)?;
            header.add_message(choices)?;
        }
        let dense = if links.len() > LinkPhaseChange::default().max_compact.into() {
            let dense = DenseLinks::create_empty(self, header, &mut info)?;
            dense.add_flush_parent(header)?;
            links.into_iter().try_for_each(|link| dense.insert_link(header, link, &[]).map(drop))?;
            Some(dense)
        } else {
            for link in &links {
                let link = header.encode_message(link, MessageFlags::default())?;
                header.add_message(link)?;
            }
            None
        };
        let info = header.encode_message(&info, MessageFlags::default())?;
        header.remove_type_and_set_message(MessageType::SYMBOL_TABLE, info)?;
        if let Some(dense) = dense {
            dense.add_flush_parent(header)?;
        }
        self.heaps.delete_symbol_table(header.metadata(), message)
    }

    /// Removes a link from the group with this header, which the caller has locked.
    ///
    /// # Errors
    /// [`ModelError::NotFound`]; if a structure cannot be read.
    pub fn remove_link(&self, header: &mut CachedHeader, name: &Name) -> Result<()> {
        let missing = || Error::Model(ModelError::NotFound(name.clone()));
        if let Some(table) = header.get_message::<SymbolTableMessage>()? {
            let table = self.heaps.symbol_table_for_writing(header.metadata(), &table);
            table.remove_link(name)?.map(drop).ok_or_else(missing)?;
            return self.heaps.record_reclaimable_name_heap(&table);
        }
        let mut info = header.get_message::<LinkInfo>()?.unwrap_or_default();
        let left = if info.is_dense() {
            let dense = DenseLinks::open_for_writing(self, header, &info);
            dense.add_flush_parent(header)?;
            dense.remove_link(header, name)?.ok_or_else(missing)?;
            self.move_links_to_header(header, &mut info, &dense)?
        } else {
            let held = LinkStorage::list_compact_links(header)?;
            let (spot, _) = held.iter().find(|(_, link)| link.name == *name).ok_or_else(missing)?;
            header.remove_message(*spot)?;
            held.len() as u64 - 1
        };
        if left == 0 && info.next_creation_order.is_some() {
            info.next_creation_order = Some(0);
            header.set_message(&info)?;
        }
        Ok(())
    }

    /// Moves dense links to the header if few are left, and returns how many there are.
    fn move_links_to_header(&self, header: &mut CachedHeader, info: &mut LinkInfo, dense: &DenseLinks) -> Result<u64> {
        let left = dense.link_count()?;
        let phase = header.get_message::<GroupInfo>()?.and_then(|info| info.link_phase_change).unwrap_or_default();
        if left > 0 && left >= phase.min_dense.into() {
            return Ok(left);
        }
        let mut links = Vec::new();
        dense.for_each_link(header, &mut |link| {
            links.push(link);
            true
        })?;
        let messages = links.iter().map(|link| header.encode_message(link, MessageFlags::default()));
        let messages = messages.collect::<Result<Vec<_>>>()?;
        if messages.iter().any(|message| message.body.len() >= MESSAGE_SIZE_LIMIT) {
            return Ok(left);
        }
        messages.into_iter().try_for_each(|message| header.add_message(message))?;
        *info = LinkInfo {
            next_creation_order: info.next_creation_order,
            order_index: info.order_index.map(|_| Default::default()),
            ..LinkInfo::default()
        };
        header.set_message(info)?;
        dense.delete_heap_and_indexes()?;
        Ok(left)
    }
}

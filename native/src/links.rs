//! The links of a group, in each of the three ways in which a file keeps them.

mod dense;
mod edit;
mod link_cache;

use h5live_format::Addr;
use h5live_format::messages::{LinkInfo, LinkMessage, MessageType, SymbolTableMessage};
use h5live_indexes::{SymbolTable, SymbolTarget};
use h5live_model::{Link, LinkTarget, Name, ObjectId};

pub(crate) use self::dense::DenseLinks;
pub(crate) use self::link_cache::LinkCache;
use self::link_cache::{LinkTable, link_from_message};

use crate::Result;
use crate::header::{CachedHeader, MessagePosition};
use crate::session::NativeSession;

/// Bytes that a link takes at least.
const MIN_LINK_BYTES: u64 = 24;

/// Where the links of a group are.
pub(crate) enum LinkStorage {
    /// In the header.
    Compact,
    /// In a fractal heap, with an index of names.
    Dense(DenseLinks),
    /// In a symbol table.
    SymbolTable(SymbolTable),
}

fn symbol_link(name: Name, target: SymbolTarget) -> Link {
    let target = match target {
        SymbolTarget::Hard(header) => LinkTarget::Hard(ObjectId(header.get().unwrap_or(u64::MAX).into())),
        SymbolTarget::Soft(path) => LinkTarget::Soft(path),
    };
    Link { name, target, creation_order: None }
}

impl LinkStorage {
    /// Where the links of the group with this header are.
    ///
    /// # Errors
    /// If a message of the header is damaged.
    pub fn load(session: &NativeSession, header: &CachedHeader) -> Result<Self> {
        if let Some(message) = header.get_message::<SymbolTableMessage>()? {
            return Ok(LinkStorage::SymbolTable(session.heaps.symbol_table(header.metadata(), &message)));
        }
        match header.get_message::<LinkInfo>()? {
            Some(info) if info.is_dense() => Ok(LinkStorage::Dense(DenseLinks::open(session, header, &info))),
            _ => Ok(LinkStorage::Compact),
        }
    }

    /// The links in the header of a group that keeps them there, and where each is.
    ///
    /// # Errors
    /// If a link is damaged.
    pub fn list_compact_links(header: &CachedHeader) -> Result<Vec<(MessagePosition, LinkMessage)>> {
        let mut links = Vec::new();
        header.for_each_message(|spot, message| {
            if message.kind == MessageType::LINK {
                links.push((spot, header.decode_message::<LinkMessage>(message)?));
            }
            Ok(())
        })?;
        Ok(links)
    }

    /// The link of this name.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn find_link(&self, header: &CachedHeader, name: &Name) -> Result<Option<Link>> {
        match self {
            LinkStorage::Compact => {
                let found =
                    LinkStorage::list_compact_links(header)?.into_iter().find(|(_, stored)| stored.name == *name);
                Ok(found.map(|(_, stored)| link_from_message(stored)))
            }
            LinkStorage::SymbolTable(table) => {
                Ok(table.find_link(name)?.map(|target| symbol_link(name.clone(), target)))
            }
            LinkStorage::Dense(dense) => Ok(dense.find_link(header, name)?.map(link_from_message)),
        }
    }

    /// The link of this name, if that is known without reading the group, which only a file at rest allows.
    pub fn find_cached_link(session: &NativeSession, group: Addr, name: &Name) -> Option<Option<Link>> {
        session.link_cache.find_link(group, name, session.cache.widths())
    }

    /// Something has been sought among these links.
    pub fn count_lookup_and_maybe_cache(&self, session: &NativeSession, header: &CachedHeader) {
        if let LinkStorage::Dense(dense) = self
            && session.file_cannot_change()
        {
            // A link that cannot be read is an error for the caller that needs it.
            let load = |room| load_link_table(dense, header, room).ok().flatten();
            session.link_cache.count_lookup(header.addr(), || dense.link_count().ok(), load);
        }
    }

    /// Calls `each` with every link, until it returns `false`.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn for_each_link(&self, header: &CachedHeader, each: &mut dyn FnMut(Link) -> bool) -> Result<()> {
        match self {
            LinkStorage::Compact => {
                let links = LinkStorage::list_compact_links(header)?;
                links.into_iter().map(|(_, stored)| link_from_message(stored)).all(each);
                Ok(())
            }
            LinkStorage::SymbolTable(table) => {
                table.for_each_link(&mut |name, target| Ok(each(symbol_link(name, target))))
            }
            LinkStorage::Dense(dense) => dense.for_each_link(header, &mut |stored| each(link_from_message(stored))),
        }
    }
}

impl LinkStorage {
    /// Calls `each` with the links that come after a name in the order in which they are kept, until it returns `false`.
    /// Returns whether there may be more. Links in the header are one part.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn for_each_link_page(
        &self,
        header: &CachedHeader,
        after: Option<&Name>,
        each: &mut dyn FnMut(Link) -> bool,
    ) -> Result<bool> {
        let mut is_ended = false;
        match self {
            LinkStorage::SymbolTable(table) => table.for_each_link_after(after, &mut |name, target| {
                is_ended = !each(symbol_link(name, target));
                Ok::<_, crate::Error>(!is_ended)
            })?,
            LinkStorage::Compact => {
                LinkStorage::list_compact_links(header)?.into_iter().for_each(|(_, stored)| {
                    each(link_from_message(stored));
                });
            }
            LinkStorage::Dense(dense) => {
                is_ended = dense.for_each_link_page(header, after, &mut |stored| each(link_from_message(stored)))?;
            }
        }
        Ok(is_ended)
    }
}

/// All links of a group; `None` if the links take more than `room` bytes.
fn load_link_table(links: &DenseLinks, header: &CachedHeader, room: usize) -> Result<Option<LinkTable>> {
    let mut table = LinkTable::default();
    if links.link_count()?.saturating_mul(MIN_LINK_BYTES) > room as u64 {
        return Ok(None);
    }
    let whole = links.for_each_encoded_link_unordered(&mut |bytes| {
        match LinkMessage::peek_plain_hard_link(bytes, header.widths()) {
            Some((name, _)) => table.add_link(bytes, name),
            None => table.add_link(bytes, DenseLinks::decode_link(header, bytes)?.name.as_bytes()),
        }
        Ok(table.memory_bytes() <= room)
    })?;
    table.build_hash_buckets();
    Ok(whole.then_some(table))
}

//! The links of a group, in each of the three ways in which a file keeps them.

mod dense;
mod edit;
mod known;

use h5live_format::Addr;
use h5live_format::messages::{LinkInfo, LinkMessage, MessageType, SymbolTable as SymbolTableMessage};
use h5live_indexes::{SymbolTable, SymbolTarget};
use h5live_model::{Link, LinkTarget, Name, ObjectId};

pub(crate) use self::dense::DenseLinks;
pub(crate) use self::known::KnownLinks;

use crate::Result;
use crate::header::{Header, Spot};
use crate::session::Session;

/// Where the links of a group are.
pub(crate) enum Links {
    /// In the header.
    Compact,
    /// In a fractal heap, with an index of names.
    Dense(DenseLinks),
    /// In a symbol table.
    Old(SymbolTable),
}

fn link(message: LinkMessage) -> Link {
    Link { target: message.value.into(), name: message.name, creation_order: message.creation_order }
}

fn old_link(name: Name, target: SymbolTarget) -> Link {
    let target = match target {
        SymbolTarget::Object(header) => LinkTarget::Hard(ObjectId(header.get().unwrap_or(u64::MAX).into())),
        SymbolTarget::Path(path) => LinkTarget::Soft(path),
    };
    Link { name, target, creation_order: None }
}

impl Links {
    /// Where the links of the group with this header are.
    ///
    /// # Errors
    /// If a message of the header is damaged.
    pub fn of(session: &Session, header: &Header) -> Result<Self> {
        if let Some(message) = header.get::<SymbolTableMessage>()? {
            return Ok(Links::Old(session.symbol_table(header.metadata(), &message)));
        }
        match header.get::<LinkInfo>()? {
            Some(info) if info.is_dense() => Ok(Links::Dense(DenseLinks::of(session, header, &info))),
            _ => Ok(Links::Compact),
        }
    }

    /// The links in the header of a group that keeps them there, and where each is.
    ///
    /// # Errors
    /// If a link is damaged.
    pub fn compact(header: &Header) -> Result<Vec<(Spot, LinkMessage)>> {
        let mut links = Vec::new();
        header.each(|spot, message| {
            if message.kind == MessageType::LINK {
                links.push((spot, header.decode::<LinkMessage>(message)?));
            }
            Ok(())
        })?;
        Ok(links)
    }

    /// The link of this name.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn find(&self, header: &Header, name: &Name) -> Result<Option<Link>> {
        match self {
            Links::Compact => {
                let found = Links::compact(header)?.into_iter().find(|(_, stored)| stored.name == *name);
                Ok(found.map(|(_, stored)| link(stored)))
            }
            Links::Old(table) => Ok(table.find(name)?.map(|target| old_link(name.clone(), target))),
            Links::Dense(dense) => Ok(dense.find(header, name)?.map(link)),
        }
    }

    /// The link of this name, if that is known without reading the group, which only a file at rest allows.
    pub fn known(session: &Session, group: Addr, name: &Name) -> Option<Option<Link>> {
        session.known_links.find(group, name, session.cache.widths())
    }

    /// Something has been sought among these links.
    pub fn note_sought(&self, session: &Session, header: &Header) {
        if let Links::Dense(dense) = self
            && session.is_at_rest()
        {
            session.known_links.note(header, dense);
        }
    }

    /// Calls `each` with every link, until it returns `false`.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn for_each(&self, header: &Header, each: &mut dyn FnMut(Link) -> bool) -> Result<()> {
        match self {
            Links::Compact => {
                let links = Links::compact(header)?;
                links.into_iter().map(|(_, stored)| link(stored)).all(each);
                Ok(())
            }
            Links::Old(table) => table.for_each(&mut |name, target| Ok(each(old_link(name, target)))),
            Links::Dense(dense) => dense.for_each(header, &mut |stored| each(link(stored))),
        }
    }
}

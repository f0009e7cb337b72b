//! The objects of a file: how they were reached, how many links lead to them.

use std::collections::HashMap;

use h5live_format::Addr;

use super::space_map::ObjectIndex;

/// An object.
#[derive(Debug)]
struct FoundObject {
    parent: ObjectIndex,
    name: Box<[u8]>,
    /// Whether a link leads to it, and not only messages that use it.
    is_named: bool,
    header_addr: u64,
    /// Hard links and uses of a committed datatype that were found.
    found_links: u32,
    /// Hard links by the object's own statement, when it was visited.
    stated_links: Option<u32>,
    /// The B-tree and local heap that an entry of a symbol table states.
    cached_symbol_table: Option<(Addr, Addr)>,
}

/// All objects that were found, the file as a whole first.
#[derive(Debug)]
pub(super) struct ObjectTable {
    objects: Vec<FoundObject>,
    by_header: HashMap<u64, ObjectIndex>,
    to_visit: Vec<ObjectIndex>,
    visited: u64,
}

impl Default for ObjectTable {
    fn default() -> Self {
        let file = FoundObject {
            parent: ObjectIndex::FILE,
            name: Box::default(),
            is_named: true,
            header_addr: u64::MAX,
            found_links: 0,
            stated_links: None,
            cached_symbol_table: None,
        };
        ObjectTable { objects: vec![file], by_header: HashMap::new(), to_visit: Vec::new(), visited: 0 }
    }
}

/// Paths are shown no longer than this (links).
const MAX_PATH_LINKS: usize = 100;

impl ObjectTable {
    fn get(&self, owner: ObjectIndex) -> Option<&FoundObject> {
        self.objects.get(usize::try_from(owner.0).ok()?)
    }

    fn get_mut(&mut self, owner: ObjectIndex) -> Option<&mut FoundObject> {
        self.objects.get_mut(usize::try_from(owner.0).ok()?)
    }

    /// The path by which an object was first reached.
    pub fn path(&self, owner: ObjectIndex) -> String {
        let mut names = Vec::new();
        let mut next = owner;
        while let Some(object) = self.get(next).filter(|_| next != ObjectIndex::FILE && names.len() < MAX_PATH_LINKS) {
            names.push(String::from_utf8_lossy(&object.name));
            next = object.parent;
        }
        if names.len() == MAX_PATH_LINKS {
            names.push("...".into());
        }
        names.reverse();
        match names.as_slice() {
            [root] if root.is_empty() => "/".to_owned(),
            _ => names.join("/"),
        }
    }

    /// Notes a hard link to an object, which is visited later if it is new.
    pub fn add_link(&mut self, parent: ObjectIndex, name: &[u8], header_addr: u64) -> ObjectIndex {
        let known = self.by_header.get(&header_addr).copied();
        let owner = known.unwrap_or_else(|| {
            let owner = ObjectIndex(u32::try_from(self.objects.len()).unwrap_or(u32::MAX));
            self.objects.push(FoundObject {
                parent,
                name: name.into(),
                is_named: true,
                header_addr,
                found_links: 0,
                stated_links: None,
                cached_symbol_table: None,
            });
            self.by_header.insert(header_addr, owner);
            self.to_visit.push(owner);
            owner
        });
        if let Some(object) = self.get_mut(owner) {
            object.found_links = object.found_links.saturating_add(1);
            if !object.is_named && &*object.name != name {
                (object.parent, object.name, object.is_named) = (parent, name.into(), true);
            }
        }
        owner
    }

    /// Notes that a message of an object refers to a committed datatype, to which a link may be found later.
    pub fn add_committed_datatype_use(&mut self, user: ObjectIndex, header: Addr) {
        let Some(at) = header.get() else { return };
        let is_new = !self.by_header.contains_key(&at);
        let owner = self.add_link(user, b"(datatype)", at);
        if is_new && let Some(object) = self.get_mut(owner) {
            object.is_named = false;
        }
    }

    /// Notes how many links an object states.
    pub fn set_stated_link_count(&mut self, owner: ObjectIndex, links: u32) {
        if let Some(object) = self.get_mut(owner) {
            object.stated_links = Some(links);
        }
    }

    /// Notes what a symbol table says of an object.
    pub fn set_cached_symbol_table(&mut self, owner: ObjectIndex, cached: (Addr, Addr)) {
        if let Some(object) = self.get_mut(owner) {
            object.cached_symbol_table = Some(cached);
        }
    }

    /// The addresses that a symbol table states of an object.
    pub fn cached_symbol_table(&self, object: ObjectIndex) -> Option<(Addr, Addr)> {
        self.get(object)?.cached_symbol_table
    }

    /// The header of an object.
    pub fn header_addr(&self, owner: ObjectIndex) -> Addr {
        self.get(owner).map_or(Addr::UNDEFINED, |object| Addr::new(object.header_addr))
    }

    /// The next object to visit.
    pub fn pop_unvisited(&mut self) -> Option<ObjectIndex> {
        let next = self.to_visit.pop();
        self.visited += u64::from(next.is_some());
        next
    }

    /// Objects that were visited.
    pub fn visited_count(&self) -> u64 {
        self.visited
    }

    /// The objects that state another number of links than was found: object, stated number, found number.
    pub fn wrong_link_counts(&self) -> Vec<(ObjectIndex, u32, u32)> {
        let differs = |(at, object): (usize, &FoundObject)| {
            let stated = object.stated_links?;
            (stated != object.found_links)
                .then(|| (ObjectIndex(u32::try_from(at).unwrap_or(0)), stated, object.found_links))
        };
        self.objects.iter().enumerate().filter_map(differs).collect()
    }
}

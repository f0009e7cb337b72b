//! The walk over a file: which lines there are, and in which order.

use std::collections::HashMap;

use h5live::model::{
    AttributeData, DatasetSpec, Error as ModelError, Layout, Link, LinkTarget, MapSpec, Name, ObjectId, ObjectKind,
    ObjectSpec, Store, VlenAndReferenceSizes, escape,
};
use h5live::{File, Object};
use h5live_text::error_with_causes;

/// A line: the escaped path, and the entry.
#[derive(Debug)]
pub struct ListingLine {
    /// The path, escaped.
    pub escaped_path: String,
    /// The entry.
    pub entry: ListingEntry,
}

/// The subject of a line.
#[derive(Debug)]
pub enum ListingEntry {
    /// A kind with nothing but a type column (`-` where it is empty).
    GroupLinkOrDatatype(&'static str, String),
    /// A dataset, to be described and hashed.
    Dataset(ObjectId, Box<DatasetSpec>),
    /// A map, to be described and hashed.
    Map(ObjectId, Box<MapSpec>),
    /// An attribute, to be hashed.
    Attribute(Box<AttributeData>),
    /// What cannot be read, and why.
    Unreadable(String),
}

impl ListingEntry {
    /// The word for what it is.
    pub fn kind(&self) -> &'static str {
        match self {
            ListingEntry::GroupLinkOrDatatype(kind, _) => kind,
            ListingEntry::Dataset(..) => "dataset",
            ListingEntry::Map(..) => "map",
            ListingEntry::Attribute(_) => "attribute",
            ListingEntry::Unreadable(_) => "error",
        }
    }
}

/// The lines of a file, and under which path each object was listed first.
#[derive(Debug, Default)]
pub struct Listing {
    /// The lines in order.
    pub lines: Vec<ListingLine>,
    /// Unescaped paths.
    pub first_paths: HashMap<ObjectId, Vec<u8>>,
}

impl Listing {
    /// Whether something cannot be read.
    pub fn has_unreadable(&self) -> bool {
        self.lines.iter().any(|line| matches!(line.entry, ListingEntry::Unreadable(_)))
    }

    /// As [`Listing::from_store`], of a file; how far a virtual dataset reaches is a matter of its sources, which the
    /// store does not know.
    pub fn from_file(file: &File, start: ObjectId, path: &[u8], depth: Option<usize>) -> Self {
        let mut listing = Listing::from_store(file.store(), start, path, depth);
        for line in &mut listing.lines {
            let ListingEntry::Dataset(id, spec) = &mut line.entry else { continue };
            if let (Layout::Virtual(_), Ok(Object::Dataset(dataset))) =
                (&spec.layout, file.root().object_by_id(*id, ""))
                // Sources that cannot be read yet are a matter of who reads elements.
                && let Ok(resolved) = dataset.ignore_busy_sources_in_extent().spec()
            {
                **spec = (*resolved).clone();
            }
        }
        listing
    }

    /// Lists everything that can be reached from an object, which is called `path`. If `depth` says so, only the
    /// contents of so many groups inside each other are listed.
    pub fn from_store(store: &dyn Store, start: ObjectId, path: &[u8], depth: Option<usize>) -> Self {
        let depth = depth.unwrap_or(usize::MAX);
        let mut listing = Listing::default();
        // An explicit stack: a chain of a million groups must not exhaust the thread's.
        let mut stack = Vec::new();
        stack.extend(listing.object(store, start, path, depth > 0));
        loop {
            let open_groups = stack.len();
            let Some(level) = stack.last_mut() else { break };
            let Some(link) = level.links.pop() else {
                stack.pop();
                continue;
            };
            let path = level.path_of(&link.name);
            let opened = match link.target {
                LinkTarget::Hard(id) => listing.object(store, id, &path, open_groups < depth),
                LinkTarget::Soft(target) => listing.plain(&path, "soft", escape(target.as_bytes())),
                LinkTarget::External { file, path: target } => listing.plain(
                    &path,
                    "external",
                    format!("{}:{}", escape(file.as_bytes()), escape(target.as_bytes())),
                ),
                LinkTarget::UserDefined { class, .. } => listing.plain(&path, "unknown-link", class.to_string()),
            };
            stack.extend(opened);
        }
        listing
    }

    /// Lists the object behind a hard link with its attributes; the links that follow, if it is a group that is to be
    /// entered.
    fn object(&mut self, store: &dyn Store, id: ObjectId, path: &[u8], enters: bool) -> Option<ListingLevel> {
        let kind = match store.kind(id) {
            Ok(kind) => kind,
            Err(error) => return self.unreadable(path, &error),
        };
        if let Some(first) = self.first_paths.get(&id) {
            let first = escape(first);
            return self.plain(path, "hard", first);
        }
        match kind {
            ObjectKind::Group => {
                self.first_paths.insert(id, path.to_vec());
                self.plain(path, "group", "-".to_owned());
                self.attributes(store, id, path);
                return if enters { self.links(store, id, path) } else { None };
            }
            ObjectKind::Dataset => {
                let spec = match store.dataset(id).and_then(|chunks| chunks.spec()) {
                    Ok(spec) => spec,
                    Err(error) => return self.unreadable(path, &error),
                };
                self.first_paths.insert(id, path.to_vec());
                self.push(path, ListingEntry::Dataset(id, Box::new((*spec).clone())));
            }
            ObjectKind::Datatype => {
                let datatype = match store.spec(id).and_then(ObjectSpec::into_datatype) {
                    Ok(datatype) => datatype,
                    Err(error) => return self.unreadable(path, &error),
                };
                self.first_paths.insert(id, path.to_vec());
                let datatype = datatype.with_vlen_and_reference_sizes(
                    store.session().vlen_and_reference_sizes,
                    VlenAndReferenceSizes::default(),
                );
                self.plain(path, "datatype", datatype.to_string());
            }
            ObjectKind::Map => {
                let spec = match store.spec(id).and_then(ObjectSpec::into_map) {
                    Ok(spec) => spec,
                    Err(error) => return self.unreadable(path, &error),
                };
                self.first_paths.insert(id, path.to_vec());
                self.push(path, ListingEntry::Map(id, Box::new(spec)));
            }
        }
        self.attributes(store, id, path);
        None
    }

    fn attributes(&mut self, store: &dyn Store, id: ObjectId, path: &[u8]) {
        let mut names = match store.attribute_names(id) {
            Ok(names) => names,
            Err(error) => return drop(self.unreadable(&[path, b"@"].concat(), &error)),
        };
        names.sort();
        for name in names {
            let path = [path, b"@", name.as_bytes()].concat();
            match store.attribute(id, &name) {
                Ok(Some(attribute)) => self.push(&path, ListingEntry::Attribute(Box::new(attribute))),
                // It was there when the names were listed.
                Ok(None) => drop(self.unreadable(&path, &ModelError::Moved)),
                Err(error) => drop(self.unreadable(&path, &error)),
            }
        }
    }

    fn links(&mut self, store: &dyn Store, id: ObjectId, path: &[u8]) -> Option<ListingLevel> {
        let mut links = Vec::new();
        let listed = store.for_each_link(id, &mut |link| {
            links.push(link);
            true
        });
        if let Err(error) = listed {
            return self.unreadable(&[path, b"/"].concat(), &error);
        }
        links.sort_by(|a, b| b.name.cmp(&a.name));
        let prefix = if path == b"/" { path.to_vec() } else { [path, b"/"].concat() };
        Some(ListingLevel { prefix, links })
    }

    fn push(&mut self, path: &[u8], entry: ListingEntry) {
        self.lines.push(ListingLine { escaped_path: escape(path), entry });
    }

    fn plain(&mut self, path: &[u8], kind: &'static str, text: String) -> Option<ListingLevel> {
        self.push(path, ListingEntry::GroupLinkOrDatatype(kind, text));
        None
    }

    fn unreadable(&mut self, path: &[u8], error: &ModelError) -> Option<ListingLevel> {
        self.push(path, ListingEntry::Unreadable(error_with_causes(error)));
        None
    }
}

/// The links of a group that are still to be listed, the next one last.
struct ListingLevel {
    /// The group's path, up to and with its last slash.
    prefix: Vec<u8>,
    links: Vec<Link>,
}

impl ListingLevel {
    fn path_of(&self, name: &Name) -> Vec<u8> {
        [self.prefix.as_slice(), name.as_bytes()].concat()
    }
}

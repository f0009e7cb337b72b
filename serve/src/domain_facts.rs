//! What the objects of domains in the schema of HSDS say of them, beyond what every store says. Only this knows that schema.

use std::collections::HashMap;
use std::path::Path;

use h5live::model::ObjectId;
use serde_json::Value as Json;

/// Bytes of the object of a domain, and of the description of an object in it, that are read, at most.
#[cfg(feature = "hsds")]
const MAX_DOMAIN_BYTES: u64 = 1 << 20;
#[cfg(feature = "hsds")]
const MAX_DOCUMENT_BYTES: u64 = 64 << 20;

/// What a domain, or a folder of domains, says of itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct DomainFacts {
    /// Whether it has no objects of its own.
    pub is_folder: bool,
    /// The identity of its root group.
    pub root: Option<String>,
    pub owner: Option<String>,
    /// Users with their rights, by name.
    pub acls: Vec<(String, Json)>,
    /// When it was made, and changed last (seconds).
    pub created: Option<f64>,
    pub modified: Option<f64>,
}

/// The facts of the domain whose object is in a folder; `None` if there is none.
#[cfg(feature = "hsds")]
pub(crate) fn facts_at(folder: &Path) -> Option<DomainFacts> {
    use std::io::Read as _;

    use h5live_hsds::layout::{DOMAIN_FILE, DomainDocument};

    let path = folder.join(DOMAIN_FILE);
    // Not through a link, which could lead out of the served folder.
    path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_DOMAIN_BYTES).read_to_end(&mut bytes).ok()?;
    let document = DomainDocument::parse(&bytes).ok()?;
    let mut acls: Vec<_> = document.acls().into_iter().map(|(user, access)| (user, access.to_json())).collect();
    acls.sort_by(|a, b| a.0.cmp(&b.0));
    Some(DomainFacts {
        is_folder: matches!(document.domain_id(), Ok(None)),
        root: document.domain_id().ok().flatten().map(|domain| domain.object_id_text(domain.root())),
        owner: document.owner().map(str::to_owned),
        acls,
        created: document.created(),
        modified: document.last_modified(),
    })
}

/// Without HSDS's schema, no folder is a domain.
#[cfg(not(feature = "hsds"))]
pub(crate) fn facts_at(_: &Path) -> Option<DomainFacts> {
    None
}

/// Whether a folder has the objects of domains in it, and is none itself: `db/<8>-<8>/...`.
pub(crate) fn is_objects_folder(folder: &Path) -> bool {
    const OBJECTS_FOLDER: &str = "db";
    let is_domain_id = |name: &str| {
        let is_half = |half: &str| half.len() == 8 && half.bytes().all(|digit| digit.is_ascii_hexdigit());
        name.split_once('-').is_some_and(|(high, low)| is_half(high) && is_half(low))
    };
    let first = || std::fs::read_dir(folder).ok()?.next()?.ok()?.file_name().into_string().ok();
    folder.file_name().is_some_and(|name| name == OBJECTS_FOLDER) && first().is_some_and(|name| is_domain_id(&name))
}

/// When an object was made and changed last, and its links and attributes (seconds), as the description of the object says.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExactTimes {
    pub created: Option<f64>,
    pub modified: Option<f64>,
    pub links: HashMap<String, f64>,
    pub attributes: HashMap<String, f64>,
}

/// The descriptions of the objects of a domain, in a bucket that is a folder.
#[cfg(feature = "hsds")]
#[derive(Debug, Clone)]
pub(crate) struct DomainDocuments {
    bucket: std::path::PathBuf,
    id: h5live_hsds::layout::DomainId,
}

#[cfg(feature = "hsds")]
impl DomainDocuments {
    /// Those of the domain whose object is in a folder; `None` if there is none.
    pub fn at(folder: &Path) -> Option<Self> {
        let (id, _) = h5live_hsds::layout::DomainId::parse_object_id(&facts_at(folder)?.root?).ok()?;
        let bucket = folder.ancestors().find(|bucket| bucket.join(id.key_prefix_without_slash()).is_dir())?;
        Some(DomainDocuments { bucket: bucket.to_owned(), id })
    }

    /// The name of the bucket.
    pub fn bucket(&self) -> Option<&str> {
        self.bucket.file_name()?.to_str()
    }

    /// What the description of an object says. Nothing, if it cannot be read: the times are then less exact.
    pub fn times_of(&self, object: ObjectId) -> ExactTimes {
        use std::io::Read as _;

        use h5live_hsds::layout::{LinksOrAttributes, ObjectDocument};

        let read = || {
            let (file, mut bytes) =
                (std::fs::File::open(self.bucket.join(self.id.document_key(object))).ok()?, Vec::new());
            file.take(MAX_DOCUMENT_BYTES).read_to_end(&mut bytes).ok()?;
            ObjectDocument::parse(self.id, object, &bytes).ok()
        };
        let Some(document) = read() else { return ExactTimes::default() };
        let (created, modified) = document.created_and_modified();
        let entries = |class| document.unsharded_entry_creation_times(class).unwrap_or_default().into_iter().collect();
        let (links, attributes) = (entries(LinksOrAttributes::Links), entries(LinksOrAttributes::Attributes));
        ExactTimes { created, modified, links, attributes }
    }
}

/// Without HSDS's schema, there are none.
#[cfg(not(feature = "hsds"))]
#[derive(Debug, Clone)]
pub(crate) enum DomainDocuments {}

#[cfg(not(feature = "hsds"))]
impl DomainDocuments {
    pub fn at(_: &Path) -> Option<Self> {
        None
    }

    pub fn bucket(&self) -> Option<&str> {
        None
    }

    pub fn times_of(&self, _: ObjectId) -> ExactTimes {
        ExactTimes::default()
    }
}

//! The domains and the folders below a folder.

use std::collections::VecDeque;
use std::time::SystemTime;

use h5live_model::{Location, Mode, OpenError};
use parking_lot::Mutex;

use super::Result;
use crate::connector::{options_of, path_of};
use crate::engine::{FolderEngine, OBJECTS_FOLDER, ObjectEngine};
use crate::error::{HsdsError, damaged_object_error};
use crate::layout::{AclRight, DomainDocument, DomainId, OWN_NAME_PREFIX, check_domain_path};
use crate::place::DomainPlace;
use crate::session::{domain_document_key, system_time_from_unix};

/// Domains that are read in one wave, and handed on before the next ones are listed.
const PAGE_DOMAINS: usize = 1000;

/// A folder of domains at a location.
#[derive(Debug)]
pub struct DomainFolder {
    engine: Box<dyn ObjectEngine>,
    /// The path in the bucket, without a slash in front; empty for the top of the bucket.
    path: String,
    user: String,
}

/// What is below a folder of domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DomainEntryKind {
    /// A domain, with its objects.
    Domain,
    /// A folder of domains.
    Folder,
}

/// A domain or a folder below a folder.
#[derive(Debug)]
pub struct DomainEntry {
    /// The path in the bucket, with a slash in front.
    pub path: String,
    /// What it is; or why its object cannot be read.
    pub kind: Result<DomainEntryKind>,
    /// The owner; `None` if no object says so.
    pub owner: Option<String>,
    /// When it was made, if an object says so.
    pub created: Option<SystemTime>,
    /// When it was changed last, if an object says so.
    pub modified: Option<SystemTime>,
    root: Option<DomainId>,
}

/// What is stored of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoredSize {
    /// The number of its objects: documents and chunks.
    pub stored_object_count: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl DomainFolder {
    /// The folder of domains at a location; `None` if a domain is there, or nothing is. If `even_if_domain`, the location names a
    /// folder, also where a domain of this name is.
    ///
    /// # Errors
    /// [`OpenError::InvalidLocation`], [`OpenError::Store`]; [`HsdsError::AccessDenied`] if the user of the location may not read it.
    pub fn open(at: &Location, even_if_domain: bool) -> Result<Option<Self>, OpenError> {
        let Some(folder) = DomainFolder::locate(at)? else { return Ok(None) };
        let key = domain_document_key(&folder.path);
        let found = folder.engine.get(&key)?;
        let document =
            found.map(|found| DomainDocument::parse(&found.bytes)).transpose().map_err(damaged_object_error(&key))?;
        if let Some(document) = &document {
            if !even_if_domain && document.domain_id().map_err(damaged_object_error(&key))?.is_some() {
                return Ok(None);
            }
            if !folder.user.is_empty() && !document.access(&folder.user).has(AclRight::Read) {
                let (user, object) = (folder.user.clone(), format!("/{}", folder.path));
                return Err(OpenError::Store(
                    HsdsError::AccessDenied { user, right: AclRight::Read.name(), object }.into(),
                ));
            }
        }
        // The top of a bucket needs no object.
        let is_there = document.is_some() || folder.path.is_empty() || folder.has_children()?;
        Ok(Some(folder).filter(|_| is_there))
    }

    fn locate(at: &Location) -> Result<Option<Self>, OpenError> {
        #[cfg(feature = "clouds")]
        if super::is_on_cloud(at) {
            let options = crate::cloud_connector::options_of(at);
            let (place, engine) = crate::cloud_connector::open_folder_engine(at, &options)?;
            return Ok(Some(DomainFolder { engine: Box::new(engine), path: place.domain, user: options.schema.user }));
        }
        let options = options_of(at);
        let Some(place) = DomainPlace::resolve_folder_of_domains(&path_of(at)?, &options.domain)? else {
            return Ok(None);
        };
        let engine = FolderEngine::open(&place.bucket, &place.domain, Mode::Read)?;
        Ok(Some(DomainFolder { engine: Box::new(engine), path: place.domain, user: options.user }))
    }

    fn has_children(&self) -> Result<bool> {
        let mut is_there = false;
        self.engine.for_each_folder_name(&prefix(&self.path), &mut |name| {
            is_there = is_domain_name(&self.path, &name);
            !is_there
        })?;
        Ok(is_there)
    }

    /// Hands on the domains and folders below it, in pages, level after level, down to `max_depth`. `each` gets a page, and
    /// returns whether to go on; the next names are listed after that. Besides a page, only the paths of folders are kept
    /// whose content is still to be listed.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    pub fn for_each_page(&self, max_depth: usize, each: &mut dyn FnMut(Vec<DomainEntry>) -> bool) -> Result<()> {
        let mut folders = VecDeque::from([(self.path.clone(), 0)]);
        while let Some((folder, level)) = folders.pop_front() {
            if level >= max_depth {
                continue;
            }
            let mut page = Vec::new();
            let mut hand_on = |names: Vec<String>| -> Result<bool> {
                let entries = self.read_entries(&folder, names)?;
                let is_folder = |entry: &&DomainEntry| matches!(entry.kind, Ok(DomainEntryKind::Folder));
                let below = entries.iter().filter(is_folder).map(|entry| entry.path.trim_start_matches('/').to_owned());
                folders.extend(below.map(|path| (path, level + 1)));
                Ok(each(entries))
            };
            let mut ended = Ok(true);
            self.engine.for_each_folder_name(&prefix(&folder), &mut |name| {
                if is_domain_name(&folder, &name) {
                    page.push(name);
                }
                if page.len() >= PAGE_DOMAINS {
                    ended = hand_on(std::mem::take(&mut page));
                }
                matches!(ended, Ok(true))
            })?;
            if !ended? || !(page.is_empty() || hand_on(page)?) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The domains and folders of these names in a folder, read in one wave.
    fn read_entries(&self, folder: &str, mut names: Vec<String>) -> Result<Vec<DomainEntry>> {
        names.sort_unstable();
        let paths: Vec<String> = names.into_iter().map(|name| format!("{}{name}", prefix(folder))).collect();
        let keys: Vec<String> = paths.iter().map(|path| domain_document_key(path)).collect();
        let entries = paths.iter().map(|path| DomainEntry {
            path: format!("/{path}"),
            kind: Ok(DomainEntryKind::Folder),
            owner: None,
            created: None,
            modified: None,
            root: None,
        });
        let entries: Mutex<Vec<DomainEntry>> = Mutex::new(entries.collect());
        self.engine.get_many(&keys, &|number, found| {
            let (Some(found), Some(key)) = (found, keys.get(number)) else { return Ok(()) };
            if let Some(entry) = entries.lock().get_mut(number) {
                entry.fill(key, &found.bytes);
            }
            Ok(())
        })?;
        Ok(entries.into_inner())
    }

    /// What is stored of a domain that was listed; `None` of a folder. Its objects are listed, and not read.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    pub fn stored_size(&self, entry: &DomainEntry) -> Result<Option<StoredSize>> {
        let Some(root) = entry.root else { return Ok(None) };
        let mut size = StoredSize::default();
        self.engine.for_each_object(&format!("{}/", root.key_prefix_without_slash()), &mut |object| {
            size.stored_object_count += 1;
            size.bytes = size.bytes.saturating_add(object.size);
            true
        })?;
        Ok(Some(size))
    }
}

impl DomainEntry {
    fn fill(&mut self, key: &str, bytes: &[u8]) {
        let document = match DomainDocument::parse(bytes) {
            Ok(document) => document,
            Err(error) => return self.kind = Err(damaged_object_error(key)(error)),
        };
        self.owner = document.owner().map(str::to_owned);
        (self.created, self.modified) = (
            document.created().and_then(system_time_from_unix),
            document.last_modified().and_then(system_time_from_unix),
        );
        match document.domain_id() {
            Ok(root) => {
                self.kind = Ok(if root.is_some() { DomainEntryKind::Domain } else { DomainEntryKind::Folder });
                self.root = root;
            }
            Err(error) => self.kind = Err(damaged_object_error(key)(error)),
        }
    }
}

/// What the keys below a folder begin with.
fn prefix(folder: &str) -> String {
    if folder.is_empty() { String::new() } else { format!("{folder}/") }
}

/// Whether a name in a folder may be that of a domain.
fn is_domain_name(folder: &str, name: &str) -> bool {
    let is_own = name.starts_with(OWN_NAME_PREFIX) || (folder.is_empty() && name == OBJECTS_FOLDER);
    !is_own && check_domain_path(&format!("{}{name}", prefix(folder))).is_ok()
}

//! What a session knows and has changed.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use h5live_model::{ChunkCoord, Error as ModelError, ObjectId, ObjectKind, Result};

use crate::engine::ObjectChangeTag;
use crate::layout::{DomainDocument, DomainId, EntryQuery, Members, ObjectDocument, ShardId, kind};

/// A document as the session has it.
#[derive(Debug, Clone)]
pub struct TaggedDocument {
    pub document: Arc<ObjectDocument>,
    /// The tag of the object when it was read or written; `None` for one that was never written.
    pub tag: Option<ObjectChangeTag>,
}

/// A write of a document that has failed, and may have succeeded all the same: the bytes.
pub type UncertainPut = Vec<u8>;

/// An object that is to be deleted.
#[derive(Debug, Clone, Copy)]
pub struct DoomedObject {
    pub id: ObjectId,
    /// Whether there may be more than its document: chunks, or shards.
    pub may_have_parts: bool,
}

/// A domain that is there until a new one takes its place.
#[derive(Debug, Clone)]
pub struct DomainToReplace {
    /// What its objects have in common.
    pub id: DomainId,
    /// The bytes of its object.
    pub document_bytes: Arc<[u8]>,
}

/// What a session knows and has changed.
#[derive(Debug)]
pub struct SessionState {
    pub domain: DomainDocument,
    pub is_domain_changed: bool,
    /// Folders whose objects may be missing.
    pub maybe_missing_parents: Vec<String>,
    /// The owner of folders that are made.
    pub new_folder_owner: String,
    /// The domain that the first commit replaces.
    pub domain_to_replace: Option<DomainToReplace>,
    /// Whether the domain is a draft: commits write its objects, and nothing leads to them before it is complete.
    pub is_draft: bool,
    /// The prefixes of the objects that this session has claimed.
    pub claimed_prefixes: Vec<String>,
    /// Folders whose objects this session has made.
    pub made_parents: Vec<String>,
    /// The tag that the object of the domain had when it was read or written; `None`: it was not there.
    pub domain_tag: Option<ObjectChangeTag>,
    /// A write of the object of the domain that has failed, and may have succeeded all the same.
    pub uncertain_domain_put: Option<UncertainPut>,
    documents: HashMap<ObjectId, TaggedDocument>,
    /// Documents that were changed since the last commit.
    pub dirty: BTreeSet<ObjectId>,
    /// Objects that were deleted; those in `doomed` are still stored.
    deleted: HashSet<ObjectId>,
    pub doomed: Vec<DoomedObject>,
    /// Shards that the last state of a document does not name; they are still stored.
    pub old_shards: HashMap<ObjectId, Vec<ShardId>>,
    /// Chunks outside of an extent that became smaller, with their keys; they are still stored.
    pub dropped_chunks: HashMap<ObjectId, BTreeMap<ChunkCoord, String>>,
    /// Datasets beyond whose extent nobody but this session has written.
    pub datasets_without_leftovers: HashSet<ObjectId>,
    /// Chunks of other datasets that this session has written, and that reach beyond the extent.
    pub written_beyond_extent: HashMap<ObjectId, BTreeSet<ChunkCoord>>,
    /// Documents whose last write has failed.
    pub uncertain_puts: HashMap<ObjectId, UncertainPut>,
    /// The datasets after which a dataset is seen.
    pub commit_prerequisites: HashMap<ObjectId, Vec<ObjectId>>,
    /// How often each object is used; `None`: not counted yet.
    pub reference_counts: Option<HashMap<ObjectId, u32>>,
    /// Whether summaries were removed.
    pub has_removed_summaries: bool,
    pub read_ahead: ReadAheadPredictor,
    pub(crate) deletions: u64,
}

impl SessionState {
    /// Nothing but the domain, whose object has this tag.
    pub fn new(domain: DomainDocument, domain_tag: Option<ObjectChangeTag>) -> Self {
        SessionState {
            domain,
            is_domain_changed: false,
            maybe_missing_parents: Vec::new(),
            new_folder_owner: String::new(),
            domain_to_replace: None,
            is_draft: false,
            claimed_prefixes: Vec::new(),
            made_parents: Vec::new(),
            domain_tag,
            uncertain_domain_put: None,
            documents: HashMap::new(),
            dirty: BTreeSet::new(),
            deleted: HashSet::new(),
            doomed: Vec::new(),
            old_shards: HashMap::new(),
            dropped_chunks: HashMap::new(),
            datasets_without_leftovers: HashSet::new(),
            written_beyond_extent: HashMap::new(),
            uncertain_puts: HashMap::new(),
            commit_prerequisites: HashMap::new(),
            reference_counts: None,
            has_removed_summaries: false,
            read_ahead: ReadAheadPredictor::default(),
            deletions: 0,
        }
    }

    /// A document, if the session has it or knows that it is gone.
    pub fn cached_document(&self, id: ObjectId) -> Option<Result<Arc<ObjectDocument>>> {
        if self.deleted.contains(&id) {
            return Some(Err(ModelError::NoObject(id)));
        }
        self.documents.get(&id).map(|stored| Ok(stored.document.clone()))
    }

    /// A document with its tag, if the session has it.
    pub fn cached_tagged_document(&self, id: ObjectId) -> Option<&TaggedDocument> {
        self.documents.get(&id)
    }

    /// Whether an object was deleted by this session.
    pub fn is_deleted(&self, id: ObjectId) -> bool {
        self.deleted.contains(&id)
    }

    /// Makes room for documents that were read: if there are more than `max_documents`, those that were not changed go.
    pub fn evict_unchanged_if_full(&mut self, incoming_count: usize, max_documents: usize) {
        if self.documents.len().saturating_add(incoming_count) > max_documents {
            let dirty = &self.dirty;
            self.documents.retain(|id, _| dirty.contains(id));
        }
    }

    /// Takes up a document that was read, unless the session has one.
    pub fn insert_fetched_if_absent(&mut self, stored: TaggedDocument) {
        let id = stored.document.id();
        if !self.deleted.contains(&id) {
            self.documents.entry(id).or_insert(stored);
        }
    }

    /// Takes up a document that is newer than the one that the session has.
    pub fn replace_with_fetched(&mut self, mut stored: TaggedDocument) {
        let id = stored.document.id();
        if let Some(old) = self.documents.get(&id) {
            Arc::make_mut(&mut stored.document).reuse_loaded_shards(&old.document);
        }
        self.documents.insert(id, stored);
    }

    /// Takes up shards that were loaded, as far as the document that the session has names them.
    pub fn add_loaded_shards(&mut self, id: ObjectId, shards: Vec<(ShardId, Arc<Members>)>) {
        let Some(stored) = self.documents.get_mut(&id).filter(|_| !shards.is_empty()) else { return };
        let document = Arc::make_mut(&mut stored.document);
        shards.into_iter().for_each(|(shard, entries)| document.add_loaded_shard(shard, entries));
    }

    /// Adds a new object.
    pub fn insert_new(&mut self, document: ObjectDocument) {
        let id = document.id();
        self.documents.insert(id, TaggedDocument { document: Arc::new(document), tag: None });
        self.dirty.insert(id);
        if kind(id) == Some(ObjectKind::Dataset) {
            self.datasets_without_leftovers.insert(id);
        }
        self.add_references(id, 0);
    }

    /// Changes a document that the session has.
    ///
    /// # Errors
    /// [`ModelError::NoObject`], and those of `change`: then nothing has changed.
    pub fn change<T>(&mut self, id: ObjectId, change: impl FnOnce(&mut ObjectDocument) -> Result<T>) -> Result<T> {
        let stored = self.documents.get_mut(&id).ok_or(ModelError::NoObject(id))?;
        let changed = change(Arc::make_mut(&mut stored.document))?;
        self.dirty.insert(id);
        Ok(changed)
    }

    /// Takes the tag of a document that was written.
    pub fn set_tag(&mut self, id: ObjectId, tag: ObjectChangeTag) {
        if let Some(stored) = self.documents.get_mut(&id) {
            stored.tag = Some(tag);
        }
    }

    /// Whether an object was never written.
    pub fn is_new(&self, id: ObjectId) -> bool {
        self.documents.get(&id).is_some_and(|stored| stored.tag.is_none())
    }

    /// Forgets an object, which is deleted when what led to it is committed.
    pub fn delete(&mut self, id: ObjectId) -> Option<TaggedDocument> {
        self.deleted.insert(id);
        self.dirty.remove(&id);
        self.dropped_chunks.remove(&id);
        self.commit_prerequisites.remove(&id);
        self.uncertain_puts.remove(&id);
        self.datasets_without_leftovers.remove(&id);
        self.written_beyond_extent.remove(&id);
        let is_known_whole = self.documents.get(&id).is_some_and(|stored| stored.document.shard_ids().is_empty());
        let had_shards = self.old_shards.remove(&id).is_some();
        let has_parts = kind(id) == Some(ObjectKind::Dataset) || !is_known_whole || had_shards;
        self.doomed.push(DoomedObject { id, may_have_parts: has_parts });
        self.deletions += 1;
        if let Some(uses) = &mut self.reference_counts {
            uses.remove(&id);
        }
        self.documents.remove(&id)
    }

    /// Counts uses of an object on, if they are counted.
    pub fn add_references(&mut self, id: ObjectId, more: u32) {
        if let Some(uses) = &mut self.reference_counts {
            let count = uses.entry(id).or_default();
            *count = count.saturating_add(more);
        }
    }

    /// Takes one use from an object. Returns those that are left.
    pub fn drop_reference(&mut self, id: ObjectId) -> u32 {
        let Some(count) = self.reference_counts.as_mut().and_then(|uses| uses.get_mut(&id)) else { return 0 };
        *count = count.saturating_sub(1);
        *count
    }

    /// Counts the uses by all documents of the domain: what each of them used when it was read, and what those use now that
    /// the session has.
    pub fn count_references(&mut self, mut uses_of: HashMap<ObjectId, Vec<ObjectId>>) {
        for (id, stored) in &self.documents {
            let now = stored.document.known_used_objects();
            if stored.document.unloaded_shards(EntryQuery::All).is_empty() {
                uses_of.insert(*id, now);
                continue;
            }
            // It was dropped and read anew, without all of its shards. Rather one use too many than an object too few.
            let known: HashSet<ObjectId> = uses_of.get(id).into_iter().flatten().copied().collect();
            uses_of.entry(*id).or_default().extend(now.into_iter().filter(|used| !known.contains(used)));
        }
        let mut uses: HashMap<ObjectId, u32> = HashMap::new();
        for (id, used) in uses_of.into_iter().filter(|(id, _)| !self.deleted.contains(id)) {
            uses.entry(id).or_default();
            used.into_iter().for_each(|used| *uses.entry(used).or_default() += 1);
        }
        self.reference_counts = Some(uses);
    }

    /// Forgets what was read and not changed.
    pub fn evict_unchanged_and_reference_counts(&mut self) {
        let dirty = &self.dirty;
        self.documents.retain(|id, _| dirty.contains(id));
        self.reference_counts = None;
    }
}

/// Objects in an order, as those of a group that was listed: if they are read in this order, those that follow are read ahead.
#[derive(Debug, Default)]
pub struct ReadAheadPredictor {
    ids: Vec<ObjectId>,
    places: HashMap<ObjectId, usize>,
    next: usize,
    window: usize,
}

impl ReadAheadPredictor {
    /// The objects of a group that was listed just now.
    pub fn set_listing_order(&mut self, ids: Vec<ObjectId>) {
        self.places = ids.iter().enumerate().map(|(place, id)| (*id, place)).collect();
        self.ids = ids;
        (self.next, self.window) = (0, 1);
    }

    /// An object that comes behind the others.
    pub fn append_to_order(&mut self, id: ObjectId) {
        if let Entry::Vacant(place) = self.places.entry(id) {
            place.insert(self.ids.len());
            self.ids.push(id);
        }
    }

    /// The object that is wanted, and those that will be next, at most so many.
    pub fn advance_prefetch_window(&mut self, id: ObjectId, max_count: usize) -> Vec<ObjectId> {
        let Some(place) = self.places.get(&id).copied() else { return vec![id] };
        self.window = if place == self.next { (self.window * 2).clamp(1, max_count) } else { 1 };
        let end = (place + self.window).min(self.ids.len());
        self.next = end;
        self.ids.get(place..end).map_or_else(|| vec![id], <[ObjectId]>::to_vec)
    }
}

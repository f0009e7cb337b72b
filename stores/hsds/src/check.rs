//! The check of a domain: each object under its prefix accounted for.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use h5live_model::{
    ChunkCoord, ChunkStore, DatasetSpec, Error as ModelError, Leak, LeakLocation, Link, LinkTarget, ObjectId,
    ObjectKind, Result, StoreCheckOptions, StoreCheckReport, StoreFinding,
};

use crate::dataset::HsdsDataset;
use crate::engine::{BUCKET_CLAIM_FILE, ListedObject, ObjectEngine};
use crate::layout::{EntryQuery, LayoutError, ObjectDocument, SUMMARY_FILES, ShardId, chunk_of_key_suffix, kind};
use crate::linked_hdf5_chunks::LinkedHdf5Chunks;
use crate::session::HsdsSession;

/// Chunks that are read in one wave.
const CHUNKS_AT_ONCE: usize = 64;

/// A fault of a domain.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HsdsFault {
    /// A key that the schema does not have.
    #[error("the schema has no object with the key {0}")]
    UnknownKey(String),
    /// The root group is not there.
    #[error("the root group is not there")]
    NoRoot,
    /// A document that cannot be read.
    #[error("its document is damaged: {0}")]
    DocumentDamage(String),
    /// A link leads nowhere.
    #[error("its link {name:?} leads to object {target}, which is not there")]
    DanglingHardLink {
        /// The name of the link.
        name: String,
        /// The object.
        target: String,
    },
    /// A link whose name no path can have.
    #[error("no path leads to its link {name:?}: {why}")]
    UnusableLinkName {
        /// The name of the link.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The committed type that is the type is not there.
    #[error("its type, or that of an attribute, is the committed datatype {0}, which is not there")]
    NoCommittedDatatype(String),
    /// The dataset with the places of the chunks is not there.
    #[error("the places of its chunks are in the dataset {0}, which is not there")]
    NoChunkTable(String),
    /// A chunk that lies outside of what the dataset can become.
    #[error("chunk {0} lies outside of the maximum of the shape")]
    ChunkOutsideMaxShape(ChunkCoord),
    /// A chunk that cannot be decoded.
    #[error("chunk {coord}: {fault}")]
    UnreadableChunk {
        /// The chunk.
        coord: ChunkCoord,
        /// What is wrong.
        fault: String,
    },
}

impl HsdsFault {
    /// A word for the kind of fault.
    fn kind(&self) -> &'static str {
        match self {
            HsdsFault::UnknownKey(_) => "key",
            HsdsFault::NoRoot => "no-root",
            HsdsFault::DocumentDamage(_) => "document",
            HsdsFault::DanglingHardLink { .. } => "dangling-link",
            HsdsFault::UnusableLinkName { .. } => "name",
            HsdsFault::NoCommittedDatatype(_) => "no-committed-datatype",
            HsdsFault::NoChunkTable(_) => "no-chunk-table",
            HsdsFault::ChunkOutsideMaxShape(_) => "chunk-outside",
            HsdsFault::UnreadableChunk { .. } => "chunk",
        }
    }
}

/// A domain that is checked.
struct CheckedDomain<'a> {
    session: &'a Arc<HsdsSession>,
    /// Documents with their bytes.
    documents: BTreeMap<ObjectId, u64>,
    /// Chunks of datasets, with their bytes.
    chunks: BTreeMap<ObjectId, Vec<(String, u64)>>,
    /// Shards that no document is known to name, with their bytes.
    shards: BTreeMap<ObjectId, BTreeMap<ShardId, u64>>,
    /// The bytes of the others.
    named_shards: BTreeMap<ObjectId, u64>,
    faults: Vec<(Option<ObjectId>, HsdsFault)>,
    report: StoreCheckReport,
}

/// What a check has found.
pub struct DomainCheckResult {
    pub report: StoreCheckReport,
    /// The objects among the leaks, which are deleted as a whole.
    pub leaked_objects: Vec<ObjectId>,
    /// The keys of shards that no document names, of objects that stay.
    pub stray_shard_keys: Vec<String>,
}

/// Checks the domain of a session.
///
/// # Errors
/// [`ModelError::Store`] if its objects cannot be read.
pub fn check_domain(session: &Arc<HsdsSession>, what: StoreCheckOptions) -> Result<DomainCheckResult> {
    let listed = session.engine.list(&format!("{}/", session.domain.key_prefix_without_slash()))?;
    let mut domain = CheckedDomain {
        session,
        documents: BTreeMap::new(),
        chunks: BTreeMap::new(),
        shards: BTreeMap::new(),
        named_shards: BTreeMap::new(),
        faults: Vec::new(),
        report: StoreCheckReport::default(),
    };
    listed.into_iter().for_each(|object| domain.sort_in(object));
    let root = session.domain.root();
    if !domain.documents.contains_key(&root) {
        domain.faults.push((None, HsdsFault::NoRoot));
    }
    let ids: Vec<ObjectId> = domain.documents.keys().copied().collect();
    let mut leads_to: HashMap<ObjectId, Vec<(Option<String>, ObjectId)>> = HashMap::new();
    for id in ids {
        if domain.faults.len() >= StoreCheckReport::MAX_FINDINGS {
            break;
        }
        leads_to.insert(id, domain.check_object(id, what)?);
    }
    Ok(domain.finish(&leads_to))
}

impl CheckedDomain<'_> {
    fn sort_in(&mut self, object: ListedObject) {
        let ListedObject { key, size: bytes, .. } = object;
        if let Some(id) = self.session.domain.object_of_document_key(&key) {
            self.report.metadata_bytes += bytes;
            self.documents.insert(id, bytes);
            return;
        }
        if let Some((id, shard)) = self.session.domain.shard_of_key(&key) {
            self.report.metadata_bytes += bytes;
            self.shards.entry(id).or_default().insert(shard, bytes);
            return;
        }
        let prefix = self.session.domain.key_prefix_without_slash();
        let rest = key.strip_prefix(&prefix).and_then(|rest| rest.strip_prefix('/')).unwrap_or_default();
        if SUMMARY_FILES.contains(&rest) || rest == BUCKET_CLAIM_FILE {
            self.report.metadata_bytes += bytes;
            return;
        }
        // Of a chunk: the class, the identity of the dataset, and what follows.
        let mut parts = rest.splitn(3, '/');
        let folder = parts.next().zip(parts.next()).map(|(class, id)| format!("{prefix}/{class}/{id}/.dataset.json"));
        let dataset = folder.zip(parts.next());
        let dataset = dataset.and_then(|(key, name)| Some((self.session.domain.object_of_document_key(&key)?, name)));
        match dataset {
            Some((id, name)) if (0..=32).any(|rank| chunk_of_key_suffix(name, rank).is_some()) => {
                self.report.raw_bytes += bytes;
                self.chunks.entry(id).or_default().push((name.to_owned(), bytes));
            }
            _ => self.faults.push((None, HsdsFault::UnknownKey(key))),
        }
    }

    /// Checks an object. Returns what it leads to, with the names of links.
    fn check_object(&mut self, id: ObjectId, what: StoreCheckOptions) -> Result<Vec<(Option<String>, ObjectId)>> {
        self.report.object_count += 1;
        let document = match self.session.document_with_entries(id, EntryQuery::All) {
            Ok(document) => document,
            Err(ModelError::NoObject(_)) => return Ok(Vec::new()),
            Err(error) => {
                // Which shards belong to it is not known.
                self.shards.remove(&id);
                self.faults.push((Some(id), HsdsFault::DocumentDamage(error.to_string())));
                return Ok(Vec::new());
            }
        };
        if let Err(error) = check_document(&document) {
            self.faults.push((Some(id), HsdsFault::DocumentDamage(error.to_string())));
        }
        if let Some(listed) = self.shards.get_mut(&id) {
            let named = document.shard_ids().into_iter().filter_map(|named| listed.remove(&named)).sum();
            self.named_shards.insert(id, named);
        }
        let mut found = Vec::new();
        let links = document.links().into_iter().flatten().flatten();
        for Link { name, target, .. } in links.filter(|_| document.kind() == ObjectKind::Group) {
            if let Some(why) = name_fault(name.as_bytes()) {
                self.faults.push((Some(id), HsdsFault::UnusableLinkName { name: name.to_string(), why }));
            }
            let LinkTarget::Hard(target) = target else { continue };
            if !self.documents.contains_key(&target) {
                let target = self.session.domain.object_id_text(target);
                self.faults.push((Some(id), HsdsFault::DanglingHardLink { name: name.to_string(), target }));
            }
            found.push((Some(name.to_string()), target));
        }
        for used in document.known_used_objects().into_iter().filter(|used| kind(*used) == Some(ObjectKind::Datatype)) {
            let is_linked = found.iter().any(|(name, target)| name.is_some() && *target == used);
            if !self.documents.contains_key(&used) && !is_linked {
                let used = self.session.domain.object_id_text(used);
                self.faults.push((Some(id), HsdsFault::NoCommittedDatatype(used)));
            }
            found.push((None, used));
        }
        if let Some(table) = document.chunk_table() {
            if !self.documents.contains_key(&table) {
                self.faults.push((Some(id), HsdsFault::NoChunkTable(self.session.domain.object_id_text(table))));
            }
            found.push((None, table));
        }
        if document.kind() == ObjectKind::Dataset {
            self.check_chunks(&document, what)?;
        }
        Ok(found)
    }

    fn check_chunks(&mut self, document: &ObjectDocument, what: StoreCheckOptions) -> Result<()> {
        let id = document.id();
        let Ok(spec) = self.session.dataset_spec(document) else { return Ok(()) };
        let form = self.session.chunk_codec(document, &spec);
        let names = self.chunks.remove(&id).unwrap_or_default();
        let (mut coords, partitions) = (Vec::new(), document.chunk_partition_count());
        let chunk_key = |coord: &ChunkCoord| self.session.domain.chunk_key(id, coord, partitions);
        for (name, _) in &names {
            let folder = self.session.domain.chunk_key_prefix(id);
            let is_found = |coord: &ChunkCoord| chunk_key(coord).strip_prefix(&folder) == Some(name);
            match chunk_of_key_suffix(name, spec.dataspace.rank()).filter(is_found) {
                Some(coord) if spec.chunk_bytes_at(&coord).is_ok() => coords.push(coord),
                Some(coord) => self.faults.push((Some(id), HsdsFault::ChunkOutsideMaxShape(coord))),
                None => self.faults.push((Some(id), HsdsFault::UnknownKey(name.clone()))),
            }
        }
        self.chunks.insert(id, names);
        if what.verify_data {
            self.check_native_chunks(document, &spec)?;
        }
        for coords in coords.chunks(CHUNKS_AT_ONCE).filter(|_| what.verify_data) {
            let keys: Vec<String> = coords.iter().map(chunk_key).collect();
            let bad = parking_lot::Mutex::new(Vec::new());
            self.session.engine.get_many(&keys, &|number, found| {
                let (Some(key), Some(coord), Some(found)) = (keys.get(number), coords.get(number), found) else {
                    return Ok(());
                };
                let decoded = form
                    .decompress(key, &found.bytes)
                    .and_then(|stored_elements| form.to_model_elements(key, &stored_elements, (1, 1)));
                if let Err(error) = decoded {
                    bad.lock().push((
                        Some(id),
                        HsdsFault::UnreadableChunk { coord: coord.clone(), fault: error.to_string() },
                    ));
                }
                Ok(())
            })?;
            self.faults.extend(bad.into_inner());
        }
        Ok(())
    }

    /// Reads the chunks of a dataset that lie in a native file, which may be gone, shorter or another one by now. Without
    /// filters, nothing says whether it is another one.
    fn check_native_chunks(&mut self, document: &ObjectDocument, spec: &DatasetSpec) -> Result<()> {
        let (session, id) = (self.session, document.id());
        let open = |table| Ok(Arc::new(HsdsDataset::open(session, table)?) as Arc<dyn ChunkStore>);
        let native = LinkedHdf5Chunks::of_dataset(session, document, spec, &open);
        let found = native.and_then(|native| {
            let coords = native.as_ref().map(|native| native.coords(spec)).transpose()?.unwrap_or_default();
            Ok(native.zip(Some(coords)))
        });
        let (native, coords) = match found {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(()),
            Err(error) => {
                let coord = ChunkCoord::origin(spec.dataspace.rank());
                self.faults.push((Some(id), HsdsFault::UnreadableChunk { coord, fault: error.to_string() }));
                return Ok(());
            }
        };
        for coord in coords {
            if self.faults.len() >= StoreCheckReport::MAX_FINDINGS {
                break;
            }
            match native.read_decoded_chunk(session, spec, &coord) {
                Ok(Some(_)) if spec.filters.is_empty() => self.report.unverified_part_count += 1,
                Ok(_) => {}
                Err(error) => {
                    self.faults.push((Some(id), HsdsFault::UnreadableChunk { coord, fault: error.to_string() }))
                }
            }
        }
        Ok(())
    }

    /// Counts a leak. Says whether it is listed.
    fn add_leak(&mut self, id: ObjectId, kind: Option<ObjectKind>, bytes: u64) -> bool {
        self.report.leak_count += 1;
        let is_listed = self.report.leaks.len() < StoreCheckReport::MAX_FINDINGS;
        if is_listed {
            self.report.leaks.push(Leak { place: LeakLocation::Object(id), kind, bytes });
        }
        is_listed
    }

    /// The bytes of the chunks and the shards of an object.
    fn part_bytes(&self, id: ObjectId) -> u64 {
        let chunks = self.chunks.get(&id).into_iter().flatten().map(|(_, bytes)| bytes);
        chunks
            .chain(self.shards.get(&id).into_iter().flat_map(BTreeMap::values))
            .chain(self.named_shards.get(&id))
            .sum()
    }

    /// A writer that died has left chunks and shards of objects that were not there yet, or not any more.
    fn list_parts_without_object(&mut self) -> Vec<ObjectId> {
        let owners: BTreeSet<ObjectId> = self.chunks.keys().chain(self.shards.keys()).copied().collect();
        let gone = owners.into_iter().filter(|id| !self.documents.contains_key(id)).collect::<Vec<_>>();
        gone.into_iter().filter(|id| self.add_leak(*id, None, self.part_bytes(*id))).collect()
    }

    /// A writer that died has left shards that the document of their object does not name yet, or not any more.
    fn list_stray_shards(&mut self, is_linked: impl Fn(ObjectId) -> bool) -> Vec<String> {
        let is_there = |id: &ObjectId| self.documents.contains_key(id) && is_linked(*id);
        let stray: Vec<(ObjectId, Vec<ShardId>, u64)> = (self.shards.iter())
            .filter(|(id, shards)| is_there(id) && !shards.is_empty())
            .map(|(id, shards)| (*id, shards.keys().copied().collect(), shards.values().sum()))
            .collect();
        let mut keys = Vec::new();
        for (id, shards, bytes) in stray {
            if self.add_leak(id, None, bytes) {
                keys.extend(shards.into_iter().map(|shard| self.session.domain.shard_key(id, shard)));
            }
        }
        keys
    }

    /// The report, with paths of objects, and with those to which no path leads.
    fn finish(mut self, leads_to: &HashMap<ObjectId, Vec<(Option<String>, ObjectId)>>) -> DomainCheckResult {
        let mut unlinked = self.list_parts_without_object();
        let root = self.session.domain.root();
        let mut paths: HashMap<ObjectId, String> = HashMap::from([(root, "/".to_owned())]);
        let (mut seen, mut left) = (HashSet::from([root]), vec![root]);
        while let Some(id) = left.pop() {
            for (name, target) in leads_to.get(&id).into_iter().flatten() {
                if let (Some(name), Some(path)) = (name, paths.get(&id)) {
                    let path = format!("{}/{name}", path.trim_end_matches('/'));
                    paths.entry(*target).or_insert(path);
                }
                if seen.insert(*target) {
                    left.push(*target);
                }
            }
        }
        let stray_shards = self.list_stray_shards(|id| seen.contains(&id));
        let not_seen = self.documents.iter().filter(|(id, _)| !seen.contains(id)).map(|(id, bytes)| (*id, *bytes));
        for (id, bytes) in not_seen.collect::<Vec<_>>() {
            if self.add_leak(id, kind(id), bytes + self.part_bytes(id)) {
                unlinked.push(id);
            }
        }
        let finding = |(object, fault): (Option<ObjectId>, HsdsFault)| StoreFinding {
            object,
            path: object.and_then(|id| paths.get(&id).cloned()),
            kind: fault.kind(),
            cause: Box::new(fault),
        };
        self.faults.truncate(StoreCheckReport::MAX_FINDINGS);
        // The schema has no place for checksums of chunks and documents.
        self.report.unchecksummed_bytes = Some(self.report.metadata_bytes + self.report.raw_bytes);
        self.report.findings = std::mem::take(&mut self.faults).into_iter().map(finding).collect();
        DomainCheckResult { report: self.report, leaked_objects: unlinked, stray_shard_keys: stray_shards }
    }
}

/// Why no path can have a name.
fn name_fault(name: &[u8]) -> Option<&'static str> {
    match name {
        b"" => Some("it is empty"),
        b"." => Some("it is the group itself"),
        _ if name.contains(&b'/') => Some("it has a slash, which separates names"),
        _ => None,
    }
}

/// Reads all that a document says.
fn check_document(document: &ObjectDocument) -> std::result::Result<(), LayoutError> {
    document.spec()?;
    if document.kind() == ObjectKind::Group {
        document.links()?.try_for_each(|link| link.map(drop))?;
    }
    document.attribute_names()?.iter().try_for_each(|name| document.attribute(name).map(drop))
}

//! The log store as the seam has it: reading.

use std::sync::{Arc, Weak};

use h5live_model::{
    AttributeData, ChunkStore, DatasetSpec, Error, Link, MapStore, Name, ObjectId, ObjectInfo, ObjectKind,
    ObjectKindSpec, ObjectScope, ObjectSpec, OpenError, ReferenceKind, ReferenceType, Referent, Result, SessionInfo,
    Stats, Store, StoreWriter, Watch, WriterLiveness,
};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::chunks::LoggedChunkStore;
use crate::decoding_chunk_store::DecodingChunkStore;
use crate::joining::join_as_writer;
use crate::multi_writer_files::MultiWriterFiles;
use crate::opening::open_or_create_log;
use crate::session::{LogOpenRequest, LogSession};
use crate::watch::LogWatch;
use crate::writer::LogWriter;

/// So many datasets are remembered before those that were closed are forgotten.
const MIN_FORGOTTEN: usize = 1 << 10;

/// A session on a file with a log.
#[derive(Debug)]
pub struct LogStore {
    session: Arc<LogSession>,
    /// The datasets that are open, by their numbers.
    datasets: Mutex<FxHashMap<u64, Weak<LoggedChunkStore>>>,
    writer: LogWriter,
}

impl LogStore {
    /// Whether an open file is one with a log, which may be damaged.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn is_log_file(inner: &dyn Store) -> Result<bool> {
        LogSession::is_log_file(inner)
    }

    /// The log in an open file; a new one, if the file has none and can be written. `files` are its subfiles, and may be
    /// left out if it has none.
    ///
    /// # Errors
    /// If the log is damaged, or there is none in a file that is open to be read; errors of the store beneath.
    pub fn open_or_create(
        inner: Arc<dyn Store>,
        files: Option<Arc<dyn MultiWriterFiles>>,
        how: LogOpenRequest,
    ) -> Result<Self> {
        Ok(LogStore::new(open_or_create_log(inner, files, how)?))
    }

    /// A session that writes beside others, into a subfile of its own. With `create_if_missing`, the main file is made if it is not
    /// there.
    ///
    /// # Errors
    /// If another process has the file for itself; if the log is damaged; errors of the stores beneath.
    pub fn join_as_writer(
        files: Arc<dyn MultiWriterFiles>,
        create_if_missing: bool,
        how: LogOpenRequest,
    ) -> std::result::Result<Self, OpenError> {
        Ok(LogStore::new(join_as_writer(files, create_if_missing, how)?))
    }

    /// The store of a session.
    pub(crate) fn new(session: LogSession) -> Self {
        let session = Arc::new(session);
        LogStore { writer: LogWriter::new(session.clone()), datasets: Mutex::default(), session }
    }

    fn inner(&self) -> Result<&dyn Store> {
        self.session.check_open()?;
        Ok(&*self.session.inner)
    }

    /// A link as the user sees it; `None` if it is the log's own.
    fn user_link(&self, group: ObjectId, link: Link) -> Option<Link> {
        if !self.session.may_have_internal_links(group) {
            return Some(link);
        }
        // The group of the log is the first child of the root.
        let own = i64::from(group == self.session.info.root);
        let creation_order = link.creation_order.map(|order| order.saturating_sub(own));
        Some(Link { name: self.session.layout.user_name(&link.name)?, creation_order, ..link })
    }

    /// How many attributes of an object are the log's own. They were made first.
    fn own_attributes(&self, id: ObjectId) -> Result<u16> {
        let names = self.inner()?.attribute_names(id)?;
        Ok(names.iter().filter(|name| self.session.layout.user_name(name).is_none()).count() as u16)
    }

    /// An attribute as the user sees it; `None` if it is the log's own. `own` is how many of those there are.
    fn user_attribute(&self, attribute: AttributeData, own: u16) -> Option<AttributeData> {
        let creation_order = attribute.creation_order.map(|order| order.saturating_sub(own));
        Some(AttributeData { name: self.session.layout.user_name(&attribute.name)?, creation_order, ..attribute })
    }
}

impl Store for LogStore {
    fn session(&self) -> &SessionInfo {
        &self.session.info
    }

    fn kind(&self, id: ObjectId) -> Result<ObjectKind> {
        self.inner()?.kind(id)
    }

    fn spec(&self, id: ObjectId) -> Result<ObjectSpec> {
        let found = self.inner()?.spec(id)?;
        if !matches!(found.body, ObjectKindSpec::Dataset(_)) {
            return Ok(found);
        }
        let spec = DatasetSpec::clone(&*self.dataset(id)?.spec()?);
        Ok(ObjectSpec { body: ObjectKindSpec::Dataset(Box::new(spec)), ..found })
    }

    fn info(&self, id: ObjectId) -> Result<ObjectInfo> {
        self.inner()?.info(id)
    }

    fn link(&self, group: ObjectId, name: &Name) -> Result<Option<Link>> {
        let found = self.inner()?.link(group, &self.session.stored_link_name(group, name))?;
        Ok(found.and_then(|link| self.user_link(group, link)))
    }

    fn for_each_link(&self, group: ObjectId, each: &mut dyn FnMut(Link) -> bool) -> Result<()> {
        self.inner()?.for_each_link(group, &mut |link| self.user_link(group, link).is_none_or(&mut *each))
    }

    fn attribute(&self, id: ObjectId, name: &Name) -> Result<Option<AttributeData>> {
        let found = self.inner()?.attribute(id, &self.session.layout.stored_name(name))?;
        let own = match &found {
            Some(found) if found.creation_order.is_some() => self.own_attributes(id)?,
            _ => 0,
        };
        Ok(found.and_then(|attribute| self.user_attribute(attribute, own)))
    }

    fn attribute_names(&self, id: ObjectId) -> Result<Vec<Name>> {
        Ok(self.inner()?.attribute_names(id)?.iter().filter_map(|name| self.session.layout.user_name(name)).collect())
    }

    fn for_each_attribute(&self, id: ObjectId, each: &mut dyn FnMut(AttributeData) -> bool) -> Result<()> {
        let own = self.own_attributes(id)?;
        self.inner()?.for_each_attribute(id, &mut |found| self.user_attribute(found, own).is_none_or(&mut *each))
    }

    fn dataset(&self, id: ObjectId) -> Result<Arc<dyn ChunkStore>> {
        let anchor = self.inner()?.dataset(id)?;
        let Some(found) = self.session.read_anchor_dataset(id)? else {
            // What other programs have added to the file, and what has no elements of its own.
            let is_filtered = !anchor.spec()?.filters.is_empty();
            return Ok(if is_filtered { Arc::new(DecodingChunkStore::new(&self.session, anchor)) } else { anchor });
        };
        // Entries were published before what led to the object.
        self.session.catch_up_if_needed(&found)?;
        let mut datasets = self.datasets.lock();
        if let Some(known) = datasets.get(&found.number).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let number = found.number;
        let opened = Arc::new(LoggedChunkStore::new(&self.session, anchor, found)?);
        if datasets.len() >= MIN_FORGOTTEN && datasets.len().is_power_of_two() {
            // Those that nobody has open any more keep their memory.
            datasets.retain(|_, dataset| dataset.strong_count() > 0);
        }
        datasets.insert(number, Arc::downgrade(&opened));
        Ok(opened)
    }

    fn read_blobs(&self, elements: &[&[u8]], each: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        self.session.check_open()?;
        self.session.read_blobs(elements, each)
    }

    fn referent(&self, kind: ReferenceKind, element: &[u8]) -> Result<Option<Referent>> {
        self.inner()?.referent(kind, element)
    }

    fn encode_reference(&self, form: &ReferenceType, to: &Referent) -> Result<Vec<u8>> {
        self.session.layout.check_referent(&to.part)?;
        match self.session.writes() {
            true => self.session.change_main_file(|on| on.main.encode_reference(form, to)),
            false => self.inner()?.encode_reference(form, to),
        }
    }

    fn refresh(&self, scope: ObjectScope<'_>) -> Result<()> {
        self.inner()?.refresh(scope)?;
        self.session.commit_if_rows_appended()?;
        self.session.catch_up()?;
        let is_meant = |id: ObjectId| match scope {
            ObjectScope::All => true,
            ObjectScope::Objects(objects) => objects.contains(&id),
        };
        let open: Vec<_> = self.datasets.lock().values().filter_map(Weak::upgrade).collect();
        for dataset in open.iter().filter(|dataset| is_meant(dataset.id())) {
            match dataset.refresh_extent_from_session() {
                // It was deleted since.
                Err(h5live_model::Error::NoObject(_)) if scope == ObjectScope::All => {}
                refreshed => drop(refreshed?),
            }
        }
        Ok(())
    }

    fn liveness(&self) -> Result<WriterLiveness> {
        self.session.check_open()?;
        let found =
            self.session.stores_for_liveness().iter().map(|store| store.liveness()).collect::<Result<Vec<_>>>()?;
        let is_any = |wanted: WriterLiveness| found.contains(&wanted);
        Ok(match () {
            () if is_any(WriterLiveness::Live) => WriterLiveness::Live,
            () if is_any(WriterLiveness::Unknown) => WriterLiveness::Unknown,
            () => WriterLiveness::AtRest,
        })
    }

    fn watch(&self, objects: &[ObjectId]) -> Result<Box<dyn Watch>> {
        self.session.check_open()?;
        Ok(Box::new(LogWatch::new(&self.session, objects)?))
    }

    fn stats(&self) -> Stats {
        self.session.inner.stats()
    }

    fn close(&self) -> Result<()> {
        self.session.close()
    }

    fn writer(&self) -> Result<&dyn StoreWriter> {
        self.session.check_open()?;
        if self.session.writes() { Ok(&self.writer) } else { Err(Error::ReadOnly) }
    }

    fn maps(&self) -> Option<&dyn MapStore> {
        self.session.inner.maps()
    }
}

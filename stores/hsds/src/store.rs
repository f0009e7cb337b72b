//! The seam: a session as the facade sees it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use h5live_model::{
    AttributeData, ChunkStore, Error as ModelError, Link, LinkTarget, MapStore, Mode, Name, NewObject, ObjectId,
    ObjectInfo, ObjectInfoChange, ObjectKind, ObjectKindSpec, ObjectScope, ObjectSpec, PublishLevel, ReferenceKind,
    ReferenceType, Referent, ReferentPart, Result, SessionInfo, Stats, Store, StoreWriter, Watch, WriterLiveness,
};
use parking_lot::Mutex;

use crate::dataset::HsdsDataset;
use crate::engine::{ObjectEngine, RequestCounts};
use crate::error::{damaged_object_error, invalid_or_unsupported_error};
use crate::layout::{EntryQuery, LinksOrAttributes, MODEL_VLEN_AND_REFERENCE_SIZES, VarLenToken, kind};
use crate::session::{HsdsOpenRequest, HsdsSession, system_time_from_unix};
use crate::watch::HsdsWatch;

/// A session on a domain.
#[derive(Debug, Clone)]
pub struct HsdsStore {
    pub(crate) session: Arc<HsdsSession>,
    datasets: Arc<Mutex<HashMap<ObjectId, Weak<HsdsDataset>>>>,
}

impl HsdsStore {
    /// Opens a domain, or makes it.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    pub fn open(engine: impl ObjectEngine + 'static, request: &HsdsOpenRequest) -> Result<Self> {
        Ok(HsdsStore::new(HsdsSession::open(Box::new(engine), request)?))
    }

    /// A store with this session.
    pub(crate) fn new(session: HsdsSession) -> Self {
        HsdsStore { session: Arc::new(session), datasets: Arc::default() }
    }

    /// Lets others see a new domain that was made as a draft ([`HsdsOpenRequest::creates_draft`]), and commits all that was changed.
    ///
    /// # Errors
    /// As [`StoreWriter::commit`]. Then it is still a draft.
    pub fn publish_domain(&self) -> Result<()> {
        self.session.publish_domain()
    }

    /// Ends the session, whatever other threads do with it: of a draft, nothing is left. For a process that is about to end.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`]. Then objects may be left.
    pub fn close_without_commit(&self) -> Result<()> {
        self.session.close_without_commit()
    }

    /// The owner of the domain.
    pub fn owner(&self) -> Option<String> {
        self.session.state().domain.owner().map(str::to_owned)
    }

    /// When the document of an object was made, and when it was changed last, if that is known.
    ///
    /// # Errors
    /// [`ModelError::NoObject`], [`ModelError::Closed`], [`ModelError::Store`].
    pub fn created_and_modified(&self, id: ObjectId) -> Result<(Option<SystemTime>, Option<SystemTime>)> {
        let (created, modified) = self.session.document(id)?.created_and_modified();
        Ok((created.and_then(system_time_from_unix), modified.and_then(system_time_from_unix)))
    }

    /// The requests so far.
    pub fn request_counts(&self) -> RequestCounts {
        self.session.engine.counts()
    }

    fn open_dataset(&self, id: ObjectId) -> Result<Arc<HsdsDataset>> {
        self.session.check_open()?;
        if let Some(dataset) = self.datasets.lock().get(&id).and_then(Weak::upgrade) {
            return Ok(dataset);
        }
        let dataset = Arc::new(HsdsDataset::open(&self.session, id)?);
        let mut datasets = self.datasets.lock();
        if let Some(other) = datasets.get(&id).and_then(Weak::upgrade) {
            return Ok(other);
        }
        if datasets.len() >= 64 && datasets.len().is_power_of_two() {
            datasets.retain(|_, dataset| dataset.strong_count() > 0);
        }
        datasets.insert(id, Arc::downgrade(&dataset));
        Ok(dataset)
    }

    /// Lets the next one who opens a dataset read anew what it is.
    pub(crate) fn forget_dataset(&self, id: ObjectId) {
        self.datasets.lock().remove(&id);
    }

    fn open_datasets(&self) -> Vec<Arc<HsdsDataset>> {
        self.datasets.lock().values().filter_map(Weak::upgrade).collect()
    }
}

fn tokens<'a>(elements: &'a [&'a [u8]]) -> impl Iterator<Item = Result<VarLenToken>> + 'a {
    elements.iter().map(|element| VarLenToken::decode(element).map_err(invalid_or_unsupported_error))
}

impl Store for HsdsStore {
    fn session(&self) -> &SessionInfo {
        &self.session.session_info
    }

    /// The kind is part of the identity: whether the object is there is not asked.
    fn kind(&self, id: ObjectId) -> Result<ObjectKind> {
        self.session.check_open()?;
        let is_deleted = self.session.state().is_deleted(id);
        kind(id).filter(|_| !is_deleted).ok_or(ModelError::NoObject(id))
    }

    fn spec(&self, id: ObjectId) -> Result<ObjectSpec> {
        let document = self.session.document(id)?;
        let key = self.session.domain.document_key(id);
        let spec = document.spec().map_err(damaged_object_error(&key))?;
        Ok(match spec.body {
            // A reader sees the extent as of the last refresh of the dataset.
            ObjectKindSpec::Dataset(_) => {
                let seen = (*self.open_dataset(id)?.spec()?).clone();
                ObjectSpec { body: ObjectKindSpec::Dataset(Box::new(seen)), ..spec }
            }
            _ => spec,
        })
    }

    fn info(&self, id: ObjectId) -> Result<ObjectInfo> {
        self.session.info(id)
    }

    fn link(&self, group: ObjectId, name: &Name) -> Result<Option<Link>> {
        let key = self.session.domain.document_key(group);
        let query = EntryQuery::One(LinksOrAttributes::Links, name);
        self.session.group_with_entries(group, query)?.link(name).map_err(damaged_object_error(&key))
    }

    fn for_each_link(&self, group: ObjectId, each: &mut dyn FnMut(Link) -> bool) -> Result<()> {
        let document = self.session.group_with_entries(group, EntryQuery::AllOf(LinksOrAttributes::Links))?;
        let key = self.session.domain.document_key(group);
        let links = document.links().and_then(Iterator::collect::<crate::layout::Result<Vec<Link>>>);
        let mut links = links.map_err(damaged_object_error(&key))?;
        if document.is_sharded(LinksOrAttributes::Links) {
            links.sort_by(|one, other| (one.creation_order, &one.name).cmp(&(other.creation_order, &other.name)));
        }
        let hard = links.iter().filter_map(|link| match link.target {
            LinkTarget::Hard(id) => Some(id),
            _ => None,
        });
        self.session.state.write().read_ahead.set_listing_order(hard.collect());
        for link in links {
            if !each(link) {
                break;
            }
        }
        Ok(())
    }

    fn attribute(&self, id: ObjectId, name: &Name) -> Result<Option<AttributeData>> {
        let query = EntryQuery::One(LinksOrAttributes::Attributes, name);
        self.session.attribute(&*self.session.document_with_entries(id, query)?, name)
    }

    fn attribute_names(&self, id: ObjectId) -> Result<Vec<Name>> {
        let key = self.session.domain.document_key(id);
        let query = EntryQuery::AllOf(LinksOrAttributes::Attributes);
        self.session.document_with_entries(id, query)?.attribute_names().map_err(damaged_object_error(&key))
    }

    fn for_each_attribute(&self, id: ObjectId, each: &mut dyn FnMut(AttributeData) -> bool) -> Result<()> {
        let document = self.session.document_with_entries(id, EntryQuery::AllOf(LinksOrAttributes::Attributes))?;
        let key = self.session.domain.document_key(id);
        for name in document.attribute_names().map_err(damaged_object_error(&key))? {
            let attribute = self.session.attribute(&document, &name)?;
            if !attribute.is_none_or(&mut *each) {
                break;
            }
        }
        Ok(())
    }

    fn dataset(&self, id: ObjectId) -> Result<Arc<dyn ChunkStore>> {
        Ok(self.open_dataset(id)?)
    }

    fn read_blobs(&self, elements: &[&[u8]], each: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        self.session.check_open()?;
        for (number, token) in tokens(elements).enumerate() {
            match token? {
                token if token.has_bytes() => {
                    self.session.with_varlen_bytes(token, &mut |bytes| each(number, bytes))?
                }
                _ => each(number, &[]),
            }
        }
        Ok(())
    }

    fn referent(&self, kind: ReferenceKind, element: &[u8]) -> Result<Option<Referent>> {
        self.session.check_open()?;
        if kind != ReferenceKind::Object1 {
            return self.session.referent(kind, VarLenToken::decode(element).map_err(invalid_or_unsupported_error)?);
        }
        let end = element.iter().position(|byte| *byte == 0).unwrap_or(element.len());
        let text = element.get(..end).filter(|text| !text.is_empty());
        let Some(text) = text else { return Ok(None) };
        let unknown = || ModelError::Invalid("a reference is no identity of an object".to_owned());
        let text = std::str::from_utf8(text).map_err(|_| unknown())?;
        let object = self.session.domain.parse_own_object_id(text).map_err(|_| unknown())?;
        Ok(Some(Referent { file: None, object, part: ReferentPart::Whole }))
    }

    fn encode_reference(&self, form: &ReferenceType, to: &Referent) -> Result<Vec<u8>> {
        if form.kind != ReferenceKind::Object1 {
            self.session.check_writable()?;
            return self.session.encode_varlen_reference(form, to);
        }
        self.session.check_open()?;
        if to.file.is_some()
            || to.part != ReferentPart::Whole
            || form.size != MODEL_VLEN_AND_REFERENCE_SIZES.object_reference
        {
            return Err(ModelError::Invalid("such elements refer to whole objects of the same domain".to_owned()));
        }
        self.session.document(to.object)?;
        let mut element = self.session.domain.object_id_text(to.object).into_bytes();
        element.resize(form.size as usize, 0);
        Ok(element)
    }

    fn refresh(&self, scope: ObjectScope<'_>) -> Result<()> {
        if self.session.session_info.mode != Mode::SwmrRead {
            return self.session.check_open();
        }
        match scope {
            ObjectScope::All => {
                self.session.state.write().evict_unchanged_and_reference_counts();
                self.open_datasets().iter().try_for_each(|dataset| match dataset.advance_to_committed() {
                    // It stays as it was seen.
                    Err(ModelError::NoObject(_)) => Ok(()),
                    taken => taken.map(drop),
                })
            }
            ObjectScope::Objects(ids) => ids.iter().try_for_each(|id| match kind(*id) {
                Some(ObjectKind::Dataset) => self.open_dataset(*id)?.advance_to_committed().map(drop),
                _ => self.session.reload_if_changed(*id).map(drop),
            }),
        }
    }

    fn liveness(&self) -> Result<WriterLiveness> {
        self.session.check_open()?;
        if self.session.session_info.mode.writes() {
            return Ok(WriterLiveness::AtRest);
        }
        Ok(if self.session.engine.has_writer()? { WriterLiveness::Live } else { WriterLiveness::AtRest })
    }

    fn is_abandoned(&self) -> Result<bool> {
        self.session.check_open()?;
        self.session.engine.is_abandoned()
    }

    fn watch(&self, objects: &[ObjectId]) -> Result<Box<dyn Watch>> {
        Ok(Box::new(HsdsWatch::new(self.session.clone(), objects)?))
    }

    fn stats(&self) -> Stats {
        let counts = self.request_counts();
        let mut stats = Stats::default();
        (stats.bytes_read, stats.bytes_written, stats.writes) = (counts.bytes_read, counts.bytes_written, counts.puts);
        stats
    }

    fn close(&self) -> Result<()> {
        self.session.close()
    }

    fn writer(&self) -> Result<&dyn StoreWriter> {
        self.session.check_writable()?;
        Ok(self)
    }

    fn maps(&self) -> Option<&dyn MapStore> {
        None
    }
}

impl StoreWriter for HsdsStore {
    fn create(&self, new: &NewObject<'_>) -> Result<ObjectId> {
        self.session.create_object(new)
    }

    fn discard(&self, id: ObjectId) -> Result<()> {
        self.session.delete_if_unlinked(id)
    }

    fn add_link(&self, group: ObjectId, name: &Name, target: &LinkTarget) -> Result<()> {
        self.session.add_link_to(group, name, target)
    }

    fn remove_link(&self, group: ObjectId, name: &Name) -> Result<()> {
        self.session.remove_link_from(group, name)
    }

    fn rename_link(&self, from: (ObjectId, &Name), to: (ObjectId, &Name)) -> Result<()> {
        self.session.rename_link_from(from, to)
    }

    fn set_attribute(&self, id: ObjectId, attribute: &AttributeData) -> Result<()> {
        self.session.set_attribute_of(id, attribute)
    }

    fn remove_attribute(&self, id: ObjectId, name: &Name) -> Result<()> {
        self.session.remove_attribute_of(id, name)
    }

    fn set_info(&self, id: ObjectId, change: &ObjectInfoChange<'_>) -> Result<()> {
        self.session.set_comment_or_times(id, change)
    }

    fn put_blob(&self, bytes: &[u8], count: u32) -> Result<Vec<u8>> {
        self.put_blobs(&[(bytes, count)])
    }

    fn put_blobs(&self, blobs: &[(&[u8], u32)]) -> Result<Vec<u8>> {
        self.session.check_writable()?;
        Ok(self.session.varlen_tokens.put_unstored(blobs).iter().flat_map(|token| token.encode()).collect())
    }

    fn remove_blobs(&self, elements: &[&[u8]]) -> Result<()> {
        self.session.check_writable()?;
        let gone = tokens(elements).collect::<Result<Vec<_>>>()?;
        self.session.varlen_tokens.remove_put_tokens(gone.into_iter());
        Ok(())
    }

    fn start_swmr(&self) -> Result<()> {
        self.session.commit(PublishLevel::Visible)
    }

    fn is_dirty(&self) -> bool {
        let state = self.session.state();
        let is_committed = state.dirty.is_empty() && state.doomed.is_empty() && state.dropped_chunks.is_empty();
        !is_committed || !state.old_shards.is_empty()
    }

    fn commit(&self, scope: ObjectScope<'_>, publish: PublishLevel) -> Result<()> {
        match scope {
            ObjectScope::All => self.session.commit(publish),
            ObjectScope::Objects(ids) => self.session.commit_objects(ids, publish),
        }
    }
}

//! The seam: a session as the facade sees it.

use std::sync::Arc;

use h5live_model::{
    AttributeData, ChunkStore, Error as ModelError, Link, LinkTarget, MapStore, Mode, Name, NewObject, ObjectId,
    ObjectInfo, ObjectInfoChange, ObjectKind, ObjectScope, ObjectSpec, PublishLevel, ReferenceKind, ReferenceType,
    Referent, ReferentPart, Result, SessionInfo, Stats, Store, StoreWriter, Watch, WriterLiveness,
};

use crate::dataset_registry::DatasetRegistry;
use crate::element_blobs::{BLOB_HOLDER, with_blob};
use crate::engine::{Engine, ViewWithEdits};
use crate::error::{damaged_object_error, invalid_argument_error};
use crate::layout::value::{DecodedReference, EncodedReference, VarLenBlobRef};
use crate::layout::{BlobId, key, oid};
use crate::map_spec_cache::MapSpecCache;
use crate::object_edits;
use crate::objects::{self, contradiction_error};
use crate::session::{KvOpenRequest, KvSession};
use crate::state::check_object_exists;
use crate::watch::KvWatch;

/// A session on a container in an engine of keys and values.
#[derive(Debug, Clone)]
pub struct KvStore {
    pub(crate) session: Arc<KvSession>,
    datasets: Arc<DatasetRegistry>,
    pub(crate) maps: Arc<MapSpecCache>,
}

impl KvStore {
    /// Opens the container of an engine, or makes it.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    pub fn open(engine: impl Engine + 'static, request: &KvOpenRequest) -> Result<Self> {
        Ok(KvStore::new(KvSession::open(Box::new(engine), request)?))
    }

    /// A store with this session.
    pub(crate) fn new(session: KvSession) -> Self {
        KvStore { session: Arc::new(session), datasets: Arc::default(), maps: Arc::default() }
    }

    /// Calls `found` with the bytes of a blob: as this session sees it, or one of its datasets, which may see an earlier
    /// state.
    fn find_blob(&self, stored: VarLenBlobRef, found: &mut dyn FnMut(&[u8])) -> Result<()> {
        if self.session.read(|state| with_blob(state, stored, found))? {
            return Ok(());
        }
        for view in self.datasets.all().iter().filter_map(|dataset| dataset.pinned_view()) {
            if with_blob(&ViewWithEdits::without_edits(&view), stored, found)? {
                return Ok(());
            }
        }
        Err(contradiction_error(BLOB_HOLDER, "the data of a variable-length element is not there"))
    }
}

impl Store for KvStore {
    fn session(&self) -> &SessionInfo {
        &self.session.info
    }

    fn kind(&self, id: ObjectId) -> Result<ObjectKind> {
        self.session.read(|state| check_object_exists(state, id)).map(|()| oid::kind(id))
    }

    fn spec(&self, id: ObjectId) -> Result<ObjectSpec> {
        let spec = self.session.read(|state| objects::spec(state, id))?;
        Ok(match spec.body {
            // A reader sees the extent as of the last refresh of the dataset.
            h5live_model::ObjectKindSpec::Dataset(_) if !self.session.info.mode.writes() => {
                let seen = (*self.datasets.get_or_open(&self.session, id)?.spec()?).clone();
                ObjectSpec { body: h5live_model::ObjectKindSpec::Dataset(Box::new(seen)), ..spec }
            }
            _ => spec,
        })
    }

    fn info(&self, id: ObjectId) -> Result<ObjectInfo> {
        self.session.read(|state| objects::object_info(state, id))
    }

    fn link(&self, group: ObjectId, name: &Name) -> Result<Option<Link>> {
        self.session.read(|state| objects::link(state, group, name))
    }

    fn for_each_link(&self, group: ObjectId, each: &mut dyn FnMut(Link) -> bool) -> Result<()> {
        self.session.read(|state| objects::for_each_link(state, group, &mut |link| Ok(each(link))))
    }

    fn attribute(&self, id: ObjectId, name: &Name) -> Result<Option<AttributeData>> {
        self.session.read(|state| objects::attribute(state, id, name))
    }

    fn attribute_names(&self, id: ObjectId) -> Result<Vec<Name>> {
        let mut names = Vec::new();
        self.for_each_attribute(id, &mut |attribute| {
            names.push(attribute.name);
            true
        })?;
        Ok(names)
    }

    fn for_each_attribute(&self, id: ObjectId, each: &mut dyn FnMut(AttributeData) -> bool) -> Result<()> {
        self.session.read(|state| objects::for_each_attribute(state, id, &mut |attribute| Ok(each(attribute))))
    }

    fn dataset(&self, id: ObjectId) -> Result<Arc<dyn ChunkStore>> {
        Ok(self.datasets.get_or_open(&self.session, id)?)
    }

    fn read_blobs(&self, elements: &[&[u8]], each: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        self.session.check_open()?;
        for (number, element) in elements.iter().enumerate() {
            let stored = VarLenBlobRef::decode(element).map_err(invalid_argument_error)?;
            match stored.has_blob() {
                true => self.find_blob(stored, &mut |bytes| each(number, bytes))?,
                false => each(number, &[]),
            }
        }
        Ok(())
    }

    fn referent(&self, kind: ReferenceKind, element: &[u8]) -> Result<Option<Referent>> {
        self.session.check_open()?;
        match DecodedReference::decode(kind, element).map_err(invalid_argument_error)? {
            DecodedReference::Null => Ok(None),
            DecodedReference::InElement(referent) => Ok(Some(referent)),
            DecodedReference::InBlob { kind, external, blob } => {
                let mut found = None;
                self.find_blob(blob, &mut |bytes| found = Some(DecodedReference::decode_blob(kind, external, bytes)))?;
                found.transpose().map_err(damaged_object_error(BLOB_HOLDER))
            }
        }
    }

    fn encode_reference(&self, form: &ReferenceType, to: &Referent) -> Result<Vec<u8>> {
        let encoded = self.session.read(|state| encoded_reference(state, form, to))?;
        let Some(bytes) = encoded.blob() else { return reference_element(&encoded, BlobId::NULL, form) };
        self.session.change(|state| {
            let blob = state.blob_ids.next_id();
            let element = reference_element(&encoded, blob, form)?;
            state.put(&key::blob(blob), bytes);
            Ok(element)
        })
    }

    fn refresh(&self, scope: ObjectScope<'_>) -> Result<()> {
        if self.session.info.mode != Mode::SwmrRead {
            return self.session.check_open();
        }
        let view = self.session.refresh_view()?;
        match scope {
            ObjectScope::All => {
                self.datasets.all().iter().try_for_each(|dataset| {
                    match dataset.advance_to_committed(&view) {
                        // It stays as it was seen.
                        Err(ModelError::NoObject(_)) => Ok(()),
                        taken => taken.map(drop),
                    }
                })
            }
            ObjectScope::Objects(objects) => objects.iter().try_for_each(|id| {
                check_object_exists(&ViewWithEdits::without_edits(&view), *id)?;
                match oid::kind(*id) {
                    ObjectKind::Dataset => {
                        self.datasets.get_or_open(&self.session, *id)?.advance_to_committed(&view).map(drop)
                    }
                    _ => Ok(()),
                }
            }),
        }
    }

    fn liveness(&self) -> Result<WriterLiveness> {
        self.session.check_open()?;
        if self.session.info.mode.writes() {
            return Ok(WriterLiveness::AtRest);
        }
        Ok(if self.session.engine.has_writer()? { WriterLiveness::Live } else { WriterLiveness::AtRest })
    }

    fn watch(&self, objects: &[ObjectId]) -> Result<Box<dyn Watch>> {
        self.session.read(|state| objects.iter().try_for_each(|id| check_object_exists(state, *id)))?;
        Ok(Box::new(KvWatch::new(self.session.clone())?))
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }

    fn close(&self) -> Result<()> {
        self.session.close()
    }

    fn writer(&self) -> Result<&dyn StoreWriter> {
        self.session.check_writable()?;
        Ok(self)
    }

    fn maps(&self) -> Option<&dyn MapStore> {
        Some(self)
    }
}

impl StoreWriter for KvStore {
    fn create(&self, new: &NewObject<'_>) -> Result<ObjectId> {
        self.session.change(|state| object_edits::create(state, new))
    }

    fn discard(&self, id: ObjectId) -> Result<()> {
        self.session.change(|state| object_edits::delete_if_unreferenced(state, id, &self.session.deletion_context))
    }

    fn add_link(&self, group: ObjectId, name: &Name, target: &LinkTarget) -> Result<()> {
        self.session.change(|state| object_edits::add_link(state, group, name, target))
    }

    fn remove_link(&self, group: ObjectId, name: &Name) -> Result<()> {
        self.session.change(|state| object_edits::remove_link(state, group, name, &self.session.deletion_context))
    }

    fn rename_link(&self, from: (ObjectId, &Name), to: (ObjectId, &Name)) -> Result<()> {
        self.session.change(|state| object_edits::rename_link(state, from, to))
    }

    fn set_attribute(&self, id: ObjectId, attribute: &AttributeData) -> Result<()> {
        self.session.change(|state| object_edits::set_attribute(state, id, attribute, &self.session.deletion_context))
    }

    fn remove_attribute(&self, id: ObjectId, name: &Name) -> Result<()> {
        self.session.change(|state| object_edits::remove_attribute(state, id, name, &self.session.deletion_context))
    }

    fn set_info(&self, id: ObjectId, change: &ObjectInfoChange<'_>) -> Result<()> {
        self.session.change(|state| object_edits::change_comment_or_times(state, id, change))
    }

    fn put_blob(&self, bytes: &[u8], count: u32) -> Result<Vec<u8>> {
        self.put_blobs(&[(bytes, count)])
    }

    fn put_blobs(&self, blobs: &[(&[u8], u32)]) -> Result<Vec<u8>> {
        self.session.change(|state| {
            let mut elements = Vec::new();
            for (bytes, count) in blobs {
                let mut blob = BlobId::NULL;
                if *count > 0 {
                    blob = state.blob_ids.next_id();
                    state.put_concatenated(&key::blob(blob), &[bytes]);
                }
                elements.extend(VarLenBlobRef { element_count: *count, blob }.encode());
            }
            Ok(elements)
        })
    }

    fn remove_blobs(&self, elements: &[&[u8]]) -> Result<()> {
        let stored = elements.iter().map(|element| VarLenBlobRef::decode(element).map_err(invalid_argument_error));
        let stored = stored.collect::<Result<Vec<_>>>()?;
        self.session.change(|state| {
            stored.iter().filter(|stored| stored.has_blob()).for_each(|stored| state.delete(&key::blob(stored.blob)));
            Ok(())
        })
    }

    fn start_swmr(&self) -> Result<()> {
        self.session.commit(PublishLevel::Visible)
    }

    fn is_dirty(&self) -> bool {
        !self.session.state().edits.is_empty()
    }

    fn commit(&self, _: ObjectScope<'_>, publish: PublishLevel) -> Result<()> {
        self.session.commit(publish)
    }
}

/// A reference as the store keeps it.
fn encoded_reference(state: &ViewWithEdits<'_>, form: &ReferenceType, to: &Referent) -> Result<EncodedReference> {
    if to.file.is_none() {
        check_object_exists(state, to.object)?;
    }
    let rank = match &to.part {
        ReferentPart::Region(_) if to.file.is_none() => match objects::spec(state, to.object)?.body {
            h5live_model::ObjectKindSpec::Dataset(dataset) => dataset.dataspace.rank(),
            _ => return Err(ModelError::Invalid("only a dataset has regions".into())),
        },
        ReferentPart::Region(selection) => selection.rank().unwrap_or_default(),
        _ => 0,
    };
    EncodedReference::new(form.kind, to, rank).map_err(invalid_argument_error)
}

/// The element of a reference whose bytes are in `blob`.
fn reference_element(encoded: &EncodedReference, blob: BlobId, form: &ReferenceType) -> Result<Vec<u8>> {
    let element = encoded.encode_element(blob).map_err(invalid_argument_error)?;
    match element.len() == form.size as usize {
        true => Ok(element),
        false => Err(ModelError::Invalid(format!("such references have {} bytes here", element.len()))),
    }
}

//! A session on a file of a server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use h5live_model::{
    AttributeData, ChunkStore, DatasetSpec, Error, Link, MapStore, Mode, Name, ObjectId, ObjectInfo, ObjectKind,
    ObjectKindSpec, ObjectScope, ObjectSpec, ReferenceKind, ReferenceType, Referent, ReferentPart, Result, SessionInfo,
    Stats, Store, StoreErrorKind, StoreWriter, Watch, WriterLiveness,
};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::client::ServedClient;
use crate::dataset::ServedDataset;
use crate::events::ServedWatch;
use crate::protocol::{
    AttributesAnswer, AttributesRequest, BlobsAnswer, BlobsRequest, LinksAnswer, LinksRequest, MAX_REQUEST_BYTES,
    ObjectRecord, ReferenceAnswer, ReferenceRequest, ReferentAnswer, ReferentRequest, SessionAnswer,
};
use crate::shared::ServedShared;

/// A session on a file of a server.
#[derive(Debug)]
pub(crate) struct ServedStore {
    session: SessionInfo,
    shared: Arc<ServedShared>,
    datasets: Mutex<FxHashMap<ObjectId, Weak<ServedDataset>>>,
    is_abandoned: AtomicBool,
    is_closed: AtomicBool,
}

fn is_group(record: &ObjectRecord) -> Result<()> {
    match record.spec.body {
        ObjectKindSpec::Group(_) => Ok(()),
        _ => Err(Error::WrongKind { expected: "group" }),
    }
}

impl ServedStore {
    pub fn new(client: Arc<ServedClient>, session: SessionInfo, opened: &SessionAnswer) -> Self {
        let shared = ServedShared::new(client, opened.incarnation, session.mode == Mode::SwmrRead);
        ServedStore {
            session,
            shared: Arc::new(shared),
            datasets: Mutex::default(),
            is_abandoned: AtomicBool::new(opened.is_abandoned),
            is_closed: AtomicBool::new(false),
        }
    }

    /// The dataset, if it is in use.
    fn open_dataset(&self, id: ObjectId) -> Option<Arc<ServedDataset>> {
        self.datasets.lock().get(&id)?.upgrade()
    }

    fn ask_session(&self) -> Result<SessionAnswer> {
        // Its body is not looked at, and any message will do.
        let mut request = LinksRequest { incarnation: self.shared.file_incarnation(), ..LinksRequest::default() };
        Ok(self.shared.client().call_with_retry("session", &mut request)?)
    }
}

impl Store for ServedStore {
    fn session(&self) -> &SessionInfo {
        &self.session
    }

    fn kind(&self, id: ObjectId) -> Result<ObjectKind> {
        Ok(match self.shared.get_or_fetch_record(id)?.spec.body {
            ObjectKindSpec::Group(_) => ObjectKind::Group,
            ObjectKindSpec::Dataset(_) => ObjectKind::Dataset,
            ObjectKindSpec::Datatype(_) => ObjectKind::Datatype,
            ObjectKindSpec::Map(_) => ObjectKind::Map,
        })
    }

    fn spec(&self, id: ObjectId) -> Result<ObjectSpec> {
        let mut spec = self.shared.get_or_fetch_record(id)?.spec.clone();
        if let (ObjectKindSpec::Dataset(found), Some(open)) = (&mut spec.body, self.open_dataset(id)) {
            **found = DatasetSpec::clone(&*open.spec()?);
        }
        Ok(spec)
    }

    fn info(&self, id: ObjectId) -> Result<ObjectInfo> {
        Ok(self.shared.get_or_fetch_record(id)?.info.clone())
    }

    fn link(&self, group: ObjectId, name: &Name) -> Result<Option<Link>> {
        let record = self.shared.get_or_fetch_record(group)?;
        is_group(&record)?;
        if let Some(links) = &record.links_if_few {
            return Ok(links.iter().find(|link| link.name == *name).cloned());
        }
        let incarnation = self.shared.file_incarnation();
        let mut request = LinksRequest { incarnation, group, name: Some(name.clone()) };
        let answer: LinksAnswer = self.shared.client().call_with_retry("links", &mut request)?;
        Ok(answer.links.into_iter().find(|link| link.name == *name))
    }

    fn for_each_link(&self, group: ObjectId, each: &mut dyn FnMut(Link) -> bool) -> Result<()> {
        let record = self.shared.get_or_fetch_record(group)?;
        is_group(&record)?;
        if let Some(links) = &record.links_if_few {
            let _all = links.iter().cloned().all(each);
            return Ok(());
        }
        let mut request = LinksRequest { incarnation: self.shared.file_incarnation(), group, name: None };
        let answer: LinksAnswer = self.shared.client().call_with_retry("links", &mut request)?;
        let _all = answer.links.into_iter().all(each);
        Ok(())
    }

    fn attribute(&self, id: ObjectId, name: &Name) -> Result<Option<AttributeData>> {
        if let Some(attributes) = &self.shared.get_or_fetch_record(id)?.attributes_if_small {
            return Ok(attributes.iter().find(|attribute| attribute.name == *name).cloned());
        }
        let found = self.ask_for_attributes(id, Some(name.clone()), false)?;
        Ok(found.into_iter().find(|attribute| attribute.name == *name))
    }

    fn attribute_names(&self, id: ObjectId) -> Result<Vec<Name>> {
        let found = match &self.shared.get_or_fetch_record(id)?.attributes_if_small {
            Some(attributes) => return Ok(attributes.iter().map(|attribute| attribute.name.clone()).collect()),
            None => self.ask_for_attributes(id, None, true)?,
        };
        Ok(found.into_iter().map(|attribute| attribute.name).collect())
    }

    fn for_each_attribute(&self, id: ObjectId, each: &mut dyn FnMut(AttributeData) -> bool) -> Result<()> {
        let found = match &self.shared.get_or_fetch_record(id)?.attributes_if_small {
            Some(attributes) => attributes.clone(),
            None => self.ask_for_attributes(id, None, false)?,
        };
        let _all = found.into_iter().all(each);
        Ok(())
    }

    fn dataset(&self, id: ObjectId) -> Result<Arc<dyn ChunkStore>> {
        if let Some(open) = self.open_dataset(id) {
            return Ok(open);
        }
        let record = self.shared.get_or_fetch_record(id)?;
        let ObjectKindSpec::Dataset(spec) = &record.spec.body else {
            return Err(Error::WrongKind { expected: "dataset" });
        };
        let mut datasets = self.datasets.lock();
        // Another thread may have opened it meanwhile.
        if let Some(open) = datasets.get(&id).and_then(Weak::upgrade) {
            return Ok(open);
        }
        let new = Arc::new(ServedDataset::new(id, self.shared.clone(), (**spec).clone()));
        if datasets.len() >= datasets.capacity() {
            datasets.retain(|_, open| open.strong_count() > 0);
        }
        datasets.insert(id, Arc::downgrade(&new));
        Ok(new)
    }

    fn read_blobs(&self, elements: &[&[u8]], each: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        let size = (self.session.vlen_and_reference_sizes.vlen as usize).max(1);
        if elements.iter().any(|element| element.len() != size) {
            return Err(Error::Invalid(format!("a variable-length element has {size} bytes here")));
        }
        let (mut done, at_a_time) = (0, (MAX_REQUEST_BYTES / 2 / size).max(1));
        while done < elements.len() {
            let asked = &elements[done..elements.len().min(done + at_a_time)];
            let mut request = BlobsRequest { incarnation: self.shared.file_incarnation(), elements: asked.concat() };
            let answer: BlobsAnswer = self.shared.client().call_with_retry("blobs", &mut request)?;
            if answer.blobs.is_empty() || answer.blobs.len() > asked.len() {
                let what = "the server sends another number of elements than was asked for";
                return Err(Error::store(StoreErrorKind::Damaged, std::io::Error::other(what)));
            }
            for blob in &answer.blobs {
                each(done, blob);
                done += 1;
            }
        }
        Ok(())
    }

    fn referent(&self, kind: ReferenceKind, element: &[u8]) -> Result<Option<Referent>> {
        let (incarnation, element) = (self.shared.file_incarnation(), element.to_vec());
        let answer: ReferentAnswer =
            self.shared.client().call_with_retry("referent", &mut ReferentRequest { incarnation, kind, element })?;
        Ok(answer.referent)
    }

    fn encode_reference(&self, form: &ReferenceType, to: &Referent) -> Result<Vec<u8>> {
        if to.file.is_some() || to.part != ReferentPart::Whole {
            return self.writer().and(Err(Error::ReadOnly));
        }
        let (incarnation, object) = (self.shared.file_incarnation(), to.object);
        let mut request = ReferenceRequest { incarnation, kind: form.kind, size: form.size, object };
        let answer: ReferenceAnswer = self.shared.client().call_with_retry("reference", &mut request)?;
        Ok(answer.element)
    }

    fn refresh(&self, scope: ObjectScope<'_>) -> Result<()> {
        if !self.shared.is_swmr_read() {
            return Ok(());
        }
        let ids: Vec<ObjectId> = match scope {
            ObjectScope::All => {
                self.shared.invalidate_all();
                let datasets = self.datasets.lock();
                datasets.iter().filter(|(_, open)| open.strong_count() > 0).map(|(id, _)| *id).collect()
            }
            ObjectScope::Objects(ids) => {
                self.shared.invalidate(ids);
                ids.iter().copied().filter(|id| self.open_dataset(*id).is_some()).collect()
            }
        };
        self.shared.fetch_into_cache(&ids)?;
        for id in ids {
            let Some(open) = self.open_dataset(id) else { continue };
            match self.shared.get_or_fetch_record(id).map(|record| record.spec.body.clone()) {
                Ok(ObjectKindSpec::Dataset(spec)) => drop(open.set_spec_and_check_resize(&spec)),
                Ok(_) | Err(Error::NoObject(_)) => open.set_gone(),
                // It keeps what it was.
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn liveness(&self) -> Result<WriterLiveness> {
        if !self.shared.is_swmr_read() {
            return Ok(WriterLiveness::AtRest);
        }
        let answer = self.ask_session()?;
        if answer.incarnation != self.shared.file_incarnation() {
            return Err(crate::error::ServedError::Replaced.into());
        }
        self.is_abandoned.store(answer.is_abandoned, Ordering::Relaxed);
        Ok(answer.liveness)
    }

    fn is_abandoned(&self) -> Result<bool> {
        Ok(self.is_abandoned.load(Ordering::Relaxed))
    }

    fn watch(&self, _: &[ObjectId]) -> Result<Box<dyn Watch>> {
        Ok(Box::new(ServedWatch::new(self.shared.get_or_start_event_stream())))
    }

    fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        stats.bytes_read = self.shared.client().http().bytes_read();
        stats.retries = self.shared.client().retries();
        stats.hits = self.shared.hit_and_fetch_counts().0;
        stats.misses = self.shared.hit_and_fetch_counts().1;
        stats
    }

    fn close(&self) -> Result<()> {
        self.is_closed.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn writer(&self) -> Result<&dyn StoreWriter> {
        match self.is_closed.load(Ordering::Relaxed) {
            true => Err(Error::Closed),
            false => Err(Error::ReadOnly),
        }
    }

    fn maps(&self) -> Option<&dyn MapStore> {
        None
    }
}

impl ServedStore {
    fn ask_for_attributes(&self, object: ObjectId, name: Option<Name>, are_names: bool) -> Result<Vec<AttributeData>> {
        let incarnation = self.shared.file_incarnation();
        let mut request = AttributesRequest { incarnation, object, name, are_names };
        let answer: AttributesAnswer = self.shared.client().call_with_retry("attributes", &mut request)?;
        Ok(answer.attributes)
    }
}

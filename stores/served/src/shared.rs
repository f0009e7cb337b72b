//! What a session and its datasets share: what is known of objects, and how more is asked for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use h5live_model::{Error, ObjectId, Result, StoreErrorKind};
use parking_lot::Mutex;

use crate::client::ServedClient;
use crate::events::EventStream;
use crate::object_cache::ObjectCache;
use crate::protocol::{MAX_REQUEST_OBJECTS, ObjectRecord, ObjectsAnswer, ObjectsRequest};

/// Objects that are asked for with one, before any of them is needed.
const OBJECTS_AHEAD: usize = 512;

/// What a session and its datasets share.
#[derive(Debug)]
pub(crate) struct ServedShared {
    client: Arc<ServedClient>,
    incarnation: u64,
    is_live: bool,
    objects: Mutex<ObjectCache>,
    events: Mutex<Weak<EventStream>>,
    fetched: AtomicU64,
    known: AtomicU64,
}

impl ServedShared {
    pub fn new(client: Arc<ServedClient>, incarnation: u64, is_swmr_read: bool) -> Self {
        let (objects, fetched, known) = Default::default();
        ServedShared {
            client,
            incarnation,
            is_live: is_swmr_read,
            objects,
            events: Mutex::new(Weak::new()),
            fetched,
            known,
        }
    }

    /// Whether the session follows a writer.
    pub fn is_swmr_read(&self) -> bool {
        self.is_live
    }

    /// Objects that were needed and known, and those that the server has sent.
    pub fn hit_and_fetch_counts(&self) -> (u64, u64) {
        (self.known.load(Ordering::Relaxed), self.fetched.load(Ordering::Relaxed))
    }

    /// Nothing that is known holds any more.
    pub fn invalidate_all(&self) {
        self.objects.lock().invalidate_all();
    }

    /// What is known of objects does not hold any more.
    pub fn invalidate(&self, ids: &[ObjectId]) {
        self.objects.lock().invalidate(ids);
    }

    pub fn client(&self) -> &ServedClient {
        &self.client
    }

    /// Which file was opened.
    pub fn file_incarnation(&self) -> u64 {
        self.incarnation
    }

    fn messages(&self) -> u64 {
        self.events.lock().upgrade().map_or(0, |stream| stream.board().message_count())
    }

    /// What is known of an object, from the server if it is not known.
    pub fn get_or_fetch_record(&self, id: ObjectId) -> Result<Arc<ObjectRecord>> {
        let messages = self.messages();
        let (now, wanted) = {
            let mut objects = self.objects.lock();
            let now = objects.freshness_stamp(messages);
            if let Some(record) = objects.get(id, now, self.is_live) {
                self.known.fetch_add(1, Ordering::Relaxed);
                drop(objects);
                return usable(record);
            }
            (now, objects.take_fetch_batch(id, OBJECTS_AHEAD))
        };
        // What is known, and may have changed, is asked for alone.
        let others =
            if wanted.len() > 1 || self.fetched.load(Ordering::Relaxed) == 0 { OBJECTS_AHEAD as u32 } else { 0 };
        let found = self.fetch(wanted, others)?;
        let mut objects = self.objects.lock();
        objects.add(found, now);
        let record = objects.get(id, now, false);
        drop(objects);
        usable(record.ok_or(Error::NoObject(id))?)
    }

    /// What the server says of an object now.
    pub fn fetch_record(&self, id: ObjectId) -> Result<Arc<ObjectRecord>> {
        self.fetch_into_cache(&[id])?;
        let objects = self.objects.lock();
        let record = objects.get(id, objects.freshness_stamp(0), false);
        drop(objects);
        usable(record.ok_or(Error::NoObject(id))?)
    }

    /// Asks the server for objects, whether they are known or not.
    pub fn fetch_into_cache(&self, ids: &[ObjectId]) -> Result<()> {
        let messages = self.messages();
        let mut rest = ids;
        while !rest.is_empty() {
            let now = self.objects.lock().freshness_stamp(messages);
            let found = self.fetch(rest.iter().take(MAX_REQUEST_OBJECTS).copied().collect(), 0)?;
            rest = rest.get(found.len()..).unwrap_or_default();
            self.objects.lock().add(found, now);
        }
        Ok(())
    }

    fn fetch(&self, ids: Vec<ObjectId>, others: u32) -> Result<Vec<ObjectRecord>> {
        let asked = ids.clone();
        let mut request = ObjectsRequest { incarnation: self.incarnation, ids, others };
        let answer: ObjectsAnswer = self.client.call_with_retry("objects", &mut request)?;
        let is_asked = answer.objects.iter().zip(&asked).all(|(object, id)| object.id == *id);
        if answer.objects.is_empty() || !is_asked {
            let what = "the server sends objects that nobody asked for";
            return Err(Error::store(StoreErrorKind::Damaged, std::io::Error::other(what)));
        }
        self.fetched.fetch_add(answer.objects.len() as u64, Ordering::Relaxed);
        Ok(answer.objects)
    }

    pub fn get_or_start_event_stream(&self) -> Arc<EventStream> {
        let mut events = self.events.lock();
        if let Some(stream) = events.upgrade() {
            return stream;
        }
        let stream = Arc::new(EventStream::start(self.client.clone()));
        *events = Arc::downgrade(&stream);
        stream
    }
}

/// The record, unless the server could not read the object.
fn usable(record: Arc<ObjectRecord>) -> Result<Arc<ObjectRecord>> {
    match &record.failure {
        None => Ok(record),
        Some(failure) if failure.is_missing => Err(Error::NoObject(record.id)),
        Some(failure) => Err(Error::store(StoreErrorKind::Damaged, std::io::Error::other(failure.message.to_string()))),
    }
}

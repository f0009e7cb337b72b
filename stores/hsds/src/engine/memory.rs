//! Objects in memory, which can be made to fail.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use h5live_model::{DurabilitySupport, Result};
use parking_lot::Mutex;

use super::{
    DocumentPut, FetchedObject, ListedObject, ObjectChangeTag, ObjectEngine, ObjectPut, ObjectSink, RequestCounters,
    RequestCounts, Revalidation, key_in_bucket,
};
use crate::error::HsdsError;

#[derive(Debug, Default)]
struct MemoryObjects {
    objects: BTreeMap<String, (Arc<[u8]>, u64)>,
    next_tag: u64,
    has_writer: bool,
    changes_left: Option<u64>,
}

/// Objects in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryEngine {
    objects: Arc<Mutex<MemoryObjects>>,
    counters: Arc<RequestCounters>,
    is_writer: bool,
}

impl MemoryEngine {
    /// No objects, for a session that writes.
    pub fn new() -> Self {
        MemoryEngine::default().reopen_writer()
    }

    /// The same objects, for another session that writes. The one before has ended, or died.
    #[must_use]
    pub fn reopen_writer(&self) -> Self {
        self.objects.lock().has_writer = true;
        MemoryEngine { objects: self.objects.clone(), counters: Arc::default(), is_writer: true }
    }

    /// The same objects, for a session that reads.
    #[must_use]
    pub fn reader(&self) -> Self {
        MemoryEngine { objects: self.objects.clone(), counters: Arc::default(), is_writer: false }
    }

    /// Lets so many changes succeed from now on, and all later ones fail; `None`: all succeed.
    pub fn fail_after(&self, changes: Option<u64>) {
        self.objects.lock().changes_left = changes;
    }

    /// The keys of all objects.
    pub fn keys(&self) -> Vec<String> {
        self.objects.lock().objects.keys().cloned().collect()
    }
}

impl MemoryObjects {
    /// Counts a change of the medium.
    fn take_change(&mut self, key: &str) -> Result<()> {
        match &mut self.changes_left {
            Some(0) => {
                let source = io::Error::other("a failure was asked for");
                Err(HsdsError::Io { key: key.to_owned(), source }.into())
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn fetch(&self, key: &str) -> Option<FetchedObject> {
        let (bytes, tag) = self.objects.get(key)?;
        Some(FetchedObject { bytes: bytes.clone(), tag: ObjectChangeTag(tag.to_string()) })
    }
}

impl ObjectEngine for MemoryEngine {
    fn get(&self, key: &str) -> Result<Option<FetchedObject>> {
        self.counters.wave(&self.counters.gets, 1);
        Ok(self.objects.lock().fetch(key))
    }

    fn get_many(&self, keys: &[String], each: &ObjectSink<'_>) -> Result<()> {
        self.counters.wave(&self.counters.gets, keys.len());
        keys.iter().enumerate().try_for_each(|(number, key)| {
            let found = self.objects.lock().fetch(key);
            each(number, found)
        })
    }

    fn get_file_range(&self, uri: &str, start: u64, bytes: u64) -> Result<Vec<u8>> {
        let key = key_in_bucket(uri, "memory")?;
        let missing = || HsdsError::Io { key: uri.to_owned(), source: io::ErrorKind::NotFound.into() };
        let found = self.get(key)?.ok_or_else(missing)?;
        let range = usize::try_from(start).ok().zip(usize::try_from(start.saturating_add(bytes)).ok());
        let part = range.and_then(|(start, end)| found.bytes.get(start..end));
        let short = || HsdsError::Io { key: uri.to_owned(), source: io::ErrorKind::UnexpectedEof.into() };
        Ok(part.ok_or_else(short)?.to_vec())
    }

    fn revalidate(&self, key: &str, tag: &ObjectChangeTag) -> Result<Revalidation> {
        Ok(match self.get(key)? {
            None => Revalidation::Gone,
            Some(found) if found.tag == *tag => Revalidation::Same,
            Some(found) => Revalidation::Newer(found),
        })
    }

    fn put_many(&self, puts: Vec<ObjectPut>) -> Result<Vec<ObjectChangeTag>> {
        self.counters.wave(&self.counters.puts, puts.len());
        let put = |put: ObjectPut| {
            let mut objects = self.objects.lock();
            objects.take_change(&put.key)?;
            objects.next_tag += 1;
            let tag = objects.next_tag;
            RequestCounters::add_bytes(&self.counters.bytes_written, put.bytes.len());
            objects.objects.insert(put.key, (put.bytes.into(), tag));
            Ok(ObjectChangeTag(tag.to_string()))
        };
        puts.into_iter().map(put).collect()
    }

    fn put_documents(&self, puts: Vec<DocumentPut>) -> Result<Vec<ObjectChangeTag>> {
        for DocumentPut { object, expected_tag: replaces } in &puts {
            let found = self.objects.lock().fetch(&object.key);
            if replaces.is_some() && found.map(|found| found.tag) != *replaces {
                return Err(HsdsError::DocumentChanged(object.key.clone()).into());
            }
        }
        self.put_many(puts.into_iter().map(|put| put.object).collect())
    }

    fn delete_many(&self, keys: &[String]) -> Result<()> {
        self.counters.wave(&self.counters.deletes, keys.len());
        keys.iter().try_for_each(|key| {
            let mut objects = self.objects.lock();
            objects.take_change(key)?;
            objects.objects.remove(key);
            Ok(())
        })
    }

    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>> {
        self.counters.wave(&self.counters.lists, 1);
        let objects = self.objects.lock();
        let found = objects.objects.range(prefix.to_owned()..).take_while(|(key, _)| key.starts_with(prefix));
        Ok(found
            .map(|(key, (bytes, _))| ListedObject { key: key.clone(), size: bytes.len() as u64, modified: None })
            .collect())
    }

    fn durability(&self) -> DurabilitySupport {
        DurabilitySupport::Never
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn has_writer(&self) -> Result<bool> {
        Ok(self.objects.lock().has_writer)
    }

    fn close(&self) -> Result<()> {
        if self.is_writer {
            self.objects.lock().has_writer = false;
        }
        Ok(())
    }

    fn close_never_created(&self) -> Result<()> {
        self.close()
    }

    fn counts(&self) -> RequestCounts {
        self.counters.counts()
    }
}

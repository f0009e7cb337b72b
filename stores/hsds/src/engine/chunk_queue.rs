//! An engine before which chunks wait until many of them can be written at once.
//!
//! A put to an object store takes tens of milliseconds, whatever it has. A thousand datasets of one chunk each, or a caller that
//! writes chunk by chunk, would wait for each of them. So chunks that come in small numbers are kept, and written in one wave of
//! requests. Everything else that is asked of the engine comes after them: no document is written before the chunks that it leads
//! to, and the session reads what it has written.

use std::collections::HashMap;

use h5live_model::{DurabilitySupport, Result};
use parking_lot::Mutex;

use super::{
    ClaimState, DocumentPut, FetchedObject, ListedObject, ObjectChangeTag, ObjectEngine, ObjectPut, ObjectSink,
    PollPauses, RequestCounts, Revalidation,
};

/// So many chunks are written at once, or so many bytes. Those that come in such numbers do not wait.
const WAVE_CHUNKS: usize = 64;
const WAVE_BYTES: usize = 8 << 20;

/// An engine, and chunks that wait to be written.
#[derive(Debug)]
pub struct ChunkBatchingEngine {
    engine: Box<dyn ObjectEngine>,
    /// Locked while they are written: what has to come after them waits.
    queue: Mutex<ChunkQueue>,
}

/// Chunks that wait, each key once.
#[derive(Debug, Default)]
struct ChunkQueue {
    puts: Vec<ObjectPut>,
    places: HashMap<String, usize>,
    bytes: usize,
}

impl ChunkQueue {
    fn push(&mut self, put: ObjectPut) {
        self.bytes += put.bytes.len();
        match self.places.get(&put.key).and_then(|place| self.puts.get_mut(*place)) {
            Some(earlier) => {
                self.bytes -= earlier.bytes.len();
                *earlier = put;
            }
            None => {
                self.places.insert(put.key.clone(), self.puts.len());
                self.puts.push(put);
            }
        }
    }

    /// Writes all. They still wait if that fails.
    fn write(&mut self, engine: &dyn ObjectEngine) -> Result<()> {
        if self.puts.is_empty() {
            return Ok(());
        }
        engine.put_many(self.puts.clone())?;
        *self = ChunkQueue::default();
        Ok(())
    }
}

impl ChunkBatchingEngine {
    /// An engine before which nothing waits.
    pub fn new(engine: Box<dyn ObjectEngine>) -> Self {
        ChunkBatchingEngine { engine, queue: Mutex::default() }
    }

    /// Writes chunks, now or before anything else is asked of the engine.
    ///
    /// # Errors
    /// As [`ObjectEngine::put_many`], also of chunks that came earlier. Those still wait then, and these do not.
    pub fn put_or_queue_chunks(&self, puts: Vec<ObjectPut>) -> Result<()> {
        let bytes: usize = puts.iter().map(|put| put.bytes.len()).sum();
        let mut queue = self.queue.lock();
        if puts.len() >= WAVE_CHUNKS || bytes >= WAVE_BYTES {
            queue.write(&*self.engine)?;
            drop(queue);
            return self.engine.put_many(puts).map(drop);
        }
        if queue.puts.len() + puts.len() > WAVE_CHUNKS || queue.bytes + bytes > WAVE_BYTES {
            queue.write(&*self.engine)?;
        }
        puts.into_iter().for_each(|put| queue.push(put));
        Ok(())
    }

    /// Writes the chunks that wait.
    ///
    /// # Errors
    /// As [`ObjectEngine::put_many`]. They still wait then.
    pub fn flush_queued_chunks(&self) -> Result<()> {
        self.queue.lock().write(&*self.engine)
    }

    /// Forgets the chunks that wait.
    pub fn discard_queued_chunks(&self) {
        *self.queue.lock() = ChunkQueue::default();
    }

    /// The engine, when no chunks wait.
    fn settled(&self) -> Result<&dyn ObjectEngine> {
        self.flush_queued_chunks().map(|()| &*self.engine)
    }
}

impl ObjectEngine for ChunkBatchingEngine {
    fn get(&self, key: &str) -> Result<Option<FetchedObject>> {
        self.settled()?.get(key)
    }

    fn get_many(&self, keys: &[String], each: &ObjectSink<'_>) -> Result<()> {
        self.settled()?.get_many(keys, each)
    }

    fn get_file_range(&self, uri: &str, start: u64, bytes: u64) -> Result<Vec<u8>> {
        self.settled()?.get_file_range(uri, start, bytes)
    }

    fn revalidate(&self, key: &str, tag: &ObjectChangeTag) -> Result<Revalidation> {
        self.settled()?.revalidate(key, tag)
    }

    fn put_many(&self, puts: Vec<ObjectPut>) -> Result<Vec<ObjectChangeTag>> {
        self.settled()?.put_many(puts)
    }

    fn put_documents(&self, puts: Vec<DocumentPut>) -> Result<Vec<ObjectChangeTag>> {
        self.settled()?.put_documents(puts)
    }

    fn delete_many(&self, keys: &[String]) -> Result<()> {
        self.settled()?.delete_many(keys)
    }

    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>> {
        self.settled()?.list(prefix)
    }

    fn folder_names(&self, prefix: &str) -> Result<Vec<String>> {
        self.settled()?.folder_names(prefix)
    }

    fn for_each_folder_name(&self, prefix: &str, each: &mut dyn FnMut(String) -> bool) -> Result<()> {
        self.settled()?.for_each_folder_name(prefix, each)
    }

    fn for_each_object(&self, prefix: &str, each: &mut dyn FnMut(ListedObject) -> bool) -> Result<()> {
        self.settled()?.for_each_object(prefix, each)
    }

    fn all_domain_document_keys(&self) -> Result<Vec<String>> {
        self.settled()?.all_domain_document_keys()
    }

    fn claim(&self, prefix: &str) -> Result<()> {
        self.engine.claim(prefix)
    }

    fn release_claim(&self, prefix: &str) -> Result<()> {
        self.settled()?.release_claim(prefix)
    }

    fn find_claim(&self, prefix: &str) -> Result<ClaimState> {
        self.engine.find_claim(prefix)
    }

    fn remove_abandoned_writes(&self) -> Result<()> {
        self.engine.remove_abandoned_writes()
    }

    fn durability(&self) -> DurabilitySupport {
        self.engine.durability()
    }

    fn sync(&self) -> Result<()> {
        self.settled()?.sync()
    }

    fn has_writer(&self) -> Result<bool> {
        self.engine.has_writer()
    }

    fn is_abandoned(&self) -> Result<bool> {
        self.engine.is_abandoned()
    }

    fn poll_pauses(&self) -> PollPauses {
        self.engine.poll_pauses()
    }

    /// What waits is forgotten: who commits before has nothing that waits.
    fn close(&self) -> Result<()> {
        self.discard_queued_chunks();
        self.engine.close()
    }

    fn close_never_created(&self) -> Result<()> {
        self.discard_queued_chunks();
        self.engine.close_never_created()
    }

    fn close_after_deletion(&self) -> Result<()> {
        self.settled()?.close_after_deletion()
    }

    fn counts(&self) -> RequestCounts {
        self.engine.counts()
    }
}

#[cfg(test)]
mod tests {
    use super::super::MemoryEngine;
    use super::*;

    fn chunk(number: u8, value: u8) -> ObjectPut {
        ObjectPut { key: format!("db/x/d/y/{number}"), bytes: vec![value; 4] }
    }

    #[test]
    fn chunks_of_a_wave_that_failed_still_wait_and_nothing_comes_before_them() {
        let objects = MemoryEngine::new();
        let engine = ChunkBatchingEngine::new(Box::new(objects.clone()));
        (0..10).for_each(|number| engine.put_or_queue_chunks(vec![chunk(number, number)]).unwrap());
        assert!(objects.keys().is_empty());
        // Three of them are written. A document is not written, and nothing is read, before the others are.
        objects.fail_after(Some(3));
        let document = || ObjectPut { key: "db/x/.dataset.json".to_owned(), bytes: b"{}".to_vec() };
        engine.put_documents(vec![DocumentPut { object: document(), expected_tag: None }]).unwrap_err();
        engine.get("db/x/d/y/9").unwrap_err();
        assert!(objects.keys().len() <= 3 && objects.keys().iter().all(|key| key.contains("/d/")));
        // One is written again meanwhile.
        engine.put_or_queue_chunks(vec![chunk(4, 77)]).unwrap();
        objects.fail_after(None);
        engine.put_documents(vec![DocumentPut { object: document(), expected_tag: None }]).unwrap();
        assert_eq!(objects.keys().len(), 11);
        for number in 0..10 {
            let value = if number == 4 { 77 } else { number };
            let found = objects.get(&format!("db/x/d/y/{number}")).unwrap().unwrap();
            assert_eq!(*found.bytes, [value; 4]);
        }
    }

    #[test]
    fn what_waits_is_forgotten_when_the_session_ends_without_a_commit() {
        let objects = MemoryEngine::new();
        let engine = ChunkBatchingEngine::new(Box::new(objects.clone()));
        engine.put_or_queue_chunks(vec![chunk(1, 1)]).unwrap();
        engine.close().unwrap();
        engine.flush_queued_chunks().unwrap();
        assert!(objects.keys().is_empty());
    }

    #[test]
    fn many_chunks_do_not_wait_and_come_after_those_that_did() {
        let objects = MemoryEngine::new();
        let engine = ChunkBatchingEngine::new(Box::new(objects.clone()));
        engine.put_or_queue_chunks(vec![chunk(1, 1), chunk(200, 2)]).unwrap();
        engine.put_or_queue_chunks((0..64).map(|number| chunk(number, 9)).collect()).unwrap();
        assert_eq!((objects.keys().len(), engine.counts().waves), (65, 2));
        assert_eq!(*objects.get("db/x/d/y/1").unwrap().unwrap().bytes, [9; 4]);
        // So do many bytes.
        engine
            .put_or_queue_chunks(vec![ObjectPut { key: "db/x/d/y/large".to_owned(), bytes: vec![0; WAVE_BYTES] }])
            .unwrap();
        assert_eq!(objects.keys().len(), 66);
    }
}

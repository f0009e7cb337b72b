//! An engine whose answer to one write is lost, though it has written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use h5live_hsds::HsdsError;
use h5live_hsds::engine::{
    DocumentPut, FetchedObject, ListedObject, MemoryEngine, ObjectChangeTag, ObjectEngine, ObjectPut, ObjectSink,
    RequestCounts, Revalidation,
};
use h5live_model::{DurabilitySupport, Result};

/// An engine that writes documents, and answers with an error the first time that one with this name is among them.
#[derive(Debug, Clone)]
pub struct LostAnswer {
    objects: MemoryEngine,
    name: &'static str,
    is_lost: Arc<AtomicBool>,
}

impl LostAnswer {
    /// Over objects, for the documents with this name in whatever folder.
    pub fn to(name: &'static str, objects: MemoryEngine) -> Self {
        LostAnswer { objects, name, is_lost: Arc::default() }
    }

    /// Whether the answer was lost.
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }
}

impl ObjectEngine for LostAnswer {
    pass_on! {
        get(key: &str) -> Result<Option<FetchedObject>>;
        get_many(keys: &[String], each: &ObjectSink<'_>) -> Result<()>;
        get_file_range(uri: &str, start: u64, bytes: u64) -> Result<Vec<u8>>;
        revalidate(key: &str, tag: &ObjectChangeTag) -> Result<Revalidation>;
        put_many(puts: Vec<ObjectPut>) -> Result<Vec<ObjectChangeTag>>;
        delete_many(keys: &[String]) -> Result<()>;
        list(prefix: &str) -> Result<Vec<ListedObject>>;
        durability() -> DurabilitySupport;
        sync() -> Result<()>;
        has_writer() -> Result<bool>;
        close() -> Result<()>;
        close_never_created() -> Result<()>;
        counts() -> RequestCounts;
    }

    fn put_documents(&self, puts: Vec<DocumentPut>) -> Result<Vec<ObjectChangeTag>> {
        let is_among = puts.iter().any(|put| put.object.key.rsplit('/').next() == Some(self.name));
        let tags = self.objects.put_documents(puts)?;
        match is_among && !self.is_lost.swap(true, Ordering::Relaxed) {
            true => Err(HsdsError::NoDomain("the answer was lost".to_owned()).into()),
            false => Ok(tags),
        }
    }
}

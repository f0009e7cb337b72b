//! What keeps objects: keys and bytes. One object is written at once, and nothing beyond that.

#[cfg(feature = "clouds")]
mod bucket;
mod chunk_queue;
mod folder;
mod memory;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use h5live_model::{DurabilitySupport, Result};

use crate::layout::DOMAIN_FILE;
pub(crate) use crate::layout::OBJECTS_FOLDER;

#[cfg(feature = "clouds")]
pub use bucket::{BucketEngine, BucketOptions, LeaseOptions};
pub(crate) use chunk_queue::ChunkBatchingEngine;
pub use folder::FolderEngine;
pub use memory::MemoryEngine;

/// What changes when an object is written again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectChangeTag(pub String);

/// An object that was read.
#[derive(Debug, Clone)]
pub struct FetchedObject {
    /// The bytes.
    pub bytes: Arc<[u8]>,
    /// Its tag.
    pub tag: ObjectChangeTag,
}

/// An object that is to be written.
#[derive(Debug, Clone)]
pub struct ObjectPut {
    /// The key.
    pub key: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A document that is to be written.
#[derive(Debug)]
pub struct DocumentPut {
    /// The object.
    pub object: ObjectPut,
    /// The state that it replaces; `None`: it is new, or whatever is there is replaced.
    pub expected_tag: Option<ObjectChangeTag>,
}

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// The key.
    pub key: String,
    /// Its size (bytes).
    pub size: u64,
    /// When it was written; `None` if nobody knows.
    pub modified: Option<SystemTime>,
}

/// What is known of the session that makes the objects with a prefix, or replaces them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimState {
    /// No session has said that it does.
    Absent,
    /// It is alive, or may be.
    Held,
    /// It has ended without an end of its claim.
    Abandoned,
}

/// What is there of an object that was read before.
#[derive(Debug)]
pub enum Revalidation {
    /// What was read.
    Same,
    /// Something newer.
    Newer(FetchedObject),
    /// Nothing.
    Gone,
}

/// The pauses of a reader between two looks whether something was committed. Each is twice as long as the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollPauses {
    /// The first one, after something was found.
    pub first: Duration,
    /// The longest one.
    pub longest: Duration,
    /// Whether a reader that asks again goes on with them, because each look costs requests. Otherwise each question is a
    /// look.
    pub continues_across_waits: bool,
}

impl PollPauses {
    /// Those of stores on this machine.
    pub const LOCAL: PollPauses = PollPauses {
        first: Duration::from_millis(1),
        longest: Duration::from_millis(250),
        continues_across_waits: false,
    };
}

/// Takes what is found of each of several objects: its number, and the object if it is there. Any order, any thread.
pub type ObjectSink<'a> = dyn Fn(usize, Option<FetchedObject>) -> Result<()> + Sync + 'a;

/// Keeps objects. What was put is seen by the next read, of any process.
pub trait ObjectEngine: Send + Sync + fmt::Debug {
    /// An object; `None` if it is not there.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    fn get(&self, key: &str) -> Result<Option<FetchedObject>>;

    /// Several objects, in one wave of requests.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`], and the first error of `each`.
    fn get_many(&self, keys: &[String], each: &ObjectSink<'_>) -> Result<()>;

    /// Bytes of a file that a document names by a URI: `bucket/path`, or with a scheme in front. It is in the same bucket.
    ///
    /// # Errors
    /// [`h5live_model::Error::Unsupported`] for another bucket; [`h5live_model::Error::Store`], also if the bytes are not there.
    fn get_file_range(&self, uri: &str, start: u64, len: u64) -> Result<Vec<u8>>;

    /// What is there of an object whose tag is known.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    fn revalidate(&self, key: &str, tag: &ObjectChangeTag) -> Result<Revalidation>;

    /// Writes several objects, in one wave of requests. Each is written at once. Returns their tags.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`]; some may have been written.
    fn put_many(&self, puts: Vec<ObjectPut>) -> Result<Vec<ObjectChangeTag>>;

    /// The same for documents. An engine that has conditional writes refuses to replace another state than the one that is
    /// named.
    ///
    /// # Errors
    /// [`HsdsError::DocumentChanged`](crate::HsdsError::DocumentChanged), and as [`ObjectEngine::put_many`].
    fn put_documents(&self, puts: Vec<DocumentPut>) -> Result<Vec<ObjectChangeTag>>;

    /// Deletes several objects. Those that are not there are passed over.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`]; some may have been deleted.
    fn delete_many(&self, keys: &[String]) -> Result<()>;

    /// All objects whose keys begin with `prefix`, which ends with a slash, or is empty.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>>;

    /// The names one level below `prefix`, which ends with a slash, that have objects below them.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    fn folder_names(&self, prefix: &str) -> Result<Vec<String>> {
        let listed = self.list(prefix)?;
        let folder = |object: ListedObject| Some(object.key.strip_prefix(prefix)?.split_once('/')?.0.to_owned());
        let names: BTreeSet<String> = listed.into_iter().filter_map(folder).collect();
        Ok(names.into_iter().collect())
    }

    /// The same names, one after the other, as the medium lists them. `each` returns whether to go on.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    fn for_each_folder_name(&self, prefix: &str, each: &mut dyn FnMut(String) -> bool) -> Result<()> {
        self.folder_names(prefix)?.into_iter().all(each);
        Ok(())
    }

    /// The objects whose keys begin with `prefix`, one after the other. `each` returns whether to go on.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    fn for_each_object(&self, prefix: &str, each: &mut dyn FnMut(ListedObject) -> bool) -> Result<()> {
        self.list(prefix)?.into_iter().all(each);
        Ok(())
    }

    /// The keys of the objects of all domains and folders in the bucket. What is below `db/` is not listed.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    fn all_domain_document_keys(&self) -> Result<Vec<String>> {
        let listed = self.list("")?.into_iter().map(|object| object.key);
        Ok(listed.filter(|key| is_domain_key(key)).collect())
    }

    /// Says, as long as this session lives, that it makes or replaces the objects with a prefix, or deletes them: they belong
    /// to it although no domain names them. Whoever has claimed them before and has ended writes nothing more.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`]: another session has claimed them; those of the medium.
    fn claim(&self, _prefix: &str) -> Result<()> {
        Ok(())
    }

    /// Ends a claim of this session.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    fn release_claim(&self, _prefix: &str) -> Result<()> {
        Ok(())
    }

    /// Who has claimed the objects with a prefix.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    fn find_claim(&self, _prefix: &str) -> Result<ClaimState> {
        Ok(ClaimState::Absent)
    }

    /// Removes what processes have left that have died while they wrote an object.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    fn remove_abandoned_writes(&self) -> Result<()> {
        Ok(())
    }

    /// Whether what was put outlasts a power failure.
    fn durability(&self) -> DurabilitySupport;

    /// Makes what was put outlast a power failure; from now on, no put endangers what outlasts one.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    fn sync(&self) -> Result<()>;

    /// Whether a session writes the domain.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    fn has_writer(&self) -> Result<bool>;

    /// Whether the session that wrote the domain last has ended without its end: its process has died. `false` if a session
    /// writes, or nobody can tell.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    fn is_abandoned(&self) -> Result<bool> {
        Ok(false)
    }

    /// How often a reader looks whether something was committed.
    fn poll_pauses(&self) -> PollPauses {
        PollPauses::LOCAL
    }

    /// Ends the session on the objects: others may write.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    fn close(&self) -> Result<()>;

    /// Ends the session on a domain that never came to be, and removes what tells other writers of it.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    fn close_never_created(&self) -> Result<()>;

    /// Ends the session on a domain that it has deleted, and removes what tells other writers of it.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`].
    fn close_after_deletion(&self) -> Result<()> {
        self.close()
    }

    /// The requests so far.
    fn counts(&self) -> RequestCounts;
}

/// In buckets, the name of the object that says who has claimed the objects beside it.
pub const BUCKET_CLAIM_FILE: &str = ".h5live.claim.json";

/// Whether a key is that of a domain or a folder of domains.
fn is_domain_key(key: &str) -> bool {
    key == DOMAIN_FILE || key.strip_suffix(DOMAIN_FILE).is_some_and(|folder| folder.ends_with('/'))
}

/// The key of the file that a URI names, in a bucket of this name.
fn key_in_bucket<'a>(uri: &'a str, bucket: &str) -> Result<&'a str> {
    let path = uri.split_once("://").map_or(uri, |(_, path)| path);
    let key = path.split_once('/').filter(|(named, _)| *named == bucket).map(|(_, key)| key);
    let is_inside = |key: &&str| !key.split('/').any(|part| matches!(part, "" | "." | ".."));
    key.filter(is_inside).ok_or(OTHER_BUCKET)
}

/// What is said of a file that is not in the bucket.
const OTHER_BUCKET: h5live_model::Error =
    h5live_model::Error::Unsupported("a file of another bucket, which a dataset names,");

/// Requests of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestCounts {
    /// Objects that were asked for, conditionally too.
    pub gets: u64,
    /// Objects that were written.
    pub puts: u64,
    /// Objects that were deleted.
    pub deletes: u64,
    /// Listings.
    pub lists: u64,
    /// How often a caller waited: requests of one wave are under way together.
    pub waves: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

/// Counts requests.
#[derive(Debug, Default)]
struct RequestCounters {
    gets: AtomicU64,
    puts: AtomicU64,
    deletes: AtomicU64,
    lists: AtomicU64,
    waves: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
}

impl RequestCounters {
    fn wave(&self, of: &AtomicU64, requests: usize) {
        of.fetch_add(requests as u64, Ordering::Relaxed);
        self.waves.fetch_add(u64::from(requests > 0), Ordering::Relaxed);
    }

    fn add_bytes(of: &AtomicU64, bytes: usize) {
        of.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn counts(&self) -> RequestCounts {
        let number = |of: &AtomicU64| of.load(Ordering::Relaxed);
        RequestCounts {
            gets: number(&self.gets),
            puts: number(&self.puts),
            deletes: number(&self.deletes),
            lists: number(&self.lists),
            waves: number(&self.waves),
            bytes_read: number(&self.bytes_read),
            bytes_written: number(&self.bytes_written),
        }
    }
}

//! Variable-length elements that were overwritten: when the store is told that nothing leads to their bytes any more.
//!
//! A thread that reads such elements first reads where their bytes are, and then the bytes. So the store is told while no
//! thread of this process reads any. Threads that begin later read the new elements. Other processes are the matter of
//! the store ([`h5live_model::StoreWriter::remove_blobs`]).

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use h5live_model::{Datatype, Result, Store};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};

/// A stored variable-length element.
pub(crate) type StoredBlob = Box<[u8]>;

/// Who uses the variable-length data of an open file.
#[derive(Debug, Default)]
pub(crate) struct BlobUses {
    /// Shared by those that read elements and then their bytes.
    readers: RwLock<()>,
    /// Whether elements were written as they are stored, so that two of them may lead to the same bytes.
    may_be_shared: AtomicBool,
    /// Overwritten elements of which the store was not told, because somebody was reading.
    waiting: Mutex<Vec<StoredBlob>>,
    /// Held while an attribute is replaced or removed, so that each old value is given up once.
    attributes: Mutex<()>,
}

impl BlobUses {
    /// Somebody reads elements of this type, and then their bytes, until the guard is dropped. `None` if the type has no
    /// variable-length data.
    pub(crate) fn begin_read(&self, datatype: &Datatype) -> Option<RwLockReadGuard<'_, ()>> {
        // A thread that reads may take a task of another one that reads, too.
        has_blobs(datatype).then(|| self.readers.read_recursive())
    }

    /// An attribute is about to be replaced or removed. Nobody else replaces one until the guard is dropped.
    pub(crate) fn lock_attributes(&self) -> MutexGuard<'_, ()> {
        self.attributes.lock()
    }

    /// Elements of this type are written as they are stored.
    pub(crate) fn note_stored_elements(&self, datatype: &Datatype) {
        if datatype.has_vlen_or_references() {
            self.may_be_shared.store(true, Ordering::Release);
        }
    }

    /// Whether nothing can be said of who leads to the data of overwritten elements of this type.
    pub(crate) fn cannot_reclaim(&self, datatype: &Datatype) -> bool {
        !has_blobs(datatype) || self.may_be_shared.load(Ordering::Acquire)
    }

    /// Tells the store that nothing leads to the bytes of these elements any more: they were overwritten in the store. If
    /// somebody is reading, a later call does it: this thread may be the one that reads.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn remove(&self, store: &dyn Store, superseded: impl IntoIterator<Item = StoredBlob>) -> Result<()> {
        let superseded = {
            let mut waiting = self.waiting.lock();
            waiting.extend(superseded);
            match self.readers.try_write() {
                Some(_nobody_reads) => std::mem::take(&mut *waiting),
                None => return Ok(()),
            }
        };
        if superseded.is_empty() || self.may_be_shared.load(Ordering::Acquire) {
            return Ok(());
        }
        let elements: Vec<&[u8]> = superseded.iter().map(|blob| &**blob).collect();
        store.writer()?.remove_blobs(&elements)
    }
}

/// Whether elements have variable-length data, at any depth.
pub(crate) fn has_blobs(datatype: &Datatype) -> bool {
    match datatype {
        Datatype::VarLen(_) => true,
        Datatype::Compound(compound) => compound.members.iter().any(|member| has_blobs(&member.datatype)),
        Datatype::Array(array) => has_blobs(&array.base),
        _ => false,
    }
}

/// The variable-length elements in `elements`, which are of one type, at any depth.
pub(crate) fn blobs_in(datatype: &Datatype, elements: &[u8], store: &dyn Store) -> HashSet<StoredBlob> {
    let mut found = HashSet::new();
    collect(datatype, elements, store, &mut found);
    found
}

fn collect(datatype: &Datatype, elements: &[u8], store: &dyn Store, found: &mut HashSet<StoredBlob>) {
    if !has_blobs(datatype) {
        return;
    }
    for element in elements.chunks_exact((datatype.size() as usize).max(1)) {
        match datatype {
            // Nobody wrote it.
            _ if element.iter().all(|byte| *byte == 0) => {}
            Datatype::VarLen(sequence) => {
                let is_new = found.insert(element.into());
                let mut inner = Vec::new();
                if is_new && has_blobs(&sequence.base) {
                    // What cannot be read leads nowhere.
                    let _ = store.read_blobs(&[element], &mut |_, bytes| inner = bytes.to_vec());
                }
                collect(&sequence.base, &inner, store, found);
            }
            Datatype::Compound(compound) => {
                for member in &compound.members {
                    let (at, size) = (member.offset as usize, member.datatype.size() as usize);
                    let part = element.get(at..at.saturating_add(size)).unwrap_or_default();
                    collect(&member.datatype, part, store, found);
                }
            }
            Datatype::Array(array) => collect(&array.base, element, store, found),
            _ => {}
        }
    }
}

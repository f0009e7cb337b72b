//! A file after a crash.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::Arc;

use h5live_cache::Storage;
use parking_lot::Mutex;

use crate::schedule::{OS_PAGE_BYTES, Tear, visible};
use crate::trace::StorageOp;

/// A file that differs from another one in some pages, and records the operations on it. Only pages that are read or
/// written are copied.
#[derive(Debug)]
pub struct CrashedStorage {
    base: Arc<Vec<u8>>,
    state: Mutex<DiskState>,
}

#[derive(Debug, Clone)]
struct DiskState {
    len: u64,
    /// Bytes of the base from here on are no more.
    cut: u64,
    pages: BTreeMap<u64, Box<[u8]>>,
    log: Vec<StorageOp>,
}

impl CrashedStorage {
    pub(super) fn new(base: Arc<Vec<u8>>) -> Self {
        let len = base.len() as u64;
        CrashedStorage { base, state: Mutex::new(DiskState { len, cut: len, pages: BTreeMap::new(), log: Vec::new() }) }
    }

    /// The same file, with an empty log: what led to it is not copied.
    pub(super) fn copy_with_empty_log(&self) -> CrashedStorage {
        let state = DiskState { log: Vec::new(), ..self.state.lock().clone() };
        CrashedStorage { base: self.base.clone(), state: Mutex::new(state) }
    }

    /// The recorded operations.
    pub fn ops_since_crash(&self) -> Vec<StorageOp> {
        self.state.lock().log.clone()
    }

    /// All of its bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let state = self.state.lock();
        let mut bytes = vec![0; usize::try_from(state.len).unwrap_or(0)];
        state.read(&self.base, &mut bytes, 0);
        bytes
    }

    /// Does what `operation` does, or the part of it that `tear` shows.
    pub(super) fn apply(&self, operation: &StorageOp, tear: Tear) {
        let mut state = self.state.lock();
        match operation {
            StorageOp::Write { at, bytes } if tear == Tear::None => state.write(&self.base, bytes, *at),
            StorageOp::Write { at, bytes } => {
                visible(tear, *at, bytes).into_iter().for_each(|(at, part)| state.write(&self.base, part, at));
            }
            StorageOp::SetLen(len) => state.set_len(*len),
            StorageOp::Sync | StorageOp::Mark(_) => {}
        }
    }

    /// The same for files with the same bytes, and hardly ever for others.
    pub(super) fn fingerprint(&self) -> u64 {
        let state = self.state.lock();
        let mut hasher = DefaultHasher::new();
        state.len.hash(&mut hasher);
        for (number, page) in &state.pages {
            let mut old = vec![0; page.len()];
            state.read_base(&self.base, &mut old, number * OS_PAGE_BYTES);
            if *old != **page {
                (number, page).hash(&mut hasher);
            }
        }
        // Bytes that were cut off and are zeros now differ from the base although they have no page.
        state.cut.min(state.len).hash(&mut hasher);
        hasher.finish()
    }
}

impl DiskState {
    fn read_base(&self, base: &[u8], into: &mut [u8], at: u64) {
        let end = self.cut.min(base.len() as u64);
        let part = usize::try_from(at).ok().and_then(|at| base.get(at..end as usize)).unwrap_or_default();
        let n = part.len().min(into.len());
        into[..n].copy_from_slice(&part[..n]);
        into[n..].fill(0);
    }

    fn read(&self, base: &[u8], into: &mut [u8], at: u64) -> usize {
        let n = usize::try_from(self.len.saturating_sub(at)).unwrap_or(usize::MAX).min(into.len());
        let into = &mut into[..n];
        self.read_base(base, into, at);
        let end = at + n as u64;
        if n > 0 {
            for (number, page) in self.pages.range(at / OS_PAGE_BYTES..=(end - 1) / OS_PAGE_BYTES) {
                let start = number * OS_PAGE_BYTES;
                let (from, to) = (start.max(at), (start + OS_PAGE_BYTES).min(end));
                let part = &page[(from - start) as usize..(to - start) as usize];
                into[(from - at) as usize..(to - at) as usize].copy_from_slice(part);
            }
        }
        n
    }

    fn write(&mut self, base: &[u8], bytes: &[u8], at: u64) {
        let mut rest = (at, bytes);
        while let (at, [_, ..]) = rest {
            let (number, within) = (at / OS_PAGE_BYTES, (at % OS_PAGE_BYTES) as usize);
            let n = rest.1.len().min(OS_PAGE_BYTES as usize - within);
            if !self.pages.contains_key(&number) {
                let mut page = vec![0; OS_PAGE_BYTES as usize].into_boxed_slice();
                self.read_base(base, &mut page, number * OS_PAGE_BYTES);
                self.pages.insert(number, page);
            }
            if let Some(page) = self.pages.get_mut(&number) {
                page[within..within + n].copy_from_slice(&rest.1[..n]);
            }
            rest = (at + n as u64, &rest.1[n..]);
        }
        if !bytes.is_empty() {
            self.len = self.len.max(at + bytes.len() as u64);
        }
    }

    fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.cut = self.cut.min(len);
            self.pages.retain(|number, _| number * OS_PAGE_BYTES < len);
            if let Some(page) = self.pages.get_mut(&(len / OS_PAGE_BYTES)) {
                page[(len % OS_PAGE_BYTES) as usize..].fill(0);
            }
        }
        self.len = len;
    }
}

impl Storage for CrashedStorage {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        Ok(self.state.lock().read(&self.base, into, at))
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.write(&self.base, bytes, at);
        state.log.push(StorageOp::Write { at, bytes: bytes.to_vec() });
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.state.lock().len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.set_len(len);
        state.log.push(StorageOp::SetLen(len));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.state.lock().log.push(StorageOp::Sync);
        Ok(())
    }
}

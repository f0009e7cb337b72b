//! The bytes of a file, counted from its base address.

use std::collections::BTreeMap;
use std::io;

use h5live_cache::Storage;

/// A storage from its base address on, with what a metadata cache image lays over it.
#[derive(Debug)]
pub(super) struct FileBytes<'a> {
    storage: &'a dyn Storage,
    /// Bytes before the base address.
    pub base: u64,
    /// Bytes behind the base address.
    pub len: u64,
    pieces: BTreeMap<u64, Vec<u8>>,
}

impl<'a> FileBytes<'a> {
    /// The bytes of `storage`, which has `storage_len` bytes in all, from `base` on.
    pub fn new(storage: &'a dyn Storage, base: u64, storage_len: u64) -> Self {
        FileBytes { storage, base, len: storage_len.saturating_sub(base), pieces: BTreeMap::new() }
    }

    /// Takes in what a writer has added to the storage since, and returns how many bytes there are behind the base
    /// address.
    pub fn refresh_len(&mut self) -> u64 {
        let now = self.storage.len().unwrap_or(0).saturating_sub(self.base);
        self.len = self.len.max(now);
        now
    }

    /// Lays bytes over those of the storage.
    pub fn overlay(&mut self, addr: u64, bytes: Vec<u8>) {
        self.len = self.len.max(addr.saturating_add(bytes.len() as u64));
        self.pieces.insert(addr, bytes);
    }

    /// The bytes from `addr` on: `len`, or fewer at the end.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn read(&self, addr: u64, len: u64) -> io::Result<Vec<u8>> {
        let len = len.min(self.len.saturating_sub(addr));
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut bytes = vec![0; len];
        let start = self.base.checked_add(addr).ok_or(io::ErrorKind::InvalidInput)?;
        let mut done = 0;
        while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.storage.read_at(rest, start.saturating_add(done as u64))? {
                0 => break,
                read => done += read,
            }
        }
        let last = addr.saturating_add(len as u64);
        for (start, piece) in self.pieces.range(..last) {
            let end = start.saturating_add(piece.len() as u64);
            let (from, to) = (addr.max(*start), last.min(end));
            if from < to {
                let span = |from: u64, to: u64| usize::try_from(from).ok().zip(usize::try_from(to).ok());
                let Some((into, until)) = span(from - addr, to - addr) else { continue };
                let Some((first, last)) = span(from - start, to - start) else { continue };
                if let (Some(into), Some(piece)) = (bytes.get_mut(into..until), piece.get(first..last)) {
                    into.copy_from_slice(piece);
                    done = done.max(until);
                }
            }
        }
        bytes.truncate(done);
        Ok(bytes)
    }
}

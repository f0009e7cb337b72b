//! A storage of which some torn places are read as if they were whole.

use std::hash::{Hash, Hasher};
use std::io;
use std::ops::Range;

use super::{BatchReadHints, Storage};
use crate::primitive::{
    RwLock,
    atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
};
use h5live_model::FileBackedBytes;

/// A storage in which places that were found torn are read as what they are to be, for as long as they stay just as
/// they were found.
#[derive(Debug)]
pub struct RedoOverlay<S> {
    storage: S,
    pieces: RwLock<Vec<OverlayRange>>,
    any: AtomicBool,
}

#[derive(Debug, Hash)]
struct OverlayRange {
    at: u64,
    /// `None` if it does not matter how the place was found.
    torn: Option<Vec<u8>>,
    whole: Vec<u8>,
}

impl<S: Storage> RedoOverlay<S> {
    /// A storage of which nothing is mended yet.
    pub fn new(storage: S) -> Self {
        RedoOverlay { storage, pieces: RwLock::default(), any: AtomicBool::new(false) }
    }

    /// The storage as it is.
    pub fn inner(&self) -> &S {
        &self.storage
    }

    /// Reads what is at `at` (bytes) now as `whole`, until it changes.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn overlay_until_changed(&self, at: u64, whole: Vec<u8>) -> io::Result<()> {
        let torn = read(&self.storage, at, whole.len())?;
        if torn.len() == whole.len() && torn != whole {
            let mut pieces = self.pieces.write();
            pieces.retain(|piece| piece.at != at);
            pieces.push(OverlayRange { at, torn: Some(torn), whole });
            self.any.store(true, Release);
        }
        Ok(())
    }

    /// Reads each of these places (bytes) as what is given with it, whatever becomes of it, until
    /// [`RedoOverlay::clear`].
    pub fn set_overlays_until_cleared(&self, places: impl Iterator<Item = (u64, Vec<u8>)>) {
        let mut pieces = self.pieces.write();
        *pieces = places.map(|(at, whole)| OverlayRange { at, torn: None, whole }).collect();
        self.any.store(!pieces.is_empty(), Release);
    }

    /// Tells `state` what is read otherwise than it is, for those who put a reader to the proof.
    #[doc(hidden)]
    pub fn hash_state(&self, state: &mut impl Hasher) {
        self.pieces.read().hash(state);
    }

    /// Reads everything as it is.
    pub fn clear(&self) {
        if self.any.swap(false, Release) {
            self.pieces.write().clear();
        }
    }
}

fn read(storage: &impl Storage, at: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let found = storage.read_at(&mut bytes, at)?;
    bytes.truncate(found);
    Ok(bytes)
}

impl<S: Storage> Storage for RedoOverlay<S> {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let found = self.storage.read_at(into, at)?;
        if self.any.load(Acquire) {
            let last = at.saturating_add(found as u64);
            for OverlayRange { at: start, torn, whole } in self.pieces.read().iter() {
                let (from, to) = (at.max(*start), last.min(start.saturating_add(whole.len() as u64)));
                let stays = || match torn {
                    Some(torn) => read(&self.storage, *start, torn.len()).map(|found| found == *torn),
                    None => Ok(true),
                };
                if from < to && stays()? {
                    let part = &whole[(from - start) as usize..(to - start) as usize];
                    into[(from - at) as usize..(to - at) as usize].copy_from_slice(part);
                }
            }
        }
        Ok(found)
    }

    /// None while something is laid over: pieces would be read one by one.
    fn batch_read_hints(&self) -> Option<BatchReadHints> {
        if self.any.load(Acquire) { None } else { self.storage.batch_read_hints() }
    }

    fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        budget: usize,
        each: &mut dyn FnMut(usize, &[u8]) -> bool,
    ) -> io::Result<()> {
        match self.any.load(Acquire) {
            true => super::read_each_range(self, ranges, each),
            false => self.storage.read_ranges(ranges, budget, each),
        }
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.storage.write_at(bytes, at)
    }

    fn len(&self) -> io::Result<u64> {
        self.storage.len()
    }

    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        match self.any.load(Acquire) {
            true => Ok(Some(at)),
            false => self.storage.next_data(at),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.storage.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.storage.sync()
    }

    fn map(&self, at: u64, len: u64) -> io::Result<Option<FileBackedBytes>> {
        if self.any.load(Acquire) {
            return Ok(None);
        }
        self.storage.map(at, len)
    }

    fn close(&self) {
        self.storage.close();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::MemoryStorage;

    #[test]
    fn a_torn_place_is_whole_until_it_changes() {
        let mended = RedoOverlay::new(MemoryStorage::default());
        mended.write_at(&[1; 12], 0).unwrap();
        mended.overlay_until_changed(4, vec![2; 4]).unwrap();
        assert_eq!(read(&mended, 0, 12).unwrap(), [1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1]);
        assert_eq!(read(&mended, 6, 3).unwrap(), [2, 2, 1]);
        mended.write_at(&[3], 5).unwrap();
        assert_eq!(read(&mended, 4, 4).unwrap(), [1, 3, 1, 1]);
        mended.overlay_until_changed(4, vec![2; 4]).unwrap();
        assert_eq!(read(&mended, 4, 4).unwrap(), [2; 4]);
        mended.clear();
        assert_eq!(read(&mended, 4, 4).unwrap(), [1, 3, 1, 1]);
    }

    #[test]
    fn what_is_laid_over_stays_until_it_is_forgotten() {
        let mended = RedoOverlay::new(MemoryStorage::default());
        mended.write_at(&[1; 8], 0).unwrap();
        mended.set_overlays_until_cleared([(2, vec![2; 2]), (6, vec![3; 4])].into_iter());
        mended.write_at(&[4; 8], 0).unwrap();
        assert_eq!(read(&mended, 0, 8).unwrap(), [4, 4, 2, 2, 4, 4, 3, 3]);
        mended.clear();
        assert_eq!(read(&mended, 0, 8).unwrap(), [4; 8]);
    }

    #[test]
    fn nothing_is_made_longer() {
        let mended = RedoOverlay::new(MemoryStorage::default());
        mended.write_at(&[1; 4], 0).unwrap();
        mended.overlay_until_changed(2, vec![2; 4]).unwrap();
        assert_eq!(read(&mended, 0, 9).unwrap(), [1; 4]);
    }
}

//! A storage of which some ranges are replaced, without being written.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use super::{BatchReadHints, Storage, read_each_range};

/// A storage that is read through pieces that lie over it. What is written goes below them.
#[derive(Debug)]
pub struct StaticOverlay<S> {
    storage: S,
    /// By their first byte; none reaches into the next.
    pieces: BTreeMap<u64, Vec<u8>>,
    end: u64,
}

impl<S: Storage> StaticOverlay<S> {
    /// Lays `pieces`, each with its first byte, over a storage. `None` if two of them overlap, or one has no end.
    pub fn new(storage: S, pieces: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Option<Self> {
        let (mut end, mut map) = (0, BTreeMap::new());
        let mut pieces: Vec<_> = pieces.into_iter().collect();
        pieces.sort_by_key(|(start, _)| *start);
        for (start, bytes) in pieces {
            if start < end {
                return None;
            }
            end = start.checked_add(bytes.len() as u64)?;
            map.insert(start, bytes);
        }
        Some(StaticOverlay { storage, pieces: map, end })
    }

    /// Whether a piece lies over some of these bytes.
    fn covers_some_of(&self, range: &Range<u64>) -> bool {
        let last = self.pieces.range(..range.end).next_back();
        last.is_some_and(|(start, piece)| start.saturating_add(piece.len() as u64) > range.start)
    }
}

impl<S: Storage> Storage for StaticOverlay<S> {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let mut found = self.storage.read_at(into, at)?;
        let last = at.saturating_add(into.len() as u64);
        let before = self.pieces.range(..at).next_back();
        for (start, piece) in before.into_iter().chain(self.pieces.range(at..last)) {
            let (from, to) = (at.max(*start), last.min(start.saturating_add(piece.len() as u64)));
            if from >= to {
                continue;
            }
            let (here, there) =
                ((from - at) as usize..(to - at) as usize, (from - start) as usize..(to - start) as usize);
            into[here.clone()].copy_from_slice(&piece[there]);
            if here.end > found {
                // What lies between the end of the storage and a piece was never written.
                into[found.min(here.start)..here.start].fill(0);
                found = here.end;
            }
        }
        Ok(found)
    }

    fn batch_read_hints(&self) -> Option<BatchReadHints> {
        self.storage.batch_read_hints()
    }

    /// Pieces lie over structures and not over raw data, so that few ranges if any are read by themselves.
    fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        budget: usize,
        each: &mut dyn FnMut(usize, &[u8]) -> bool,
    ) -> io::Result<()> {
        let is_covered = |number: &usize| self.covers_some_of(&ranges[*number]);
        let (covered, bare): (Vec<usize>, Vec<usize>) = (0..ranges.len()).partition(is_covered);
        let those = |numbers: &[usize]| numbers.iter().map(|number| ranges[*number].clone()).collect::<Vec<_>>();
        let mut goes_on = true;
        self.storage.read_ranges(&those(&bare), budget, &mut |at, bytes| {
            goes_on = each(bare[at], bytes);
            goes_on
        })?;
        match goes_on {
            true => read_each_range(self, &those(&covered), &mut |at, bytes| each(covered[at], bytes)),
            false => Ok(()),
        }
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.storage.write_at(bytes, at)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.storage.len()?.max(self.end))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.storage.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.storage.sync()
    }

    fn close(&self) {
        self.storage.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStorage;

    fn overlay(pieces: &[(u64, &[u8])]) -> Option<StaticOverlay<MemoryStorage>> {
        let storage = MemoryStorage::default();
        storage.write_at(&[1; 10], 0).unwrap();
        StaticOverlay::new(storage, pieces.iter().map(|(at, bytes)| (*at, bytes.to_vec())))
    }

    fn read(storage: &impl Storage, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![9; len];
        let found = storage.read_at(&mut bytes, at).unwrap();
        bytes.truncate(found);
        bytes
    }

    #[test]
    fn pieces_are_read_in_place_of_what_they_cover() {
        let overlay = overlay(&[(2, &[2; 3]), (5, &[3; 2]), (12, &[4; 2])]).unwrap();
        assert_eq!(read(&overlay, 0, 20), [1, 1, 2, 2, 2, 3, 3, 1, 1, 1, 0, 0, 4, 4]);
        for at in 0..14 {
            for len in 0..14 {
                let all = [1, 1, 2, 2, 2, 3, 3, 1, 1, 1, 0, 0, 4, 4];
                let end = (at + len).min(all.len());
                // A read that ends in the gap behind the storage may end there.
                let found = read(&overlay, at as u64, len);
                assert!(all[at.min(end)..end].starts_with(&found), "{at} {len}: {found:?}");
                assert!(found.len() == end - at || (10..=12).contains(&end) || at >= 10, "{at} {len}: {found:?}");
            }
        }
        assert_eq!(overlay.len().unwrap(), 14);
    }

    #[test]
    fn pieces_do_not_overlap() {
        assert!(overlay(&[(2, &[2; 3]), (4, &[3; 2])]).is_none());
        assert!(overlay(&[(u64::MAX, &[3; 2])]).is_none());
    }
}

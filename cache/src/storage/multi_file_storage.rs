//! One file in several: each member holds a range of addresses.

use std::io;

use super::Storage;

/// Storages that hold one range of addresses each, read as one. They are not written.
#[derive(Debug)]
pub struct ReadOnlyMultiFileStorage<S> {
    /// The first address of each, in order, and the storage.
    members: Vec<(u64, S)>,
}

impl<S: Storage> ReadOnlyMultiFileStorage<S> {
    /// Joins storages, each with the address of its first byte.
    pub fn new(members: impl IntoIterator<Item = (u64, S)>) -> Self {
        let mut members: Vec<_> = members.into_iter().collect();
        members.sort_by_key(|(start, _)| *start);
        ReadOnlyMultiFileStorage { members }
    }
}

impl<S: Storage> Storage for ReadOnlyMultiFileStorage<S> {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let end = at.saturating_add(into.len() as u64);
        let first = self.members.partition_point(|(start, _)| *start <= at).saturating_sub(1);
        let mut found = 0;
        for (number, (start, storage)) in self.members.iter().enumerate().skip(first) {
            let limit = self.members.get(number + 1).map_or(u64::MAX, |(next, _)| *next);
            let (from, to) = (at.max(*start), end.min(limit));
            if from >= to {
                break;
            }
            let (skipped, last) = ((from - at) as usize, (to - at) as usize);
            // A member may end before its range does, or may have been cut. Nothing is known of what is missing.
            if skipped != found {
                break;
            }
            found += storage.read_at(&mut into[skipped..last], from - start)?;
        }
        Ok(found)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn len(&self) -> io::Result<u64> {
        let mut end = 0;
        for (start, storage) in &self.members {
            let len = storage.len()?;
            end = end.max(if len == 0 { 0 } else { start.saturating_add(len) });
        }
        Ok(end)
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn close(&self) {
        self.members.iter().for_each(|(_, storage)| storage.close());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStorage;

    #[test]
    fn reads_across_members_and_ends_where_one_of_them_has_no_bytes() {
        let storage = |bytes: &[u8]| {
            let storage = MemoryStorage::default();
            storage.write_at(bytes, 0).unwrap();
            storage
        };
        let members =
            ReadOnlyMultiFileStorage::new([(8, storage(&[3, 3, 3])), (0, storage(&[1; 4])), (4, storage(&[2; 2]))]);
        let all = [1, 1, 1, 1, 2, 2, 0, 0, 3, 3, 3];
        assert_eq!(members.len().unwrap(), all.len() as u64);
        for at in 0..14usize {
            for len in 0..14usize {
                let mut bytes = vec![9; len];
                let found = members.read_at(&mut bytes, at as u64).unwrap();
                // Bytes 6 and 7 are in no member.
                let end = if at < 6 { (at + len).min(6) } else { (at + len).min(all.len()) };
                let wanted = if (6..8).contains(&at) { &[] } else { &all[at.min(end)..end] };
                assert_eq!(bytes[..found], *wanted, "{at} {len}");
            }
        }
        assert!(members.write_at(&[1], 0).is_err());
    }
}

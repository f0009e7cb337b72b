//! Writes that a reader has taken from the write-ahead log, with all of their versions.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use parking_lot::RwLock;

/// Bytes that an entry takes beside its key and its value, about.
const ENTRY_OVERHEAD_BYTES: usize = 96;

/// A key and the sequence number of a write, the newest first.
type VersionedKey = (Bytes, Reverse<u64>);

/// Writes by key and sequence number. Who reads up to a sequence number sees nothing of later ones.
#[derive(Debug, Default)]
pub struct Memtable {
    entries: RwLock<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    /// `None`: the key was deleted.
    by_key: BTreeMap<VersionedKey, Option<Bytes>>,
    bytes: usize,
}

/// One write: key, sequence number, and value; `None` if the key was deleted.
#[derive(Debug, Clone)]
pub struct LoggedWrite {
    pub key: Bytes,
    pub sequence: u64,
    pub value: Option<Bytes>,
}

impl Memtable {
    /// Adds writes.
    pub fn insert(&self, writes: impl IntoIterator<Item = LoggedWrite>) {
        let mut entries = self.entries.write();
        for LoggedWrite { key, sequence, value } in writes {
            entries.bytes += key.len() + value.as_ref().map_or(0, Bytes::len) + ENTRY_OVERHEAD_BYTES;
            entries.by_key.insert((key, Reverse(sequence)), value);
        }
    }

    /// About how much memory the writes take (bytes).
    pub fn memory_bytes(&self) -> usize {
        self.entries.read().bytes
    }

    /// The same without the writes up to a sequence number.
    pub fn after(&self, sequence: u64) -> Self {
        let newer = Memtable::default();
        let entries = self.entries.read();
        let later = entries.by_key.iter().filter(|((_, Reverse(written)), _)| *written > sequence);
        newer.insert(later.map(|((key, Reverse(written)), value)| LoggedWrite {
            key: key.clone(),
            sequence: *written,
            value: value.clone(),
        }));
        newer
    }

    /// The value of a key up to a sequence number: `None` if there is no write of it, `Some(None)` if it was deleted.
    pub fn get(&self, key: &[u8], max_sequence: u64) -> Option<Option<Bytes>> {
        let key = Bytes::copy_from_slice(key);
        let entries = self.entries.read();
        let bounds = (key.clone(), Reverse(max_sequence))..=(key, Reverse(0));
        entries.by_key.range(bounds).next().map(|(_, value)| value.clone())
    }

    /// The first keys of a range that were written up to a sequence number, at most so many, with their values.
    pub fn range(&self, start: Bound<&[u8]>, end: Bound<&[u8]>, max_sequence: u64, limit: usize) -> Vec<MemtableEntry> {
        // Of one key, the newest version is first and the version 0, which no write has, last.
        let start = match start {
            Bound::Included(key) => Bound::Included((Bytes::copy_from_slice(key), Reverse(u64::MAX))),
            Bound::Excluded(key) => Bound::Excluded((Bytes::copy_from_slice(key), Reverse(0))),
            Bound::Unbounded => Bound::Unbounded,
        };
        let end = match end {
            Bound::Included(key) => Bound::Included((Bytes::copy_from_slice(key), Reverse(0))),
            Bound::Excluded(key) => Bound::Excluded((Bytes::copy_from_slice(key), Reverse(u64::MAX))),
            Bound::Unbounded => Bound::Unbounded,
        };
        let mut found: Vec<MemtableEntry> = Vec::new();
        for ((key, Reverse(written)), value) in self.entries.read().by_key.range((start, end)) {
            if *written > max_sequence || found.last().is_some_and(|last| last.0 == *key) {
                continue;
            }
            if found.len() == limit {
                break;
            }
            found.push((key.clone(), value.clone()));
        }
        found
    }
}

/// A key and what was written to it.
pub type MemtableEntry = (Bytes, Option<Bytes>);

#[cfg(test)]
mod tests {
    use super::*;

    fn write(key: &'static str, sequence: u64, value: Option<&'static str>) -> LoggedWrite {
        LoggedWrite { key: key.into(), sequence, value: value.map(Bytes::from) }
    }

    fn sample() -> Memtable {
        let memtable = Memtable::default();
        memtable.insert([
            write("b", 3, Some("b3")),
            write("a", 3, Some("a3")),
            write("a", 5, None),
            write("c", 5, Some("c5")),
        ]);
        memtable
    }

    #[test]
    fn a_reader_sees_nothing_of_later_writes() {
        let memtable = sample();
        assert_eq!(memtable.get(b"a", 2), None);
        assert_eq!(memtable.get(b"a", 3), Some(Some("a3".into())));
        assert_eq!(memtable.get(b"a", 4), Some(Some("a3".into())));
        assert_eq!(memtable.get(b"a", 5), Some(None));
        let all = |sequence| memtable.range(Bound::Unbounded, Bound::Unbounded, sequence, 10);
        assert_eq!(all(4), [("a".into(), Some("a3".into())), ("b".into(), Some("b3".into()))]);
        assert_eq!(all(5), [("a".into(), None), ("b".into(), Some("b3".into())), ("c".into(), Some("c5".into()))]);
    }

    #[test]
    fn bounds_and_the_limit_are_kept() {
        let memtable = sample();
        let keys = |start, end, most| -> Vec<Bytes> {
            memtable.range(start, end, 9, most).into_iter().map(|(key, _)| key).collect()
        };
        assert_eq!(keys(Bound::Excluded(b"a"), Bound::Included(b"c"), 9), ["b", "c"]);
        assert_eq!(keys(Bound::Included(b"a"), Bound::Excluded(b"c"), 9), ["a", "b"]);
        assert_eq!(keys(Bound::Unbounded, Bound::Unbounded, 1), ["a"]);
    }

    #[test]
    fn what_the_tables_have_is_forgotten() {
        let newer = sample().after(3);
        assert_eq!(newer.get(b"b", 9), None);
        assert_eq!(newer.get(b"a", 9), Some(None));
        assert!(newer.memory_bytes() < sample().memory_bytes());
    }
}

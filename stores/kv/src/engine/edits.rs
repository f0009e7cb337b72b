//! Changes that are to become the next state of an engine.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;

use smallvec::SmallVec;

use super::deferred_key_count::{DeferredKeyCount, KeyCountRecord, KeyCounter};
use super::key_span::KeySpan;
use crate::layout::{CHECKSUM_BYTES, checksum};

/// Bytes that an edit takes beside its key and its value, about.
const EDIT_OVERHEAD_BYTES: usize = 96;

/// Buffers of values of at least so many bytes are kept for the values of the next commit: to get and to give back memory
/// costs as much as to fill it.
const MIN_SPARE_BUFFER_BYTES: usize = 4 << 10;

/// Most memory of buffers that are kept (bytes).
const MAX_SPARE_BYTES: usize = 4 << 20;

/// Bytes of a key that take no memory of their own: most records of objects have fewer.
const INLINE_KEY_BYTES: usize = 40;

/// The key of an edit. Its order is that of its bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct EditKey {
    /// The first eight bytes as one number, zeros behind a shorter key. It tells most keys apart, by one comparison.
    head: u64,
    bytes: SmallVec<[u8; INLINE_KEY_BYTES]>,
}

impl EditKey {
    fn new(key: &[u8]) -> Self {
        let mut head = [0; 8];
        match key.first_chunk() {
            Some(first) => head = *first,
            None => head.iter_mut().zip(key).for_each(|(to, from)| *to = *from),
        }
        EditKey { head: u64::from_be_bytes(head), bytes: SmallVec::from_slice(key) }
    }
}

/// Keys that are put or deleted, in order. The later edit of a key counts.
#[derive(Debug, Clone, Default)]
pub struct EditBatch {
    by_key: BTreeMap<EditKey, Option<Vec<u8>>>,
    bytes: usize,
    longest_key: usize,
    /// Records that the commit makes: the numbers of keys.
    deferred_key_counts: BTreeMap<Box<[u8]>, DeferredKeyCount>,
    /// Whether values end with their checksums.
    has_checksums: bool,
    /// Empty buffers of values that were committed.
    spare_buffers: Vec<Vec<u8>>,
}

impl EditBatch {
    /// No edits.
    pub fn new() -> Self {
        EditBatch::default()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// How many keys are edited.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// About how much memory the edits take (bytes).
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of the longest key that was ever edited.
    pub fn longest_key_len(&self) -> usize {
        self.longest_key
    }

    /// Gives a key a value.
    pub fn put(&mut self, key: &[u8], value: Vec<u8>) {
        self.insert(key, Some(value));
    }

    /// Deletes a key.
    pub fn delete(&mut self, key: &[u8]) {
        self.insert(key, None);
    }

    fn insert(&mut self, key: &[u8], value: Option<Vec<u8>>) {
        let len = |value: &Option<Vec<u8>>| value.as_ref().map_or(0, Vec::len);
        if !self.deferred_key_counts.is_empty() {
            self.deferred_key_counts.remove(key);
        }
        self.bytes += len(&value);
        match self.by_key.entry(EditKey::new(key)) {
            Entry::Occupied(mut edit) => self.bytes -= len(&edit.insert(value)),
            Entry::Vacant(place) => {
                self.bytes += key.len() + EDIT_OVERHEAD_BYTES;
                self.longest_key = self.longest_key.max(key.len());
                place.insert(value);
            }
        }
    }

    /// Leaves it to the commit to find out a number of keys, and to put it under the key `count_key`. It stays so until that key
    /// is edited. A count that is there already stays.
    pub fn ensure_key_count_deferred(&mut self, count_key: &[u8], count: DeferredKeyCount) {
        self.deferred_key_counts.entry(count_key.into()).or_insert(count);
    }

    /// The number of keys that the commit will put under a key.
    pub fn deferred_key_count(&self, count_key: &[u8]) -> Option<&DeferredKeyCount> {
        self.deferred_key_counts.get(count_key)
    }

    /// All numbers of keys that the commit will put, and under which keys.
    pub fn deferred_key_counts(&self) -> impl Iterator<Item = (&[u8], &DeferredKeyCount)> {
        self.deferred_key_counts.iter().map(|(record, count)| (&**record, count))
    }

    /// What counts the keys of a commit.
    pub fn key_counter(&self) -> KeyCounter<'_> {
        KeyCounter::new(self.deferred_key_counts(), self.has_checksums)
    }

    /// The records of the numbers of keys that the commit is to find out, as they are stored. `was_there` says whether the
    /// state has a key that is edited.
    ///
    /// # Errors
    /// Those of `was_there`.
    pub fn key_count_records<E>(
        &self,
        mut was_there: impl FnMut(&[u8]) -> Result<bool, E>,
    ) -> Result<Vec<KeyCountRecord<'_>>, E> {
        let mut counter = self.key_counter();
        for span in counter.spans() {
            for (key, value) in self.range(span) {
                counter.note_edit_in_key_order(key, value.is_some(), was_there(key)?);
            }
        }
        Ok(counter.into_records())
    }

    /// The edit of a key: `None` if there is none, `Some(None)` if it is deleted.
    pub fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        self.by_key.get(&EditKey::new(key)).map(Option::as_deref)
    }

    /// Changes the value that an edit gives to a key in place. Returns whether there is such an edit.
    pub fn update_if_put(&mut self, key: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> bool {
        let Some(Some(value)) = self.by_key.get_mut(&EditKey::new(key)) else { return false };
        let before = value.len();
        change(value);
        self.bytes = self.bytes + value.len() - before;
        true
    }

    /// The edits of keys in a range, in order.
    pub fn range(&self, range: &KeySpan) -> impl DoubleEndedIterator<Item = (&[u8], Option<&[u8]>)> {
        // A range that ends before it begins has nothing in it.
        let end = range.end.as_deref().map(|end| EditKey::new(end.max(&range.start)));
        let bounds = (Bound::Included(EditKey::new(&range.start)), end.map_or(Bound::Unbounded, Bound::Excluded));
        self.by_key.range(bounds).map(|(key, value)| (&*key.bytes, value.as_deref()))
    }

    /// All edits, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], Option<&[u8]>)> {
        self.by_key.iter().map(|(key, value)| (&*key.bytes, value.as_deref()))
    }

    /// Appends its checksum to each value, as it is stored.
    pub fn add_checksums(&mut self) {
        self.has_checksums = true;
        for (key, value) in &mut self.by_key {
            if let Some(value) = value {
                value.extend(checksum(&key.bytes, value));
            }
        }
    }

    /// Takes the checksums away that [`EditBatch::add_checksums`] has appended.
    pub fn remove_checksums(&mut self) {
        self.has_checksums = false;
        self.by_key.values_mut().flatten().for_each(|value| value.truncate(value.len() - CHECKSUM_BYTES));
    }

    /// An empty buffer with room for a value of `min_capacity` bytes and its checksum.
    pub fn take_spare_buffer(&mut self, min_capacity: usize) -> Vec<u8> {
        let needed = min_capacity + CHECKSUM_BYTES;
        let fits = |spare: &mut Vec<u8>| (needed..=needed.saturating_mul(2)).contains(&spare.capacity());
        self.spare_buffers.pop_if(fits).unwrap_or_else(|| Vec::with_capacity(needed))
    }

    /// Forgets all edits. Some memory of their values is kept for the next ones, in place of what these did not need.
    pub fn clear(&mut self) {
        let (mut spare_buffers, mut left) = (Vec::new(), MAX_SPARE_BYTES);
        for mut value in std::mem::take(&mut self.by_key).into_values().flatten() {
            if (MIN_SPARE_BUFFER_BYTES..=left).contains(&value.capacity()) {
                value.clear();
                left -= value.capacity();
                spare_buffers.push(value);
            }
        }
        *self = EditBatch { spare_buffers, ..EditBatch::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::checked_value;

    #[test]
    fn the_later_edit_of_a_key_counts_and_memory_is_counted_once() {
        let mut edits = EditBatch::new();
        edits.put(b"b", vec![1; 10]);
        edits.put(b"a", vec![2; 5]);
        let bytes = edits.memory_bytes();
        edits.delete(b"b");
        assert_eq!(edits.memory_bytes(), bytes - 10);
        assert_eq!((edits.get(b"b"), edits.get(b"c")), (Some(None), None));
        assert!(
            edits.update_if_put(b"a", |value| value.push(3)) && !edits.update_if_put(b"b", |_| panic!("it is deleted"))
        );
        assert_eq!(edits.memory_bytes(), bytes - 9);
        let all: Vec<_> = edits.iter().collect();
        assert_eq!(all, [(&b"a"[..], Some(&[2, 2, 2, 2, 2, 3][..])), (b"b", None)]);
        assert_eq!(edits.range(&KeySpan::prefix(b"b")).count(), 1);
        assert_eq!(edits.range(&KeySpan { start: vec![9], end: Some(vec![1]) }).count(), 0);
    }

    #[test]
    fn keys_are_in_the_order_of_their_bytes_however_short_they_are() {
        let ends: [&[u8]; 6] = [&[], &[0], &[0, 0], &[0, 1], &[1], &[0xff]];
        let keys = (0..12).flat_map(|len| ends.map(|end| [&[7; 12][..len], end].concat()));
        let keys: std::collections::BTreeSet<Vec<u8>> = keys.collect();
        let mut edits = EditBatch::new();
        keys.iter().rev().for_each(|key| edits.put(key, key.clone()));
        assert!(edits.iter().map(|(key, _)| key).eq(keys.iter().map(|key| &**key)));
        for key in &keys {
            assert_eq!(edits.get(key), Some(Some(&**key)));
            let from = KeySpan { start: key.clone(), end: None };
            assert!(edits.range(&from).map(|(key, _)| key).eq(keys.range(key.clone()..).map(|key| &**key)));
        }
    }

    #[test]
    fn memory_of_committed_values_is_used_again_and_bounded() {
        let mut edits = EditBatch::new();
        let put = |edits: &mut EditBatch, key: u64, len: usize| {
            let mut value = edits.take_spare_buffer(len);
            let found = (value.as_ptr(), value.len(), value.capacity() >= len + CHECKSUM_BYTES);
            value.resize(len, 7);
            edits.put(&key.to_le_bytes(), value);
            assert_eq!((found.1, found.2), (0, true), "an empty buffer with room");
            found.0
        };
        let first = put(&mut edits, 0, 64 << 10);
        edits.add_checksums();
        edits.clear();
        assert!(edits.is_empty());
        assert_eq!(put(&mut edits, 1, 60 << 10), first, "the same memory");
        assert_ne!(put(&mut edits, 2, 10), first);
        edits.clear();
        put(&mut edits, 3, 8 << 10);
        edits.clear();
        assert!(edits.spare_buffers.iter().all(|spare| spare.capacity() < 64 << 10), "sizes that are not used go");
        for key in 0..1000 {
            put(&mut edits, key, 64 << 10);
        }
        edits.clear();
        let spare = edits.spare_buffers.iter().map(Vec::capacity).sum::<usize>();
        assert!((MAX_SPARE_BYTES / 2..=MAX_SPARE_BYTES).contains(&spare), "{spare}");
    }

    fn count(edits: &mut EditBatch, record: &[u8], prefix: &[u8], before: u64) {
        edits.ensure_key_count_deferred(
            record,
            DeferredKeyCount { span: KeySpan::prefix(prefix), count_before: before },
        );
    }

    fn numbers(edits: &EditBatch, there: &[&[u8]]) -> Vec<(Vec<u8>, u64)> {
        let records = edits.key_count_records(|key| Ok::<_, ()>(there.contains(&key))).unwrap();
        let number = |value: &[u8]| u64::from_le_bytes(value[..8].try_into().unwrap());
        records.iter().map(|(key, value)| (key.to_vec(), number(value))).collect()
    }

    #[test]
    fn new_keys_are_added_and_removed_ones_taken_away() {
        let mut edits = EditBatch::new();
        // The order of the records is not that of the ranges.
        count(&mut edits, b"0", b"b", 7);
        count(&mut edits, b"1", b"a", 1);
        for key in [b"a1", b"b1", b"b2", b"c1"] {
            edits.put(key, vec![1]);
        }
        for key in [b"a2", b"b3", b"b4"] {
            edits.delete(key);
        }
        assert_eq!(numbers(&edits, &[b"b2", b"b3"]), [(b"1".to_vec(), 2), (b"0".to_vec(), 7)]);
        assert_eq!(numbers(&edits, &[b"a1", b"a2", b"b2", b"b3"]), [(b"1".to_vec(), 0), (b"0".to_vec(), 7)]);
        assert_eq!(numbers(&edits, &[]), [(b"1".to_vec(), 2), (b"0".to_vec(), 9)]);
    }

    #[test]
    fn a_record_that_is_edited_is_not_counted_and_the_first_count_stays() {
        let mut edits = EditBatch::new();
        count(&mut edits, b"0", b"a", 3);
        count(&mut edits, b"0", b"a", 9);
        edits.put(b"a", Vec::new());
        assert_eq!(numbers(&edits, &[]), [(b"0".to_vec(), 4)]);
        edits.delete(b"0");
        assert_eq!(numbers(&edits, &[]), []);
        count(&mut edits, b"1", b"a", 3);
        edits.add_checksums();
        let records = edits.key_count_records(|_| Ok::<_, ()>(false)).unwrap();
        assert_eq!(checked_value(records[0].0, &records[0].1), Some(&4u64.to_le_bytes()[..]));
        edits.remove_checksums();
        assert_eq!(edits.key_count_records(|_| Ok::<_, ()>(false)).unwrap()[0].1, 4u64.to_le_bytes());
        edits.clear();
        assert_eq!(numbers(&edits, &[]), []);
    }
}

//! Records with the number of keys in a range, which a commit finds out.
//!
//! Whether a key is new is a look for it in the state that is edited. A commit looks for each of its keys anyway, so who
//! edits many keys leaves the counting to it.

use super::edits::EditBatch;
use super::{KeySpan, Result};
use crate::layout::checksum;
use crate::layout::value::encode_u64;

/// A number of keys that a commit is to find out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCount {
    /// The keys that are counted. No other count has any of them.
    pub span: KeySpan,
    /// How many of them the state has that is edited.
    pub before: u64,
}

/// Counts the keys that a commit adds and removes.
#[derive(Debug)]
pub struct KeyCounter<'a> {
    /// The keys of the records, with what they count, and the numbers so far; in the order of the ranges.
    counts: Vec<(&'a [u8], &'a KeyCount, u64)>,
    /// The first count that keys may still come for.
    next: usize,
    has_checksums: bool,
}

impl<'a> KeyCounter<'a> {
    /// Nothing was edited yet.
    pub fn new(counts: impl Iterator<Item = (&'a [u8], &'a KeyCount)>, has_checksums: bool) -> Self {
        let mut counts: Vec<_> = counts.map(|(key, count)| (key, count, count.before)).collect();
        counts.sort_by(|(_, a, _), (_, b, _)| a.span.start.cmp(&b.span.start));
        KeyCounter { counts, next: 0, has_checksums }
    }

    /// Takes an edit into account. Edits come in the order of their keys.
    pub fn note_edit(&mut self, key: &[u8], is_put: bool, was_there: bool) {
        while let Some((_, count, number)) = self.counts.get_mut(self.next) {
            if count.span.end.as_deref().is_some_and(|end| end <= key) {
                self.next += 1;
                continue;
            }
            if count.span.contains(key) {
                *number = number.saturating_add(u64::from(is_put)).saturating_sub(u64::from(was_there));
            }
            return;
        }
    }

    /// The records with the numbers, as they are stored.
    pub fn into_records(self) -> Vec<(&'a [u8], Vec<u8>)> {
        let record = |(key, _, number): (&'a [u8], _, u64)| {
            let mut value = encode_u64(number).to_vec();
            if self.has_checksums {
                value.extend(checksum(key, &value));
            }
            (key, value)
        };
        self.counts.into_iter().map(record).collect()
    }
}

impl EditBatch {
    /// The records of the numbers of keys that a commit is to find out, as they are stored. `was_there` says whether the
    /// state has a key that is edited.
    ///
    /// # Errors
    /// Those of `was_there`.
    pub fn count_records(&self, mut was_there: impl FnMut(&[u8]) -> Result<bool>) -> Result<Vec<(&[u8], Vec<u8>)>> {
        let mut counter = self.key_counter();
        let spans: Vec<_> = counter.counts.iter().map(|(_, count, _)| &count.span).collect();
        for span in spans {
            for (key, value) in self.range(span) {
                counter.note_edit(key, value.is_some(), was_there(key)?);
            }
        }
        Ok(counter.into_records())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::checked_value;

    fn count(edits: &mut EditBatch, record: &[u8], prefix: &[u8], before: u64) {
        edits.count_keys(record, KeyCount { span: KeySpan::prefix(prefix), before });
    }

    fn numbers(edits: &EditBatch, there: &[&[u8]]) -> Vec<(Vec<u8>, u64)> {
        let records = edits.count_records(|key| Ok(there.contains(&key))).unwrap();
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
        let records = edits.count_records(|_| Ok(false)).unwrap();
        assert_eq!(checked_value(records[0].0, &records[0].1), Some(&4u64.to_le_bytes()[..]));
        edits.remove_checksums();
        assert_eq!(edits.count_records(|_| Ok(false)).unwrap()[0].1, 4u64.to_le_bytes());
        edits.clear();
        assert_eq!(numbers(&edits, &[]), []);
    }
}

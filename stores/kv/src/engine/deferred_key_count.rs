//! Records with the number of keys in a range, which a commit finds out.
//!
//! Whether a key is new is a look for it in the state that is edited. A commit looks for each of its keys anyway, so who
//! edits many keys leaves the counting to it.

use super::key_span::KeySpan;
use crate::layout::checksum;
use crate::layout::value::encode_u64;

/// A number of keys that a commit is to find out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeferredKeyCount {
    /// The keys that are counted. No other count has any of them.
    pub span: KeySpan,
    /// How many of them the state has that is edited.
    pub count_before: u64,
}

/// A key, and its value as it is stored.
pub type KeyCountRecord<'a> = (&'a [u8], Vec<u8>);

/// Counts the keys that a commit adds and removes.
#[derive(Debug)]
pub struct KeyCounter<'a> {
    /// The keys of the records, with what they count, and the numbers so far; in the order of the ranges.
    counts: Vec<(&'a [u8], &'a DeferredKeyCount, u64)>,
    /// The first count that keys may still come for.
    next: usize,
    has_checksums: bool,
}

impl<'a> KeyCounter<'a> {
    /// Nothing was edited yet.
    pub fn new(counts: impl Iterator<Item = (&'a [u8], &'a DeferredKeyCount)>, has_checksums: bool) -> Self {
        let mut counts: Vec<_> = counts.map(|(key, count)| (key, count, count.count_before)).collect();
        counts.sort_by(|(_, a, _), (_, b, _)| a.span.start.cmp(&b.span.start));
        KeyCounter { counts, next: 0, has_checksums }
    }

    /// The ranges in which keys are counted, in their order.
    pub fn spans(&self) -> Vec<&'a KeySpan> {
        self.counts.iter().map(|(_, count, _)| &count.span).collect()
    }

    /// Takes an edit into account. Edits come in the order of their keys.
    pub fn note_edit_in_key_order(&mut self, key: &[u8], is_put: bool, was_there: bool) {
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
    pub fn into_records(self) -> Vec<KeyCountRecord<'a>> {
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

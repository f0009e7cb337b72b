//! Iterations over maps, page by page.

use std::ops::{Bound, RangeBounds};

use h5live_model::{MapKey, MapKeyBuf, MapScan};

use super::UntypedMap;
use super::codec::{decode_key_value, decode_value};
use super::object::key_bound;
use crate::{Result, Value};

/// Where a pair ends in the bytes of a page.
#[derive(Debug, Clone, Copy)]
struct PairEnds {
    is_null: bool,
    key: usize,
    value: usize,
}

/// Pairs, one behind the other in memory.
#[derive(Debug, Default)]
struct PairPage {
    bytes: Vec<u8>,
    ends: Vec<PairEnds>,
}

impl PairPage {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn push(&mut self, key: MapKey<'_>, value: &[u8]) {
        self.bytes.extend_from_slice(key.bytes_or_empty());
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push(PairEnds { is_null: key == MapKey::Null, key: key_end, value: self.bytes.len() });
    }

    fn pair(&self, number: usize) -> Option<(MapKey<'_>, &[u8])> {
        let ends = self.ends.get(number)?;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |before| before.value);
        let key = if ends.is_null { MapKey::Null } else { MapKey::Bytes(self.bytes.get(start..ends.key)?) };
        Some((key, self.bytes.get(ends.key..ends.value)?))
    }
}

/// The pages of a range of keys that are still to be read. No call of the store lasts longer than a page, so the caller may
/// use the map meanwhile.
#[derive(Debug)]
pub(super) struct PageCursor {
    pub(super) map: UntypedMap,
    start: Bound<MapKeyBuf>,
    end: Bound<MapKeyBuf>,
    values: bool,
    /// No page follows.
    pub(super) is_last: bool,
}

fn as_key(bound: &Bound<MapKeyBuf>) -> Bound<MapKey<'_>> {
    bound.as_ref().map(MapKeyBuf::as_key)
}

impl PageCursor {
    pub(super) fn new(map: UntypedMap, start: Bound<MapKeyBuf>, end: Bound<MapKeyBuf>, values: bool) -> Self {
        PageCursor { map, start, end, values, is_last: false }
    }

    /// Calls `take`, which calls no store, with the pairs of the next page. After an error no page follows.
    pub(super) fn fetch(&mut self, mut take: impl FnMut(MapKey<'_>, &[u8])) -> Result<()> {
        let prefetch = self.map.prefetch_limits();
        let scan = MapScan { start: as_key(&self.start), end: as_key(&self.end), with_values: self.values, prefetch };
        let (mut count, mut bytes, mut last) = (0, 0, None);
        let mut each = |key: MapKey<'_>, value: &[u8]| {
            take(key, value);
            count += 1;
            bytes += key.bytes_or_empty().len() + value.len();
            if count >= prefetch.keys || bytes >= prefetch.bytes {
                last = Some(key.to_buf());
            }
            last.is_none()
        };
        let listed = self
            .map
            .maps()
            .and_then(|maps| maps.for_each(self.map.id(), &scan, &mut each).map_err(|error| self.map.error(error)));
        match last {
            Some(last) if listed.is_ok() => self.start = Bound::Excluded(last),
            _ => self.is_last = true,
        }
        listed
    }
}

/// Pairs as the map has them, in the order of the keys.
#[derive(Debug)]
pub(crate) struct PairPages {
    cursor: PageCursor,
    page: PairPage,
    /// Pairs of the page that were taken.
    taken: usize,
}

impl PairPages {
    pub(super) fn new(cursor: PageCursor) -> Self {
        PairPages { cursor, page: PairPage::default(), taken: 0 }
    }

    /// The next pair. After an error there is none.
    pub(crate) fn next_pair(&mut self) -> Option<Result<(&UntypedMap, MapKey<'_>, &[u8])>> {
        if self.taken == self.page.ends.len() {
            if self.cursor.is_last {
                return None;
            }
            self.page.clear();
            self.taken = 0;
            if let Err(error) = self.cursor.fetch(|key, value| self.page.push(key, value)) {
                self.page.clear();
                return Some(Err(error));
            }
        }
        let (key, value) = self.page.pair(self.taken)?;
        self.taken += 1;
        Some(Ok((&self.cursor.map, key, value)))
    }
}

/// The pairs of a map, or of a range of its keys, in the order of the keys. [`UntypedMap::pairs`] makes it. After its last
/// key, another iteration may go on: `pairs((Bound::Excluded(last), Bound::Unbounded))`.
#[derive(Debug)]
pub struct UntypedMapPairs(pub(super) PairPages);

impl Iterator for UntypedMapPairs {
    type Item = Result<(Value, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next_pair()?.and_then(|(map, key, value)| {
            let key = decode_key_value(map.file(), map.key_type(), key);
            let pair = key.and_then(|key| Ok((key, decode_value(map.file(), map.value_type(), value)?)));
            pair.map_err(|error| map.error(error))
        }))
    }
}

impl UntypedMap {
    pub(crate) fn pages(&self, start: Bound<MapKeyBuf>, end: Bound<MapKeyBuf>, values: bool) -> PairPages {
        PairPages::new(PageCursor::new(self.clone(), start, end, values))
    }

    /// The pairs of a range of keys, in the order of the keys. `..` is all of them.
    ///
    /// # Errors
    /// As [`UntypedMap::contains_key`]. Errors of reading come from the iterator.
    pub fn pairs(&self, range: impl RangeBounds<Value>) -> Result<UntypedMapPairs> {
        let start = key_bound(range.start_bound(), |key| self.key_of(key))?;
        let end = key_bound(range.end_bound(), |key| self.key_of(key))?;
        Ok(UntypedMapPairs(self.pages(start, end, true)))
    }
}

//! Iterations over maps, page by page.

use std::collections::VecDeque;
use std::ops::{Bound, RangeBounds};

use h5live_model::{MapKeyBuf, MapScan};

use super::MapObject;
use super::codec::{decode_key_value, decode_value};
use super::object::key_bound;
use crate::{Result, Value};

/// Pairs as the map has them, in the order of the keys. No call of the store lasts longer than a page, so the caller may
/// use the map meanwhile.
#[derive(Debug)]
pub(crate) struct PairPages {
    map: MapObject,
    start: Bound<MapKeyBuf>,
    end: Bound<MapKeyBuf>,
    values: bool,
    page: VecDeque<(MapKeyBuf, Vec<u8>)>,
    is_finished: bool,
}

fn as_key(bound: &Bound<MapKeyBuf>) -> Bound<h5live_model::MapKey<'_>> {
    bound.as_ref().map(MapKeyBuf::as_key)
}

impl PairPages {
    pub(super) fn new(map: MapObject, start: Bound<MapKeyBuf>, end: Bound<MapKeyBuf>, values: bool) -> Self {
        PairPages { map, start, end, values, page: VecDeque::new(), is_finished: false }
    }

    /// Reads the next page.
    fn fetch(&mut self) -> Result<()> {
        let prefetch = self.map.prefetch();
        let scan = MapScan { start: as_key(&self.start), end: as_key(&self.end), values: self.values, prefetch };
        let (mut page, mut bytes, mut is_full) = (VecDeque::new(), 0, false);
        let mut each = |key: h5live_model::MapKey<'_>, value: &[u8]| {
            bytes += key.bytes().len() + value.len();
            page.push_back((key.to_buf(), value.to_vec()));
            is_full = page.len() >= prefetch.keys || bytes >= prefetch.bytes;
            !is_full
        };
        let listed = self.map.maps()?.for_each(self.map.id(), &scan, &mut each);
        listed.map_err(|error| self.map.error(error))?;
        match page.back() {
            Some((last, _)) if is_full => self.start = Bound::Excluded(last.clone()),
            _ => self.is_finished = true,
        }
        self.page = page;
        Ok(())
    }
}

impl Iterator for PairPages {
    type Item = Result<(MapKeyBuf, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.is_empty()
            && !self.is_finished
            && let Err(error) = self.fetch()
        {
            self.is_finished = true;
            return Some(Err(error));
        }
        self.page.pop_front().map(Ok)
    }
}

/// The pairs of a map, or of a range of its keys, in the order of the keys. [`MapObject::pairs`] makes it. After its last
/// key, another iteration may go on: `pairs((Bound::Excluded(last), Bound::Unbounded))`.
#[derive(Debug)]
pub struct MapPairs(pub(super) PairPages);

impl Iterator for MapPairs {
    type Item = Result<(Value, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        let map = self.0.map.clone();
        let (key, value) = match self.0.next()? {
            Ok(pair) => pair,
            Err(error) => return Some(Err(error)),
        };
        let key = decode_key_value(map.file(), map.key_type(), key.as_key());
        let pair = key.and_then(|key| Ok((key, decode_value(map.file(), map.value_type(), &value)?)));
        Some(pair.map_err(|error| map.error(error)))
    }
}

impl MapObject {
    pub(crate) fn pages(&self, start: Bound<MapKeyBuf>, end: Bound<MapKeyBuf>, values: bool) -> PairPages {
        PairPages::new(self.clone(), start, end, values)
    }

    /// The pairs of a range of keys, in the order of the keys. `..` is all of them.
    ///
    /// # Errors
    /// As [`MapObject::contains_value`]. Errors of reading come from the iterator.
    pub fn pairs(&self, range: impl RangeBounds<Value>) -> Result<MapPairs> {
        let start = key_bound(range.start_bound(), |key| self.key_of(key))?;
        let end = key_bound(range.end_bound(), |key| self.key_of(key))?;
        Ok(MapPairs(self.pages(start, end, true)))
    }
}

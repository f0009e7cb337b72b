//! Maps of Rust types.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use h5live_model::{self as model, Datatype, MapEdit, MapKey, MapKeyBuf, MapPrefetch, ObjectId};

use super::codec::Codec;
use super::object::key_bound;
use super::pages::{PageCursor, PairPages};
use super::{EncodeAs, MapLengthFollower, UntypedMap};
use crate::convert::{ConvertError, class};
use crate::error::ErrorKind;
use crate::types::{ConversionContext, H5Type};
use crate::{File, Group, Result};

/// A map of keys to values: an object of a file that holds pairs, each key once, in the order of the keys.
///
/// Keys and values are of the types of the map in the file, and are converted from and to the types of the program by the
/// rules of datasets: nothing is changed silently.
///
/// ```
/// use h5live::File;
///
/// let file = File::in_memory();
/// let ids = file.new_map::<String, u64>().create("ids")?;
/// ids.put("Alice", &125)?;
/// ids.put("Bob", &216)?;
/// assert_eq!(ids.get("Alice")?, Some(125));
/// assert_eq!(ids.remove("Bob")?, true);
/// let pairs = ids.iter().collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(pairs, [("Alice".to_owned(), 125)]);
/// # Ok::<(), h5live::Error>(())
/// ```
///
/// Changes are visible in this session at once. Other processes see them after [`Map::flush`] or [`File::flush`], those of
/// one [`Map::put_many`] all at once.
pub struct Map<K: H5Type, V: H5Type> {
    object: UntypedMap,
    codecs: Arc<(Codec<K>, Codec<V>)>,
}

impl<K: H5Type, V: H5Type> Clone for Map<K, V> {
    fn clone(&self) -> Self {
        Map { object: self.object.clone(), codecs: self.codecs.clone() }
    }
}

impl<K: H5Type, V: H5Type> fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Map").field(&self.object).finish()
    }
}

impl<K: H5Type, V: H5Type> Map<K, V> {
    pub(super) fn new(object: UntypedMap) -> Result<Self> {
        let codecs = || Ok((key_codec(object.key_type())?, Codec::new(object.value_type())?));
        let codecs = codecs().map_err(|error: ConvertError| object.error(error))?;
        Ok(Map { object, codecs: Arc::new(codecs) })
    }

    /// The map, whatever its types are.
    pub fn as_untyped(&self) -> &UntypedMap {
        &self.object
    }

    /// The file.
    pub fn file(&self) -> &File {
        self.object.file()
    }

    /// The identity of the map in its file.
    pub fn id(&self) -> ObjectId {
        self.object.id()
    }

    /// The path by which it was opened.
    pub fn path(&self) -> &str {
        self.object.path()
    }

    /// The type of the keys in the file.
    pub fn key_type(&self) -> &Datatype {
        self.object.key_type()
    }

    /// The type of the values in the file.
    pub fn value_type(&self) -> &Datatype {
        self.object.value_type()
    }

    /// Sets how much an iteration fetches at a time. It bounds the memory of an iteration and its calls of the store.
    #[must_use]
    pub fn with_prefetch(self, prefetch: MapPrefetch) -> Self {
        Map { object: self.object.with_prefetch_limits(prefetch), ..self }
    }

    /// The number of pairs.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the map cannot be read.
    pub fn len(&self) -> Result<u64> {
        self.object.len()
    }

    /// Whether there are no pairs.
    ///
    /// # Errors
    /// As [`Map::len`].
    pub fn is_empty(&self) -> Result<bool> {
        self.object.is_empty()
    }

    fn encode_key(&self, key: &(impl EncodeAs<K> + ?Sized)) -> Result<Vec<u8>, ConvertError> {
        let mut bytes = Vec::new();
        self.codecs.0.encode(self.file().context(), key, None, &mut bytes)?;
        Ok(bytes)
    }

    fn key(&self, key: &(impl EncodeAs<K> + ?Sized)) -> Result<Vec<u8>> {
        self.encode_key(key).map_err(|error| self.object.error(error))
    }

    /// Whether there is a value for a key.
    ///
    /// # Errors
    /// [`ErrorKind::Convert`] if the key cannot be converted into the type of the keys; as [`Map::len`].
    pub fn contains(&self, key: &(impl EncodeAs<K> + ?Sized)) -> Result<bool> {
        self.object.contains_encoded_key(MapKey::Bytes(&self.key(key)?))
    }

    /// The value for a key.
    ///
    /// # Errors
    /// As [`Map::contains`]; [`ErrorKind::Convert`] if the value cannot be a `V`.
    pub fn get(&self, key: &(impl EncodeAs<K> + ?Sized)) -> Result<Option<V>> {
        let key = self.key(key)?;
        if self.codecs.1.is_plain() {
            let (values, mut found) = (&self.codecs.1, None);
            let mut decode =
                |_, bytes: Option<&[u8]>| found = bytes.map(|bytes| values.decode(self.file().context(), bytes));
            self.object.get_bytes(&[MapKey::Bytes(&key)], &mut decode)?;
            return found.transpose().map_err(|error| self.object.error(error));
        }
        let mut found = None;
        self.object.get_bytes(&[MapKey::Bytes(&key)], &mut |_, bytes| found = bytes.map(<[u8]>::to_vec))?;
        found.map(|bytes| self.decode_value(&bytes)).transpose()
    }

    /// The values for keys, in their order.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn get_many<Q: EncodeAs<K>>(&self, keys: &[Q]) -> Result<Vec<Option<V>>> {
        let keys = keys.iter().map(|key| self.key(key)).collect::<Result<Vec<_>>>()?;
        let keys: Vec<_> = keys.iter().map(|key| MapKey::Bytes(key)).collect();
        let mut found = vec![None; keys.len()];
        self.object.get_bytes(&keys, &mut |number, bytes| found[number] = bytes.map(<[u8]>::to_vec))?;
        found.into_iter().map(|bytes| bytes.map(|bytes| self.decode_value(&bytes)).transpose()).collect()
    }

    /// Puts a pair, in place of the value that the key had.
    ///
    /// # Errors
    /// [`ErrorKind::Convert`] if key or value cannot be converted into the types of the map, [`model::Error::ReadOnly`].
    pub fn put(&self, key: &(impl EncodeAs<K> + ?Sized), value: &(impl EncodeAs<V> + ?Sized)) -> Result<()> {
        let key = self.key(key)?;
        let (key, mut pair) = (key.len(), key);
        self.append_value(&mut pair, 0, value).map_err(|kind| self.object.error(kind))?;
        let (key, value) = pair.split_at(key);
        self.object.edit(&[MapEdit::Put { key: MapKey::Bytes(key), value }])
    }

    /// Puts pairs, all of them or none. Of two values for one key, the later one counts.
    ///
    /// # Errors
    /// As [`Map::put`]; [`ConvertError::Element`] says which pair it is.
    pub fn put_many<Q: EncodeAs<K>, W: EncodeAs<V>>(&self, pairs: &[(Q, W)]) -> Result<()> {
        // Keys and values, one behind the other in memory, and where each of them ends.
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(pairs.len()));
        for (index, (key, value)) in pairs.iter().enumerate() {
            let ended = self.append_pair(&mut bytes, key, value).map_err(|kind| match kind {
                ErrorKind::Convert(source) => {
                    ConvertError::Element { index: index as u64, source: Box::new(source) }.into()
                }
                kind => kind,
            });
            ends.push(ended.map_err(|kind| self.object.error(kind))?);
        }
        let mut start = 0;
        let edit = |(key_end, end): &(usize, usize)| {
            let (key, value) = (&bytes[start..*key_end], &bytes[*key_end..*end]);
            start = *end;
            MapEdit::Put { key: MapKey::Bytes(key), value }
        };
        let edits: Vec<_> = ends.iter().map(edit).collect();
        self.object.edit(&edits)
    }

    /// Appends the bytes of a pair, and returns where its key and its value end.
    fn append_pair(
        &self,
        bytes: &mut Vec<u8>,
        key: &(impl EncodeAs<K> + ?Sized),
        value: &(impl EncodeAs<V> + ?Sized),
    ) -> Result<(usize, usize), ErrorKind> {
        let start = bytes.len();
        self.codecs.0.encode(self.file().context(), key, None, bytes)?;
        let key_end = bytes.len();
        self.append_value(bytes, start, value)?;
        Ok((key_end, bytes.len()))
    }

    /// Appends the bytes of a value to its key, which begins at `key`. Members of compounds that `V` does not have keep what
    /// the map has for the key.
    fn append_value(
        &self,
        bytes: &mut Vec<u8>,
        key: usize,
        value: &(impl EncodeAs<V> + ?Sized),
    ) -> Result<(), ErrorKind> {
        let mut old = None;
        if self.codecs.1.is_partial() {
            let maps = self.file().store().maps().ok_or(model::Error::WrongKind { expected: "map" })?;
            let key = MapKey::Bytes(&bytes[key..]);
            maps.get(self.id(), &[key], &mut |_, bytes| old = bytes.map(<[u8]>::to_vec))?;
        }
        Ok(self.codecs.1.encode(self.file().context(), value, old.as_deref(), bytes)?)
    }

    /// Removes a key with its value. Returns whether it was there.
    ///
    /// # Errors
    /// As [`Map::contains`]; [`model::Error::ReadOnly`].
    pub fn remove(&self, key: &(impl EncodeAs<K> + ?Sized)) -> Result<bool> {
        Ok(self.object.remove_encoded_keys(&[MapKeyBuf::Bytes(self.key(key)?)])? == 1)
    }

    /// Removes keys, and returns how many of them were there.
    ///
    /// # Errors
    /// As [`Map::remove`].
    pub fn remove_many<Q: EncodeAs<K>>(&self, keys: &[Q]) -> Result<u64> {
        let keys = keys.iter().map(|key| Ok(MapKeyBuf::Bytes(self.key(key)?))).collect::<Result<Vec<_>>>()?;
        self.object.remove_encoded_keys(&keys)
    }

    fn decode_value(&self, bytes: &[u8]) -> Result<V> {
        self.codecs.1.decode(self.file().context(), bytes).map_err(|error| self.object.error(error))
    }

    pub(super) fn decode_pair(&self, key: MapKey<'_>, value: &[u8]) -> Result<(K, V)> {
        decode_pair(&self.codecs, self.file().context(), key, value).map_err(|error| self.object.error(error))
    }

    /// Whether nothing in keys and values leads to other bytes of the store.
    fn has_plain_pairs(&self) -> bool {
        self.codecs.0.is_plain() && self.codecs.1.is_plain()
    }

    /// All pairs, in the order of the keys.
    pub fn iter(&self) -> MapIter<K, V> {
        MapIter::new(self, Bound::Unbounded, Bound::Unbounded)
    }

    /// The pairs of a range of keys, in the order of the keys. An iteration goes on after a key by the range
    /// `(Bound::Excluded(key), Bound::Unbounded)`.
    ///
    /// ```
    /// # let file = h5live::File::in_memory();
    /// let squares = file.new_map::<i32, i64>().create("squares")?;
    /// squares.put_many(&[(-1, 1i64), (3, 9), (2, 4)])?;
    /// let positive = squares.range(0..)?.collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(positive, [(2, 4), (3, 9)]);
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Map::contains`]. Errors of reading come from the iterator.
    pub fn range(&self, keys: impl RangeBounds<K>) -> Result<MapIter<K, V>> {
        let key = |key: &K| self.key(key).map(MapKeyBuf::Bytes);
        let (start, end) = (key_bound(keys.start_bound(), key)?, key_bound(keys.end_bound(), key)?);
        Ok(MapIter::new(self, start, end))
    }

    /// All keys, in their order. No values are read.
    pub fn keys(&self) -> impl Iterator<Item = Result<K>> + use<K, V> {
        let (map, mut pages) = (self.clone(), self.object.pages(Bound::Unbounded, Bound::Unbounded, false));
        std::iter::from_fn(move || {
            Some(pages.next_pair()?.and_then(|(object, key, _)| {
                map.codecs.0.decode_key(map.file().context(), key).map_err(|error| object.error(error))
            }))
        })
    }

    /// Makes all changes of the map visible to other processes.
    ///
    /// # Errors
    /// As [`File::flush`].
    pub fn flush(&self) -> Result<()> {
        self.object.flush()
    }

    /// As [`Map::flush`], and returns when the changes will outlast a power failure.
    ///
    /// # Errors
    /// As [`File::flush_durable`].
    pub fn flush_durable(&self) -> Result<()> {
        self.object.flush_durable()
    }

    /// Takes up what a writer has published since. Nothing else changes what a reader sees of the map.
    ///
    /// # Errors
    /// As [`UntypedMap::refresh`].
    pub fn refresh(&self) -> Result<()> {
        self.object.refresh()
    }

    /// Waits for what a writer publishes of the map.
    pub fn follow(&self) -> MapLengthFollower {
        self.object.follow()
    }
}

/// The pairs of a map, or of a range of its keys, in the order of the keys. [`Map::iter`] and [`Map::range`] make it.
///
/// It reads a page at a time, as large as [`Map::with_prefetch`] says. It shows what the session sees of the map, which
/// only a refresh moves, and the session's own changes behind the page that was read last.
pub struct MapIter<K: H5Type, V: H5Type> {
    map: Map<K, V>,
    pages: MapIterPages<K, V>,
}

#[inline]
fn decode_pair<K: H5Type, V: H5Type>(
    (keys, values): &(Codec<K>, Codec<V>),
    context: ConversionContext<'_>,
    key: MapKey<'_>,
    value: &[u8],
) -> Result<(K, V), ConvertError> {
    Ok((keys.decode_key(context, key)?, values.decode(context, value)?))
}

/// A pair of Rust types, or why it cannot be one.
type DecodedPair<K, V> = Result<(K, V), Box<ConvertError>>;

/// The pages of an iteration.
enum MapIterPages<K, V> {
    /// The store's bytes are decoded as they are listed.
    Decoded(PageCursor, VecDeque<DecodedPair<K, V>>),
    /// Bytes lead to others in the store, which is not called while it lists pairs.
    Stored(PairPages),
}

impl<K: H5Type, V: H5Type> fmt::Debug for MapIter<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapIter").field("map", &self.map).finish_non_exhaustive()
    }
}

impl<K: H5Type, V: H5Type> MapIter<K, V> {
    fn new(map: &Map<K, V>, start: Bound<MapKeyBuf>, end: Bound<MapKeyBuf>) -> Self {
        let cursor = PageCursor::new(map.object.clone(), start, end, true);
        let pages = match map.has_plain_pairs() {
            true => MapIterPages::Decoded(cursor, VecDeque::new()),
            false => MapIterPages::Stored(PairPages::new(cursor)),
        };
        MapIter { map: map.clone(), pages }
    }
}

impl<K: H5Type, V: H5Type> Iterator for MapIter<K, V> {
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        let map = &self.map;
        match &mut self.pages {
            MapIterPages::Stored(pages) => {
                Some(pages.next_pair()?.and_then(|(_, key, value)| map.decode_pair(key, value)))
            }
            MapIterPages::Decoded(cursor, page) => {
                if page.is_empty() && !cursor.is_last {
                    let (codecs, context) = (&*map.codecs, map.file().context());
                    let take = |key: MapKey<'_>, value: &[u8]| {
                        page.push_back(decode_pair(codecs, context, key, value).map_err(Box::new));
                    };
                    if let Err(error) = cursor.fetch(take) {
                        page.clear();
                        return Some(Err(error));
                    }
                }
                Some(page.pop_front()?.map_err(|error| map.object.error(*error)))
            }
        }
    }
}

/// The way between a type and the keys of a map. All of a key has to come from the type.
fn key_codec<K: H5Type>(datatype: &Datatype) -> Result<Codec<K>, ConvertError> {
    let codec = Codec::<K>::new(datatype)?;
    match codec.is_partial() {
        true => Err(ConvertError::Class { file: class(datatype), memory: "a key with fewer members" }),
        false => Ok(codec),
    }
}

impl UntypedMap {
    /// The map with keys and values of Rust types, into which those of the map are converted.
    ///
    /// # Errors
    /// [`ErrorKind::Convert`] if there is no conversion.
    pub fn into_typed<K: H5Type, V: H5Type>(self) -> Result<Map<K, V>> {
        Map::new(self)
    }
}

impl Group {
    /// The map at a path, with keys and values of Rust types.
    ///
    /// # Errors
    /// As [`Group::untyped_map`]; [`ErrorKind::Convert`] if the types cannot be converted.
    pub fn map<K: H5Type, V: H5Type>(&self, path: &str) -> Result<Map<K, V>> {
        self.untyped_map(path)?.into_typed()
    }
}

impl File {
    /// The map at a path, with keys and values of Rust types.
    ///
    /// # Errors
    /// As [`Group::map`].
    pub fn map<K: H5Type, V: H5Type>(&self, path: &str) -> Result<Map<K, V>> {
        self.root().map(path)
    }
}

//! The key-value pairs of maps.

use std::ops::Bound;

use crate::{MapKey, ObjectId, OrderPreservingKeyCodec, Result};

/// The maps of a session: [`Store::maps`](crate::Store::maps). A map is made, linked, described and deleted as every
/// object ([`StoreWriter::create`](crate::StoreWriter::create) with [`ObjectKindSpec::Map`](crate::ObjectKindSpec::Map)).
///
/// Keys and values are in the types of the map ([`MapSpec`](crate::MapSpec)). A value of fixed size is an element as it
/// is stored. A value of variable length is its base elements as they are stored, and none if it is null. What lies
/// *inside* of a value and leads elsewhere (a reference, a member of variable length) is in its stored form, as
/// [`StoreWriter::put_blob`](crate::StoreWriter::put_blob) and
/// [`Store::encode_reference`](crate::Store::encode_reference) return it. When such a value is replaced or removed, or its
/// map deleted, the store gives up what only it leads to.
///
/// Two keys are the same if [`OrderPreservingKeyCodec`](crate::OrderPreservingKeyCodec) makes the same bytes of them. A store may return another
/// stored form of the same key than it was given.
///
/// A session reads one snapshot, in which its own changes show at once. Others see changes once they are committed and
/// after their next [`Store::refresh`](crate::Store::refresh); nothing else moves what a reader sees. A commit shows all
/// changes of one [`MapStore::write`] or none, and all earlier ones. Watching a map wakes for every commit that changed
/// it. Callbacks must not call the store, which may hold a lock meanwhile.
///
/// All methods return [`crate::Error::NoObject`] for what is not there, [`crate::Error::WrongKind`] for what is not a
/// map, [`crate::Error::Invalid`] for keys and values that do not fit the types of the map, and
/// [`crate::Error::Store`] if the store fails.
pub trait MapStore: Send + Sync {
    /// The number of pairs.
    ///
    /// # Errors
    /// As all methods.
    fn len(&self, map: ObjectId) -> Result<u64>;

    /// Whether there is a value for a key.
    ///
    /// # Errors
    /// As all methods.
    fn contains(&self, map: ObjectId, key: MapKey<'_>) -> Result<bool>;

    /// Calls `each` with the value of each of `keys`, in any order, with the number of the key; with `None` if there is
    /// none. A key that is given twice comes twice.
    ///
    /// # Errors
    /// As all methods; `each` may have got other values.
    fn get(&self, map: ObjectId, keys: &[MapKey<'_>], each: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<()>;

    /// Calls `each` with the pairs of a range of keys, in the order of [`OrderPreservingKeyCodec`](crate::OrderPreservingKeyCodec), until it
    /// returns `false`.
    ///
    /// # Errors
    /// As all methods; `each` may have got earlier pairs.
    fn for_each(
        &self,
        map: ObjectId,
        scan: &MapScan<'_>,
        each: &mut dyn FnMut(MapKey<'_>, &[u8]) -> bool,
    ) -> Result<()>;

    /// Changes pairs, in this order and all or none of them. Removing a key that is not there changes nothing.
    ///
    /// # Errors
    /// [`crate::Error::ReadOnly`], [`crate::Error::Closed`], and as all methods. Nothing was changed then.
    fn write(&self, map: ObjectId, edits: &[MapEdit<'_>]) -> Result<()>;
}

/// A change of one pair of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapEdit<'a> {
    /// The key gets this value, in place of the one that it had.
    Put {
        /// The key.
        key: MapKey<'a>,
        /// The value.
        value: &'a [u8],
    },
    /// The key is removed, with its value.
    Remove {
        /// The key.
        key: MapKey<'a>,
    },
}

impl<'a> MapEdit<'a> {
    /// The key.
    pub fn key(&self) -> MapKey<'a> {
        match self {
            MapEdit::Put { key, .. } | MapEdit::Remove { key } => *key,
        }
    }
}

/// What is listed of a map: [`MapStore::for_each`]. An iteration goes on after its last key with `start` excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapScan<'a> {
    /// Where the keys begin.
    pub start: Bound<MapKey<'a>>,
    /// Where the keys end. A range that ends before it begins is empty.
    pub end: Bound<MapKey<'a>>,
    /// Whether values are read. Without, `each` gets no bytes of them.
    pub with_values: bool,
    /// How much is fetched at a time.
    pub prefetch: MapPrefetch,
}

/// The range of ordered keys of a scan.
pub type EncodedKeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

impl MapScan<'_> {
    /// The range as what [`OrderPreservingKeyCodec`] makes of its keys; `None` if no key can be in it.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if its ends are no keys of this order.
    pub fn encode_bounds_unless_empty(&self, order: &OrderPreservingKeyCodec) -> Result<Option<EncodedKeyBounds>> {
        let ordered = |bound: Bound<MapKey<'_>>| -> Result<_> {
            Ok(match bound {
                Bound::Included(key) => Bound::Included(order.encode_to_vec(key)?),
                Bound::Excluded(key) => Bound::Excluded(order.encode_to_vec(key)?),
                Bound::Unbounded => Bound::Unbounded,
            })
        };
        let bounds = (ordered(self.start)?, ordered(self.end)?);
        let is_empty = match &bounds {
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => {
                start >= end
            }
            _ => false,
        };
        Ok((!is_empty).then_some(bounds))
    }
}

impl Default for MapScan<'_> {
    /// All pairs.
    fn default() -> Self {
        MapScan { start: Bound::Unbounded, end: Bound::Unbounded, with_values: true, prefetch: MapPrefetch::default() }
    }
}

/// How much of a map is fetched at a time while it is listed. It bounds the memory and the number of calls of a store
/// whose reads wait for a network or a disk, whichever is reached first; one pair is always fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MapPrefetch {
    /// Pairs at a time.
    pub keys: usize,
    /// Bytes of keys and values at a time.
    pub bytes: usize,
}

impl Default for MapPrefetch {
    /// As libhdf5: 16,384 keys, 1 MiB.
    fn default() -> Self {
        MapPrefetch { keys: 16_384, bytes: 1 << 20 }
    }
}

//! A map of any types.

use std::collections::HashSet;
use std::ops::Bound;
use std::sync::Arc;

use h5live_model::{
    Datatype, MapEdit, MapKey, MapKeyBuf, MapPrefetch, MapSpec, MapStore, ObjectId, ObjectScope, ObjectSpec,
    PublishLevel,
};

use super::codec::{decode_value, encode_key_value, encode_value};
use crate::error::ErrorKind;
use crate::path::ResolvedObject;
use crate::{File, Group, Result, Value, attribute};

/// A map whose types the program does not know beforehand. [`UntypedMap::into_typed`] makes a [`Map`](crate::Map) of it.
///
/// ```
/// use h5live::{File, Value};
///
/// let file = File::in_memory();
/// file.new_map::<String, u64>().create("ids")?.put("Alice", &1)?;
/// let ids = file.untyped_map("ids")?;
/// assert_eq!(ids.get_value(&Value::Text("Alice".into()))?, Some(Value::Integer(1)));
/// # Ok::<(), h5live::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct UntypedMap {
    file: File,
    id: ObjectId,
    path: String,
    spec: Arc<MapSpec>,
    prefetch: MapPrefetch,
}

impl UntypedMap {
    pub(crate) fn open(file: File, id: ObjectId, path: String) -> Result<Self> {
        match file.store().spec(id).and_then(ObjectSpec::into_map) {
            Ok(spec) => Ok(UntypedMap { file, id, path, spec: Arc::new(spec), prefetch: MapPrefetch::default() }),
            Err(error) => Err(file.error(Some(&path), error)),
        }
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The identity of the map in its file.
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// The path by which it was opened.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The description, with the types of keys and values.
    pub fn spec(&self) -> &MapSpec {
        &self.spec
    }

    /// The type of the keys.
    pub fn key_type(&self) -> &Datatype {
        &self.spec.key_type
    }

    /// The type of the values.
    pub fn value_type(&self) -> &Datatype {
        &self.spec.value_type
    }

    /// How much an iteration fetches at a time: pairs, and bytes of them.
    pub fn prefetch_limits(&self) -> MapPrefetch {
        self.prefetch
    }

    /// Sets how much an iteration fetches at a time. It bounds the memory of an iteration and its calls of the store.
    #[must_use]
    pub fn with_prefetch_limits(self, prefetch: MapPrefetch) -> Self {
        UntypedMap { prefetch, ..self }
    }

    pub(crate) fn error(&self, kind: impl Into<ErrorKind>) -> crate::Error {
        self.file.error(Some(&self.path), kind)
    }

    pub(super) fn maps(&self) -> Result<&dyn MapStore> {
        self.file.store().maps().ok_or_else(|| self.error(no_maps(&self.file)))
    }

    /// The number of pairs.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the map cannot be read.
    pub fn len(&self) -> Result<u64> {
        self.maps()?.len(self.id).map_err(|error| self.error(error))
    }

    /// Whether there are no pairs.
    ///
    /// # Errors
    /// As [`UntypedMap::len`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    pub(super) fn contains_encoded_key(&self, key: MapKey<'_>) -> Result<bool> {
        self.maps()?.contains(self.id, key).map_err(|error| self.error(error))
    }

    pub(super) fn get_bytes(&self, keys: &[MapKey<'_>], each: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<()> {
        self.maps()?.get(self.id, keys, each).map_err(|error| self.error(error))
    }

    pub(super) fn edit(&self, edits: &[MapEdit<'_>]) -> Result<()> {
        let _change = self.file.writer().map_err(|error| self.error(error))?;
        self.maps()?.write(self.id, edits).map_err(|error| self.error(error))
    }

    /// Removes keys, and returns how many of them were there.
    pub(super) fn remove_encoded_keys(&self, keys: &[MapKeyBuf]) -> Result<u64> {
        let (mut distinct, mut found) = (HashSet::new(), 0);
        for key in keys.iter().filter(|key| distinct.insert(*key)) {
            found += u64::from(self.contains_encoded_key(key.as_key())?);
        }
        let edits: Vec<_> = distinct.iter().map(|key| MapEdit::Remove { key: key.as_key() }).collect();
        self.edit(&edits)?;
        Ok(found)
    }

    pub(super) fn key_of(&self, key: &Value) -> Result<MapKeyBuf> {
        encode_key_value(&self.file, &self.spec.key_type, key).map_err(|error| self.error(error))
    }

    /// Whether there is a value for a key.
    ///
    /// # Errors
    /// [`ErrorKind::Convert`] if the type of the keys has no such value; as [`UntypedMap::len`].
    pub fn contains_key(&self, key: &Value) -> Result<bool> {
        self.contains_encoded_key(self.key_of(key)?.as_key())
    }

    /// The value for a key.
    ///
    /// # Errors
    /// As [`UntypedMap::contains_key`].
    pub fn get_value(&self, key: &Value) -> Result<Option<Value>> {
        let (key, mut found) = (self.key_of(key)?, None);
        self.get_bytes(&[key.as_key()], &mut |_, bytes| found = bytes.map(<[u8]>::to_vec))?;
        let decode = |bytes: Vec<u8>| decode_value(&self.file, &self.spec.value_type, &bytes);
        found.map(decode).transpose().map_err(|error| self.error(error))
    }

    /// Puts pairs, all or none of them.
    ///
    /// # Errors
    /// [`ErrorKind::Convert`] if the types of the map have no such values; [`model::Error::ReadOnly`](h5live_model::Error::ReadOnly).
    pub fn put_pairs(&self, pairs: &[(Value, Value)]) -> Result<()> {
        let encode = |(key, value): &(Value, Value)| -> Result<_> {
            let value = encode_value(&self.file, &self.spec.value_type, value).map_err(|error| self.error(error))?;
            Ok((self.key_of(key)?, value))
        };
        let pairs = pairs.iter().map(encode).collect::<Result<Vec<_>>>()?;
        let edits: Vec<_> = pairs.iter().map(|(key, value)| MapEdit::Put { key: key.as_key(), value }).collect();
        self.edit(&edits)
    }

    /// Removes keys, and returns how many of them were there.
    ///
    /// # Errors
    /// As [`UntypedMap::put_pairs`].
    pub fn remove_keys(&self, keys: &[Value]) -> Result<u64> {
        let keys = keys.iter().map(|key| self.key_of(key)).collect::<Result<Vec<_>>>()?;
        self.remove_encoded_keys(&keys)
    }

    /// Makes all changes of the map visible to other processes, as [`File::flush`] does it for everything.
    ///
    /// # Errors
    /// As [`File::flush`].
    pub fn flush(&self) -> Result<()> {
        self.commit(PublishLevel::Visible)
    }

    /// As [`UntypedMap::flush`], and returns when the changes will outlast a power failure.
    ///
    /// # Errors
    /// As [`File::flush_durable`].
    pub fn flush_durable(&self) -> Result<()> {
        self.commit(PublishLevel::Visible)?;
        self.file.shared().commit(ObjectScope::Objects(&[self.id]), PublishLevel::Durable)
    }

    fn commit(&self, publish: PublishLevel) -> Result<()> {
        self.file.shared().publish_object(self.id, publish)
    }

    /// Takes up what a writer has published since. Nothing else changes what a reader sees of the map.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the map cannot be read any more.
    pub fn refresh(&self) -> Result<()> {
        self.file.store().refresh(ObjectScope::Objects(&[self.id])).map_err(|error| self.error(error))
    }
}

attribute::attributes!(UntypedMap);

/// The bytes of the end of a range.
pub(super) fn key_bound<K, E>(
    bound: Bound<&K>,
    encode: impl FnOnce(&K) -> std::result::Result<MapKeyBuf, E>,
) -> std::result::Result<Bound<MapKeyBuf>, E> {
    Ok(match bound {
        Bound::Included(key) => Bound::Included(encode(key)?),
        Bound::Excluded(key) => Bound::Excluded(encode(key)?),
        Bound::Unbounded => Bound::Unbounded,
    })
}

/// Why a file holds no maps.
pub(crate) fn no_maps(file: &File) -> ErrorKind {
    let holders = crate::open::connectors_with_maps(&file.shared().options.connectors);
    ErrorKind::MapsUnsupported { store: file.session().connector, holders }
}

impl Group {
    /// The map at a path, whatever its types are.
    ///
    /// # Errors
    /// As [`Group::object`]; another kind of object is [`model::Error::WrongKind`](h5live_model::Error::WrongKind).
    pub fn untyped_map(&self, path: &str) -> Result<UntypedMap> {
        let ResolvedObject { file, id, path } = self.find(path)?;
        UntypedMap::open(file, id, path)
    }
}

impl File {
    /// The map at a path, whatever its types are.
    ///
    /// # Errors
    /// As [`Group::untyped_map`].
    pub fn untyped_map(&self, path: &str) -> Result<UntypedMap> {
        self.root().untyped_map(path)
    }
}

//! The maps that a session has used, with what is known of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use h5live_model::{MapKey, MapSpec, ObjectId, OrderPreservingKeyCodec, Result};

use crate::layout::{EngineKey, key};
use crate::map_records::map_spec;
use crate::objects::contradiction_error;
use crate::primitive::RwLock;
use crate::state::KvState;

/// Maps that are known at a time.
const MAX_KNOWN_MAPS: usize = 256;

/// What is known of a map.
#[derive(Debug)]
pub struct CachedMapSpec {
    /// The description.
    pub spec: MapSpec,
    /// The order of its keys.
    pub key_codec: OrderPreservingKeyCodec,
    /// What the keys of its records begin with.
    prefix: EngineKey,
}

impl CachedMapSpec {
    /// Appends the key of the record of a key of the map.
    ///
    /// # Errors
    /// [`h5live_model::Error::Invalid`] if it is no key of the map.
    pub fn append_record_key(&self, key: MapKey<'_>, engine_key: &mut Vec<u8>) -> Result<()> {
        self.spec.check_key(key)?;
        // What makes keys sort are a few bytes more.
        engine_key.reserve(self.prefix.as_bytes().len() + key.bytes_or_empty().len() + 8);
        engine_key.extend_from_slice(self.prefix.as_bytes());
        self.key_codec.append_encoded(key, engine_key)
    }

    /// The key of one of its records. `into` holds its bytes.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`] if the record is none of them.
    pub fn decode_record_key<'b>(&self, map: ObjectId, engine_key: &[u8], into: &'b mut Vec<u8>) -> Result<MapKey<'b>> {
        // What lies in a range of its records has the prefix.
        let ordered = engine_key.get(self.prefix.as_bytes().len()..);
        self.key_codec
            .decode(ordered.ok_or_else(|| contradiction_error(map, "a record among its pairs is none"))?, into)
    }
}

/// A map as it was in one state of the session.
#[derive(Debug)]
struct SeenMap {
    version: u64,
    deleted_objects: u64,
    map: Arc<CachedMapSpec>,
}

/// The maps that a session has used. What describes a map stays as it is as long as the map is there, so what is known
/// counts until the session sees another commit or deletes an object.
#[derive(Debug, Default)]
pub struct MapSpecCache(RwLock<BTreeMap<ObjectId, SeenMap>>);

impl MapSpecCache {
    /// The map with this identity.
    ///
    /// # Errors
    /// [`h5live_model::Error::NoObject`], [`h5live_model::Error::WrongKind`].
    pub fn get_or_load(&self, state: &KvState, map: ObjectId) -> Result<Arc<CachedMapSpec>> {
        let (version, deleted_objects) = (state.view.version(), state.deleted_object_count);
        let is_current = |seen: &&SeenMap| seen.version == version && seen.deleted_objects == deleted_objects;
        if let Some(seen) = self.0.read().get(&map).filter(is_current) {
            return Ok(seen.map.clone());
        }
        let spec = map_spec(&state.view_with_edits(), map)?;
        let order = OrderPreservingKeyCodec::new(&spec.key_type);
        let known = Arc::new(CachedMapSpec { spec, key_codec: order, prefix: key::map_record(map, &[]) });
        let mut maps = self.0.write();
        if maps.len() >= MAX_KNOWN_MAPS {
            maps.clear();
        }
        maps.insert(map, SeenMap { version, deleted_objects, map: known.clone() });
        Ok(known)
    }
}

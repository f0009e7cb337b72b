//! The maps of a session on a file in memory.

use std::sync::Arc;

use super::MemoryStore;
use super::map::MemoryPairs;
use crate::{MapEdit, MapKey, MapScan, MapSpec, MapStore, ObjectId, OrderPreservingKeyCodec, Result};

/// What a session sees of a map.
struct MapView {
    spec: MapSpec,
    order: OrderPreservingKeyCodec,
    pairs: Arc<MemoryPairs>,
}

impl MapView {
    fn key(&self, key: MapKey<'_>) -> Result<Vec<u8>> {
        self.spec.check_key(key)?;
        self.order.encode_to_vec(key)
    }
}

impl MemoryStore {
    fn map_view(&self, id: ObjectId) -> Result<MapView> {
        let state = self.lock_to_read()?;
        let map = state.map(id)?;
        let pairs = match self.session.access.writable {
            true => map.pairs.clone(),
            false => self.session.maps.lock().entry(id).or_insert_with(|| map.published.clone()).clone(),
        };
        Ok(MapView { spec: map.spec.clone(), order: map.order.clone(), pairs })
    }

    /// Takes up what was published of the maps that were looked at.
    pub(super) fn refresh_maps(&self, is_meant: impl Fn(ObjectId) -> bool) -> Result<()> {
        let state = self.lock_to_read()?;
        self.session.maps.lock().retain(|id, seen| match state.map(*id) {
            Ok(map) if is_meant(*id) => {
                *seen = map.published.clone();
                true
            }
            found => found.is_ok(),
        });
        Ok(())
    }
}

impl MapStore for MemoryStore {
    fn len(&self, map: ObjectId) -> Result<u64> {
        Ok(self.map_view(map)?.pairs.len() as u64)
    }

    fn contains(&self, map: ObjectId, key: MapKey<'_>) -> Result<bool> {
        let view = self.map_view(map)?;
        Ok(view.pairs.contains_key(&view.key(key)?))
    }

    fn get(&self, map: ObjectId, keys: &[MapKey<'_>], each: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<()> {
        let view = self.map_view(map)?;
        let keys = keys.iter().map(|key| view.key(*key)).collect::<Result<Vec<_>>>()?;
        keys.iter().enumerate().for_each(|(number, key)| each(number, view.pairs.get(key).map(|value| &**value)));
        Ok(())
    }

    fn for_each(
        &self,
        map: ObjectId,
        scan: &MapScan<'_>,
        each: &mut dyn FnMut(MapKey<'_>, &[u8]) -> bool,
    ) -> Result<()> {
        let view = self.map_view(map)?;
        let Some(bounds) = scan.encode_bounds_unless_empty(&view.order)? else { return Ok(()) };
        let mut bytes = Vec::new();
        for (key, value) in view.pairs.range(bounds) {
            let key = view.order.decode(key, &mut bytes)?;
            if !each(key, if scan.with_values { value } else { &[] }) {
                break;
            }
        }
        Ok(())
    }

    fn write(&self, map: ObjectId, edits: &[MapEdit<'_>]) -> Result<()> {
        let mut state = self.lock_to_write()?;
        let stored = state.map_mut(map)?;
        self.session.access.file.count_change_or_fail()?;
        stored.write(edits)?;
        state.changed.insert(map);
        Ok(())
    }
}

//! The pairs of maps that are tables.

use h5live_model::{MapEdit, MapKey, MapScan, MapStore, ObjectId, Result};

use crate::layer::MapTableStore;

impl MapStore for MapTableStore {
    fn len(&self, map: ObjectId) -> Result<u64> {
        Ok(self.table(map)?.state().index.len() as u64)
    }

    fn contains(&self, map: ObjectId, key: MapKey<'_>) -> Result<bool> {
        let table = self.table(map)?;
        let key = table.encode_ordered_key(key)?;
        let is_there = table.state().index.contains_key(&key);
        Ok(is_there)
    }

    fn get(&self, map: ObjectId, keys: &[MapKey<'_>], each: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<()> {
        self.table(map)?.get(self.inner(), keys, each)
    }

    fn for_each(
        &self,
        map: ObjectId,
        scan: &MapScan<'_>,
        each: &mut dyn FnMut(MapKey<'_>, &[u8]) -> bool,
    ) -> Result<()> {
        self.table(map)?.for_each(self.inner(), scan, each)
    }

    fn write(&self, map: ObjectId, edits: &[MapEdit<'_>]) -> Result<()> {
        self.inner().writer()?;
        self.table(map)?.apply_edits(self.inner(), edits)
    }
}

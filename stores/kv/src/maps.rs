//! Maps: each pair is a record of the map's object.

use std::collections::HashSet;
use std::ops::Bound;

use h5live_model::{MapEdit, MapKey, MapKeyOrder, MapScan, MapStore, ObjectId, Result};

use crate::engine::KeySpan;
use crate::error::damaged;
use crate::layout::value::encode_u64;
use crate::layout::{EngineKey, MetadataField, RecordKey, key};
use crate::map_records::{has_blobs, map_spec, pair_count, value_blobs};
use crate::objects;
use crate::store::KvStore;

/// The keys of the records of a range of pairs.
fn records_in(map: ObjectId, order: &MapKeyOrder, scan: &MapScan<'_>) -> Result<KeySpan> {
    let all = KeySpan::from(&key::map_records(map));
    let start = match scan.start {
        Bound::Included(from) => KeySpan::from(&key::map_records_from(map, &order.ordered(from)?)).start,
        Bound::Excluded(after) => KeySpan::from(&key::map_records_after(map, &order.ordered(after)?)).start,
        Bound::Unbounded => all.start,
    };
    let end = match scan.end {
        Bound::Included(last) => Some(KeySpan::from(&key::map_records_after(map, &order.ordered(last)?)).start),
        Bound::Excluded(end) => Some(KeySpan::from(&key::map_records_from(map, &order.ordered(end)?)).start),
        Bound::Unbounded => all.end,
    };
    Ok(KeySpan { start, end })
}

impl MapStore for KvStore {
    fn len(&self, map: ObjectId) -> Result<u64> {
        self.session.read(|state| pair_count(state, map))
    }

    fn contains(&self, map: ObjectId, key: MapKey<'_>) -> Result<bool> {
        self.session.read(|state| {
            let spec = map_spec(state, map)?;
            spec.check_key(key)?;
            let ordered = MapKeyOrder::new(&spec.key).ordered(key)?;
            Ok(state.has(key::map_record(map, &ordered).as_bytes())?)
        })
    }

    fn get(&self, map: ObjectId, keys: &[MapKey<'_>], each: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<()> {
        self.session.read(|state| {
            let spec = map_spec(state, map)?;
            let order = MapKeyOrder::new(&spec.key);
            let mut ordered = Vec::new();
            for (number, key) in keys.iter().enumerate() {
                spec.check_key(*key)?;
                ordered.clear();
                order.encode(*key, &mut ordered)?;
                let at = key::map_record(map, &ordered);
                if !state.with_value(at.as_bytes(), &mut |value| each(number, Some(value)))? {
                    each(number, None);
                }
            }
            Ok(())
        })
    }

    fn for_each(
        &self,
        map: ObjectId,
        scan: &MapScan<'_>,
        each: &mut dyn FnMut(MapKey<'_>, &[u8]) -> bool,
    ) -> Result<()> {
        self.session.read(|state| {
            let spec = map_spec(state, map)?;
            let order = MapKeyOrder::new(&spec.key);
            let (span, mut bytes, mut failure) = (records_in(map, &order, scan)?, Vec::new(), None);
            state.scan(&span, &mut |key, value| {
                let pair = EngineKey::parse(key).map_err(damaged(map)).and_then(|(_, record)| match record {
                    RecordKey::MapRecord(ordered) => order.decode(&ordered, &mut bytes),
                    _ => Err(objects::contradiction(map, "a record among its pairs is none")),
                });
                match pair {
                    Ok(key) => each(key, if scan.values { value } else { &[] }),
                    Err(error) => {
                        failure = Some(error);
                        false
                    }
                }
            })?;
            failure.map_or(Ok(()), Err)
        })
    }

    fn write(&self, map: ObjectId, edits: &[MapEdit<'_>]) -> Result<()> {
        self.session.change(|state| {
            let spec = map_spec(&state.snapshot(), map)?;
            let order = MapKeyOrder::new(&spec.key);
            let mut records = Vec::with_capacity(edits.len());
            for edit in edits {
                spec.check_key(edit.key())?;
                if let MapEdit::Put { value, .. } = edit {
                    spec.check_value(value)?;
                }
                records.push(key::map_record(map, &order.ordered(edit.key())?));
            }
            let (mut count, has_blobs) = (pair_count(&state.snapshot(), map)?, has_blobs(&spec));
            for (edit, at) in edits.iter().zip(&records) {
                let old = match has_blobs {
                    true => state.snapshot().get(at.as_bytes())?,
                    false => state.snapshot().has(at.as_bytes())?.then(Vec::new),
                };
                let mut gone =
                    old.as_ref().map_or(Ok(HashSet::new()), |old| value_blobs(&state.snapshot(), &spec, old))?;
                match edit {
                    MapEdit::Put { value, .. } => {
                        let kept = value_blobs(&state.snapshot(), &spec, value)?;
                        gone.retain(|blob| !kept.contains(blob));
                        count += u64::from(old.is_none());
                        state.put(at, *value);
                    }
                    MapEdit::Remove { .. } if old.is_some() => {
                        count = count.saturating_sub(1);
                        state.delete(at);
                    }
                    MapEdit::Remove { .. } => {}
                }
                gone.into_iter().for_each(|blob| state.delete(&key::blob(blob)));
            }
            state.put(&key::metadata(map, MetadataField::PairCount), encode_u64(count));
            Ok(())
        })
    }
}

//! Maps: each pair is a record of the map's object.

use std::ops::Bound;

use h5live_model::{MapEdit, MapKey, MapScan, MapStore, ObjectId, OrderPreservingKeyCodec, Result};

use crate::engine::{DeferredKeyCount, KeySpan, ViewWithEdits};
use crate::layout::value::encode_u64;
use crate::layout::{MetadataField, key};
use crate::map_records::{MapValueCodec, recorded_pair_count};
use crate::map_spec_cache::CachedMapSpec;
use crate::state::KvState;
use crate::store::KvStore;

/// The keys of the records of a range of pairs.
fn records_in(map: ObjectId, order: &OrderPreservingKeyCodec, scan: &MapScan<'_>) -> Result<KeySpan> {
    let all = KeySpan::from(&key::map_records(map));
    let start = match scan.start {
        Bound::Included(from) => KeySpan::from(&key::map_records_from(map, &order.encode_to_vec(from)?)).start,
        Bound::Excluded(after) => KeySpan::from(&key::map_records_after(map, &order.encode_to_vec(after)?)).start,
        Bound::Unbounded => all.start,
    };
    let end = match scan.end {
        Bound::Included(last) => Some(KeySpan::from(&key::map_records_after(map, &order.encode_to_vec(last)?)).start),
        Bound::Excluded(end) => Some(KeySpan::from(&key::map_records_from(map, &order.encode_to_vec(end)?)).start),
        Bound::Unbounded => all.end,
    };
    Ok(KeySpan { start, end })
}

/// How the number of pairs of a map is kept while its pairs are edited.
enum PairCounting {
    /// The commit finds out which keys are new.
    AtCommit,
    /// The record has the number after each edit, of which this is the one so far.
    AtOnce(u64),
}

impl PairCounting {
    /// Counts at once where it is known for each key anyway whether it is there, or where somebody has asked for the number
    /// since the last commit.
    fn begin(state: &mut KvState, map: ObjectId, values: &MapValueCodec<'_>) -> Result<Self> {
        let record = key::metadata(map, MetadataField::PairCount);
        if state.edits.deferred_key_count(record.as_bytes()).is_some() {
            return Ok(PairCounting::AtCommit);
        }
        let before = recorded_pair_count(&state.view_with_edits(), map)?;
        if values.may_reference_blobs() || state.edits.get(record.as_bytes()).is_some() {
            return Ok(PairCounting::AtOnce(before));
        }
        let span = KeySpan::from(&key::map_records(map));
        state.edits.ensure_key_count_deferred(record.as_bytes(), DeferredKeyCount { span, count_before: before });
        Ok(PairCounting::AtCommit)
    }
}

/// The number of pairs, with the edits whose number was left to the commit. From then on, until the commit, edits are
/// counted at once.
fn settled_pair_count(state: &mut KvState, map: ObjectId) -> Result<u64> {
    let record = key::metadata(map, MetadataField::PairCount);
    if let Some(DeferredKeyCount { span, count_before: before }) = state.edits.deferred_key_count(record.as_bytes()) {
        let mut count = *before;
        for (key, value) in state.edits.range(span) {
            count = count.saturating_add(u64::from(value.is_some())).saturating_sub(u64::from(state.view.has(key)?));
        }
        state.put(&record, encode_u64(count));
    }
    recorded_pair_count(&state.view_with_edits(), map)
}

/// Gives up what only the value of a record leads to, before an edit of it. Returns whether there is a value.
fn release_value(state: &mut KvState, values: &MapValueCodec<'_>, record: &[u8], edit: &MapEdit<'_>) -> Result<bool> {
    let Some(old) = state.view_with_edits().get(record)? else { return Ok(false) };
    let mut gone = values.blobs_referenced_by_record(&state.view_with_edits(), &old)?;
    if let MapEdit::Put { value, .. } = edit {
        let kept = values.blobs_referenced_by_value(&state.view_with_edits(), value)?;
        gone.retain(|blob| !kept.contains(blob));
    }
    gone.into_iter().for_each(|blob| state.delete(&key::blob(blob)));
    Ok(true)
}

impl KvStore {
    /// Reads a map.
    fn with_map<T>(
        &self,
        map: ObjectId,
        read: impl FnOnce(&ViewWithEdits<'_>, &CachedMapSpec, &MapValueCodec<'_>) -> Result<T>,
    ) -> Result<T> {
        self.session.check_open()?;
        let state = self.session.state();
        let known = self.maps.get_or_load(&state, map)?;
        read(&state.view_with_edits(), &known, &MapValueCodec::of(&known.spec, state.form))
    }
}

impl MapStore for KvStore {
    fn len(&self, map: ObjectId) -> Result<u64> {
        let record = key::metadata(map, MetadataField::PairCount);
        let is_left_to_commit = self.session.state().edits.deferred_key_count(record.as_bytes()).is_some();
        match is_left_to_commit {
            true => self.session.with_state_mut(|state| settled_pair_count(state, map)),
            false => self.session.read(|state| recorded_pair_count(state, map)),
        }
    }

    fn contains(&self, map: ObjectId, key: MapKey<'_>) -> Result<bool> {
        self.with_map(map, |state, known, _| {
            let mut record = Vec::new();
            known.append_record_key(key, &mut record)?;
            Ok(state.has(&record)?)
        })
    }

    fn get(&self, map: ObjectId, keys: &[MapKey<'_>], each: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<()> {
        self.with_map(map, |state, known, values| {
            let mut record = Vec::new();
            for (number, key) in keys.iter().enumerate() {
                record.clear();
                known.append_record_key(*key, &mut record)?;
                let mut element = None;
                let is_there = state.with_value(&record, &mut |stored| match values.are_blobs {
                    true => element = Some(stored.to_vec()),
                    false => each(number, Some(stored)),
                })?;
                match element {
                    Some(element) => values.read_value(state, map, &element, &mut |value| each(number, Some(value)))?,
                    None if !is_there => each(number, None),
                    None => {}
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
        self.with_map(map, |state, known, values| {
            let (span, mut bytes, mut failure) = (records_in(map, &known.key_codec, scan)?, Vec::new(), None);
            if values.are_blobs && scan.with_values {
                return state.for_each_pair_reentrant(&span, |record, element| {
                    let (key, mut goes_on) = (known.decode_record_key(map, record, &mut bytes)?, true);
                    values.read_value(state, map, element, &mut |value| goes_on = each(key, value))?;
                    Ok(goes_on)
                });
            }
            state.scan(&span, &mut |key, value| match known.decode_record_key(map, key, &mut bytes) {
                Ok(key) => each(key, if scan.with_values { value } else { &[] }),
                Err(error) => {
                    failure = Some(error);
                    false
                }
            })?;
            failure.map_or(Ok(()), Err)
        })
    }

    fn write(&self, map: ObjectId, edits: &[MapEdit<'_>]) -> Result<()> {
        self.session.change(|state| {
            let known = self.maps.get_or_load(state, map)?;
            // The keys of the records, one behind the other, and where each of them ends.
            let (mut records, mut ends) = (Vec::new(), Vec::with_capacity(edits.len()));
            for edit in edits {
                if let MapEdit::Put { value, .. } = edit {
                    known.spec.check_value(value)?;
                }
                known.append_record_key(edit.key(), &mut records)?;
                ends.push(records.len());
            }
            let values = MapValueCodec::of(&known.spec, state.form);
            let mut counting = PairCounting::begin(state, map, &values)?;
            let mut start = 0;
            for (edit, end) in edits.iter().zip(ends) {
                let record = &records[std::mem::replace(&mut start, end)..end];
                if let PairCounting::AtOnce(count) = &mut counting {
                    let was_there = match values.may_reference_blobs() {
                        true => release_value(state, &values, record, edit)?,
                        false => state.view_with_edits().has(record)?,
                    };
                    let is_put = matches!(edit, MapEdit::Put { .. });
                    *count = count.saturating_add(u64::from(is_put)).saturating_sub(u64::from(was_there));
                }
                match edit {
                    MapEdit::Put { value, .. } => {
                        let stored = values.encode_value_storing_blob(state, value)?;
                        state.edits.put(record, stored);
                    }
                    MapEdit::Remove { .. } => state.edits.delete(record),
                }
            }
            if let PairCounting::AtOnce(count) = counting {
                state.put(&key::metadata(map, MetadataField::PairCount), encode_u64(count));
            }
            Ok(())
        })
    }
}

//! Keys of any length, in order, over an engine whose keys have a largest length.
//!
//! A key that fits is stored as it is. Of a longer one, the first bytes lead to a *space* of its own, in which the rest
//! of the key is stored in the same way: the key `p + first + [0]` has the number of the space, and keys in the space
//! begin with `[0xff]` and that number. So keys stay in order, and two long keys are compared by all of their bytes.
//! Keys of the caller do not begin with 0xff.

use std::sync::Arc;

use h5live_model::{FileBackedBytes, PublishLevel};

use super::{EditBatch, Engine, EngineError, EngineWatch, KeySpan, Result, View, ViewWithEdits};

/// The first byte of keys that are not the caller's.
pub(super) const SPACE_TAG: u8 = 0xff;
/// The key of the number of the next space.
pub(super) const NEXT_SPACE: [u8; 1] = [SPACE_TAG];
/// Bytes before a key in a space: the first byte, and the number.
pub(super) const SPACE_PREFIX_BYTES: usize = 9;
/// Most bytes of a key: names of links have up to 64 KiB, which escapes may double.
const MAX_KEY_BYTES: usize = 1 << 20;

/// An engine that takes long keys.
#[derive(Debug)]
pub struct LongKeyEngine<E> {
    inner: E,
    part: usize,
}

/// A state of an engine that takes long keys.
#[derive(Debug)]
struct LongKeysView {
    inner: Arc<dyn View>,
    part: usize,
}

/// One state of an engine with long keys: as it is stored, and as it is seen.
#[derive(Debug)]
pub struct LongKeyViewPair {
    /// With keys of any length.
    pub long_key_view: Arc<dyn View>,
    pub(super) inner: Arc<dyn View>,
    pub(super) part: usize,
}

/// The bytes that keys in a space begin with.
fn space(number: u64) -> [u8; SPACE_PREFIX_BYTES] {
    let mut prefix = [SPACE_TAG; SPACE_PREFIX_BYTES];
    prefix[1..].copy_from_slice(&number.to_be_bytes());
    prefix
}

/// The key that leads to the space of keys which go on behind `first`.
fn pointer(prefix: &[u8], first: &[u8]) -> Vec<u8> {
    [prefix, first, &[0]].concat()
}

pub(super) fn read_number(value: &[u8]) -> Result<u64> {
    let bytes = value.try_into().map_err(|_| EngineError::Damaged("the number of a space of long keys has 8 bytes"))?;
    Ok(u64::from_le_bytes(bytes))
}

fn number_at(state: &ViewWithEdits<'_>, key: &[u8]) -> Result<Option<u64>> {
    state.get(key)?.map(|value| read_number(&value)).transpose()
}

impl<E: Engine> LongKeyEngine<E> {
    /// Long keys in this engine, whose keys have at least 16 bytes.
    pub fn new(inner: E) -> Self {
        let part = part_bytes(&inner);
        LongKeyEngine { inner, part }
    }

    /// The engine beneath.
    pub fn inner(&self) -> &E {
        &self.inner
    }

    /// The newest state, as it is stored and as it is seen.
    ///
    /// # Errors
    /// As [`Engine::view`].
    pub fn view_pair(&self) -> Result<LongKeyViewPair> {
        let inner = self.inner.view()?;
        let view = Arc::new(LongKeysView { inner: inner.clone(), part: self.part });
        Ok(LongKeyViewPair { long_key_view: view, inner, part: self.part })
    }

    fn translate(&self, edits: &EditBatch) -> Result<EditBatch> {
        let view = self.inner.view()?;
        let mut stored = EditBatch::new();
        for (key, value) in edits.iter() {
            if key.len() > MAX_KEY_BYTES || key.first() == Some(&SPACE_TAG) {
                return Err(EngineError::KeyTooLong(key.len()));
            }
            match value {
                Some(value) => self.put(&view, &mut stored, key, value)?,
                None => self.delete(&view, &mut stored, key)?,
            }
        }
        let seen = LongKeysView { inner: view.clone(), part: self.part };
        for (key, checkpoint_number) in edits.key_count_records(|key| seen.has(key))? {
            self.put(&view, &mut stored, key, &checkpoint_number)?;
        }
        Ok(stored)
    }

    fn put(&self, view: &Arc<dyn View>, stored: &mut EditBatch, key: &[u8], value: &[u8]) -> Result<()> {
        let (mut prefix, mut rest) = (Vec::new(), key);
        while rest.len() > self.part {
            let (first, behind) = rest.split_at(self.part);
            let leads = pointer(&prefix, first);
            let number = match number_at(&ViewWithEdits::with_edits(view, stored), &leads)? {
                Some(number) => number,
                None => {
                    let number = number_at(&ViewWithEdits::with_edits(view, stored), &NEXT_SPACE)?.unwrap_or_default();
                    stored.put(&NEXT_SPACE, (number + 1).to_le_bytes().into());
                    stored.put(&leads, number.to_le_bytes().into());
                    number
                }
            };
            (prefix, rest) = (space(number).to_vec(), behind);
        }
        stored.put(&[&prefix, rest].concat(), value.to_vec());
        Ok(())
    }

    /// Deletes a key, and the spaces in which nothing is left.
    fn delete(&self, view: &Arc<dyn View>, stored: &mut EditBatch, key: &[u8]) -> Result<()> {
        let (mut prefix, mut rest, mut pointers) = (Vec::new(), key, Vec::new());
        while rest.len() > self.part {
            let (first, behind) = rest.split_at(self.part);
            let leads = pointer(&prefix, first);
            let Some(number) = number_at(&ViewWithEdits::with_edits(view, stored), &leads)? else { return Ok(()) };
            pointers.push((leads, space(number)));
            (prefix, rest) = (space(number).to_vec(), behind);
        }
        stored.delete(&[&prefix, rest].concat());
        for (leads, space) in pointers.into_iter().rev() {
            if ViewWithEdits::with_edits(view, stored).has_any(&KeySpan::prefix(&space))? {
                break;
            }
            stored.delete(&leads);
        }
        Ok(())
    }
}

/// Bytes of the part of a key that one key of the engine has. The key that leads to a space has one more, and a scan that
/// begins behind that one yet one more.
fn part_bytes(engine: &impl Engine) -> usize {
    engine.max_key_bytes().saturating_sub(SPACE_PREFIX_BYTES + 2).max(1)
}

impl<E: Engine> Engine for LongKeyEngine<E> {
    fn view(&self) -> Result<Arc<dyn View>> {
        Ok(Arc::new(LongKeysView { inner: self.inner.view()?, part: self.part }))
    }

    fn newest_version(&self) -> Result<u64> {
        self.inner.newest_version()
    }

    fn commit(&self, edits: &EditBatch, publish: PublishLevel) -> Result<()> {
        match edits.longest_key_len() <= self.part {
            true => self.inner.commit(edits, publish),
            false => self.inner.commit(&self.translate(edits)?, publish),
        }
    }

    fn max_key_bytes(&self) -> usize {
        MAX_KEY_BYTES
    }

    fn has_writer(&self) -> Result<bool> {
        self.inner.has_writer()
    }

    fn watch(&self) -> Result<Box<dyn EngineWatch>> {
        self.inner.watch()
    }

    fn close(&self) -> Result<()> {
        self.inner.close()
    }
}

/// A space that a scan is in.
struct ScannedSpace {
    /// The bytes that its keys begin with.
    prefix: Vec<u8>,
    /// The bytes before what its keys stand for.
    before: Vec<u8>,
    /// Its keys that are still to be looked at.
    left: KeySpan,
}

impl LongKeysView {
    /// The part of a range of keys that lies in one space, as keys of the engine. `before` are the bytes of the caller's
    /// keys that lead to the space.
    fn part_of(&self, range: &KeySpan, prefix: &[u8], before: &[u8]) -> KeySpan {
        let mut part = KeySpan::prefix(prefix);
        if prefix.is_empty() {
            part.end = Some(vec![SPACE_TAG]);
        }
        if let Some(rest) = range.start.strip_prefix(before) {
            part.start = match rest.split_at_checked(self.part) {
                Some((first, [_, ..])) => pointer(prefix, first),
                _ => [prefix, rest].concat(),
            };
        }
        if let Some(rest) = range.end.as_deref().and_then(|end| end.strip_prefix(before)) {
            part.end = Some(match rest.split_at_checked(self.part) {
                Some((first, [_, ..])) => [prefix, first, &[1]].concat(),
                _ => [prefix, rest].concat(),
            });
        }
        part
    }
}

impl View for LongKeysView {
    fn version(&self) -> u64 {
        self.inner.version()
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        if key.len() <= self.part {
            return self.inner.get(key, found);
        }
        let (mut prefix, mut rest) = (Vec::new(), key);
        while rest.len() > self.part {
            let (first, behind) = rest.split_at(self.part);
            let Some(number) = number_at(&ViewWithEdits::without_edits(&self.inner), &pointer(&prefix, first))? else {
                return Ok(false);
            };
            (prefix, rest) = (space(number).to_vec(), behind);
        }
        self.inner.get(&[&prefix, rest].concat(), found)
    }

    fn scan(&self, range: &KeySpan, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let root = ScannedSpace { prefix: Vec::new(), before: Vec::new(), left: self.part_of(range, &[], &[]) };
        let mut spaces = vec![root];
        let mut goes_on = true;
        while let Some(mut space) = spaces.pop() {
            let mut deeper = None;
            let pointer_len = space.prefix.len() + self.part + 1;
            let mut whole = space.before.clone();
            self.inner.scan(&space.left, &mut |key, value| {
                let rest = key.get(space.prefix.len()..).unwrap_or_default();
                if key.len() == pointer_len {
                    whole.truncate(space.before.len());
                    whole.extend(rest.iter().take(self.part));
                    deeper = Some((key.to_vec(), read_number(value)));
                    return false;
                }
                goes_on = if space.before.is_empty() {
                    each(rest, value)
                } else {
                    whole.truncate(space.before.len());
                    whole.extend_from_slice(rest);
                    each(&whole, value)
                };
                goes_on
            })?;
            if !goes_on {
                return Ok(());
            }
            if let Some((leads, number)) = deeper {
                // Each space is deeper than the one that leads to it, and keys have a largest length.
                let prefix = super::long_keys::space(number?).to_vec();
                if whole.len() > MAX_KEY_BYTES {
                    return Err(EngineError::Damaged("spaces of long keys lead to each other"));
                }
                space.left = space.left.after(&leads);
                spaces.push(space);
                let left = self.part_of(range, &prefix, &whole);
                spaces.push(ScannedSpace { prefix, before: whole, left });
            }
        }
        Ok(())
    }

    fn share_value_prefix(&self, key: &[u8], len: u64) -> Result<Option<FileBackedBytes>> {
        if key.len() <= self.part { self.inner.share_value_prefix(key, len) } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::engine::MemoryEngine;

    fn pairs(view: &Arc<dyn View>, range: &KeySpan) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut found = Vec::new();
        view.scan(range, &mut |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            true
        })
        .unwrap();
        found
    }

    /// Keys of few different bytes, so that many have long beginnings in common.
    fn keys() -> impl Strategy<Value = Vec<u8>> {
        (0..200usize, prop::collection::vec(0..3u8, 0..4)).prop_map(|(len, end)| [vec![1; len], end].concat())
    }

    proptest! {
        #[test]
        fn keys_of_any_length_are_found_and_in_order(
            commits in prop::collection::vec(prop::collection::vec((keys(), prop::option::of(any::<u8>())), 1..8), 1..8),
            bounds in (keys(), prop::option::of(keys())),
        ) {
            let engine = LongKeyEngine::new(MemoryEngine::new());
            let mut model = BTreeMap::new();
            for commit in commits {
                let mut edits = EditBatch::new();
                for (key, value) in commit {
                    match value {
                        Some(value) => {
                            edits.put(&key, vec![value]);
                            model.insert(key, vec![value]);
                        }
                        None => {
                            edits.delete(&key);
                            model.remove(&key);
                        }
                    }
                }
                engine.commit(&edits, PublishLevel::Visible).unwrap();
                let view = engine.view().unwrap();
                let all: Vec<_> = model.clone().into_iter().collect();
                prop_assert_eq!(pairs(&view, &KeySpan::all()), all.clone());
                let range = KeySpan { start: bounds.0.clone(), end: bounds.1.clone() };
                let within: Vec<_> = all.iter().filter(|(key, _)| range.contains(key)).cloned().collect();
                prop_assert_eq!(pairs(&view, &range), within);
                for (key, value) in &all {
                    let found = ViewWithEdits::without_edits(&view).get(key).unwrap();
                    prop_assert_eq!(found.as_ref(), Some(value));
                }
            }
            let mut edits = EditBatch::new();
            model.keys().for_each(|key| edits.delete(key));
            engine.commit(&edits, PublishLevel::Visible).unwrap();
            let left = pairs(&engine.inner().view().unwrap(), &KeySpan::all());
            prop_assert!(left.iter().all(|(key, _)| *key == NEXT_SPACE), "no space is left: {left:?}");
        }
    }

    #[test]
    fn a_scan_stops_when_it_is_told_to_within_a_space_too() {
        let engine = LongKeyEngine::new(MemoryEngine::new());
        let mut edits = EditBatch::new();
        let keys: Vec<Vec<u8>> = (0..9).map(|n| [vec![1; 20 * usize::from(n)], vec![n]].concat()).collect();
        keys.iter().for_each(|key| edits.put(key, Vec::new()));
        engine.commit(&edits, PublishLevel::Visible).unwrap();
        for most in 1..9 {
            let mut found = 0;
            let each = &mut |_: &[u8], _: &[u8]| {
                found += 1;
                found < most
            };
            engine.view().unwrap().scan(&KeySpan::all(), each).unwrap();
            assert_eq!(found, most);
        }
    }

    #[test]
    fn a_key_that_no_engine_should_have_is_refused() {
        let engine = LongKeyEngine::new(MemoryEngine::new());
        let mut edits = EditBatch::new();
        edits.put(&vec![1; MAX_KEY_BYTES + 1], Vec::new());
        assert!(matches!(engine.commit(&edits, PublishLevel::Visible), Err(EngineError::KeyTooLong(_))));
    }
}

//! Chunks of small datasets that are read before they are asked for.
//!
//! A copy of a thousand datasets of one small chunk each would wait for a thousand requests, one after the other. But it has opened
//! the datasets in the order in which it reads them. So if two are read in the order in which they were opened, those that follow are
//! read with the next one: 2, 4, 8 and so on, by one wave of requests. A session has this only if it reads a state at rest.

use std::collections::HashMap;

use h5live_model::{ObjectId, Result};
use parking_lot::Mutex;

use crate::engine::{FetchedObject, ObjectEngine};
use crate::state::ReadAheadPredictor;

/// The largest chunk that is read ahead (bytes), and how many at a time.
pub const MAX_SMALL_CHUNK_BYTES: u64 = 64 << 10;
const MAX_CHUNKS: usize = 64;
/// Most bytes that are kept until they are asked for: elements of variable length may make a chunk large.
const MAX_KEPT_BYTES: usize = 8 << 20;
/// Most datasets whose order is known.
const MAX_DATASETS: usize = 1 << 16;

/// The chunks of datasets that have one.
#[derive(Debug, Default)]
pub struct SmallChunkReadAhead(Mutex<AheadState>);

#[derive(Debug, Default)]
struct AheadState {
    /// The order in which the datasets were opened, and the keys of their chunks.
    order: ReadAheadPredictor,
    keys: HashMap<ObjectId, String>,
    /// What was read and not asked for yet; `None` for a chunk that is not there.
    fetched: HashMap<ObjectId, Option<FetchedObject>>,
}

impl SmallChunkReadAhead {
    /// Notes that a dataset was opened whose only chunk has this key.
    pub fn record_opened_dataset(&self, id: ObjectId, chunk_key: String) {
        let mut state = self.0.lock();
        if state.keys.len() >= MAX_DATASETS {
            *state = AheadState::default();
        }
        state.order.append_to_order(id);
        state.keys.insert(id, chunk_key);
    }

    /// The only chunk of a dataset; `None` if it is not there.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn take_or_read_ahead(
        &self,
        engine: &dyn ObjectEngine,
        id: ObjectId,
        key: &str,
    ) -> Result<Option<FetchedObject>> {
        let (wanted, keys): (Vec<ObjectId>, Vec<String>) = {
            let mut state = self.0.lock();
            if let Some(found) = state.fetched.remove(&id) {
                return Ok(found);
            }
            // Those that nobody has asked for are not going to be.
            state.fetched.clear();
            let wanted = state.order.advance_prefetch_window(id, MAX_CHUNKS);
            wanted.into_iter().filter_map(|id| Some((id, state.keys.get(&id)?.clone()))).unzip()
        };
        if wanted.len() < 2 {
            return engine.get(key);
        }
        let found = Mutex::new(HashMap::new());
        // An error may be that of a dataset that nobody has asked for: those that did not come are read when they are.
        let _ = engine.get_many(&keys, &|number, object| {
            if let Some(id) = wanted.get(number) {
                found.lock().insert(*id, object);
            }
            Ok(())
        });
        let mut found = found.into_inner();
        let first = found.remove(&id).map_or_else(|| engine.get(key), Ok)?;
        let mut bytes = 0;
        found.retain(|_, object| {
            bytes += object.as_ref().map_or(0, |object| object.bytes.len());
            bytes <= MAX_KEPT_BYTES
        });
        self.0.lock().fetched.extend(found);
        Ok(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{MemoryEngine, ObjectPut};

    fn key(number: u64) -> String {
        format!("db/x/d/{number}/0")
    }

    /// The chunks of 300 datasets, but every tenth, each with its number and `bytes` bytes.
    fn engine(bytes: usize) -> MemoryEngine {
        let objects = MemoryEngine::new();
        let put = |number: u64| ObjectPut { key: key(number), bytes: vec![number as u8; bytes] };
        objects.put_many((0..300).filter(|number| number % 10 != 9).map(put).collect()).unwrap();
        objects.reader()
    }

    /// Reads datasets in an order, checks what is found, and returns the requests and waves.
    fn read(engine: &MemoryEngine, ahead: &SmallChunkReadAhead, order: impl IntoIterator<Item = u64>) -> (u64, u64) {
        let before = engine.counts();
        for number in order {
            let found = ahead.take_or_read_ahead(engine, ObjectId(number.into()), &key(number)).unwrap();
            let is_right = found.map(|found| found.bytes[0]) == (number % 10 != 9).then_some(number as u8);
            assert!(is_right, "dataset {number}");
        }
        let after = engine.counts();
        (after.gets - before.gets, after.waves - before.waves)
    }

    fn opened() -> SmallChunkReadAhead {
        let ahead = SmallChunkReadAhead::default();
        (0..300u64).for_each(|number| ahead.record_opened_dataset(ObjectId(number.into()), key(number)));
        ahead
    }

    #[test]
    fn datasets_that_are_read_in_order_are_read_many_at_a_time() {
        let engine = engine(4);
        let ahead = opened();
        assert_eq!(read(&engine, &ahead, 0..300), (300, 10), "1, 2, 4, 8, 16, 32 and four times up to 64");
        // Again, each is asked for again.
        assert_eq!(read(&engine, &ahead, 0..300).0, 300);
    }

    #[test]
    fn others_are_read_when_they_are_asked_for() {
        let engine = engine(4);
        assert_eq!(read(&engine, &opened(), (0..300).rev()), (300, 300));
        assert_eq!(read(&engine, &opened(), (0..300).step_by(2)), (150, 150));
        assert_eq!(read(&engine, &SmallChunkReadAhead::default(), 0..300), (300, 300), "those that were not opened");
    }

    #[test]
    fn what_waits_to_be_asked_for_is_bounded() {
        let engine = engine(MAX_KEPT_BYTES / 3);
        let ahead = opened();
        read(&engine, &ahead, 0..40);
        let kept: usize = ahead.0.lock().fetched.values().flatten().map(|object| object.bytes.len()).sum();
        assert!(kept <= MAX_KEPT_BYTES, "{kept}");
    }
}

//! Chunks on their way to the store: encoded by as many threads as there are, and stored one after another, in their
//! order, by whichever thread has the next one, while the others go on encoding.

use std::cell::RefCell;
use std::collections::VecDeque;

use parking_lot::Mutex;
use rayon::ScopeFifo;

use crate::dataset::error::DatasetError;

/// Bytes that a thread keeps from one call to the next, in each buffer.
const MAX_KEPT_BUFFER_BYTES: usize = 2 << 20;

/// Memory for one chunk on its way, used again for the ones after it.
#[derive(Debug, Default)]
pub(crate) struct EncodeBuffers {
    /// The chunk, if it must be put together first.
    pub(crate) chunk: Vec<u8>,
    /// The stored bytes of the chunk.
    pub(crate) stored: Vec<u8>,
}

thread_local! {
    static MEMORY: RefCell<EncodeBuffers> = RefCell::default();
}

/// Calls `encode` for the items, for several at once. Calls `store` for one item at a time, in the order of the items,
/// with the bytes that `encode` left in [`EncodeBuffers::stored`] and the mask that it returned. At most `max_in_progress` items
/// are begun and not stored.
///
/// # Errors
/// The error of the first item that fails. All items before it are stored, and none after it.
pub(crate) fn encode_and_store<T: Sync>(
    items: &[T],
    max_in_progress: usize,
    encode: impl Fn(&T, &mut EncodeBuffers) -> Result<u32, DatasetError> + Sync,
    store: impl Fn(&T, u32, &[u8]) -> Result<(), DatasetError> + Sync,
) -> Result<(), DatasetError> {
    let threads = rayon::current_num_threads().min(max_in_progress).min(items.len());
    if threads > 1 {
        let pipeline = EncodePipeline {
            items,
            max_in_progress,
            threads,
            encode,
            store,
            state: Mutex::new(EncodePipelineState::default()),
        };
        pipeline.state.lock().working = threads;
        rayon::scope_fifo(|scope| (0..threads).for_each(|_| scope.spawn_fifo(|scope| pipeline.run_worker(scope))));
        return pipeline.state.into_inner().failure.map_or(Ok(()), Err);
    }
    let mut memory = MEMORY.take();
    let done = items.iter().try_for_each(|item| {
        let mask = encode(item, &mut memory)?;
        store(item, mask, &memory.stored)
    });
    for buffer in [&mut memory.chunk, &mut memory.stored] {
        if buffer.capacity() > MAX_KEPT_BUFFER_BYTES {
            *buffer = Vec::new();
        }
    }
    MEMORY.set(memory);
    done
}

struct EncodePipeline<'a, T, E, S> {
    items: &'a [T],
    max_in_progress: usize,
    threads: usize,
    encode: E,
    store: S,
    state: Mutex<EncodePipelineState>,
}

#[derive(Default)]
struct EncodePipelineState {
    /// Threads that encode or store.
    working: usize,
    /// Items that were begun.
    begun: usize,
    /// The number of items whose storing has begun.
    taken: usize,
    /// Whether the last of these is being stored.
    storing: bool,
    /// The results of later items that are encoded already.
    encoded: VecDeque<Option<(Result<u32, DatasetError>, EncodeBuffers)>>,
    spare: Vec<EncodeBuffers>,
    failure: Option<DatasetError>,
}

/// An item to be stored, and its mask.
type EncodedItem = (usize, u32, EncodeBuffers);

impl EncodePipelineState {
    fn may_begin(&self, items: usize, max_in_progress: usize) -> bool {
        self.failure.is_none()
            && self.begun < items
            && self.begun - self.taken + usize::from(self.storing) < max_in_progress
    }

    /// The next item, if it can be stored now. The caller has to store it.
    fn take_next_encoded(&mut self) -> Option<EncodedItem> {
        if self.storing || self.failure.is_some() || !matches!(self.encoded.front(), Some(Some(_))) {
            return None;
        }
        match self.encoded.pop_front().flatten()? {
            (Ok(mask), memory) => {
                self.storing = true;
                self.taken += 1;
                Some((self.taken - 1, mask, memory))
            }
            (Err(failure), _) => {
                self.failure = Some(failure);
                None
            }
        }
    }
}

impl<T, E, S> EncodePipeline<'_, T, E, S>
where
    T: Sync,
    E: Fn(&T, &mut EncodeBuffers) -> Result<u32, DatasetError> + Sync,
    S: Fn(&T, u32, &[u8]) -> Result<(), DatasetError> + Sync,
{
    /// Encodes items, and stores the next one in order, until other threads do the rest.
    fn run_worker<'s>(&'s self, scope: &ScopeFifo<'s>) {
        while let Some((i, mut memory)) = self.next_item() {
            let encoded = (self.encode)(&self.items[i], &mut memory);
            let mut next = self.finish_encode(i, encoded, memory);
            while let Some((i, mask, memory)) = next {
                let stored = (self.store)(&self.items[i], mask, &memory.stored);
                next = self.finish_store(stored, memory, scope);
            }
        }
    }

    /// An item to be encoded. A thread that gets none is done: it does not wait for others.
    fn next_item(&self) -> Option<(usize, EncodeBuffers)> {
        let mut state = self.state.lock();
        if !state.may_begin(self.items.len(), self.max_in_progress) {
            state.working -= 1;
            return None;
        }
        state.begun += 1;
        Some((state.begun - 1, state.spare.pop().unwrap_or_default()))
    }

    fn finish_encode(
        &self,
        i: usize,
        encoded: Result<u32, DatasetError>,
        memory: EncodeBuffers,
    ) -> Option<EncodedItem> {
        let mut state = self.state.lock();
        let place = i - state.taken;
        if state.encoded.len() <= place {
            state.encoded.resize_with(place + 1, || None);
        }
        state.encoded[place] = Some((encoded, memory));
        state.take_next_encoded()
    }

    fn finish_store<'s>(
        &'s self,
        stored: Result<(), DatasetError>,
        memory: EncodeBuffers,
        scope: &ScopeFifo<'s>,
    ) -> Option<EncodedItem> {
        let mut state = self.state.lock();
        state.storing = false;
        state.spare.push(memory);
        if let Err(failure) = stored {
            state.failure = Some(failure);
            return None;
        }
        let next = state.take_next_encoded();
        // There is room again for a thread that had none.
        if state.working < self.threads && state.may_begin(self.items.len(), self.max_in_progress) {
            state.working += 1;
            scope.spawn_fifo(|scope| self.run_worker(scope));
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::Duration;

    use super::*;
    use crate::error::ErrorKind;

    fn pool(threads: usize) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
    }

    /// Takes longer for some items than for others.
    fn encode(item: &u64, memory: &mut EncodeBuffers) -> Result<u32, DatasetError> {
        std::thread::sleep(Duration::from_micros(item * 7919 % 300));
        memory.stored.clear();
        memory.stored.extend_from_slice(&item.to_le_bytes());
        Ok(*item as u32 + 1)
    }

    #[test]
    fn stores_in_order_and_begins_no_more_than_it_may() {
        let items: Vec<u64> = (0..200).collect();
        for (threads, max_in_progress) in [(1, 8), (2, 1), (2, 2), (4, 3), (4, 16)] {
            let (under_way, stored) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
            let encode = |item: &u64, memory: &mut EncodeBuffers| {
                assert!(under_way.fetch_add(1, SeqCst) < max_in_progress);
                encode(item, memory)
            };
            let store = |item: &u64, mask: u32, bytes: &[u8]| {
                // Slower than encoding, for a while.
                std::thread::sleep(Duration::from_micros(if *item < 50 { 500 } else { 0 }));
                assert_eq!((mask, bytes), (*item as u32 + 1, &item.to_le_bytes()[..]));
                stored.try_lock().expect("one at a time").push(*item);
                under_way.fetch_sub(1, SeqCst);
                Ok(())
            };
            pool(threads).install(|| encode_and_store(&items, max_in_progress, encode, store)).unwrap();
            assert_eq!(stored.into_inner(), items, "{threads} threads, {max_in_progress} at once");
        }
    }

    #[test]
    fn the_first_failure_counts_and_nothing_after_it_is_stored() {
        let items: Vec<u64> = (0..100).collect();
        for (fails_to_encode, fails_to_store) in [(40, 100), (100, 40), (40, 41), (41, 40), (0, 100)] {
            let stored = Mutex::new(Vec::new());
            let check = |item: &u64, fails: u64| match *item >= fails {
                true => Err(DatasetError::from(ErrorKind::OutOfMemory(*item))),
                false => Ok(()),
            };
            let encode = |item: &u64, memory: &mut EncodeBuffers| {
                check(item, fails_to_encode)?;
                encode(item, memory)
            };
            let store = |item: &u64, _: u32, _: &[u8]| {
                check(item, fails_to_store)?;
                stored.lock().push(*item);
                Ok(())
            };
            let failure = pool(4).install(|| encode_and_store(&items, 8, encode, store)).unwrap_err();
            let first = fails_to_encode.min(fails_to_store);
            assert_eq!(format!("{failure:?}"), format!("{:?}", DatasetError::from(ErrorKind::OutOfMemory(first))));
            assert_eq!(stored.into_inner(), items[..first as usize]);
        }
    }
}

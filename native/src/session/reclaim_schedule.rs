//! When a flush is worth it for the sake of the space that can be used again after it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use h5live_cache::FileSpaceAllocator;

/// Least freed bytes that are worth a flush, so that they can be used again.
const MIN_RECLAIM_BYTES: u64 = 4 << 10;

/// Operations between two such flushes: structures that a flush has written are copied when they next change.
const MAX_OPERATIONS_BETWEEN_RECLAIMS: u64 = 128;
const MIN_OPERATIONS_BETWEEN_RECLAIMS: u64 = 16;

/// Bytes of a file for each operation between two such flushes.
const FILE_BYTES_PER_OPERATION: u64 = 256 << 10;

/// Bytes of a heap of names that are written for each operation, at most, so that names can be used again: if they
/// cannot, the heap is moved sooner or later.
const MAX_NAME_BYTES_PER_OPERATION: u64 = 512;

/// The operations since the last flush for the sake of space.
#[derive(Debug, Default)]
pub(crate) struct ReclaimSchedule {
    operations: AtomicU32,
    /// Where the allocated space ended at the last of these flushes.
    end_at_last_reclaim: AtomicU64,
}

impl ReclaimSchedule {
    /// Counts an operation, and says whether a flush is due. `largest_reclaimable_name_heap_bytes` are the bytes of the largest heap in which
    /// the flush makes names free. If one is due, the count begins again.
    pub fn count_operation_and_check_due(
        &self,
        space: &FileSpaceAllocator,
        largest_reclaimable_name_heap_bytes: impl FnOnce() -> u64,
    ) -> bool {
        let operations = u64::from(self.operations.fetch_add(1, Ordering::Relaxed));
        // In a small file, the waiting space is much of the file.
        let many = (space.allocated_end() / FILE_BYTES_PER_OPERATION)
            .clamp(MIN_OPERATIONS_BETWEEN_RECLAIMS, MAX_OPERATIONS_BETWEEN_RECLAIMS);
        if operations < many {
            return false;
        }
        // The end need not have moved if there had been a flush before.
        let share = if space.allocated_end() > self.end_at_last_reclaim.load(Ordering::Relaxed) { 512 } else { 128 };
        let names = largest_reclaimable_name_heap_bytes();
        let are_names_worth_it = names > 0 && operations >= names / MAX_NAME_BYTES_PER_OPERATION;
        if space.freed_bytes_awaiting_flush() <= (space.allocated_end() / share).max(MIN_RECLAIM_BYTES)
            && !are_names_worth_it
        {
            return false;
        }
        self.operations.store(0, Ordering::Relaxed);
        self.end_at_last_reclaim.store(space.allocated_end(), Ordering::Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use h5live_cache::MemoryStorage;

    use super::*;
    use crate::{Mode, NativeFile, OpenOptions};

    #[test]
    fn a_flush_is_due_when_the_names_that_it_frees_are_worth_the_operations() {
        let options = OpenOptions { mode: Mode::Create, ..OpenOptions::default() };
        let file = NativeFile::open_storage(Arc::new(MemoryStorage::new()), &options).unwrap();
        let (schedule, space) = (ReclaimSchedule::default(), file.native_session().cache.space());
        let names = || 20 * MAX_NAME_BYTES_PER_OPERATION;
        for round in 0..2 {
            for operation in 0..20 {
                assert!(
                    !schedule.count_operation_and_check_due(space, names),
                    "operation {operation} of round {round}"
                );
            }
            assert!(
                schedule.count_operation_and_check_due(space, names),
                "20 operations pay for the names, round {round}"
            );
        }
        assert!(
            (0..200).all(|_| !schedule.count_operation_and_check_due(space, || 0)),
            "nothing is to be had from a flush"
        );
    }
}

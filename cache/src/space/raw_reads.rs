//! Reads of raw data by threads of this process. Freed space of raw data is not used again while a read is under way
//! that may have found it.
//!
//! Reads are counted in two generations. Space that is freed waits until the generation has changed, and then for the
//! reads of the generation before. Reads that begin later find nothing that leads there.

use super::space_kind::FreedSection;
use crate::primitive::atomic::{AtomicU64, Ordering::SeqCst, fence};

/// The reads that are under way.
#[derive(Debug)]
pub(super) struct RawReads {
    generation: AtomicU64,
    /// Reads of the present generation and of the one before, by the last bit of the generation.
    counts: [AtomicU64; 2],
    /// Chunks that lost their place so far.
    moves: AtomicU64,
    /// Those of them that had bytes which were in no file yet.
    discards: AtomicU64,
}

impl RawReads {
    pub fn new() -> Self {
        let zero = || AtomicU64::new(0);
        RawReads { generation: zero(), counts: [zero(), zero()], moves: zero(), discards: zero() }
    }

    pub fn begin(&self) -> RawReadGuard<'_> {
        loop {
            let generation = self.generation.load(SeqCst);
            let count = self.count_of(generation);
            count.fetch_add(1, SeqCst);
            // Either this sees a new generation, or who makes it sees the read.
            fence(SeqCst);
            if self.generation.load(SeqCst) == generation {
                let discards = self.discards.load(SeqCst);
                return RawReadGuard { reads: self, count, discards };
            }
            count.fetch_sub(1, SeqCst);
        }
    }

    /// The index leads to another place of a chunk, or to none.
    pub fn note_chunk_freed(&self) {
        self.moves.fetch_add(1, SeqCst);
    }

    /// Bytes of a chunk that were in no file yet have gone.
    pub fn note_unwritten_bytes_dropped(&self) {
        self.discards.fetch_add(1, SeqCst);
    }

    fn count_of(&self, generation: u64) -> &AtomicU64 {
        let [even, odd] = &self.counts;
        if generation.is_multiple_of(2) { even } else { odd }
    }

    /// Reads that begin from now on belong to a new generation.
    fn begin_generation(&self) {
        self.generation.fetch_add(1, SeqCst);
        fence(SeqCst);
    }

    /// Whether all reads of the generation before have ended.
    fn is_previous_over(&self) -> bool {
        self.count_of(self.generation.load(SeqCst).wrapping_add(1)).load(SeqCst) == 0
    }
}

/// A read that is under way until this is dropped. See [`FileSpaceAllocator::begin_raw_read`](super::FileSpaceAllocator::begin_raw_read).
#[derive(Debug)]
#[must_use]
pub struct RawReadGuard<'a> {
    reads: &'a RawReads,
    count: &'a AtomicU64,
    /// The number of discards when it began.
    discards: u64,
}

impl RawReadGuard<'_> {
    /// Whether any chunk of the file may have lost its place since the file was opened.
    pub fn was_any_chunk_ever_freed(&self) -> bool {
        self.reads.moves.load(SeqCst) != 0
    }

    /// Whether bytes of a chunk that lost its place may have gone since this read began.
    pub fn unwritten_discarded_since_start(&self) -> bool {
        self.reads.discards.load(SeqCst) != self.discards
    }
}

impl Drop for RawReadGuard<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, SeqCst);
    }
}

/// Freed space of raw data that waits for reads to end.
#[derive(Debug, Default)]
pub(super) struct FreesAwaitingReads {
    /// Freed in the present generation of reads.
    present: Vec<FreedSection>,
    /// Freed in the one before.
    previous: Vec<FreedSection>,
}

impl FreesAwaitingReads {
    pub fn is_empty(&self) -> bool {
        self.present.is_empty() && self.previous.is_empty()
    }

    /// Adds a section to which nothing leads any more.
    pub fn add_section(&mut self, section: FreedSection) {
        self.present.push(section);
    }

    /// Returns the sections that no read has found. Nobody else calls this meanwhile.
    pub fn release_unread(&mut self, reads: &RawReads) -> Vec<FreedSection> {
        let mut free = Vec::new();
        while !self.is_empty() && reads.is_previous_over() {
            free.append(&mut self.previous);
            self.previous = std::mem::take(&mut self.present);
            reads.begin_generation();
        }
        free
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::space::SpaceKind;

    fn section(at: u64) -> FreedSection {
        (at, 8, SpaceKind::Raw)
    }

    #[test]
    fn space_waits_for_the_reads_that_began_before_it_was_freed() {
        let (reads, mut pending) = (RawReads::new(), FreesAwaitingReads::default());
        pending.add_section(section(0));
        assert_eq!(pending.release_unread(&reads), [section(0)], "nobody reads");
        let first = reads.begin();
        pending.add_section(section(8));
        assert_eq!(pending.release_unread(&reads), []);
        let second = reads.begin();
        pending.add_section(section(16));
        drop(first);
        assert_eq!(pending.release_unread(&reads), [section(8)], "the second read began later");
        let third = reads.begin();
        drop(second);
        assert_eq!(
            pending.release_unread(&reads),
            [section(16)],
            "reads that always follow each other hold nothing for ever"
        );
        drop(third);
        assert!(pending.is_empty());
    }

    #[test]
    fn a_read_knows_what_was_discarded_since_it_began() {
        let reads = RawReads::new();
        let first = reads.begin();
        assert!(!first.was_any_chunk_ever_freed() && !first.unwritten_discarded_since_start());
        reads.note_chunk_freed();
        reads.note_unwritten_bytes_dropped();
        assert!(first.was_any_chunk_ever_freed() && first.unwritten_discarded_since_start());
        assert!(reads.begin().was_any_chunk_ever_freed() && !reads.begin().unwritten_discarded_since_start());
    }
}

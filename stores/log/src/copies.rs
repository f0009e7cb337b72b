//! Copies of elements from the log into a buffer. First bytes of the log are read into a window, those that lie near each
//! other by one call; then elements are copied from there to their places. Several threads share both.

use std::ops::Range;

use crate::entry_box_index::EntryDataLocation;
use crate::error::Result;
use crate::log_bytes::{ChecksummedRange, LogSource};
use crate::mapped_copies::{MappedCopy, copy_mapped};
use crate::parallel::for_each_in_parallel;
use crate::strided_copy::{StridedCopy, copy_runs_ignoring_starts};
use crate::verify::verify;

/// Bytes between two runs of the log that are read though nobody wants them: this takes less time than another call.
const MAX_GAP_BYTES: u64 = 16 << 10;
/// The most bytes that are read into the window by one call.
const MAX_SPAN_BYTES: u64 = 1 << 20;
/// The most bytes that wait in the window, unless those of one entry are more.
const MAX_WINDOW_BYTES: usize = 16 << 20;
/// The most copies that wait.
const MAX_WAITING: usize = 64 << 10;
/// Runs of so many bytes are read by a call of their own, right to where they go.
const MIN_DIRECT_BYTES: u64 = 32 << 10;
/// So many bytes are worth another thread; in tests, few are.
const MIN_PARALLEL_BYTES: usize = if cfg!(test) { 64 } else { 256 << 10 };
/// Parts of the work for each thread, so that none waits long for the last one.
const PARTS_PER_THREAD: usize = 4;

/// What is put into the window by one call.
#[derive(Debug)]
struct WindowSpan {
    /// Where it begins in the log; of encoded data, nothing.
    from: u64,
    /// Bytes.
    len: usize,
    /// Encoded data, which is decoded into the window.
    encoded: Option<EntryDataLocation>,
    /// Its checksums.
    checks: Range<usize>,
}

/// A run that is read to its place.
#[derive(Debug)]
struct DirectCopy {
    run: StridedCopy,
    check: Option<u32>,
}

/// Copies that wait for one read. They take effect in the order in which they came.
pub struct CopyQueue<'a, L> {
    log: &'a L,
    into: &'a mut [u8],
    threads: usize,
    /// Copies from the window, where their first run is counted from its beginning.
    waiting: Vec<StridedCopy>,
    /// What is put into the window, one after the other.
    spans: Vec<WindowSpan>,
    window_len: usize,
    checks: Vec<ChecksummedRange>,
    /// Where the bytes end that can be read with those of the last span.
    limit: u64,
    /// Runs that are read to their places. They wait only when nothing waits for the window.
    direct: Vec<DirectCopy>,
    /// Runs that are copied from memory. They wait only when nothing else does.
    mapped: Vec<MappedCopy>,
    copies_from_memory: bool,
    window: Vec<u8>,
}

impl WindowSpan {
    /// Behind its last byte in the log.
    fn end(&self) -> u64 {
        self.from + self.len as u64
    }

    /// Fills its part of the window. `checks` are those of all spans.
    fn load(&self, log: &impl LogSource, checks: &[ChecksummedRange], into: &mut [u8]) -> Result<()> {
        if let Some(data) = &self.encoded {
            return log.read_decoded(data, into);
        }
        log.read(self.from, into)?;
        for check in &checks[self.checks.clone()] {
            let from = (check.position_bits - self.from) as usize;
            if crc32c::crc32c(&into[from..from + check.len as usize]) != check.crc {
                return Err(log.checksum_error(check.position_bits));
            }
        }
        Ok(())
    }
}

impl DirectCopy {
    fn load(&self, log: &impl LogSource, into: &mut [u8]) -> Result<()> {
        log.read(self.run.from, into)?;
        match self.check {
            Some(crc) if crc32c::crc32c(into) != crc => Err(log.checksum_error(self.run.from)),
            _ => Ok(()),
        }
    }
}

impl<'a, L: LogSource> CopyQueue<'a, L> {
    /// Copies from a log into a buffer, on at most so many threads.
    pub fn new(log: &'a L, into: &'a mut [u8], max_threads: usize) -> Self {
        CopyQueue {
            log,
            into,
            threads: max_threads,
            waiting: Vec::new(),
            spans: Vec::new(),
            window_len: 0,
            checks: Vec::new(),
            limit: 0,
            direct: Vec::new(),
            mapped: Vec::new(),
            copies_from_memory: true,
            window: Vec::new(),
        }
    }

    /// Whether what of the log is in memory is copied from there.
    pub fn set_copy_from_mmap(&mut self, enabled: bool) {
        self.copies_from_memory = enabled;
    }

    /// Has runs of an entry be copied, which lie in the buffer. `check` is what the bytes of all of them are, if they have
    /// a checksum: it is compared in any case.
    ///
    /// # Errors
    /// Those of reading, and of the checksum.
    pub fn push_plain_entry(
        &mut self,
        runs: impl Iterator<Item = StridedCopy>,
        mut check: Option<ChecksummedRange>,
    ) -> Result<()> {
        for runs in runs {
            if self.push(runs, check)? {
                check = None;
            }
        }
        check.map_or(Ok(()), |check| verify(self.log, &check))
    }

    /// Has runs be copied. Says whether `check` is compared meanwhile: that takes all bytes in one piece.
    fn push(&mut self, runs: StridedCopy, check: Option<ChecksummedRange>) -> Result<bool> {
        if runs.run_len >= MIN_DIRECT_BYTES {
            let whole =
                check.filter(|check| (check.position_bits, check.len, 1) == (runs.from, runs.run_len, runs.count));
            for n in 0..runs.count {
                self.push_direct(DirectCopy { run: runs.part(n, 1), check: whole.map(|check| check.crc) })?;
            }
            return Ok(whole.is_some());
        }
        if self.copies_from_memory && self.log.try_map(runs.from, runs.source_end() - runs.from) {
            let copy = MappedCopy::with_check_if_first(runs, check);
            let has_check = copy.check.is_some();
            return self.push_mapped(copy).map(|()| has_check);
        }
        self.push_to_window(runs, check)
    }

    fn push_mapped(&mut self, copy: MappedCopy) -> Result<()> {
        if !self.waiting.is_empty() || !self.direct.is_empty() || self.mapped.len() >= MAX_WAITING {
            self.flush()?;
        }
        self.mapped.push(copy);
        Ok(())
    }

    fn push_to_window(&mut self, runs: StridedCopy, check: Option<ChecksummedRange>) -> Result<bool> {
        for part in runs.cut_by_gaps(MAX_GAP_BYTES, MAX_SPAN_BYTES) {
            self.push_part(part)?;
        }
        // All of it is in the window.
        if let (Some(check), Some(last)) = (check, self.spans.last_mut())
            && last.from <= check.position_bits
            && check.position_bits + check.len <= last.end()
        {
            self.checks.push(check);
            last.checks.end = self.checks.len();
            return Ok(true);
        }
        Ok(false)
    }

    /// Has runs be copied of the data of an entry with a filter, which has `decoded_len` bytes without it. In `runs`, they are
    /// counted from its first byte.
    ///
    /// # Errors
    /// Those of reading earlier ones.
    pub fn push_encoded_entry(
        &mut self,
        location: EntryDataLocation,
        decoded_len: usize,
        runs: impl Iterator<Item = StridedCopy>,
    ) -> Result<()> {
        self.make_room(decoded_len)?;
        let first = self.window_len as u64;
        self.push_span(WindowSpan { from: 0, len: decoded_len, encoded: Some(location), checks: 0..0 });
        self.waiting.extend(runs.map(|runs| StridedCopy { from: first + runs.from, ..runs }));
        Ok(())
    }

    fn push_direct(&mut self, copy: DirectCopy) -> Result<()> {
        if !self.waiting.is_empty() || !self.mapped.is_empty() || self.direct.len() >= MAX_WAITING {
            self.flush()?;
        }
        self.direct.push(copy);
        Ok(())
    }

    fn push_part(&mut self, part: StridedCopy) -> Result<()> {
        let end = part.source_end();
        let near = self.spans.last_mut().filter(|last| {
            last.encoded.is_none()
                && part.from >= last.end()
                && part.from - last.end() <= MAX_GAP_BYTES
                && end - last.from <= MAX_SPAN_BYTES
                && end <= self.limit
        });
        let from = match near {
            Some(last) => {
                let from = self.window_len + (part.from - last.end()) as usize;
                self.window_len += (end - last.end()) as usize;
                last.len = (end - last.from) as usize;
                from
            }
            None => {
                let len = (end - part.from) as usize;
                self.make_room(len)?;
                self.limit = part.from.saturating_add(self.log.contiguous_bytes_at(part.from));
                let checks = self.checks.len()..self.checks.len();
                self.push_span(WindowSpan { from: part.from, len, encoded: None, checks });
                self.window_len - len
            }
        };
        self.waiting.push(StridedCopy { from: from as u64, ..part });
        Ok(())
    }

    fn push_span(&mut self, span: WindowSpan) {
        self.window_len += span.len;
        self.spans.push(span);
    }

    /// Copies what waits, if the window has no room for so many bytes more.
    fn make_room(&mut self, len: usize) -> Result<()> {
        let is_full = self.window_len + len > MAX_WINDOW_BYTES || self.waiting.len() >= MAX_WAITING;
        if is_full || !self.direct.is_empty() || !self.mapped.is_empty() { self.flush() } else { Ok(()) }
    }

    /// Copies everything that waits.
    ///
    /// # Errors
    /// Those of reading; if a checksum does not fit.
    pub fn flush(&mut self) -> Result<()> {
        if !self.direct.is_empty() {
            return self.finish_direct();
        }
        if !self.mapped.is_empty() {
            self.finish_mapped()?;
        }
        self.finish_window()
    }

    /// Copies what waits from memory. If that is not what the file has, it waits for the window then.
    fn finish_mapped(&mut self) -> Result<()> {
        let copies = std::mem::take(&mut self.mapped);
        let bytes = copies.iter().map(|copy| copy.runs.run_len * copy.runs.count).sum::<u64>();
        let result = copy_mapped(self.log, &copies, self.into, self.threads_for(bytes as usize));
        if self.log.check_or_disable_mappings() && !matches!(result, Ok(false)) {
            self.mapped = copies;
            self.mapped.clear();
            return result.map(drop);
        }
        copies.into_iter().try_for_each(|copy| match self.push_to_window(copy.runs, copy.check)? {
            true => Ok(()),
            false => copy.check.map_or(Ok(()), |check| verify(self.log, &check)),
        })
    }

    fn finish_window(&mut self) -> Result<()> {
        match (&self.waiting[..], &self.spans[..]) {
            ([], _) => return Ok(()),
            ([StridedCopy { to, count: 1, run_len: len, .. }], [span @ WindowSpan { encoded: None, .. }])
                if *len == span.len as u64 =>
            {
                span.load(self.log, &self.checks, &mut self.into[*to as usize..][..span.len])?;
            }
            _ => {
                self.fill_window()?;
                self.copy_window()?;
            }
        }
        self.waiting.clear();
        self.spans.clear();
        self.checks.clear();
        self.window_len = 0;
        Ok(())
    }

    /// How many threads are worth their while for so many bytes.
    fn threads_for(&self, bytes: usize) -> usize {
        if bytes < MIN_PARALLEL_BYTES { 1 } else { self.threads }
    }

    fn fill_window(&mut self) -> Result<()> {
        if self.window.len() < self.window_len {
            self.window.resize(self.window_len, 0);
        }
        let threads = self.threads_for(self.window_len);
        let parts = if threads > 1 { threads * PARTS_PER_THREAD } else { 1 };
        let mut rest = &mut self.window[..self.window_len];
        let mut shares = Vec::with_capacity(parts);
        for spans in self.spans.chunks(self.spans.len().div_ceil(parts)) {
            let (share, behind) = rest.split_at_mut(spans.iter().map(|span| span.len).sum());
            rest = behind;
            shares.push((spans, share));
        }
        let (log, checks) = (self.log, &self.checks[..]);
        for_each_in_parallel(shares, threads, |(spans, mut share)| {
            spans.iter().try_for_each(|span| {
                let (part, behind) = std::mem::take(&mut share).split_at_mut(span.len);
                share = behind;
                span.load(log, checks, part)
            })
        })
    }

    /// Copies from the window. Each thread has a part of the buffer.
    fn copy_window(&mut self) -> Result<()> {
        let threads = self.threads_for(self.window_len);
        let (window, waiting) = (&self.window[..], &self.waiting[..]);
        let parts = self.into.chunks_mut(self.into.len().div_ceil(threads).max(1));
        let mut begin = 0;
        let parts = parts.map(|part| {
            let range = begin..begin + part.len() as u64;
            begin = range.end;
            (range, part)
        });
        for_each_in_parallel(parts.collect(), threads, |(range, part)| {
            for runs in waiting {
                runs.for_each_in_buffer_range(&range, |runs| {
                    copy_runs_ignoring_starts(
                        &window[runs.from as usize..],
                        &mut part[(runs.to - range.start) as usize..],
                        &runs,
                    );
                });
            }
            Ok(())
        })
    }

    /// Reads runs to their places: on several threads, if they follow each other in the buffer.
    fn finish_direct(&mut self) -> Result<()> {
        let (log, direct) = (self.log, std::mem::take(&mut self.direct));
        let place = |copy: &DirectCopy| copy.run.to as usize..(copy.run.to + copy.run.run_len) as usize;
        if !direct.is_sorted_by(|one, next| place(one).end <= place(next).start) {
            return direct.iter().try_for_each(|copy| copy.load(log, &mut self.into[place(copy)]));
        }
        let (mut rest, mut begin) = (&mut *self.into, 0);
        let parts = direct.iter().map(|copy| {
            let Range { start, end } = place(copy);
            let (part, behind) = std::mem::take(&mut rest)[start - begin..].split_at_mut(end - start);
            (rest, begin) = (behind, end);
            (copy, part)
        });
        for_each_in_parallel(parts.collect(), self.threads, |(copy, part)| copy.load(log, part))
    }

    /// The buffer, after everything that waits was copied.
    ///
    /// # Errors
    /// As [`CopyQueue::flush`].
    pub fn flush_and_get_buffer(&mut self) -> Result<&mut [u8]> {
        self.flush()?;
        Ok(self.into)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

    use h5live_model::Error;
    use parking_lot::Mutex;
    use proptest::prelude::*;

    use super::*;
    use crate::entry_box_index::EntrySelectionKind;

    /// A log in parts of so many bytes.
    struct Bytes {
        log: Vec<u8>,
        part_len: u64,
        /// What was read by calls.
        reads: Mutex<Vec<Range<u64>>>,
        /// So many bytes are in memory, until they were copied from so many times.
        mapped_len: u64,
        copies_left: AtomicI64,
    }

    impl LogSource for Bytes {
        fn read_decoded(&self, _: &EntryDataLocation, into: &mut [u8]) -> Result<()> {
            into.fill(7);
            Ok(())
        }

        fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
            assert!(into.len() as u64 <= self.contiguous_bytes_at(at));
            self.reads.lock().push(at..at + into.len() as u64);
            into.copy_from_slice(&self.log[at as usize..][..into.len()]);
            Ok(())
        }

        fn try_map(&self, at: u64, len: u64) -> bool {
            at.saturating_add(len) <= self.mapped_len && self.check_or_disable_mappings()
        }

        fn copy_mapped(&self, at: u64, into: &mut [u8]) -> bool {
            assert!(at + into.len() as u64 <= self.mapped_len);
            match self.copies_left.fetch_sub(1, Relaxed) {
                ..=0 => into.fill(9),
                _ => into.copy_from_slice(&self.log[at as usize..][..into.len()]),
            }
            true
        }

        fn check_or_disable_mappings(&self) -> bool {
            self.copies_left.load(Relaxed) >= 0
        }

        fn contiguous_bytes_at(&self, at: u64) -> u64 {
            self.part_len - at % self.part_len
        }

        fn checksum_error(&self, _: u64) -> Error {
            Error::Invalid("checksum".to_owned())
        }
    }

    fn bytes(len: usize) -> Bytes {
        Bytes {
            log: (0..len).map(|at| (at * 7 + at / 251) as u8).collect(),
            part_len: u64::MAX,
            reads: Mutex::default(),
            mapped_len: 0,
            copies_left: AtomicI64::new(i64::MAX),
        }
    }

    fn run(from: u64, to: u64, len: u64) -> StridedCopy {
        StridedCopy { from, to, run_len: len, from_stride: len, to_stride: len, count: 1 }
    }

    proptest! {
        #[test]
        fn copies_take_effect_in_their_order(
            runs in prop::collection::vec((0u64..9000, 0u64..200, 0u64..60, 0u64..60, 1u64..20, 1u64..9), 1..12),
            mapped_len in 0u64..20_000,
            copies in prop::option::of(0i64..40),
        ) {
            let log = Bytes {
                mapped_len: mapped_len.min(10_000),
                copies_left: AtomicI64::new(copies.unwrap_or(i64::MAX)),
                ..bytes(10_000)
            };
            let (mut into, mut wanted) = (vec![0; 1000], vec![0; 1000]);
            let mut queue = CopyQueue::new(&log, &mut into, 2);
            for (from, to, from_gap, to_gap, len, count) in runs {
                let runs = StridedCopy { from, from_stride: len + from_gap, to, to_stride: len + to_gap, run_len: len, count };
                queue.push(runs, None).unwrap();
                for n in 0..count {
                    let (from, to) = ((from + n * runs.from_stride) as usize, (to + n * runs.to_stride) as usize);
                    wanted[to..to + len as usize].copy_from_slice(&log.log[from..from + len as usize]);
                }
            }
            queue.flush().unwrap();
            prop_assert_eq!(into, wanted);
        }
    }

    #[test]
    fn what_is_near_is_read_by_one_call_and_what_is_long_by_its_own() {
        let log = bytes(300_000);
        let mut into = vec![0; 200_000];
        let mut queue = CopyQueue::new(&log, &mut into, 2);
        for runs in [run(100, 0, 10), run(4000, 10, 10), run(3000, 20, 10), run(3500, 30, 100_000)] {
            queue.push(runs, None).unwrap();
        }
        let pairs = StridedCopy { from: 200_000, from_stride: 50_000, to: 150_000, to_stride: 8, run_len: 8, count: 2 };
        queue.push(pairs, None).unwrap();
        queue.flush().unwrap();
        assert_eq!(*log.reads.lock(), [100..4010, 3000..3010, 3500..103_500, 200_000..200_008, 250_000..250_008]);
    }

    #[test]
    fn long_runs_take_effect_in_their_order_too() {
        const LEN: u64 = 40_000;
        let log = bytes(300_000);
        for places in [[0, LEN, 2 * LEN], [LEN, 0, 2 * LEN], [0, LEN / 2, LEN]] {
            let (mut into, mut wanted) = (vec![0; 3 * LEN as usize], vec![0; 3 * LEN as usize]);
            let mut queue = CopyQueue::new(&log, &mut into, 2);
            for (number, to) in places.into_iter().enumerate() {
                let from = number as u64 * 50_000;
                queue.push(run(from, to, LEN), None).unwrap();
                wanted[to as usize..][..LEN as usize].copy_from_slice(&log.log[from as usize..][..LEN as usize]);
            }
            queue.push(run(7, 5, 10), None).unwrap();
            wanted[5..15].copy_from_slice(&log.log[7..17]);
            queue.flush().unwrap();
            assert_eq!(into, wanted);
        }
    }

    #[test]
    fn what_is_decoded_takes_effect_in_its_order() {
        let log = bytes(1000);
        let at = crate::position::LogPosition::from_bits(0);
        let data = EntryDataLocation { at, len: 9, filter_id: 1, crc: None, kind: EntrySelectionKind::Block };
        let mut into = vec![0; 100];
        let mut queue = CopyQueue::new(&log, &mut into, 2);
        queue.push(run(100, 0, 50), None).unwrap();
        queue.push_encoded_entry(data, 80, [run(0, 20, 60)].into_iter()).unwrap();
        queue.push(run(300, 70, 20), None).unwrap();
        queue.flush().unwrap();
        let wanted = [&log.log[100..120], &[7; 50], &log.log[300..320], &[0; 10]].concat();
        assert_eq!(into, wanted);
    }

    #[test]
    fn what_lies_in_two_log_datasets_is_read_by_two_calls() {
        let log = Bytes { part_len: 100, ..bytes(200) };
        let mut into = vec![0; 40];
        let mut queue = CopyQueue::new(&log, &mut into, 2);
        for from in [50, 90, 100, 110] {
            queue.push(run(from, 0, 10), None).unwrap();
        }
        queue.flush().unwrap();
        assert_eq!(*log.reads.lock(), [50..100, 100..120]);
    }

    #[test]
    fn checksums_are_compared_even_where_not_all_bytes_are_copied() {
        let check = |crc| ChecksummedRange { position_bits: 200, len: 80, crc };
        let rows = StridedCopy { from: 200, from_stride: 8, to: 0, to_stride: 16, run_len: 8, count: 10 };
        for mapped_len in [0, 10_000] {
            let log = Bytes { mapped_len, ..bytes(10_000) };
            let right = crc32c::crc32c(&log.log[200..280]);
            let mut into = vec![0; 1000];
            let mut copy = |runs, crc| {
                let mut queue = CopyQueue::new(&log, &mut into, 2);
                queue.push(run(100, 0, 10), None)?;
                queue.push_plain_entry(std::iter::once(runs), Some(check(crc)))?;
                queue.push(run(300, 0, 10), None)?;
                queue.flush()
            };
            assert!(copy(rows, right).is_ok() && copy(run(200, 50, 80), right).is_ok());
            assert!(copy(rows, !right).is_err() && copy(run(200, 50, 80), !right).is_err());
            assert!(copy(run(200, 50, 79), right).is_ok() && copy(run(200, 50, 79), !right).is_err());
        }
    }

    #[test]
    fn a_checksum_that_does_not_fit_since_the_file_was_cut_is_not_the_one_of_the_log() {
        let log = Bytes { mapped_len: 10_000, copies_left: AtomicI64::new(0), ..bytes(10_000) };
        let check = ChecksummedRange { position_bits: 200, len: 80, crc: crc32c::crc32c(&log.log[200..280]) };
        let mut into = vec![0; 80];
        let mut queue = CopyQueue::new(&log, &mut into, 2);
        queue.push(run(200, 0, 80), Some(check)).unwrap();
        queue.flush().unwrap();
        assert_eq!(into[..], log.log[200..280]);
        assert_eq!(log.reads.lock()[..], [std::ops::Range { start: 200, end: 280 }]);
    }
}

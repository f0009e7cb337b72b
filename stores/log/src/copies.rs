//! Copies of elements from the log into a buffer: those that lie near each other in the log are read by one call.

use std::ops::Range;

use crate::error::Result;

/// Bytes between two runs of the log that are read though nobody wants them.
const MAX_GAP_BYTES: u64 = 4 << 10;
/// The most bytes that are read into the window by one call.
const MAX_WINDOW_BYTES: u64 = 1 << 20;
/// Runs of so many bytes are read by a call of their own, right to where they go.
const MIN_DIRECT_BYTES: u64 = 32 << 10;

/// Runs of equal length at equal distances: where they are in the log, and where they go (bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCopy {
    /// Where the first one begins in the log.
    pub from: u64,
    /// From one to the next in the log.
    pub from_stride: u64,
    /// Where the first one goes in the buffer.
    pub to: u64,
    /// From one to the next in the buffer.
    pub to_stride: u64,
    /// Bytes of each.
    pub len: u64,
    /// How many there are; at least one.
    pub count: u64,
}

/// Bytes of the log with a checksum.
#[derive(Debug, Clone, Copy)]
pub struct ChecksummedBytes {
    /// Where they begin.
    pub at: u64,
    /// How many there are.
    pub len: u64,
    /// Their CRC-32C.
    pub crc: u32,
}

/// Where bytes of the log come from.
pub trait LogBytes {
    /// Reads bytes of the log from `at` on.
    ///
    /// # Errors
    /// If the log has no such bytes; errors of the store beneath.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()>;

    /// How many bytes from `at` on can be read by one call.
    fn bytes_behind(&self, at: u64) -> u64;

    /// What is wrong with the bytes at `at`, whose checksum does not fit.
    fn checksum_error(&self, at: u64) -> h5live_model::Error;
}

/// Copies that wait for one read. They take effect in the order in which they came.
pub struct CopyQueue<'a, L> {
    log: &'a L,
    into: &'a mut [u8],
    waiting: Vec<RunCopy>,
    checks: Vec<ChecksummedBytes>,
    /// What is read for them.
    span: Range<u64>,
    /// Where the bytes end that can be read with the first ones.
    limit: u64,
    window: Vec<u8>,
}

impl RunCopy {
    /// Behind the last run in the log.
    fn end(&self) -> u64 {
        self.from + (self.count - 1) * self.from_stride + self.len
    }

    /// The runs from number `first` on, so many.
    fn part(&self, first: u64, count: u64) -> Self {
        RunCopy { from: self.from + first * self.from_stride, to: self.to + first * self.to_stride, count, ..*self }
    }

    /// Cuts the runs into such as are read by one call.
    fn parts(self) -> impl Iterator<Item = RunCopy> {
        let is_near = self.from_stride >= self.len && self.from_stride - self.len <= MAX_GAP_BYTES;
        let at_once = match is_near && self.len < MIN_DIRECT_BYTES {
            true => (MAX_WINDOW_BYTES / self.from_stride.max(1)).max(1),
            false => 1,
        };
        (0..self.count).step_by(at_once as usize).map(move |n| self.part(n, at_once.min(self.count - n)))
    }
}

impl<'a, L: LogBytes> CopyQueue<'a, L> {
    /// Copies from a log into a buffer.
    pub fn new(log: &'a L, into: &'a mut [u8]) -> Self {
        CopyQueue { log, into, waiting: Vec::new(), checks: Vec::new(), span: 0..0, limit: 0, window: Vec::new() }
    }

    /// Has runs be copied, which lie in the buffer. `check` is what the bytes of all of them are, if they have a
    /// checksum.
    ///
    /// # Errors
    /// Those of reading earlier ones.
    pub fn push(&mut self, runs: RunCopy, check: Option<ChecksummedBytes>) -> Result<()> {
        for part in runs.parts() {
            self.push_part(part)?;
        }
        // All of it is in the window, or a single run that is read to its place.
        if let Some(check) = check.filter(|check| self.span.start <= check.at && check.at + check.len <= self.span.end)
        {
            self.checks.push(check);
        }
        Ok(())
    }

    fn push_part(&mut self, part: RunCopy) -> Result<()> {
        let end = part.end();
        let is_near = !self.waiting.is_empty()
            && part.from >= self.span.end
            && part.from - self.span.end <= MAX_GAP_BYTES
            && end - self.span.start <= MAX_WINDOW_BYTES
            && end <= self.limit
            && part.len < MIN_DIRECT_BYTES;
        if !is_near {
            self.finish()?;
            self.span.start = part.from;
            self.limit = part.from.saturating_add(self.log.bytes_behind(part.from));
        }
        self.span.end = end;
        self.waiting.push(part);
        Ok(())
    }

    /// Copies everything that waits.
    ///
    /// # Errors
    /// Those of reading; if a checksum does not fit.
    pub fn finish(&mut self) -> Result<()> {
        let len = (self.span.end - self.span.start) as usize;
        let single = match self.waiting[..] {
            [] => return Ok(()),
            [RunCopy { to, count: 1, .. }] => Some(to as usize),
            _ => None,
        };
        let read = match single {
            Some(to) => &mut self.into[to..to + len],
            None => {
                if self.window.len() < len {
                    self.window.resize(len, 0);
                }
                &mut self.window[..len]
            }
        };
        self.log.read(self.span.start, read)?;
        for check in self.checks.drain(..) {
            let from = (check.at - self.span.start) as usize;
            if crc32c::crc32c(&read[from..from + check.len as usize]) != check.crc {
                return Err(self.log.checksum_error(check.at));
            }
        }
        if single.is_none() {
            for runs in &self.waiting {
                let from = &self.window[(runs.from - self.span.start) as usize..];
                copy_runs(from, &mut self.into[runs.to as usize..], runs);
            }
        }
        self.waiting.clear();
        Ok(())
    }

    /// The buffer, after everything that waits was copied.
    ///
    /// # Errors
    /// As [`CopyQueue::finish`].
    pub fn finished_buffer(&mut self) -> Result<&mut [u8]> {
        self.finish()?;
        Ok(self.into)
    }
}

/// Copies runs between buffers that begin with the first of them.
fn copy_runs(from: &[u8], to: &mut [u8], runs: &RunCopy) {
    let (len, count) = (runs.len as usize, runs.count as usize);
    let strides = (runs.from_stride as usize, runs.to_stride as usize);
    match len {
        0 => {}
        _ if count == 1 => to[..len].copy_from_slice(&from[..len]),
        1 => copy_elements::<1>(from, to, strides, count),
        2 => copy_elements::<2>(from, to, strides, count),
        4 => copy_elements::<4>(from, to, strides, count),
        8 => copy_elements::<8>(from, to, strides, count),
        16 => copy_elements::<16>(from, to, strides, count),
        _ => {
            let pairs = from.chunks(strides.0).zip(to.chunks_mut(strides.1)).take(count);
            pairs.for_each(|(from, to)| to[..len].copy_from_slice(&from[..len]));
        }
    }
}

/// Copies elements whose size the compiler knows.
fn copy_elements<const N: usize>(from: &[u8], to: &mut [u8], (from_stride, to_stride): (usize, usize), count: usize) {
    let to = to.chunks_mut(to_stride).filter_map(|to| to.first_chunk_mut::<N>());
    if from_stride == N {
        to.zip(from.as_chunks::<N>().0).take(count).for_each(|(to, from)| *to = *from);
    } else {
        let from = from.chunks(from_stride).filter_map(|from| from.first_chunk::<N>());
        to.zip(from).take(count).for_each(|(to, from)| *to = *from);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use h5live_model::Error;
    use proptest::prelude::*;

    use super::*;

    /// Bytes in parts of so many, and what was read of them.
    struct Bytes(Vec<u8>, RefCell<Vec<Range<u64>>>, u64);

    impl LogBytes for Bytes {
        fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
            assert!(into.len() as u64 <= self.bytes_behind(at));
            self.1.borrow_mut().push(at..at + into.len() as u64);
            into.copy_from_slice(&self.0[at as usize..][..into.len()]);
            Ok(())
        }

        fn bytes_behind(&self, at: u64) -> u64 {
            self.2 - at % self.2
        }

        fn checksum_error(&self, _: u64) -> Error {
            Error::Invalid("checksum".to_owned())
        }
    }

    fn bytes(len: usize) -> Bytes {
        Bytes((0..len).map(|at| (at * 7 + at / 251) as u8).collect(), RefCell::default(), u64::MAX)
    }

    fn run(from: u64, to: u64, len: u64) -> RunCopy {
        RunCopy { from, to, len, from_stride: len, to_stride: len, count: 1 }
    }

    proptest! {
        #[test]
        fn copies_take_effect_in_their_order(
            runs in prop::collection::vec((0u64..9000, 0u64..200, 0u64..60, 0u64..60, 1u64..20, 1u64..9), 1..12),
        ) {
            let log = bytes(10_000);
            let (mut into, mut wanted) = (vec![0; 1000], vec![0; 1000]);
            let mut queue = CopyQueue::new(&log, &mut into);
            for (from, to, from_gap, to_gap, len, count) in runs {
                let runs = RunCopy { from, from_stride: len + from_gap, to, to_stride: len + to_gap, len, count };
                queue.push(runs, None).unwrap();
                for n in 0..count {
                    let (from, to) = ((from + n * runs.from_stride) as usize, (to + n * runs.to_stride) as usize);
                    wanted[to..to + len as usize].copy_from_slice(&log.0[from..from + len as usize]);
                }
            }
            queue.finish().unwrap();
            prop_assert_eq!(into, wanted);
        }
    }

    #[test]
    fn what_is_near_is_read_by_one_call_and_what_is_long_by_its_own() {
        let log = bytes(300_000);
        let mut into = vec![0; 200_000];
        let mut queue = CopyQueue::new(&log, &mut into);
        for runs in [run(100, 0, 10), run(4000, 10, 10), run(3000, 20, 10), run(3500, 30, 100_000)] {
            queue.push(runs, None).unwrap();
        }
        let pairs = RunCopy { from: 200_000, from_stride: 50_000, to: 150_000, to_stride: 8, len: 8, count: 2 };
        queue.push(pairs, None).unwrap();
        queue.finish().unwrap();
        assert_eq!(*log.1.borrow(), [100..4010, 3000..3010, 3500..103_500, 200_000..200_008, 250_000..250_008]);
    }

    #[test]
    fn what_lies_in_two_log_datasets_is_read_by_two_calls() {
        let log = Bytes(vec![7; 200], RefCell::default(), 100);
        let mut into = vec![0; 40];
        let mut queue = CopyQueue::new(&log, &mut into);
        for from in [50, 90, 100, 110] {
            queue.push(run(from, 0, 10), None).unwrap();
        }
        queue.finish().unwrap();
        assert_eq!(*log.1.borrow(), [50..100, 100..120]);
    }

    #[test]
    fn checksums_are_looked_at_where_all_bytes_are_read() {
        let log = bytes(10_000);
        let check = |crc| ChecksummedBytes { at: 200, len: 80, crc };
        let right = crc32c::crc32c(&log.0[200..280]);
        let mut into = vec![0; 1000];
        let mut copy = |runs, crc| {
            let mut queue = CopyQueue::new(&log, &mut into);
            queue.push(run(100, 0, 10), None)?;
            queue.push(runs, Some(check(crc)))?;
            queue.push(run(300, 0, 10), None)?;
            queue.finish()
        };
        let rows = RunCopy { from: 200, from_stride: 8, to: 0, to_stride: 16, len: 8, count: 10 };
        assert!(copy(rows, right).is_ok() && copy(run(200, 50, 80), right).is_ok());
        assert!(copy(rows, !right).is_err() && copy(run(200, 50, 80), !right).is_err());
        assert!(copy(run(200, 50, 79), !right).is_ok(), "not all of it is read");
    }
}

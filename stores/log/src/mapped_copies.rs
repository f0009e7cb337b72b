//! Copies of elements from a log that is in memory: from there to their places, without a window between.
//!
//! The buffer is cut into bands, so that what is written in turn stays in the caches of the processor. Several threads
//! share the bands. Within a band, copies take effect in their order.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::error::Result;
use crate::log_bytes::{ChecksummedRange, LogSource};
use crate::parallel::for_each_in_parallel;
use crate::strided_copy::{StridedCopy, copy_runs_ignoring_starts};

/// A band of the buffer (bytes): it fits into a cache of the processor, and its pages into what it knows of pages.
const BAND_BYTES: usize = if cfg!(test) { 256 } else { 4 << 20 };
/// The most bands in which a copy has a part, on average: more take longer to find than they save.
const MAX_BANDS_PER_COPY: usize = 8;
/// Bytes that are copied out of the log at a time. They stay in the first cache.
const BUFFER_BYTES: usize = 32 << 10;
/// Longer runs go right to their places (bytes).
const MIN_DIRECT_BYTES: u64 = 2 << 10;
/// Bytes between two runs that are copied along: this takes less time than another copy.
const MAX_GAP_BYTES: u64 = 64;

/// Runs that are copied from memory.
#[derive(Debug)]
pub struct MappedCopy {
    /// The runs, by their places in the log.
    pub runs: StridedCopy,
    /// The checksum of the data of the entry, with its first runs.
    pub check: Option<ChecksummedRange>,
}

/// A part of the buffer, and the numbers of the copies that go there.
struct Band<'a> {
    range: Range<u64>,
    into: &'a mut [u8],
    copies: Vec<u32>,
}

/// Bytes of the log that were copied out of it.
struct LoadedBytes<'a, L> {
    log: &'a L,
    buffer: Vec<u8>,
    /// Which ones are in the buffer.
    loaded: Range<u64>,
}

impl MappedCopy {
    /// Runs of the data of an entry. `check` is the checksum of all of it.
    pub fn with_check_if_first(runs: StridedCopy, check: Option<ChecksummedRange>) -> Self {
        // Of the runs of an entry, the first ones begin where the data does.
        MappedCopy { runs, check: check.filter(|check| check.position_bits == runs.from) }
    }

    /// The numbers of the bands of so many bytes in which it has parts.
    fn bands(&self, band_len: usize) -> Range<usize> {
        let StridedCopy { to, to_stride, run_len: len, count, .. } = self.runs;
        let last = to + (count - 1) * to_stride + len.saturating_sub(1);
        to as usize / band_len..last as usize / band_len + 1
    }
}

/// Cuts a buffer into bands, and finds the copies of each.
fn bands<'a>(copies: &[MappedCopy], into: &'a mut [u8], threads: usize) -> Vec<Band<'a>> {
    // A band for each thread, at least.
    let mut band_len = into.len().div_ceil(threads.max(1)).clamp(1, BAND_BYTES);
    let parts = |band_len: usize| copies.iter().map(|copy| copy.bands(band_len).len()).sum::<usize>();
    while band_len.saturating_mul(threads) < into.len() && parts(band_len) > copies.len() * MAX_BANDS_PER_COPY {
        band_len = band_len.saturating_mul(2);
    }
    let mut begin = 0;
    let new = |into: &'a mut [u8]| {
        let range = begin..begin + into.len() as u64;
        begin = range.end;
        Band { range, into, copies: Vec::new() }
    };
    let mut bands: Vec<Band<'a>> = into.chunks_mut(band_len).map(new).collect();
    for (number, copy) in copies.iter().enumerate() {
        bands[copy.bands(band_len)].iter_mut().for_each(|band| band.copies.push(number as u32));
    }
    bands.retain(|band| !band.copies.is_empty());
    bands
}

/// Copies runs from the log in memory into a buffer, on at most so many threads; `false` if some are not in memory.
///
/// # Errors
/// If a checksum does not fit.
pub fn copy_mapped(log: &impl LogSource, copies: &[MappedCopy], into: &mut [u8], max_threads: usize) -> Result<bool> {
    let is_there = AtomicBool::new(true);
    for_each_in_parallel(bands(copies, into, max_threads), max_threads, |Band { range, into, copies: numbers }| {
        let mut bytes = LoadedBytes { log, buffer: vec![0; BUFFER_BYTES], loaded: 0..0 };
        for number in numbers {
            let copy = &copies[number as usize];
            let is_first = range.contains(&copy.runs.to);
            let is_copied = match copy.check.filter(|_| is_first) {
                Some(check) => bytes.check(&check)?,
                None => true,
            };
            if !is_copied || !bytes.copy_to_band(&copy.runs, &range, into) {
                is_there.store(false, Relaxed);
            }
        }
        Ok(())
    })?;
    Ok(is_there.into_inner())
}

impl<L: LogSource> LoadedBytes<'_, L> {
    /// Bytes of the log; `None` if they are not in memory. They fit into the buffer.
    fn load(&mut self, wanted: Range<u64>) -> Option<&[u8]> {
        if wanted.start < self.loaded.start || wanted.end > self.loaded.end {
            self.loaded = 0..0;
            let into = &mut self.buffer[..(wanted.end - wanted.start) as usize];
            self.loaded = self.log.copy_mapped(wanted.start, into).then_some(wanted.clone())?;
        }
        let from = (wanted.start - self.loaded.start) as usize;
        Some(&self.buffer[from..from + (wanted.end - wanted.start) as usize])
    }

    /// Checks the data of an entry; `false` if it is not in memory.
    fn check(&mut self, check: &ChecksummedRange) -> Result<bool> {
        let (end, mut found) = (check.position_bits + check.len, 0);
        for at in (check.position_bits..end).step_by(BUFFER_BYTES) {
            let Some(bytes) = self.load(at..end.min(at + BUFFER_BYTES as u64)) else { return Ok(false) };
            found = crc32c::crc32c_append(found, bytes);
        }
        if found == check.crc { Ok(true) } else { Err(self.log.checksum_error(check.position_bits)) }
    }

    /// Copies what of runs goes to a band; `false` if some is not in memory.
    fn copy_to_band(&mut self, runs: &StridedCopy, band: &Range<u64>, into: &mut [u8]) -> bool {
        let mut is_there = true;
        runs.for_each_in_buffer_range(band, |runs| {
            let is_loaded = runs.from >= self.loaded.start && runs.source_end() <= self.loaded.end;
            if runs.run_len >= MIN_DIRECT_BYTES && !is_loaded {
                for run in (0..runs.count).map(|n| runs.part(n, 1)) {
                    let into = &mut into[(run.to - band.start) as usize..][..run.run_len as usize];
                    is_there &= self.log.copy_mapped(run.from, into);
                }
                return;
            }
            for part in runs.cut_by_gaps(MAX_GAP_BYTES, BUFFER_BYTES as u64) {
                match self.load(part.from..part.source_end()) {
                    Some(bytes) => {
                        copy_runs_ignoring_starts(bytes, &mut into[(part.to - band.start) as usize..], &part)
                    }
                    None => is_there = false,
                }
            }
        });
        is_there
    }
}

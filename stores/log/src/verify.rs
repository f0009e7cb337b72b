//! Comparing the data of entries with its checksum, where what is read is not all of it.

use crate::error::Result;
use crate::log_bytes::{ChecksummedRange, LogSource};
use crate::parallel::for_each_in_parallel;

/// The most bytes that are read by one call.
const MAX_READ_BYTES: u64 = 1 << 20;
/// Bytes between the data of two entries that are read though nobody wants them: this takes less time than another call.
const MAX_GAP_BYTES: u64 = 16 << 10;

/// Entries whose data is read by one call, or one entry of more bytes.
struct EntryRun<'a> {
    checks: &'a [ChecksummedRange],
    /// Bytes from the first one on to the end of the last one.
    len: u64,
}

/// Compares bytes of a log with their checksum.
///
/// # Errors
/// If it does not fit; those of reading.
pub fn verify(log: &impl LogSource, check: &ChecksummedRange) -> Result<()> {
    let mut buffer = vec![0; check.len.min(MAX_READ_BYTES) as usize];
    let mut found = 0;
    for done in (0..check.len).step_by(MAX_READ_BYTES as usize) {
        let piece = &mut buffer[..(check.len - done).min(MAX_READ_BYTES) as usize];
        log.read(check.position_bits + done, piece)?;
        found = crc32c::crc32c_append(found, piece);
    }
    if found == check.crc { Ok(()) } else { Err(log.checksum_error(check.position_bits)) }
}

/// As [`verify`], of many entries, on at most so many threads. Their order changes.
///
/// # Errors
/// As [`verify`].
pub fn verify_all(log: &impl LogSource, checks: &mut [ChecksummedRange], max_threads: usize) -> Result<()> {
    checks.sort_unstable_by_key(|check| check.position_bits);
    for_each_in_parallel(runs(log, checks), max_threads, |run| match run.checks {
        [only] => verify(log, only),
        several => verify_run(log, several, run.len),
    })
}

/// Puts entries together that lie near each other.
fn runs<'a>(log: &impl LogSource, mut checks: &'a [ChecksummedRange]) -> Vec<EntryRun<'a>> {
    let mut runs = Vec::new();
    while let Some(first) = checks.first() {
        let behind = log.contiguous_bytes_at(first.position_bits).min(MAX_READ_BYTES);
        let (mut len, mut count) = (first.len, 1);
        for next in &checks[1..] {
            // Entries do not overlap, unless the log is damaged.
            let Some(gap) = next.position_bits.checked_sub(first.position_bits + len) else { break };
            let end = (next.position_bits - first.position_bits).saturating_add(next.len);
            if gap > MAX_GAP_BYTES || end > behind {
                break;
            }
            (len, count) = (end, count + 1);
        }
        let (run, rest) = checks.split_at(count);
        runs.push(EntryRun { checks: run, len });
        checks = rest;
    }
    runs
}

fn verify_run(log: &impl LogSource, checks: &[ChecksummedRange], len: u64) -> Result<()> {
    let Some(first) = checks.first() else { return Ok(()) };
    let mut buffer = vec![0; len as usize];
    log.read(first.position_bits, &mut buffer)?;
    checks.iter().try_for_each(|check| {
        let from = (check.position_bits - first.position_bits) as usize;
        let is_right = crc32c::crc32c(&buffer[from..from + check.len as usize]) == check.crc;
        if is_right { Ok(()) } else { Err(log.checksum_error(check.position_bits)) }
    })
}

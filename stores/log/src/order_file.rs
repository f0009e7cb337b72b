//! The file of orders: the last number in the order of batches, and the last one of each writer
//! (docs/log-format.md, "Several writers").
//!
//! | bytes | what |
//! |---|---|
//! | 8 | the last number that any writer was given |
//! | up to 56 | the start of the machine since when that is so |
//! | 64 | the start of the machine since when the rest is so |
//! | 8 for each file, from the main file on | one more than the last number that its writer was given; 0 if that is not known |
//!
//! The numbers of writers are read without a lock. Each is changed in one piece, before its writer publishes the batch.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::OnceLock;

use crate::index_table::UNENDED_BATCH_ORDER;
use crate::position::LogPosition;

/// What changes when the machine starts: what was written before may not be what is on the disk.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Bytes of the last number that any writer was given, and of what tells the start of the machine.
const HEAD_BYTES: u64 = 64;
/// Bytes of what tells the start of the machine, before the numbers of writers.
const START_BYTES: u64 = 64;
/// Bytes of a number.
const NUMBER_BYTES: u64 = 8;
/// Bytes of the numbers of as many writers as there can be, and of what is before them.
const MAX_WRITERS_BYTES: u64 = START_BYTES + NUMBER_BYTES * (LogPosition::MAX_FILE_NUMBER as u64 + 1);

/// What tells this start of the machine from others; `None` if nothing does.
pub fn boot_id() -> Option<&'static [u8]> {
    static FOUND: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let is_short = |id: &Vec<u8>| id.len() as u64 <= HEAD_BYTES - NUMBER_BYTES;
    FOUND.get_or_init(|| fs::read(BOOT_ID).ok().filter(is_short)).as_deref()
}

/// The open file of orders.
#[derive(Debug)]
pub struct BatchOrderFile(pub File);

impl BatchOrderFile {
    /// Gives the writer of subfile `own` the next number, which is above `last`. The file is locked.
    /// `None` if what was given before is not known for certain, and `last_is_highest` does not say that `last` is the highest one.
    ///
    /// # Errors
    /// If the file cannot be read or written, or has the highest number already.
    pub fn take_next_batch_order(&self, own: u32, last: u64, last_is_highest: bool) -> io::Result<Option<u64>> {
        let head = self.read(0, HEAD_BYTES)?;
        let (given, start) = head.split_first_chunk().unwrap_or((&[0; 8], &[]));
        // What was written before the machine was started may be older than the subfiles on the disk.
        if !last_is_highest && !is_this_start(start) {
            return Ok(None);
        }
        let next = last.max(u64::from_le_bytes(*given)).checked_add(1).filter(|next| *next < UNENDED_BATCH_ORDER);
        let next = next.ok_or_else(|| io::Error::other("it has the highest one already"))?;
        self.write(0, &[&next.to_le_bytes(), boot_id().unwrap_or_default()].concat())?;
        self.set_last_batch_order(own, next)?;
        Ok(Some(next))
    }

    /// Says which number the writer of subfile `own` was given last; 0 if it has never had one. The file is locked.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn set_last_batch_order(&self, own: u32, last: u64) -> io::Result<()> {
        if !is_this_start(&self.read(HEAD_BYTES, START_BYTES)?) {
            self.0.set_len(HEAD_BYTES)?;
            self.write(HEAD_BYTES, boot_id().unwrap_or_default())?;
        }
        let at = HEAD_BYTES + START_BYTES + NUMBER_BYTES * u64::from(own);
        self.write(at, &last.saturating_add(1).to_le_bytes())
    }

    /// The last number of the writer of each file, by the number of the file; `None` if it is not known.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn last_batch_orders(&self) -> io::Result<Vec<Option<u64>>> {
        if self.is_deleted() {
            return Ok(Vec::new());
        }
        let bytes = self.read(HEAD_BYTES, MAX_WRITERS_BYTES)?;
        let (start, numbers) = bytes.split_at_checked(START_BYTES as usize).unwrap_or_default();
        if !is_this_start(start) {
            return Ok(Vec::new());
        }
        Ok(numbers.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number).checked_sub(1)).collect())
    }

    /// Whether the file was deleted while it was open: other writers have another one by now.
    pub fn is_deleted(&self) -> bool {
        #[cfg(unix)]
        return self.0.metadata().is_ok_and(|found| std::os::unix::fs::MetadataExt::nlink(&found) == 0);
        #[cfg(not(unix))]
        false
    }

    fn read(&self, at: u64, len: u64) -> io::Result<Vec<u8>> {
        let (mut file, mut bytes) = (&self.0, Vec::new());
        file.seek(SeekFrom::Start(at))?;
        file.take(len).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = &self.0;
        file.seek(SeekFrom::Start(at))?;
        file.write_all(bytes)
    }
}

/// Whether what a file says of the start of the machine, with zeros behind, is this one.
fn is_this_start(start: &[u8]) -> bool {
    boot_id().is_some_and(|id| start.strip_prefix(id).is_some_and(|rest| rest.iter().all(|byte| *byte == 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_known_of_writers_ends_when_the_file_is_deleted_or_of_another_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("order");
        let open = || File::options().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
        let orders = BatchOrderFile(open());
        orders.set_last_batch_order(2, 0).unwrap();
        assert_eq!(orders.last_batch_orders().unwrap(), [None, None, Some(0)]);
        assert_eq!(orders.take_next_batch_order(1, 4, false).unwrap(), None, "nobody knows which was given last");
        assert_eq!(orders.take_next_batch_order(1, 4, true).unwrap(), Some(5));
        assert_eq!(orders.last_batch_orders().unwrap(), [None, Some(5), Some(0)]);
        orders.write(HEAD_BYTES, b"another start").unwrap();
        assert_eq!(orders.last_batch_orders().unwrap(), []);
        orders.set_last_batch_order(1, 6).unwrap();
        assert_eq!(orders.last_batch_orders().unwrap(), [None, Some(6)], "nothing of another start is left");
        fs::remove_file(&path).unwrap();
        BatchOrderFile(open()).set_last_batch_order(1, 9).unwrap();
        assert_eq!(orders.last_batch_orders().unwrap(), [], "the writers of the new file are unknown");
    }
}

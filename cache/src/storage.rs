//! Where the bytes of a file are.

mod faulty_storage;
mod file;
mod file_len;
mod memory;
#[cfg(target_os = "linux")]
mod mmap_read;
#[cfg(target_os = "linux")]
mod mmap_write;
mod multi_file_storage;
#[cfg(unix)]
mod os;
mod recording_storage;
mod redo_overlay;
mod static_overlay;

use std::{fmt, io, ops::Range, sync::Arc};

use h5live_model::FileBackedBytes;

pub use faulty_storage::{FaultyStorage, InjectedFailure};
pub use file::FileStorage;
pub use memory::MemoryStorage;
pub use multi_file_storage::ReadOnlyMultiFileStorage;
#[cfg(target_os = "linux")]
pub use os::{FileLeaseKind, probe_lease};
pub use recording_storage::{RecordingStorage, StorageOp, replay_operations};
pub use redo_overlay::RedoOverlay;
pub use static_overlay::StaticOverlay;

/// A sequence of bytes with a length, read and written at any place, by any number of threads.
///
/// A read that runs while a write is under way may see any part of that write.
pub trait Storage: Send + Sync + fmt::Debug {
    /// Fills `into` with the bytes from `at` on; returns how many there are, fewer than asked only at the end.
    ///
    /// # Errors
    /// Those of the medium.
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize>;

    /// As [`Storage::read_at`], with zeros for what lies beyond the end: for who does not care whether it does, which
    /// is more than a medium may be able to tell at once.
    ///
    /// # Errors
    /// Those of the medium.
    fn read_zero_padded(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        let found = self.read_at(into, at)?;
        into.iter_mut().skip(found).for_each(|byte| *byte = 0);
        Ok(())
    }

    /// How many ranges are best read at a time by [`Storage::read_ranges`], for a medium where each read waits long for
    /// its first byte; `None` if reads one by one cost no more.
    fn batch_read_hints(&self) -> Option<BatchReadHints> {
        None
    }

    /// Reads ranges of bytes, and calls `each` with the number of each and its bytes, in any order, until `each` returns
    /// `false`. There are fewer bytes only at the end, as in [`Storage::read_at`]. At most `memory_budget_bytes` bytes are held at a time,
    /// or one range.
    ///
    /// # Errors
    /// Those of the medium; [`io::ErrorKind::OutOfMemory`] if there is no memory for a range.
    fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        memory_budget_bytes: usize,
        each: &mut dyn FnMut(usize, &[u8]) -> bool,
    ) -> io::Result<()> {
        let _ = memory_budget_bytes;
        read_each_range(self, ranges, each)
    }

    /// Writes all of `bytes` from `at` on, in one call to the medium where possible. Makes the storage longer
    /// when needed.
    ///
    /// # Errors
    /// Those of the medium; any part of `bytes` may have been written then.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Writes a short piece over bytes that are there, with less effort than [`Storage::write_at`], if the medium has
    /// such a way; `false` if it has not done so: any part of `bytes` may have been written then.
    fn try_store_mapped(&self, bytes: &[u8], at: u64) -> bool {
        let _ = (bytes, at);
        false
    }

    /// Makes the bytes from `at` on, which lie within one page of memory, what `image` says, of which only the part
    /// `changed` is not there already: as [`Storage::try_store_mapped`], but who reads or is left when this process ends
    /// finds all of it that was stored before, and of `changed` all or nothing if nobody reads meanwhile; `false` if it
    /// is still to be written.
    fn try_store_crash_atomic(&self, image: &[u8], changed: Range<usize>, at: u64) -> bool {
        let _ = (image, changed, at);
        false
    }

    /// The length in bytes.
    ///
    /// # Errors
    /// Those of the medium.
    fn len(&self) -> io::Result<u64>;

    /// Whether there are no bytes.
    ///
    /// # Errors
    /// As [`Storage::len`].
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts or extends (with zeros) to `len` bytes.
    ///
    /// # Errors
    /// Those of the medium.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// A barrier: returns when every write and length before it will outlast a power failure.
    ///
    /// # Errors
    /// Those of the medium.
    fn sync(&self) -> io::Result<()>;

    /// The `len` bytes at `at` where the medium has them, if it has bytes that can be shared, and so many there.
    ///
    /// # Errors
    /// Those of the medium.
    fn map(&self, at: u64, len: u64) -> io::Result<Option<FileBackedBytes>> {
        let _ = (at, len);
        Ok(None)
    }

    /// Bytes of zeros that are best written behind the last data before small writes follow there, because the medium
    /// takes new space more slowly than it takes writes over what it has; 0 where that makes no difference.
    fn preferred_prefill_len(&self) -> usize {
        0
    }

    /// Finds a place for the `len` bytes at `at`, which lie within the length and are soon written; what is read there
    /// stays as it is. For a medium that takes writes sooner where it has a place for them.
    ///
    /// # Errors
    /// Those of the medium, about which nothing need be done; [`io::ErrorKind::Unsupported`] if asking again is in
    /// vain.
    fn reserve(&self, at: u64, len: u64) -> io::Result<()> {
        let _ = (at, len);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Where bytes begin, from `at` on, that may be other than zero; `None` if there are none up to the end. A medium
    /// that does not know where its holes are says that it is at once.
    ///
    /// # Errors
    /// Those of the medium.
    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        Ok(Some(at).filter(|at| self.len().is_ok_and(|len| *at < len)))
    }

    /// Lets go of the medium; what is asked for later fails. A medium that nobody else could want may do nothing.
    fn close(&self) {}
}

/// How a medium best reads many ranges ([`Storage::read_ranges`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchReadHints {
    /// Reads that are best under way at a time.
    pub preferred_reads_in_flight: usize,
    /// Bytes between two ranges that are better read than left out.
    pub max_gap_bytes: u64,
}

/// [`Storage::read_ranges`] by one read for each range.
fn read_each_range<S: Storage + ?Sized>(
    storage: &S,
    ranges: &[Range<u64>],
    each: &mut dyn FnMut(usize, &[u8]) -> bool,
) -> io::Result<()> {
    let no_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
    let mut bytes = Vec::new();
    for (number, range) in ranges.iter().enumerate() {
        let len = usize::try_from(range.end.saturating_sub(range.start)).map_err(|_| no_memory())?;
        bytes.try_reserve(len.saturating_sub(bytes.len())).map_err(|_| no_memory())?;
        bytes.resize(len, 0);
        let found = storage.read_at(&mut bytes, range.start)?;
        if !each(number, &bytes[..found.min(len)]) {
            break;
        }
    }
    Ok(())
}

impl<S: Storage + ?Sized> Storage for Arc<S> {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        (**self).read_at(into, at)
    }

    fn read_zero_padded(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        (**self).read_zero_padded(into, at)
    }

    fn batch_read_hints(&self) -> Option<BatchReadHints> {
        (**self).batch_read_hints()
    }

    fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        budget: usize,
        each: &mut dyn FnMut(usize, &[u8]) -> bool,
    ) -> io::Result<()> {
        (**self).read_ranges(ranges, budget, each)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        (**self).write_at(bytes, at)
    }

    fn try_store_mapped(&self, bytes: &[u8], at: u64) -> bool {
        (**self).try_store_mapped(bytes, at)
    }

    fn try_store_crash_atomic(&self, image: &[u8], changed: Range<usize>, at: u64) -> bool {
        (**self).try_store_crash_atomic(image, changed, at)
    }

    fn len(&self) -> io::Result<u64> {
        (**self).len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        (**self).set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        (**self).sync()
    }

    fn map(&self, at: u64, len: u64) -> io::Result<Option<FileBackedBytes>> {
        (**self).map(at, len)
    }

    fn preferred_prefill_len(&self) -> usize {
        (**self).preferred_prefill_len()
    }

    fn reserve(&self, at: u64, len: u64) -> io::Result<()> {
        (**self).reserve(at, len)
    }

    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        (**self).next_data(at)
    }

    fn close(&self) {
        (**self).close();
    }
}

/// The part of a storage from a base address on: all addresses in a file count from there, behind its user block.
#[derive(Debug, Clone)]
pub struct BaseOffsetStorage<S> {
    storage: S,
    base: u64,
}

impl<S: Storage> BaseOffsetStorage<S> {
    /// What of `storage` lies at and beyond `base` (bytes).
    pub fn new(storage: S, base: u64) -> Self {
        BaseOffsetStorage { storage, base }
    }

    /// The base address, in bytes from the start of the storage.
    pub fn base(&self) -> u64 {
        self.base
    }

    fn absolute(&self, at: u64) -> io::Result<u64> {
        self.base.checked_add(at).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
    }
}

impl<S: Storage> Storage for BaseOffsetStorage<S> {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.storage.read_at(into, self.absolute(at)?)
    }

    fn read_zero_padded(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        self.storage.read_zero_padded(into, self.absolute(at)?)
    }

    fn batch_read_hints(&self) -> Option<BatchReadHints> {
        self.storage.batch_read_hints()
    }

    fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        budget: usize,
        each: &mut dyn FnMut(usize, &[u8]) -> bool,
    ) -> io::Result<()> {
        let absolute =
            |range: &Range<u64>| -> io::Result<_> { Ok(self.absolute(range.start)?..self.absolute(range.end)?) };
        let ranges = ranges.iter().map(absolute).collect::<io::Result<Vec<_>>>()?;
        self.storage.read_ranges(&ranges, budget, each)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.storage.write_at(bytes, self.absolute(at)?)
    }

    fn try_store_mapped(&self, bytes: &[u8], at: u64) -> bool {
        self.absolute(at).is_ok_and(|at| self.storage.try_store_mapped(bytes, at))
    }

    fn try_store_crash_atomic(&self, image: &[u8], changed: Range<usize>, at: u64) -> bool {
        self.absolute(at).is_ok_and(|at| self.storage.try_store_crash_atomic(image, changed, at))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.storage.len()?.saturating_sub(self.base))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.storage.set_len(self.absolute(len)?)
    }

    fn sync(&self) -> io::Result<()> {
        self.storage.sync()
    }

    fn map(&self, at: u64, len: u64) -> io::Result<Option<FileBackedBytes>> {
        self.storage.map(self.absolute(at)?, len)
    }

    fn preferred_prefill_len(&self) -> usize {
        self.storage.preferred_prefill_len()
    }

    fn reserve(&self, at: u64, len: u64) -> io::Result<()> {
        self.storage.reserve(self.absolute(at)?, len)
    }

    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        Ok(self.storage.next_data(self.absolute(at)?)?.map(|found| found.saturating_sub(self.base)))
    }

    fn close(&self) {
        self.storage.close();
    }
}

#[cfg(test)]
mod tests;

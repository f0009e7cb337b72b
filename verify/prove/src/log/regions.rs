//! Several files in one storage, so that the checker sees the writes to all of them in one trace.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use h5live_cache::Storage;
use h5live_log::multi_writer_files::{AppendLock, MainFileLease, MainFileUse, MultiWriterFiles};
use h5live_model::{Mode, OpenError, Store};
use h5live_native::{Clock, MutantOptions, NativeFile, OpenOptions, RetryPolicy};

/// Bytes of a file.
pub const REGION_BYTES: u64 = 1 << 20;
/// Where a superblock says where its file ends (version 3, addresses of 8 bytes).
const END_OF_FILE_AT: u64 = 28;

/// One of several files in a storage.
#[derive(Debug)]
pub struct RegionStorage<S> {
    storage: Arc<S>,
    number: u64,
    /// How long the file is. A file that is only read is as long as its region.
    len: AtomicU64,
}

impl<S: Storage> RegionStorage<S> {
    /// The file with this number, of `len` bytes.
    pub fn new(storage: Arc<S>, number: u64, len: u64) -> Self {
        RegionStorage { storage, number, len: AtomicU64::new(len) }
    }

    /// The file with this number, as long as its superblock and its last byte that is not zero say.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn measured(storage: Arc<S>, number: u64) -> io::Result<Self> {
        let region = RegionStorage::new(storage, number, REGION_BYTES);
        let (mut stated, mut all) = ([0; 8], vec![0; REGION_BYTES as usize]);
        region.read_zero_padded(&mut stated, END_OF_FILE_AT)?;
        region.read_zero_padded(&mut all, 0)?;
        let used = all.iter().rposition(|byte| *byte != 0).map_or(0, |at| at as u64 + 1);
        region.len.store(used.max(u64::from_le_bytes(stated)).min(REGION_BYTES), Relaxed);
        Ok(region)
    }
}

impl<S: Storage> Storage for RegionStorage<S> {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let left = self.len.load(Relaxed).saturating_sub(at).min(into.len() as u64) as usize;
        if left > 0 {
            self.storage.read_zero_padded(&mut into[..left], self.number * REGION_BYTES + at)?;
        }
        Ok(left)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let end = at + bytes.len() as u64;
        if end > REGION_BYTES {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the region is too small for the file"));
        }
        self.len.fetch_max(end, Relaxed);
        self.storage.write_at(bytes, self.number * REGION_BYTES + at)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.len.load(Relaxed))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.len.store(len, Relaxed);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.storage.sync()
    }
}

/// The main file and the subfiles of a log, all in one storage.
#[derive(Debug)]
pub struct RegionFiles<S> {
    storage: Arc<S>,
    retry: RetryPolicy,
    /// The time of the exploration. The time of the machine says something else in each run.
    clock: Clock,
    /// The order of the batch that ends next.
    pub next_order: AtomicU64,
    /// The subfile that is not free.
    pub taken: AtomicU64,
}

impl<S: Storage + 'static> RegionFiles<S> {
    /// The files in a storage, for writers: time stands still.
    pub fn new(storage: Arc<S>) -> Self {
        RegionFiles::for_reader(storage, RetryPolicy::no_retries(), Clock::new(|| Duration::ZERO))
    }

    /// The files in a storage, how often a reader tries again, and its time.
    pub fn for_reader(storage: Arc<S>, retry: RetryPolicy, clock: Clock) -> Self {
        RegionFiles { storage, retry, clock, next_order: AtomicU64::new(1), taken: AtomicU64::new(u64::MAX) }
    }

    /// Opens the file with this number.
    ///
    /// # Errors
    /// Those of the native store.
    pub fn open(&self, number: u64, mode: Mode, leaves_live: bool) -> h5live_model::Result<NativeFile> {
        let failed = |error: io::Error| h5live_model::Error::store((&error).into(), error);
        let storage = match mode {
            Mode::Create | Mode::CreateNew => RegionStorage::new(self.storage.clone(), number, 0),
            Mode::SwmrRead => RegionStorage::new(self.storage.clone(), number, REGION_BYTES),
            _ => RegionStorage::measured(self.storage.clone(), number).map_err(failed)?,
        };
        let mutant = MutantOptions { cache_shard_count: Some(1), ..MutantOptions::default() };
        let (retry, clock) = (self.retry.clone(), self.clock.clone());
        let options = OpenOptions {
            mode,
            take_over_if_unknown: true,
            leaves_live,
            retry,
            clock,
            mutant,
            ..OpenOptions::default()
        };
        Ok(NativeFile::open_storage(Arc::new(storage), &options)?)
    }
}

/// The turn of a writer.
#[derive(Debug)]
struct RegionLease<S> {
    storage: Arc<S>,
    main: Option<Arc<dyn Store>>,
}

impl<S: Storage + 'static> MainFileLease for RegionLease<S> {
    fn open_main_for_writing(&mut self, usage: MainFileUse) -> Result<Arc<dyn Store>, OpenError> {
        let files = RegionFiles::new(self.storage.clone());
        let mode = if usage == MainFileUse::CreateIfMissing { Mode::Create } else { Mode::SwmrWrite };
        let main: Arc<dyn Store> = Arc::new(files.open(0, mode, usage != MainFileUse::LastWriter)?);
        Ok(self.main.insert(main).clone())
    }

    fn close_main_and_release(mut self: Box<Self>) -> Result<(), OpenError> {
        Ok(self.main.take().map_or(Ok(()), |main| main.close())?)
    }
}

impl<S: Storage + 'static> MultiWriterFiles for RegionFiles<S> {
    fn lease(&self) -> Result<Box<dyn MainFileLease>, OpenError> {
        Ok(Box::new(RegionLease { storage: self.storage.clone(), main: None }))
    }

    fn open_main(&self, mode: Mode) -> Result<Arc<dyn Store>, OpenError> {
        Ok(Arc::new(self.open(0, mode, false)?))
    }

    fn open_subfile(&self, number: u32, mode: Mode, stays_live: bool) -> Result<Arc<dyn Store>, OpenError> {
        if mode.writes() && self.taken.load(Relaxed) == u64::from(number) {
            let error = io::Error::new(io::ErrorKind::ResourceBusy, "another writer has it");
            let kind = h5live_model::StoreErrorKind::InUse(Vec::new());
            return Err(h5live_model::Error::store(kind, error).into());
        }
        Ok(Arc::new(self.open(number.into(), mode, stays_live)?))
    }

    fn release_presence(&self) {}

    fn take_next_batch_order(&self, _: u32, _: u64, _: bool) -> Result<Option<u64>, OpenError> {
        Ok(Some(self.next_order.fetch_add(1, Relaxed)))
    }

    fn set_last_batch_order(&self, _: u32, _: u64) -> Result<(), OpenError> {
        Ok(())
    }

    /// Each file is looked at.
    fn last_batch_orders(&self) -> Vec<Option<u64>> {
        Vec::new()
    }

    /// The writers of a recording take their turns: none publishes while another one does.
    fn lock_appends(&self) -> Result<Box<dyn AppendLock>, OpenError> {
        Ok(Box::new(NoOtherWriter))
    }
}

/// The right of the only writer that publishes now.
#[derive(Debug)]
struct NoOtherWriter;

impl AppendLock for NoOtherWriter {}

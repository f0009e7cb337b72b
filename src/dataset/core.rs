//! The state of a dataset that all its handles share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use h5live_filters::Pipeline;
use h5live_model::{AllocationLimit, Capabilities, ChunkStore, Encoding, Layout, ObjectId, Parts, Reads, Staging};
use parking_lot::{Mutex, MutexGuard};

use super::publish::{InPublishOrder, PublishOrder};
use super::sources::SourcesState;
use super::spec_snapshot::SpecSnapshot;
use super::stage::GrowingChunks;
use super::stage::StagedData;
use crate::Options;
use crate::dims::CoreDims;
use crate::error::ErrorKind;
use crate::superseded_blobs::{BlobUses, StoredBlob, has_blobs};

/// Most bytes that are read at once to be converted. So many are still in a near cache of the processor.
const MAX_CONVERSION_BYTES: usize = 48 << 10;

/// Numbers for [`DatasetCore::cache_id`].
static NEXT_CACHE_ID: AtomicU64 = AtomicU64::new(0);

/// The datasets of a file with staged elements. A flush visits these, not all open datasets.
pub(crate) type StagedDatasets = Arc<StagedList>;

/// A list of datasets with staged elements, and whether more may be staged.
#[derive(Debug, Default)]
pub(crate) struct StagedList {
    listed: Mutex<Vec<ObjectId>>,
    is_closing: AtomicBool,
}

impl StagedList {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<ObjectId>> {
        self.listed.lock()
    }

    /// From now on, whoever takes the lock of a writer is refused. Who has it already is to be waited for
    /// ([`DatasetCore::wait_for_writer`]).
    pub(crate) fn begin_closing(&self) {
        self.is_closing.store(true, Ordering::Release);
    }
}

/// A dataset of a file, shared by every handle.
#[derive(Debug)]
pub(crate) struct DatasetCore {
    pub(crate) chunks: Arc<dyn ChunkStore>,
    /// The filters that chunks go through on this side of the seam.
    pub(super) filters: Pipeline,
    /// How a part of a chunk is handed to the store.
    pub(super) part_writes: PartWrites,
    /// Whether the store gathers writes until they are published. Then nothing is staged here.
    pub(super) is_staged_by_store: bool,
    /// How chunks are read.
    pub(super) reads: Reads,
    /// Bytes that may be staged.
    pub(super) append_buffer_bytes: usize,
    /// Bytes that one transfer may take beside the caller's buffer.
    pub(super) transfer_memory_bytes: usize,
    pub(super) max_allocation: AllocationLimit,
    /// Bytes of a run that are read at once to be converted, from a multiple of this many on.
    pub(super) max_read_bytes: usize,
    /// Held by the one that changes elements or the extent.
    pub(super) writer_lock: Mutex<()>,
    pub(super) staged_data: Mutex<StagedData>,
    /// Chunks with filters that are not full yet, of a live dataset.
    pub(super) growing: GrowingChunks,
    /// Variable-length elements that were overwritten. The store is told of them when it has what was written over them.
    pub(super) superseded: Mutex<Vec<StoredBlob>>,
    /// Who uses the variable-length data of the file.
    pub(super) blobs: Arc<BlobUses>,
    /// The path under which the dataset was opened that was written first. Errors of a later flush name it.
    path: Mutex<Option<Arc<str>>>,
    /// The list of datasets with staged elements, and whether this one is in it.
    staged_datasets: StagedDatasets,
    is_registered: AtomicBool,
    /// Its place among the datasets whose rows are seen in an order.
    pub(super) publish_order: PublishOrder<DatasetCore>,
    /// Where the rows end that are known to be published.
    pub(super) published_end: AtomicU64,
    /// Rows appended since the last time that everything was written out.
    pub(super) rows_since_write_out: AtomicU64,
    /// Of a virtual dataset: what is known of those that have its elements.
    pub(super) sources: Option<Box<SourcesState>>,
    /// Counts changes that may make a decoded chunk outdated.
    pub(super) change_count: AtomicU64,
    /// The key of decoded chunks. It is not the identity of the dataset, because a new dataset may get the identity of
    /// a deleted one.
    cache_id: ObjectId,
}

/// Chunks that are listed, and then read or stored, at a time.
pub(super) const CHUNKS_PER_BATCH: usize = 1 << 10;

/// Most bytes of a run that are read at once. At least as many as a writer changes at once while this session reads.
fn max_read_bytes(reads: Reads) -> usize {
    match reads {
        Reads::Direct { atomic } => usize::try_from(atomic).unwrap_or(usize::MAX).max(MAX_CONVERSION_BYTES),
        Reads::Blocks | Reads::Batched { .. } => MAX_CONVERSION_BYTES,
    }
}

/// How a part of a chunk is handed to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartWrites {
    /// As a run of bytes. Short ones are staged.
    Runs,
    /// As whole pieces of so many bytes, from multiples of this many on; the last one of a chunk may be shorter. They
    /// are staged. What is not written of a piece is read first.
    Pieces(usize),
    /// As boxes of elements, which are not staged.
    Blocks,
    /// Not at all: chunks are staged, and written as a whole.
    Never,
}

impl PartWrites {
    fn new(filters: &Pipeline, parts: Parts) -> Self {
        match parts {
            _ if !filters.is_empty() => PartWrites::Never,
            Parts::Bytes { multiple_of: 0 | 1 } => PartWrites::Runs,
            Parts::Bytes { multiple_of } => usize::try_from(multiple_of).map_or(PartWrites::Never, PartWrites::Pieces),
            Parts::Blocks => PartWrites::Blocks,
            Parts::Whole => PartWrites::Never,
        }
    }
}

impl InPublishOrder for DatasetCore {
    fn publish_order(&self) -> &PublishOrder<Self> {
        &self.publish_order
    }

    fn publish_key(&self) -> ObjectId {
        self.cache_id
    }
}

impl DatasetCore {
    pub(crate) fn open(
        chunks: Arc<dyn ChunkStore>,
        capabilities: &Capabilities,
        options: &Options,
        staged: StagedDatasets,
        blobs: Arc<BlobUses>,
    ) -> Result<Self, ErrorKind> {
        let spec = chunks.spec()?;
        // Only chunks go through filters, whatever a header says of other layouts.
        let applied = match (capabilities.encoding, &spec.layout) {
            (Encoding::Pipeline, Layout::Chunked(_)) => &spec.filters[..],
            _ => &[],
        };
        let filters = Pipeline::new(applied, &options.filters)?;
        Ok(DatasetCore {
            chunks,
            part_writes: PartWrites::new(&filters, capabilities.parts),
            is_staged_by_store: capabilities.staging == Staging::Store,
            reads: capabilities.reads,
            filters,
            append_buffer_bytes: options.append_buffer_bytes,
            transfer_memory_bytes: options.transfer_memory_bytes,
            max_allocation: options.max_allocation,
            max_read_bytes: max_read_bytes(capabilities.reads),
            writer_lock: Mutex::new(()),
            staged_data: Mutex::default(),
            growing: GrowingChunks::default(),
            superseded: Mutex::default(),
            blobs,
            staged_datasets: staged,
            path: Mutex::default(),
            is_registered: AtomicBool::new(false),
            publish_order: PublishOrder::default(),
            published_end: AtomicU64::new(spec.dataspace.dims().first().copied().unwrap_or(0)),
            rows_since_write_out: AtomicU64::new(0),
            sources: matches!(spec.layout, Layout::Virtual(_)).then(Box::default),
            change_count: AtomicU64::new(0),
            cache_id: ObjectId(NEXT_CACHE_ID.fetch_add(1, Ordering::Relaxed).into()),
        })
    }

    pub(crate) fn cache_id(&self) -> ObjectId {
        self.cache_id
    }

    /// Whether the dataset has been deleted.
    pub(crate) fn is_deleted(&self) -> bool {
        matches!(self.chunks.spec(), Err(h5live_model::Error::NoObject(_)))
    }

    /// The result of work on a dataset that another thread may delete meanwhile: then there is nothing to be done.
    pub(crate) fn unless_deleted<E>(&self, done: Result<(), E>) -> Result<(), E> {
        if done.is_err() && self.is_deleted() { Ok(()) } else { done }
    }

    pub(crate) fn spec_snapshot(&self) -> Result<SpecSnapshot, ErrorKind> {
        // In this order: an extent that is not staged any more is already in the store.
        let staged = self.staged_data.lock().extent.as_deref().map(CoreDims::from_slice);
        let spec = self.chunks.spec()?;
        let size = spec.datatype.size() as usize;
        if size == 0 {
            return Err(ErrorKind::InvalidSpec("elements have no bytes"));
        }
        let extent = staged.or_else(|| self.sources.as_ref()?.extent.lock().dims().cloned());
        let extent = extent.unwrap_or_else(|| CoreDims::from_slice(spec.dataspace.dims()));
        Ok(SpecSnapshot { spec, extent, size })
    }

    /// Refuses elements, or chunks, that take more memory than may be allocated at once (bytes).
    #[inline]
    pub(super) fn check_allocation(&self, bytes: usize) -> Result<(), ErrorKind> {
        self.max_allocation.check(bytes as u64)?;
        Ok(())
    }

    /// The number of chunks of `chunk_bytes` bytes to work on at a time. Each is in memory twice: stored and decoded.
    pub(super) fn chunks_per_batch(&self, chunk_bytes: usize) -> usize {
        (self.transfer_memory_bytes / 2 / chunk_bytes.max(1)).clamp(1, 4 * rayon::current_num_threads())
    }

    /// The number of chunks of `chunk_bytes` bytes that are handed to the store at once.
    pub(super) fn chunks_per_write(&self, chunk_bytes: usize) -> usize {
        match self.reads.in_flight() {
            1 => 1,
            _ => (self.transfer_memory_bytes / 2 / chunk_bytes.max(1)).clamp(1, CHUNKS_PER_BATCH),
        }
    }

    /// Notes by which path the dataset is written.
    pub(super) fn note_path(&self, path: &str) {
        let mut known = self.path.lock();
        if known.is_none() {
            *known = Some(path.into());
        }
    }

    /// The path by which it was written.
    pub(crate) fn path(&self) -> Option<Arc<str>> {
        self.path.lock().clone()
    }

    /// Refuses to stage anything once the file is being closed: it would be lost. The caller holds the writer's lock.
    #[inline]
    pub(super) fn check_accepts_elements(&self) -> Result<(), ErrorKind> {
        match self.staged_datasets.is_closing.load(Ordering::Acquire) {
            true => Err(h5live_model::Error::Closed.into()),
            false => Ok(()),
        }
    }

    /// Waits for the one that changes elements or the extent now.
    pub(crate) fn wait_for_writer(&self) {
        drop(self.writer_lock.lock());
    }

    /// Adds this dataset to the list that the next flush of the file visits. The caller holds the writer's lock.
    pub(super) fn register_staged(&self) {
        // A flush that takes it from the list unlists it before it looks at the staged elements.
        let is_registered = self.is_registered.load(Ordering::Acquire);
        if !is_registered && self.has_staged() && !self.is_registered.swap(true, Ordering::AcqRel) {
            self.staged_datasets.lock().push(self.chunks.id());
        }
    }

    /// The caller has taken this dataset from the list.
    pub(super) fn unregister_staged(&self) {
        self.is_registered.store(false, Ordering::Release);
    }

    /// Whether something is staged that the store does not have.
    pub(crate) fn has_staged(&self) -> bool {
        self.staged_data.lock().is_dirty()
    }

    /// Whether chunks that are not full are stored without the filters.
    pub(crate) fn has_unfiltered_chunks(&self) -> bool {
        self.growing.has_unfiltered()
    }

    /// Whether its elements have variable-length data.
    pub(crate) fn has_variable_length_data(&self) -> bool {
        self.chunks.spec().is_ok_and(|spec| has_blobs(&spec.datatype))
    }

    /// Whether it is more than what the store knows of the dataset.
    pub(crate) fn is_retained(&self) -> bool {
        self.has_staged() || self.publish_order.has_earlier() || self.growing.has_unfiltered()
    }

    pub(crate) fn count_change(&self) {
        self.change_count.fetch_add(1, Ordering::AcqRel);
    }
}

//! The state of a dataset that all its handles share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5live_filters::Pipeline;
use h5live_model::{AllocationLimit, Capabilities, ChunkEncodedBy, ChunkStore, Layout, ObjectId, SmallWritesStagedBy};

use super::publish::{InPublishOrder, PublishOrder, PublishState};
use super::read::ReadState;
use super::sources::SourcesState;
use super::spec_snapshot::SpecSnapshot;
use super::stage::{StageState, StagedDatasets};
use super::store::{PartWrites, StoreState};
use crate::Options;
use crate::dims::CoreDims;
use crate::error::{ErrorKind, UnpublishedRows};
use crate::superseded_blobs::{BlobUses, has_blobs};

/// Numbers for [`DatasetCore::cache_id`].
static NEXT_CACHE_ID: AtomicU64 = AtomicU64::new(0);

/// A dataset of a file, shared by every handle: its chunks in the store, and the state of each step.
#[derive(Debug)]
pub(crate) struct DatasetCore {
    pub(super) chunks: Arc<dyn ChunkStore>,
    /// The filters that chunks go through on this side of the seam.
    pub(super) filters: Pipeline,
    /// Bytes that one transfer may take beside the caller's buffer.
    pub(super) transfer_memory_bytes: usize,
    pub(super) max_allocation: AllocationLimit,
    /// Who uses the variable-length data of the file.
    pub(super) blobs: Arc<BlobUses>,
    pub(super) stage: StageState,
    pub(super) store: StoreState,
    pub(super) publish: PublishState<DatasetCore>,
    pub(super) read: ReadState,
    /// Of a virtual dataset: what is known of those that have its elements.
    pub(super) sources: Option<Box<SourcesState>>,
    /// The key of decoded chunks. It is not the identity of the dataset, because a new dataset may get the identity of
    /// a deleted one.
    cache_id: ObjectId,
}

/// Chunks that are listed, and then read or stored, at a time.
pub(super) const CHUNKS_PER_BATCH: usize = 1 << 10;

impl InPublishOrder for DatasetCore {
    fn publish_order(&self) -> &PublishOrder<Self> {
        &self.publish.order
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
    ) -> Result<Arc<Self>, ErrorKind> {
        let spec = chunks.spec()?;
        // Only chunks go through filters, whatever a header says of other layouts.
        let applied = match (capabilities.encoding, &spec.layout) {
            (ChunkEncodedBy::Pipeline, Layout::Chunked(_)) => &spec.filters[..],
            _ => &[],
        };
        let filters = Pipeline::new(applied, &options.filters)?;
        let is_staged_by_store = capabilities.staging == SmallWritesStagedBy::Store;
        Ok(Arc::new(DatasetCore {
            chunks,
            transfer_memory_bytes: options.transfer_memory_bytes,
            max_allocation: options.max_allocation,
            blobs,
            stage: StageState::new(is_staged_by_store, options.append_buffer_bytes, staged),
            store: StoreState::new(PartWrites::new(&filters, capabilities.partial_writes)),
            publish: PublishState::new(spec.dataspace.dims().first().copied().unwrap_or(0)),
            read: ReadState::new(capabilities.reads),
            sources: matches!(spec.layout, Layout::Virtual(_)).then(Box::default),
            cache_id: ObjectId(NEXT_CACHE_ID.fetch_add(1, Ordering::Relaxed).into()),
            filters,
        }))
    }

    pub(crate) fn cache_id(&self) -> ObjectId {
        self.cache_id
    }

    /// Whether the dataset has been deleted.
    pub(crate) fn is_deleted(&self) -> bool {
        matches!(self.chunks.spec(), Err(h5live_model::Error::NoObject(_)))
    }

    /// The result of work on a dataset that another thread may delete meanwhile: then there is nothing to be done.
    pub(crate) fn ok_if_deleted<E>(&self, done: Result<(), E>) -> Result<(), E> {
        if done.is_err() && self.is_deleted() { Ok(()) } else { done }
    }

    pub(crate) fn spec_snapshot(&self) -> Result<SpecSnapshot, ErrorKind> {
        // In this order: an extent that is not staged any more is already in the store.
        let staged = self.stage.lock().extent.as_deref().map(CoreDims::from_slice);
        let spec = self.chunks.spec()?;
        let size = spec.datatype.size() as usize;
        if size == 0 {
            return Err(ErrorKind::InvalidSpec("elements have no bytes"));
        }
        let extent = staged.or_else(|| self.sources.as_ref()?.extent.lock().dims().cloned());
        let extent = extent.unwrap_or_else(|| CoreDims::from_slice(spec.dataspace.dims()));
        Ok(SpecSnapshot { spec, extent, size })
    }

    /// The rows of the extent that the store knows.
    pub(super) fn stored_row_count(&self) -> Result<u64, ErrorKind> {
        Ok(self.chunks.spec()?.dataspace.dims().first().copied().unwrap_or(0))
    }

    /// The size of an element, in bytes. Elements are about to be written as they are stored.
    pub(super) fn stored_element_size(&self) -> Result<usize, ErrorKind> {
        let view = self.spec_snapshot()?;
        self.blobs.note_stored_elements(&view.spec.datatype);
        Ok(view.size)
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
        match self.read.reads.preferred_chunks_in_flight() {
            1 => 1,
            _ => (self.transfer_memory_bytes / 2 / chunk_bytes.max(1)).clamp(1, CHUNKS_PER_BATCH),
        }
    }

    /// The path by which it was written.
    pub(crate) fn path(&self) -> Option<Arc<str>> {
        self.publish.path()
    }

    /// Waits for the one that changes elements or the extent now.
    pub(crate) fn wait_for_writer(&self) {
        drop(self.stage.lock_writer());
    }

    /// Adds this dataset to the list that the next flush of the file visits, and tells how much memory it takes. The caller holds the writer's lock.
    pub(super) fn register_staged(&self) {
        self.stage.update_staged_budget();
        self.stage.register(|| self.chunks.id());
    }

    /// Whether more chunks are staged than may be.
    pub(super) fn has_too_much_staged(&self) -> bool {
        self.stage.update_staged_budget();
        let staged = self.stage.lock().chunks.total_bytes();
        staged > 0 && staged > self.stage.allowed_bytes()
    }

    /// Whether something is staged that the store does not have.
    pub(crate) fn has_staged(&self) -> bool {
        self.stage.is_dirty()
    }

    /// Whether chunks that are not full are stored without the filters.
    pub(crate) fn has_unfiltered_chunks(&self) -> bool {
        self.store.growing.has_unfiltered()
    }

    /// Whether its elements have variable-length data.
    pub(crate) fn has_variable_length_data(&self) -> bool {
        self.chunks.spec().is_ok_and(|spec| has_blobs(&spec.datatype))
    }

    /// Whether it is more than what the store knows of the dataset.
    pub(crate) fn must_stay_cached(&self) -> bool {
        self.has_staged() || self.publish.order.has_earlier() || self.has_unfiltered_chunks()
    }

    /// Notes that decoded chunks may be outdated.
    pub(crate) fn count_change(&self) {
        self.read.count_change();
    }

    /// Takes a dataset that nobody writes any more out of the order of publications.
    pub(crate) fn leave_publish_order(&self) {
        PublishOrder::remove_from_order(self);
    }

    /// Notes that the first `rows` rows are published.
    pub(crate) fn raise_published_end(&self, rows: u64) {
        self.publish.raise_published_end(rows);
    }

    /// The rows that were appended, or are being appended, and are not published; `None` if all are, or if the dataset
    /// cannot be read any more.
    pub(crate) fn unpublished_rows(&self) -> Option<UnpublishedRows> {
        let end = *self.spec_snapshot().ok()?.extent.first()?;
        let rows = self.publish.published_end()..end;
        (!rows.is_empty())
            .then(|| UnpublishedRows { dataset: self.path().as_deref().unwrap_or_default().to_owned(), rows })
    }
}

//! What a dataset is at one moment: what its header said when it was read, and where its elements are.

use std::sync::Arc;
use std::time::Duration;

use h5live_format::Addr;
use h5live_format::messages::MAX_CHUNK_BYTES_BEFORE_V5;
use h5live_model::DatasetSpec;

use super::layout::NativeLayout;
use crate::{Error, Result};

/// The result of one reading of the header.
#[derive(Debug, Clone)]
pub(crate) struct DatasetState {
    /// Before the header was read.
    pub read_since: Duration,
    pub spec: Arc<DatasetSpec>,
    pub layout: NativeLayout,
    /// Bytes that the layout says contiguous data has, if they are fewer than the elements take.
    pub too_short_layout_bytes: Option<u64>,
    /// The version of the layout message, if it does not allow chunks as large as it says they are.
    pub oversized_for_version: Option<u8>,
    /// Bytes of the first chunk of the header.
    pub header_len: usize,
    /// That chunk, of a reader that follows, if it is known.
    pub header_image: Option<Arc<[u8]>>,
}

/// The state of a new dataset until it is opened.
#[derive(Debug)]
pub(crate) struct NewDataset {
    pub addr: Addr,
    pub state: DatasetState,
}

impl DatasetState {
    /// Refuses to write chunks that other programs cannot read.
    #[inline]
    pub fn check_chunk_size_for_version(&self) -> Result<()> {
        self.oversized_for_version.map_or(Ok(()), |version| Err(self.oversized_chunk_error(version)))
    }

    /// Says that the chunks are too large.
    #[cold]
    fn oversized_chunk_error(&self, version: u8) -> Error {
        let bytes = self.spec.chunk_bytes_or_total().map_or_else(|| "more than 2^64".into(), |bytes| bytes.to_string());
        Error::invalid(format!(
            "a chunk of {bytes} bytes cannot be written: a layout message of version {version} allows \
             {MAX_CHUNK_BYTES_BEFORE_V5} bytes (LibVer::V200 makes datasets with larger chunks)"
        ))
    }

    /// Whether a chunk with this mask went through none of the filters of the dataset.
    pub fn skips_all_filters(&self, filter_mask: u32) -> bool {
        (0..self.spec.filters.len())
            .all(|filter| filter_mask.checked_shr(filter as u32).is_some_and(|bits| bits & 1 == 1))
    }

    /// Refuses elements that have no place.
    #[inline]
    pub fn check_layout_covers_elements(&self) -> Result<()> {
        self.too_short_layout_bytes.map_or(Ok(()), |size| Err(self.size_mismatch_error(size)))
    }

    /// Says that the elements do not fit the bytes that the layout has for them.
    #[cold]
    fn size_mismatch_error(&self, size: u64) -> Error {
        match self.spec.chunk_bytes_or_total() {
            Some(bytes) => {
                Error::invalid(format!("the elements take {bytes} bytes, but the layout has {size} bytes for them"))
            }
            None => Error::invalid("the elements take more than 2^64 bytes"),
        }
    }
}

//! Refreshing a dataset of a live file. Nearly always, its header is unchanged or has only another extent. Then the
//! rest of the header is not decoded again.

use std::sync::Arc;
use std::time::Duration;

use h5live_cache::Owner;
use h5live_format::messages::{DataspaceMessage, MessageType};
use h5live_format::{FirstHeaderChunk, Widths, decode_prefix, lookup3};
use h5live_model::DatasetSpec;

use super::NativeDataset;
use super::extent_message::spec_with_extent;
use super::state::DatasetState;
use crate::Result;

/// Bytes of the checksum at the end of a header's first chunk.
const CHECKSUM_BYTES: usize = 4;

impl NativeDataset {
    /// Reads what has been published, and returns whether the extent has changed. The header is read first, so that the
    /// index is at least as new.
    ///
    /// # Errors
    /// If the header cannot be read.
    pub(crate) fn refresh_published(&self) -> Result<bool> {
        let _one_after_the_other = self.shared.refresh_lock.lock();
        let before = self.state();
        let since = self.session.retry.now();
        let image = self.read_header_image(before.header_len);
        if let Some(new) = before.state_from_image(since, &image, self.session.cache.widths()) {
            // Chunks come, and move, without the header.
            self.session.cache.revalidate_owner_on_load(Owner::new(self.shared.header_addr));
            self.session.global_heap.forget_read_collections();
            let mut state = self.shared.state.write();
            if Arc::ptr_eq(&state, &before) {
                let changed = new.spec.dataspace != before.spec.dataspace;
                *state = Arc::new(new);
                return Ok(changed);
            }
        }
        let changed = self.reload_header()?;
        let mut state = self.shared.state.write();
        if state.matches_image(&image, self.session.cache.widths()) {
            let image = Some(image.into());
            *state = Arc::new(DatasetState { header_image: image, ..DatasetState::clone(&state) });
        }
        Ok(changed)
    }

    /// The first `len` bytes of the header in the file. Empty if the bytes alone do not tell whether it has changed.
    fn read_header_image(&self, len: usize) -> Vec<u8> {
        match self.session.retry.generation_reader() {
            Some(_) => Vec::new(),
            None => self.session.cache.read_uncached_to_eof(self.shared.header_addr, len).unwrap_or_default(),
        }
    }
}

impl DatasetState {
    /// Whether a header that is all in `image` says just what this one did that the state was made of.
    fn matches_image(&self, image: &[u8], widths: Widths) -> bool {
        let first = self.layout.header().and_then(|header| header.find_in_first_chunk(MessageType::DATASPACE));
        let Some((first, _)) =
            first.filter(|_| self.layout.has_header_without_continuation() && image.len() == self.header_len)
        else {
            return false;
        };
        decode_prefix::<FirstHeaderChunk>(image, widths).is_ok_and(|(header, _)| header == *first.read())
    }

    /// The state of a header that is completely in `image`, which was read at `since`. `None` if it differs in more
    /// than the extent.
    fn state_from_image(&self, since: Duration, image: &[u8], widths: Widths) -> Option<DatasetState> {
        let known = self.header_image.as_deref()?;
        if known == image {
            return Some(DatasetState { read_since: since, ..DatasetState::clone(self) });
        }
        let spec = self.spec_with_extent_of(known, image, widths)?;
        Some(DatasetState {
            read_since: since,
            spec: Arc::new(spec),
            header_image: Some(image.into()),
            ..DatasetState::clone(self)
        })
    }

    /// The description with the extent that a header states that is all in `image`, if it differs in that alone from
    /// `known`.
    fn spec_with_extent_of(&self, known: &[u8], image: &[u8], widths: Widths) -> Option<DatasetSpec> {
        let (first, spot) = self.layout.header()?.find_in_first_chunk(MessageType::DATASPACE)?;
        let extent = {
            let header = first.read();
            // A header without a checksum may be torn.
            let message =
                header.messages.get(spot).filter(|message| header.prefix.version > 1 && !message.flags.is_shared())?;
            let start = header.body_offset(spot)?;
            start..start.checked_add(message.body.len())?
        };
        let summed = image.len().checked_sub(CHECKSUM_BYTES).filter(|summed| *summed >= extent.end)?;
        let is_same = known.len() == image.len()
            && known.get(..extent.start) == image.get(..extent.start)
            && known.get(extent.end..summed) == image.get(extent.end..summed);
        let (content, sum) = image.split_at_checked(summed)?;
        if !is_same || lookup3(content, 0).to_le_bytes() != sum {
            return None;
        }
        let (message, _) = decode_prefix::<DataspaceMessage>(content.get(extent)?, widths).ok()?;
        let (old, new) = (&self.spec.dataspace, message.dataspace);
        let spec = spec_with_extent(&self.spec, new.dims()).ok().filter(|_| new.max_dims() == old.max_dims())?;
        (spec.dataspace == new).then_some(spec)
    }
}

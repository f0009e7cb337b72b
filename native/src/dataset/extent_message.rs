//! The extent of a dataset in its description, and in its header.

use h5live_cache::Handle;
use h5live_format::messages::{DataspaceMessage, MessageType};
use h5live_format::{FirstHeaderChunk, Widths, encode_with_size_hint};
use h5live_model::{DatasetSpec, Dataspace, Layout};

use super::state::DatasetState;
use crate::{Error, Result};

/// Gives a description another extent, and says whether it can have that.
pub(super) fn resize_spec(spec: &mut DatasetSpec, dims: &[u64]) -> bool {
    match &mut spec.dataspace {
        Dataspace::Simple(shape) => {
            let grows = matches!(spec.layout, Layout::Chunked(_) | Layout::External(_) | Layout::Virtual(_));
            grows && shape.try_resize(dims)
        }
        _ => false,
    }
}

/// A description with another extent.
pub(super) fn spec_with_extent(spec: &DatasetSpec, dims: &[u64]) -> Result<DatasetSpec> {
    let mut spec = DatasetSpec::clone(spec);
    if !resize_spec(&mut spec, dims) && dims != spec.dataspace.dims() {
        return Err(Error::invalid(format!("{dims:?} is not within the maximum {:?}", spec.dataspace.max_dims())));
    }
    Ok(spec)
}

/// The new dataspace message of a header's first chunk.
pub(super) struct ExtentMessage {
    message_index: usize,
    body: Vec<u8>,
}

impl ExtentMessage {
    /// The message for the extent of `spec`; `None` if the first chunk has no dataspace message.
    ///
    /// # Errors
    /// If the extent does not fit the format.
    pub fn encode_if_in_first_chunk<'a>(
        state: &'a DatasetState,
        spec: &DatasetSpec,
        widths: Widths,
    ) -> Result<Option<(&'a Handle<FirstHeaderChunk>, Self)>> {
        let first = state.layout.header().and_then(|header| header.find_in_first_chunk(MessageType::DATASPACE));
        let Some((header, spot)) = first else { return Ok(None) };
        let version = {
            let header = header.read();
            let plain = header.messages.get(spot);
            let plain = plain.filter(|message| !message.flags.is_shared() && !message.flags.is_indexed_for_sharing());
            plain.and_then(|message| DataspaceMessage::peek_version(&message.body))
        };
        let Some(version) = version else { return Ok(None) };
        let body = encode_with_size_hint(&mut DataspaceMessage { version, dataspace: spec.dataspace.clone() }, widths)?;
        Ok(Some((header, ExtentMessage { message_index: spot, body })))
    }

    /// The position of the message.
    pub fn message_index(&self) -> usize {
        self.message_index
    }

    /// The body of the message.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Puts it there, and says whether there was a place for it.
    pub fn write_into(&self, header: &mut FirstHeaderChunk) -> bool {
        let message =
            header.messages.get_mut(self.message_index).filter(|message| message.kind == MessageType::DATASPACE);
        let place = message.and_then(|message| message.body.get_mut(..self.body.len()));
        place.map(|place| place.copy_from_slice(&self.body)).is_some()
    }
}

//! Reading what a header says of its dataset.

use std::sync::Arc;
use std::time::Duration;

use h5live_format::messages::{
    DataspaceMessage, DatatypeMessage, FillValueMessage, FillValueOldMessage, FilterPipelineMessage, LayoutClass,
    LayoutMessage, MessageType, SharedMessageReference,
};
use h5live_format::{Addr, GlobalHeapId, VirtualLayout, VirtualMapping, decode, decode_prefix};
use h5live_model::{DatasetSpec, Fill, Layout, Name, VirtualSource};

use super::external_raw_files;
use super::layout::{LayoutContext, NativeLayout};
use super::state::DatasetState;
use crate::header::CachedHeader;
use crate::object_kind::committed_datatype;
use crate::session::NativeSession;
use crate::{Error, Result};

/// The state of the dataset with this header, which was read at `since` or later.
///
/// # Errors
/// If a message is not there or cannot be decoded, or messages contradict each other.
pub(super) fn load_state(session: &NativeSession, header: &CachedHeader, since: Duration) -> Result<DatasetState> {
    let (spec, mut layout) = cached_spec(session, header)?;
    let context =
        LayoutContext { headers: &session.headers, path: session.hold.path(), btree_k: session.extension.btree_k };
    let place = match &mut layout.storage {
        LayoutClass::Compact { data, .. } if session.file_cannot_change() => {
            NativeLayout::Compact(Some(std::mem::take(data)))
        }
        _ => NativeLayout::new(context, header, &spec, &layout)?,
    };
    let header_len = header.chunk_ranges().next().map_or(0, |(_, len)| len);
    let too_short = match layout.storage {
        // Earlier versions do not state it.
        LayoutClass::Contiguous { addr, size, .. } if layout.version >= 3 && addr.is_defined() => {
            Some(size).filter(|size| {
                spec.chunk_bytes_or_total().is_none_or(|bytes| bytes > *size) && spec.grid_or_single_chunk().is_some()
            })
        }
        _ => None,
    };
    let oversized_chunks = Some(layout.version).filter(|_| !layout.is_chunk_size_within_limit());
    Ok(DatasetState {
        read_since: since,
        spec,
        layout: place,
        too_short_layout_bytes: too_short,
        oversized_for_version: oversized_chunks,
        header_len,
        header_image: None,
    })
}

/// The description that a header holds, and its layout.
///
/// # Errors
/// If a message is not there, or cannot be decoded.
pub(super) fn cached_spec(session: &NativeSession, header: &CachedHeader) -> Result<(Arc<DatasetSpec>, LayoutMessage)> {
    let message = header.require_message::<LayoutMessage>("a dataset has a layout")?;
    let layout = decode_layout(session, header, &message.storage)?;
    // A header that is being written may change before all of it is decoded.
    if session.mode.writes() {
        return Ok((session.datasets.spec_cache.intern_spec(decode_spec(session, header, layout)?), message));
    }
    if let Some(spec) = session.datasets.spec_cache.find(header, &layout) {
        return Ok((spec, message));
    }
    let spec = Arc::new(decode_spec(session, header, layout)?);
    session.datasets.spec_cache.set(header, &spec);
    Ok((spec, message))
}

/// The layout, and whether chunks at the edges go without filters.
fn decode_layout(session: &NativeSession, header: &CachedHeader, storage: &LayoutClass) -> Result<(Layout, bool)> {
    Ok(match storage {
        LayoutClass::Compact { .. } => (Layout::Compact, false),
        LayoutClass::Contiguous { .. } if header.has_message(MessageType::EXTERNAL_FILES) => {
            (Layout::External(external_raw_files::external_pieces(header)?), false)
        }
        LayoutClass::Contiguous { .. } => (Layout::Contiguous, false),
        LayoutClass::Chunked(chunks) => (Layout::Chunked(chunks.chunk_dims.clone()), chunks.unfiltered_partial_chunks),
        LayoutClass::Virtual { heap, index } => {
            (Layout::Virtual(load_virtual_sources(session, header, *heap, *index)?), false)
        }
    })
}

fn decode_spec(
    session: &NativeSession,
    header: &CachedHeader,
    (layout, unfiltered_partial_chunks): (Layout, bool),
) -> Result<DatasetSpec> {
    let dataspace = session.require_message::<DataspaceMessage>(header, "a dataset has a dataspace")?.dataspace;
    let datatype = session.require_message::<DatatypeMessage>(header, "a dataset has a datatype")?.datatype;
    let fill = match session.load_message::<FillValueMessage>(header)? {
        Some(message) => message.fill,
        None => match session.load_message::<FillValueOldMessage>(header)? {
            Some(message) => message.fill(),
            None => Fill::default(),
        },
    };
    let filters =
        session.load_message::<FilterPipelineMessage>(header)?.map(|message| message.filters).unwrap_or_default();
    let shared = header.with_first_message(MessageType::DATATYPE, |message| {
        message.flags.is_shared().then(|| decode_prefix::<SharedMessageReference>(&message.body, header.widths()))
    });
    let shared = shared.flatten();
    let shared = shared.transpose().map_err(|source| Error::DamagedMessage { header: header.addr(), source })?;
    let committed_datatype = committed_datatype(shared.as_ref().map(|(shared, _)| shared));
    Ok(DatasetSpec { datatype, committed_datatype, dataspace, layout, filters, fill, unfiltered_partial_chunks })
}

/// The pieces of a virtual dataset.
fn load_virtual_sources(
    session: &NativeSession,
    header: &CachedHeader,
    heap: Addr,
    index: u32,
) -> Result<Vec<VirtualSource>> {
    let place = GlobalHeapId { collection: heap, index };
    if !place.is_defined() {
        return Ok(Vec::new());
    }
    let bytes = session.global_heap.read_object(place)?;
    let layout: VirtualLayout = decode(&bytes, header.widths())
        .map_err(|source| Error::Cache(h5live_cache::Error::Decode { at: heap, source }))?;
    let source = |mapping: VirtualMapping| VirtualSource {
        file: Name::clone(&mapping.file),
        dataset: Name::clone(&mapping.dataset),
        source: mapping.source.selection,
        target: mapping.target.selection,
    };
    Ok(layout.mappings.into_iter().map(source).collect())
}

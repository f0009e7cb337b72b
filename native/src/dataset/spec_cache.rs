//! A cache of descriptions of datasets. A description that the next dataset has, too, is decoded once.

use std::sync::Arc;

use h5live_format::messages::{
    DataspaceMessage, DatatypeMessage, FillValueMessage, FillValueOldMessage, FilterPipelineMessage, LayoutClass,
    LayoutMessage, Message, MessageType, SharedMessage,
};
use h5live_format::{RawMessage, decode_prefix};
use h5live_model::{DatasetSpec, Fill, Layout};
use parking_lot::Mutex;

use super::{external, virtual_sources};
use crate::header::CachedHeader;
use crate::object_kind::committed;
use crate::session::NativeSession;
use crate::{Error, Result};

/// The last description, and the messages from which it was decoded.
#[derive(Debug, Default)]
pub(crate) struct SpecCache(Mutex<Option<(Vec<RawMessage>, Arc<DatasetSpec>)>>);

/// The messages that describe a dataset, beside its layout.
const SPEC_MESSAGES: [MessageType; 5] = [
    MessageType::DATASPACE,
    MessageType::DATATYPE,
    MessageType::FILL_VALUE,
    FillValueOldMessage::TYPE,
    MessageType::FILTER_PIPELINE,
];

/// Calls `look` with these messages of a header.
fn for_each_spec_message(header: &CachedHeader, mut look: impl FnMut(&RawMessage)) {
    let _never_fails = header.for_each_message(|_, message| {
        if SPEC_MESSAGES.contains(&message.kind) {
            look(message);
        }
        Ok(())
    });
}

/// Whether these are the messages that describe the dataset of a header.
fn has_same_spec(header: &CachedHeader, known: &[RawMessage]) -> bool {
    let (mut left, mut alike) = (known.iter(), true);
    for_each_spec_message(header, |message| alike &= left.next() == Some(message));
    alike && left.next().is_none()
}

/// The description that a header holds, and its layout.
///
/// # Errors
/// If a message is not there, or cannot be decoded.
pub(super) fn cached_spec(session: &NativeSession, header: &CachedHeader) -> Result<(Arc<DatasetSpec>, LayoutMessage)> {
    let message = header.require::<LayoutMessage>("a dataset has a layout")?;
    let layout = layout(session, header, &message.storage)?;
    // A header that is being written may change before all of it is decoded.
    if session.mode.writes() {
        return Ok((decode(session, header, layout)?.into(), message));
    }
    if let Some((known, spec)) = &*session.spec_cache.0.lock()
        && (&spec.layout, spec.unfiltered_edges) == (&layout.0, layout.1)
        && has_same_spec(header, known)
    {
        return Ok((spec.clone(), message));
    }
    let spec = Arc::new(decode(session, header, layout)?);
    let mut describing = Vec::new();
    for_each_spec_message(header, |message| describing.push(message.clone()));
    // The address of a message that is stored elsewhere does not identify its contents.
    if !describing.iter().any(|message| message.flags.is_shared()) {
        *session.spec_cache.0.lock() = Some((describing, spec.clone()));
    }
    Ok((spec, message))
}

/// The layout, and whether chunks at the edges go without filters.
fn layout(session: &NativeSession, header: &CachedHeader, storage: &LayoutClass) -> Result<(Layout, bool)> {
    Ok(match storage {
        LayoutClass::Compact { .. } => (Layout::Compact, false),
        LayoutClass::Contiguous { .. } if header.has(MessageType::EXTERNAL_FILES) => {
            (Layout::External(external::external_pieces(header)?), false)
        }
        LayoutClass::Contiguous { .. } => (Layout::Contiguous, false),
        LayoutClass::Chunked(chunks) => (Layout::Chunked(chunks.dims.clone()), chunks.unfiltered_edges),
        LayoutClass::Virtual { heap, index } => {
            (Layout::Virtual(virtual_sources(session, header, *heap, *index)?), false)
        }
    })
}

fn decode(
    session: &NativeSession,
    header: &CachedHeader,
    (layout, unfiltered_edges): (Layout, bool),
) -> Result<DatasetSpec> {
    let dataspace = session.required::<DataspaceMessage>(header, "a dataset has a dataspace")?.dataspace;
    let datatype = session.required::<DatatypeMessage>(header, "a dataset has a datatype")?.datatype;
    let fill = match session.message::<FillValueMessage>(header)? {
        Some(message) => message.fill,
        None => match session.message::<FillValueOldMessage>(header)? {
            Some(message) => message.fill(),
            None => Fill::default(),
        },
    };
    let filters = session.message::<FilterPipelineMessage>(header)?.map(|message| message.filters).unwrap_or_default();
    let shared = header.with_first(MessageType::DATATYPE, |message| {
        message.flags.is_shared().then(|| decode_prefix::<SharedMessage>(&message.body, header.widths()))
    });
    let shared = shared.flatten();
    let shared = shared.transpose().map_err(|source| Error::Message { header: header.addr(), source })?;
    let committed = committed(shared.as_ref().map(|(shared, _)| shared));
    Ok(DatasetSpec { datatype, committed, dataspace, layout, filters, fill, unfiltered_edges })
}

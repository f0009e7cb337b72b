//! What headers say of datasets: a description that the next dataset has too is decoded once.

use std::sync::Arc;

use h5live_format::decode_prefix;
use h5live_format::messages::{
    DataspaceMessage, DatatypeMessage, FillValueMessage, FilterPipelineMessage, LayoutMessage, Message, MessageType,
    OldFillValueMessage, SharedMessage, Storage,
};
use h5live_model::{DatasetSpec, Fill, Layout};
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::{external, sources};
use crate::creation::committed;
use crate::header::Header;
use crate::session::Session;
use crate::{Error, Result};

/// The last description, and the messages from which it was decoded.
#[derive(Debug, Default)]
pub(crate) struct Described(Mutex<Option<(Bodies, Arc<DatasetSpec>)>>);

type Bodies = SmallVec<[u8; 128]>;

/// The messages that describe a dataset, beside its layout.
const DESCRIBING: [MessageType; 5] = [
    MessageType::DATASPACE,
    MessageType::DATATYPE,
    MessageType::FILL_VALUE,
    OldFillValueMessage::TYPE,
    MessageType::FILTER_PIPELINE,
];

/// The types and bodies of these messages; `None` if one is stored elsewhere, or all may change before they are decoded.
fn bodies(session: &Session, header: &Header) -> Option<Bodies> {
    if session.mode.writes() {
        return None;
    }
    let (mut bodies, mut are_here) = (Bodies::new(), true);
    let gathered = header.each(|_, message| {
        if DESCRIBING.contains(&message.kind) {
            are_here &= !message.flags.is_shared();
            bodies.extend_from_slice(&message.kind.number().to_le_bytes());
            bodies.extend_from_slice(&(message.body.len() as u64).to_le_bytes());
            bodies.extend_from_slice(&message.body);
        }
        Ok(())
    });
    gathered.ok().filter(|()| are_here).map(|()| bodies)
}

/// The description that a header holds, and its layout.
///
/// # Errors
/// If a message is not there, or cannot be decoded.
pub(super) fn described(session: &Session, header: &Header) -> Result<(Arc<DatasetSpec>, LayoutMessage)> {
    let message = header.require::<LayoutMessage>("a dataset has a layout")?;
    let layout = layout(session, header, &message.storage)?;
    let Some(bodies) = bodies(session, header) else { return Ok((decode(session, header, layout)?.into(), message)) };
    if let Some((known, spec)) = &*session.described.0.lock()
        && *known == bodies
        && (&spec.layout, spec.unfiltered_edges) == (&layout.0, layout.1)
    {
        return Ok((spec.clone(), message));
    }
    let spec = Arc::new(decode(session, header, layout)?);
    *session.described.0.lock() = Some((bodies, spec.clone()));
    Ok((spec, message))
}

/// The layout, and whether chunks at the edges go without filters.
fn layout(session: &Session, header: &Header, storage: &Storage) -> Result<(Layout, bool)> {
    Ok(match storage {
        Storage::Compact { .. } => (Layout::Compact, false),
        Storage::Contiguous { .. } if header.has(MessageType::EXTERNAL_FILES) => {
            (Layout::External(external::files(header)?), false)
        }
        Storage::Contiguous { .. } => (Layout::Contiguous, false),
        Storage::Chunked(chunks) => (Layout::Chunked(chunks.dims.clone()), chunks.unfiltered_edges),
        Storage::Virtual { heap, index } => (Layout::Virtual(sources(session, header, *heap, *index)?), false),
    })
}

fn decode(session: &Session, header: &Header, (layout, unfiltered_edges): (Layout, bool)) -> Result<DatasetSpec> {
    let dataspace = session.required::<DataspaceMessage>(header, "a dataset has a dataspace")?.dataspace;
    let datatype = session.required::<DatatypeMessage>(header, "a dataset has a datatype")?.datatype;
    let fill = match session.message::<FillValueMessage>(header)? {
        Some(message) => message.fill,
        None => match session.message::<OldFillValueMessage>(header)? {
            Some(message) => message.fill(),
            None => Fill::default(),
        },
    };
    let filters = session.message::<FilterPipelineMessage>(header)?.map(|message| message.filters).unwrap_or_default();
    let shared = header.first(MessageType::DATATYPE, |message| {
        message.flags.is_shared().then(|| decode_prefix::<SharedMessage>(&message.body, header.widths()))
    });
    let shared = shared.flatten();
    let shared = shared.transpose().map_err(|source| Error::Message { header: header.addr(), source })?;
    let committed = committed(shared.as_ref().map(|(shared, _)| shared));
    Ok(DatasetSpec { datatype, committed, dataspace, layout, filters, fill, unfiltered_edges })
}

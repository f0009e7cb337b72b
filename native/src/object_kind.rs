//! What an object header says of its object: its kind, how a group keeps its links, and which datatype is committed.

use h5live_format::messages::{
    GroupInfo, LinkInfo, LinkPhaseChange, MessageType, SharedMessageReference, SharedMessageTarget,
};
use h5live_model::{LinkOrAttributeStorageSpec, ObjectId, ObjectKind};

use crate::Result;
use crate::header::{CachedHeader, creation_order};

/// The kind of the object with this header.
pub(crate) fn kind_of(header: &CachedHeader) -> Result<ObjectKind> {
    let (mut layout, mut datatype, mut dataspace, mut links) = (false, false, false, false);
    header.for_each_message_type(|kind| match kind {
        MessageType::LAYOUT => layout = true,
        MessageType::DATATYPE => datatype = true,
        MessageType::DATASPACE => dataspace = true,
        MessageType::LINK_INFO | MessageType::SYMBOL_TABLE => links = true,
        _ => {}
    });
    if layout || datatype && dataspace {
        Ok(ObjectKind::Dataset)
    } else if links {
        Ok(ObjectKind::Group)
    } else if datatype {
        Ok(ObjectKind::Datatype)
    } else {
        Err(header.damaged_error("it is a group, a dataset or a datatype"))
    }
}

/// The committed datatype to which a message leads, if it is not here.
pub(crate) fn committed_datatype(shared: Option<&SharedMessageReference>) -> Option<ObjectId> {
    match shared?.place {
        SharedMessageTarget::Committed(addr) => addr.get().map(|addr| ObjectId(addr.into())),
        SharedMessageTarget::Heap(_) => None,
    }
}

/// How a group keeps its links.
///
/// # Errors
/// If a message cannot be decoded.
pub(crate) fn link_storage(header: &CachedHeader) -> Result<LinkOrAttributeStorageSpec> {
    let Some(info) = header.get_message::<LinkInfo>()? else { return Ok(LinkOrAttributeStorageSpec::default()) };
    let choices = header.get_message::<GroupInfo>()?.unwrap_or_default();
    let LinkPhaseChange { max_compact, min_dense } = choices.link_phase_change.unwrap_or_default();
    Ok(LinkOrAttributeStorageSpec {
        order: creation_order(info.next_creation_order.is_some(), info.order_index.is_some()),
        max_compact,
        min_dense,
    })
}

//! How an object keeps its attributes and links, as its header says.

use h5live_format::{AttributePhaseChange, ObjectHeaderPrefix};
use h5live_model::{CreationOrder, LinkOrAttributeStorageSpec};

/// How an object keeps its attributes.
pub(super) fn attribute_storage(prefix: &ObjectHeaderPrefix) -> LinkOrAttributeStorageSpec {
    let AttributePhaseChange { max_compact, min_dense } = prefix.attribute_phase_change.unwrap_or_default();
    LinkOrAttributeStorageSpec {
        order: creation_order(prefix.attribute_order_tracked, prefix.attribute_order_indexed),
        max_compact,
        min_dense,
    }
}

/// How the order of creation is kept.
pub(crate) fn creation_order(tracked: bool, indexed: bool) -> CreationOrder {
    match (tracked, indexed) {
        (_, true) => CreationOrder::Indexed,
        (true, false) => CreationOrder::Tracked,
        (false, false) => CreationOrder::Untracked,
    }
}

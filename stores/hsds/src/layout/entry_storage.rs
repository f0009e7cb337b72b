//! How the links or the attributes of an object are kept, as JSON.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use h5live_model::{CreationOrder, LinkOrAttributeStorageSpec};
use serde_json::{Value, json};

use super::extras::{EXTRAS, set_h5live_member};
use super::json::{Members, set_member};
use super::shard_id::LinksOrAttributes;

pub(super) const CREATION: &str = "creationProperties";
pub(super) const CREATE_ORDER: &str = "CreateOrder";

/// The positions of entries that the service has made, by their names: of links, and of attributes. They are found once for each
/// state of a document, and are no part of it.
#[derive(Debug, Clone, Default)]
pub(super) struct GivenPositions {
    pub(super) links: OnceLock<Arc<HashMap<String, u64>>>,
    pub(super) attributes: OnceLock<Arc<HashMap<String, u64>>>,
}

impl PartialEq for GivenPositions {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

fn entry_storage_to_json(storage: LinkOrAttributeStorageSpec) -> Value {
    let order = match storage.order {
        CreationOrder::Untracked => "untracked",
        CreationOrder::Tracked => "tracked",
        CreationOrder::Indexed => "indexed",
    };
    json!({"order": order, "max_compact": storage.max_compact, "min_dense": storage.min_dense})
}

/// How they are kept, as a JSON says.
pub(super) fn entry_storage_from_json(json: &Value) -> LinkOrAttributeStorageSpec {
    let default = LinkOrAttributeStorageSpec::default();
    let number = |member: &str, default| {
        json.get(member).and_then(Value::as_u64).and_then(|number| u16::try_from(number).ok()).unwrap_or(default)
    };
    let order = match json.get("order").and_then(Value::as_str) {
        Some("tracked") => CreationOrder::Tracked,
        Some("indexed") => CreationOrder::Indexed,
        _ => CreationOrder::Untracked,
    };
    LinkOrAttributeStorageSpec {
        order,
        max_compact: number("max_compact", default.max_compact),
        min_dense: number("min_dense", default.min_dense),
    }
}

/// The position of a link or an attribute in the order of creation, if that is kept.
pub(super) fn stored_order(entry: &Value) -> Option<u64> {
    entry.get(EXTRAS).and_then(|extras| extras.get("order")?.as_u64())
}

/// The time of a link or an attribute (seconds).
pub(super) fn created(entry: &Value) -> f64 {
    entry.get("created").and_then(Value::as_f64).unwrap_or_default()
}

/// Whether a property is set, as clients of the service take it.
pub(super) fn is_set(property: Option<&Value>) -> bool {
    match property {
        Some(Value::Bool(is_set)) => *is_set,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !matches!(text.as_str(), "" | "0"),
        _ => false,
    }
}

/// Whether the order of creation is kept.
pub(super) fn is_tracked(storage: LinkOrAttributeStorageSpec) -> bool {
    storage.order != CreationOrder::Untracked
}

/// Puts into the members of a new object how its links, if it has any, and its attributes are kept.
pub(super) fn put_storage(
    members: &mut Members,
    links: Option<LinkOrAttributeStorageSpec>,
    attributes: LinkOrAttributeStorageSpec,
) {
    let is_ordered = is_tracked(attributes) || links.is_some_and(is_tracked);
    if is_ordered {
        let mut creation = members.get(CREATION).cloned().unwrap_or_else(|| json!({}));
        set_member(&mut creation, CREATE_ORDER, json!(1));
        members.insert(CREATION.to_owned(), creation);
    }
    let storages = [(LinksOrAttributes::Links, links), (LinksOrAttributes::Attributes, Some(attributes))];
    for (class, storage) in storages.into_iter().filter_map(|(class, storage)| Some((class, storage?))) {
        // The property is one for both.
        if is_ordered || storage != LinkOrAttributeStorageSpec::default() {
            set_h5live_member(members, class.json_member(), entry_storage_to_json(storage));
        }
    }
}

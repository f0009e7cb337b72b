//! What nothing in a store leads to, in words.

use h5live::model::ObjectKind;
use h5live::{Leak, LeakLocation};
use serde_json::{Value, json};

use crate::counted::counted;

/// The word for what it is.
fn kind_name(leak: &Leak) -> &'static str {
    match (leak.kind, leak.place) {
        (Some(ObjectKind::Group), _) => "group",
        (Some(ObjectKind::Dataset), _) => "dataset",
        (Some(ObjectKind::Datatype), _) => "datatype",
        (Some(ObjectKind::Map), _) => "map",
        (None, LeakLocation::Blob(_)) => "variable-length data",
        (None, LeakLocation::LostDomain { .. }) => "unfinished domain",
        (None, _) => "remainder",
    }
}

/// What it is, where it is, and how large.
pub fn text(leak: &Leak) -> String {
    format!("{} {}, {}", kind_name(leak), leak.place, counted(leak.bytes, "byte"))
}

/// The same, as members of an object.
pub fn add_json(line: &mut Value, leak: &Leak) {
    let (name, place) = match leak.place {
        LeakLocation::ObjectHeaderOffset(offset) => ("offset", json!(offset)),
        LeakLocation::Object(id) => ("object", json!(id.to_string())),
        place => ("place", json!(place.to_string())),
    };
    if let Value::Object(line) = line {
        line.insert("kind".to_owned(), json!(kind_name(leak)));
        line.insert(name.to_owned(), place);
        line.insert("bytes".to_owned(), json!(leak.bytes));
        if let LeakLocation::LostDomain { objects, .. } = leak.place {
            line.insert("objects".to_owned(), json!(objects));
        }
    }
}

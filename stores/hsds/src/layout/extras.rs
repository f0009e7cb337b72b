//! What is ours in an object: the member `h5live`.

use serde_json::{Value, json};

use super::json::Members;

/// The member that is ours, in each object.
pub const EXTRAS: &str = "h5live";

/// A member of what is ours in an object.
pub fn h5live_member<'a>(members: &'a Members, name: &str) -> Option<&'a Value> {
    members.get(EXTRAS)?.get(name)
}

/// Puts a member into what is ours in an object; [`Value::Null`] takes it away.
pub fn set_h5live_member(members: &mut Members, name: &str, value: Value) {
    let extras = members.entry(EXTRAS).or_insert_with(|| json!({}));
    if !extras.is_object() {
        *extras = json!({});
    }
    if let Some(extras) = extras.as_object_mut() {
        match value {
            Value::Null => drop(extras.shift_remove(name)),
            value => drop(extras.insert(name.to_owned(), value)),
        }
        if extras.is_empty() {
            members.shift_remove(EXTRAS);
        }
    }
}

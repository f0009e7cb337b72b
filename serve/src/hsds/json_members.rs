//! Objects in JSON whose members may be no JSON: numbers as Python writes them.

use serde_json::Value as Json;

/// An object in JSON.
#[derive(Debug, Clone, Default)]
pub(super) struct JsonMembers(String);

impl JsonMembers {
    /// Adds a member.
    pub fn push_member(&mut self, name: &str, value: impl Into<Json>) {
        self.push_member_raw_json(name, &value.into().to_string());
    }

    /// Adds a member whose value is written already.
    pub fn push_member_raw_json(&mut self, name: &str, value: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&Json::from(name).to_string());
        self.0.push(':');
        self.0.push_str(value);
    }

    pub fn text_length(&self) -> usize {
        self.0.len()
    }

    /// The text.
    pub fn finish(self) -> String {
        match self.0.is_empty() {
            true => "{}".to_owned(),
            false => self.0 + "}",
        }
    }
}

/// A list of what is written already.
pub(super) fn list_text(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<_> = items.into_iter().collect();
    format!("[{}]", items.join(","))
}

//! Filters by their names.

use h5live::filters::{describe_filter, filter_name};
use h5live_compare::manifest;
use serde_json::{Value as Json, json};

use crate::model::{DatasetSpec, FilterSpec};

/// The text of a dataset's storage, with the names of filters.
pub fn storage_text(spec: &DatasetSpec) -> String {
    let layout = manifest::storage_text(&DatasetSpec { filters: Vec::new(), ..spec.clone() });
    if spec.filters.is_empty() {
        return layout;
    }
    let filters: Vec<_> = spec.filters.iter().map(describe_filter).collect();
    format!("{layout} filters={}", filters.join(","))
}

/// A filter for programs.
pub fn filter_json(filter: &FilterSpec) -> Json {
    json!({ "id": filter.id, "name": filter_name(filter), "params": filter.params, "optional": filter.optional })
}

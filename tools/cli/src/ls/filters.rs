//! Filters by their names.

use h5live::filters::registered_name;
use serde_json::{Value as Json, json};

use crate::manifest;
use crate::model::{DatasetSpec, FilterSpec};

/// The text of a dataset's storage, with the names of filters.
pub fn storage_text(spec: &DatasetSpec) -> String {
    let layout = manifest::storage_text(&DatasetSpec { filters: Vec::new(), ..spec.clone() });
    if spec.filters.is_empty() {
        return layout;
    }
    let filters: Vec<_> = spec.filters.iter().map(filter_text).collect();
    format!("{layout} filters={}", filters.join(","))
}

/// The name of a filter, with its level if it has one: the registered name, or else the one that the file has, and the
/// number.
fn filter_text(filter: &FilterSpec) -> String {
    // The filters whose first parameter is a level.
    match (filter.id, registered_name(filter.id), filter.params.first()) {
        (1 | 307 | 32_015, Some(name), Some(level)) => format!("{name}({level})"),
        (_, Some(name), _) => name.to_owned(),
        (id, None, _) => match own_name(filter) {
            Some(name) => format!("{id}({name})"),
            None => id.to_string(),
        },
    }
}

fn own_name(filter: &FilterSpec) -> Option<String> {
    filter.name.as_ref().filter(|name| !name.is_empty()).map(ToString::to_string)
}

/// A filter for programs.
pub fn filter_json(filter: &FilterSpec) -> Json {
    let name = registered_name(filter.id).map(str::to_owned).or_else(|| own_name(filter));
    json!({ "id": filter.id, "name": name, "params": filter.params, "optional": filter.optional })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_go_by_their_registered_names() {
        let filter = |id, params: &[u32], name: Option<&str>| {
            filter_text(&FilterSpec { id, params: params.into(), name: name.map(Into::into), ..Default::default() })
        };
        assert_eq!(filter(32_015, &[3], Some("Zstandard compression: http://www.zstd.net")), "zstd(3)");
        assert_eq!(filter(1, &[6], None), "deflate(6)");
        assert_eq!(filter(2, &[8], None), "shuffle");
        assert_eq!(filter(32_013, &[1, 2], None), "zfp");
        assert_eq!(filter(40_000, &[1], Some("mine")), "40000(mine)");
        assert_eq!(filter(40_000, &[1], None), "40000");
    }
}

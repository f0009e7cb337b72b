//! The entries of a listing as text and as JSON.

use h5live::{File, Object, SourceState, Value};
use h5live_compare::manifest::{ListingEntry, ListingLine, space_text};
use serde_json::{Value as Json, json};

use crate::counted::counted;
use crate::model::{AttributeData, DatasetSpec, Dataspace, Layout, ObjectId};
use crate::references::ReferenceFormatter;
use crate::value;

use super::filters::{filter_json, storage_text};

/// Longer values of attributes are cut (characters).
const VALUE_WIDTH: usize = 60;

/// The chunks of a dataset that are stored.
struct StoredChunks {
    chunks: usize,
    bytes: u64,
}

/// `None` if the dataset is not chunked or its index cannot be read.
fn stored(file: &File, id: ObjectId) -> Option<StoredChunks> {
    let Ok(Object::Dataset(dataset)) = file.root().object_by_id(id, "") else {
        return None;
    };
    let chunks = dataset.stored_chunks().ok()?;
    Some(StoredChunks { chunks: chunks.len(), bytes: total_bytes(chunks.iter().map(|chunk| chunk.size)) })
}

/// The sum of sizes that a file states, which may be damaged.
fn total_bytes(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

/// The number of pairs of a map, if it can be read.
fn map_pairs(file: &File, id: ObjectId) -> Option<u64> {
    file.store().maps()?.len(id).ok()
}

/// The states of sources of virtual datasets, and their names.
const STATES: [(SourceState, &str); 5] = [
    (SourceState::AtRest, "closed"),
    (SourceState::Live, "being written"),
    (SourceState::InExclusiveUse, "in use"),
    (SourceState::Missing, "missing"),
    (SourceState::Unreadable, "unreadable"),
];

/// The states of the sources of a virtual dataset; `None` if it is none, or they cannot be found out.
fn sources(file: &File, id: ObjectId, spec: &DatasetSpec) -> Option<Vec<SourceState>> {
    let Layout::Virtual(_) = spec.layout else { return None };
    match file.root().object_by_id(id, "") {
        Ok(Object::Dataset(dataset)) => dataset.source_states().ok(),
        _ => None,
    }
}

fn count(states: &[SourceState], wanted: SourceState) -> usize {
    states.iter().filter(|state| **state == wanted).count()
}

/// The sources that may still change; `None` if all exist and nobody writes them.
fn source_states_text(states: &[SourceState]) -> Option<String> {
    let counts = STATES.iter().map(|(state, name)| (count(states, *state), name));
    let mut text = String::new();
    for (n, name) in counts.skip(1).filter(|(n, _)| *n > 0) {
        let of_all = format!(" of {}", counted(states.len(), "source"));
        let (before, of_all) = if text.is_empty() { ("", &*of_all) } else { (", ", "") };
        text.extend([before, &n.to_string(), of_all, " ", name]);
    }
    (!text.is_empty()).then_some(text)
}

/// What is shown of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryDisplayOptions {
    /// The sizes of datasets.
    pub shows_sizes: bool,
    /// The whole values of attributes.
    pub shows_whole_attribute_values: bool,
}

/// Describes the entries of a listing of a file.
pub struct EntryDescriber<'a> {
    file: &'a File,
    references: ReferenceFormatter<'a>,
    detail: EntryDisplayOptions,
}

impl<'a> EntryDescriber<'a> {
    /// For the entries of a file.
    pub fn new(file: &'a File, detail: EntryDisplayOptions) -> Self {
        EntryDescriber { file, references: ReferenceFormatter::new(file), detail }
    }

    /// An entry for people.
    pub fn text_without_path(&self, line: &ListingLine) -> String {
        match &line.entry {
            ListingEntry::GroupLinkOrDatatype("soft" | "external", target) => format!("-> {target}"),
            ListingEntry::GroupLinkOrDatatype("hard", first) => format!("= {first}"),
            ListingEntry::GroupLinkOrDatatype(kind, text) if text == "-" => (*kind).to_owned(),
            ListingEntry::GroupLinkOrDatatype(kind, text) => format!("{kind} {text}"),
            ListingEntry::Unreadable(why) => format!("cannot be read: {why}"),
            ListingEntry::Dataset(id, spec) => {
                let DatasetSpec { datatype, dataspace, .. } = &**spec;
                let sizes = if self.detail.shows_sizes { self.sizes(*id, spec) } else { String::new() };
                let sources = sources(self.file, *id, spec).and_then(|states| source_states_text(&states));
                let sources = sources.map_or(String::new(), |text| format!("  {text}"));
                format!("{}  {}  {}{sizes}{sources}", datatype, shape_text(dataspace), storage_text(spec))
            }
            ListingEntry::Map(id, spec) => {
                let pairs =
                    map_pairs(self.file, *id).map_or("?".to_owned(), |pairs| counted(pairs, "pair").to_string());
                format!("map {} -> {}  {pairs}", spec.key_type, spec.value_type)
            }
            ListingEntry::Attribute(attribute) => {
                let value = self.value_text(attribute).unwrap_or_else(|| "?".to_owned());
                let value = if self.detail.shows_whole_attribute_values { value } else { shorten(&value, VALUE_WIDTH) };
                format!("{}  {}  {value}", attribute.datatype, shape_text(&attribute.dataspace))
            }
        }
    }

    fn sizes(&self, id: ObjectId, spec: &DatasetSpec) -> String {
        let whole = bytes_text(size_bytes(spec));
        match stored(self.file, id) {
            Some(stored) if matches!(spec.layout, Layout::Chunked(_)) => {
                let chunks = counted(stored.chunks, "chunk");
                format!("  {chunks}, {} of {whole}", bytes_text(stored.bytes))
            }
            Some(stored) => format!("  {} of {whole}", bytes_text(stored.bytes)),
            None => format!("  {whole}"),
        }
    }

    /// The value of an attribute as text.
    pub fn value_text(&self, attribute: &AttributeData) -> Option<String> {
        let value = value_of(self.file, attribute)?;
        Some(value::text(&value, &|reference| self.references.display_text(reference)))
    }

    /// An entry for programs.
    pub fn json(&self, line: &ListingLine) -> Json {
        match &line.entry {
            ListingEntry::GroupLinkOrDatatype(kind @ ("soft" | "external" | "hard"), target) => {
                json!({ "path": line.escaped_path, "kind": kind, "target": target })
            }
            ListingEntry::GroupLinkOrDatatype(kind, text) if text == "-" => {
                json!({ "path": line.escaped_path, "kind": kind })
            }
            ListingEntry::GroupLinkOrDatatype(kind, text) => {
                json!({ "path": line.escaped_path, "kind": kind, "type": text })
            }
            ListingEntry::Unreadable(why) => json!({ "path": line.escaped_path, "kind": "error", "error": why }),
            ListingEntry::Dataset(id, spec) => self.dataset_json(&line.escaped_path, *id, spec),
            ListingEntry::Map(id, spec) => json!({
                "path": line.escaped_path,
                "kind": "map",
                "key_type": spec.key_type.to_string(),
                "value_type": spec.value_type.to_string(),
                "pairs": map_pairs(self.file, *id),
            }),
            ListingEntry::Attribute(attribute) => json!({
                "path": line.escaped_path,
                "kind": "attribute",
                "type": attribute.datatype.to_string(),
                "space": space_text(&attribute.dataspace),
                "value": value_of(self.file, attribute)
                    .map(|value| value::json_nan_as_null(&value, &|reference| self.references.json(reference))),
            }),
        }
    }

    fn dataset_json(&self, path: &str, id: ObjectId, spec: &DatasetSpec) -> Json {
        let max = |m: &u64| if *m == crate::model::UNLIMITED { None } else { Some(*m) };
        let stored = if self.detail.shows_sizes { stored(self.file, id) } else { None };
        let is_chunked = matches!(spec.layout, Layout::Chunked(_));
        let mut described = json!({
            "path": path,
            "kind": "dataset",
            "type": spec.datatype.to_string(),
            "space": space_text(&spec.dataspace),
            "shape": spec.dataspace.dims(),
            "max_shape": spec.dataspace.max_dims().iter().map(max).collect::<Vec<_>>(),
            "storage": storage_text(spec),
            "filters": spec.filters.iter().map(filter_json).collect::<Vec<_>>(),
            "size_bytes": size_bytes(spec),
            "chunks": stored.as_ref().filter(|_| is_chunked).map(|s| s.chunks),
            "stored_bytes": stored.as_ref().map(|s| s.bytes),
        });
        if let Some(states) = sources(self.file, id, spec) {
            let counts = STATES.map(|(state, name)| (name.replace(' ', "_"), count(&states, state).into()));
            described["sources"] = counts.into_iter().collect::<serde_json::Map<_, _>>().into();
        }
        described
    }
}

/// Bytes of all elements.
fn size_bytes(spec: &DatasetSpec) -> u64 {
    spec.dataspace.element_count().unwrap_or(0).saturating_mul(u64::from(spec.datatype.size()))
}

/// The shape, and the maximum where it is another.
pub fn shape_text(space: &Dataspace) -> String {
    let text = space_text(space);
    match text.split_once('/') {
        Some((dims, max)) if dims == max => dims.to_owned(),
        _ => text,
    }
}

/// A text, cut to so many characters.
pub fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(3)).chain("...".chars()).collect()
}

/// Bytes in a unit that suits them.
pub fn bytes_text(bytes: u64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB"];
    let step = units.len().min(1 + (bytes.max(1).ilog10() / 3) as usize) - 1;
    let unit = units.get(step).copied().unwrap_or("B");
    if step == 0 {
        format!("{bytes} {unit}")
    } else {
        format!("{:.1} {unit}", bytes as f64 / 1000f64.powi(step as i32))
    }
}

/// The value of an attribute: its only element, or a list.
fn value_of(file: &File, attribute: &AttributeData) -> Option<Value> {
    let mut elements = Value::decode_all(&attribute.datatype, &attribute.value, Some(file.store())).ok()?;
    match attribute.dataspace {
        Dataspace::Scalar => elements.pop(),
        _ => Some(Value::List(elements)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_unit_that_suits_them() {
        let text = [0, 999, 1_000, 31_400_000, u64::MAX].map(bytes_text);
        assert_eq!(text, ["0 B", "999 B", "1.0 KB", "31.4 MB", "18446744.1 TB"]);
    }

    #[test]
    fn only_sources_that_are_not_closed_are_worth_a_word() {
        use SourceState::{AtRest, InExclusiveUse, Live, Missing};
        assert_eq!(source_states_text(&[AtRest, AtRest]), None);
        assert_eq!(source_states_text(&[Live]).unwrap(), "1 of 1 source being written");
        let states = [AtRest, Missing, Live, InExclusiveUse, Missing];
        assert_eq!(source_states_text(&states).unwrap(), "1 of 5 sources being written, 1 in use, 2 missing");
    }

    #[test]
    fn damaged_sizes_add_up_without_overflow() {
        assert_eq!(total_bytes([u64::MAX, 1, u64::MAX].into_iter()), u64::MAX);
        assert_eq!(total_bytes([3, 4].into_iter()), 7);
    }

    #[test]
    fn long_values_are_cut() {
        assert_eq!(shorten("abc", 60), "abc");
        let cut = shorten(&"ü".repeat(100), 60);
        assert_eq!((cut.chars().count(), cut.ends_with("ü...")), (60, true));
    }
}

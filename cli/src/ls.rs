//! `h5live ls`: the contents of a file.

use h5live::{File, Location, Object, Reference, SourceState};
use serde_json::json;

use crate::error::{Outcome, Result};
use crate::manifest::listing::{Listing, ListingEntry, ListingLine};
use crate::manifest::{space_text, storage_text, type_text};
use crate::model::{AttributeData, DatasetSpec, Layout, ObjectId};
use crate::open;
use crate::output::Output;
use crate::value::{self, Value};

/// Longer values of attributes are cut (characters).
const VALUE_WIDTH: usize = 60;
/// Longer paths do not push the columns to the right (characters).
const PATH_WIDTH: usize = 40;

/// Lists the contents of a file: types, shapes, storage
#[derive(Debug, clap::Args)]
pub struct Ls {
    /// The file
    file: Location,
    /// The group or object to start from
    #[arg(default_value = "/")]
    path: String,
    /// Count the stored chunks and bytes of chunked datasets
    #[arg(short, long)]
    long: bool,
    /// For programs: a JSON object per line
    #[arg(long)]
    json: bool,
}

/// The chunks of a dataset that are stored.
struct StoredChunks {
    chunks: usize,
    bytes: u64,
}

impl Ls {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`crate::error::Error`] says.
    pub fn run(self) -> Result<Outcome> {
        let file = open::for_reading(self.file)?;
        let start = file.object(&self.path)?;
        if let Object::Group(group) = &start {
            group.links()?;
        }
        let listing = Listing::from_file(&file, start.id(), start.path().as_bytes());
        let width = listing.lines.iter().map(|line| line.path.chars().count()).filter(|w| *w <= PATH_WIDTH).max();
        let mut out = Output::stdout();
        for line in &listing.lines {
            let stored = match &line.entry {
                ListingEntry::Dataset(id, _) if self.long => stored(&file, *id),
                _ => None,
            };
            if self.json {
                out.line(json_line(&file, &listing, line, stored.as_ref()))?;
            } else {
                let text = text(&file, &listing, line, stored.as_ref());
                out.line(format_args!("{:width$}  {text}", line.path, width = width.unwrap_or(0)))?;
            }
        }
        out.flush()?;
        Ok(Outcome::Clean)
    }
}

/// `None` if the dataset is not chunked or its index cannot be read.
fn stored(file: &File, id: ObjectId) -> Option<StoredChunks> {
    let Ok(Object::Dataset(dataset)) = file.root().object_by_id(id, "") else {
        return None;
    };
    let chunks = dataset.chunks().ok()?;
    Some(StoredChunks { chunks: chunks.len(), bytes: total_bytes(chunks.iter().map(|chunk| chunk.size)) })
}

/// The sum of sizes that a file states, which may be damaged.
fn total_bytes(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

/// The states of sources of virtual datasets, and their names.
const STATES: [(SourceState, &str); 5] = [
    (SourceState::Closed, "closed"),
    (SourceState::Live, "being written"),
    (SourceState::InUse, "in use"),
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
fn sources_text(states: &[SourceState]) -> Option<String> {
    let counts = STATES.iter().map(|(state, name)| (count(states, *state), name));
    let mut text = String::new();
    for (n, name) in counts.skip(1).filter(|(n, _)| *n > 0) {
        let of_all = format!(" of {} sources", states.len());
        let (before, of_all) = if text.is_empty() { ("", &*of_all) } else { (", ", "") };
        text.extend([before, &n.to_string(), of_all, " ", name]);
    }
    (!text.is_empty()).then_some(text)
}

fn text(file: &File, listing: &Listing, line: &ListingLine, stored: Option<&StoredChunks>) -> String {
    match &line.entry {
        ListingEntry::Plain("soft" | "external", target) => format!("-> {target}"),
        ListingEntry::Plain("hard", first) => format!("= {first}"),
        ListingEntry::Plain(kind, text) if text == "-" => (*kind).to_owned(),
        ListingEntry::Plain(kind, text) => format!("{kind} {text}"),
        ListingEntry::Dataset(id, spec) => {
            let stored = stored.map_or(String::new(), |s| {
                let whole = spec.dataspace.elements().unwrap_or(0).saturating_mul(u64::from(spec.datatype.size()));
                format!("  {} chunks, {} of {}", s.chunks, bytes_text(s.bytes), bytes_text(whole))
            });
            let DatasetSpec { datatype, dataspace, .. } = &**spec;
            let sources = sources(file, *id, spec).and_then(|states| sources_text(&states));
            let sources = sources.map_or(String::new(), |text| format!("  {text}"));
            format!("{}  {}  {}{stored}{sources}", type_text(datatype), shape_text(dataspace), storage_text(spec))
        }
        ListingEntry::Attribute(attribute) => {
            let value = value_of(file, listing, attribute).map_or("?".to_owned(), |v| v.to_string());
            format!("{}  {}  {}", type_text(&attribute.datatype), shape_text(&attribute.dataspace), shorten(&value))
        }
    }
}

/// The shape, and the maximum where it is another.
fn shape_text(space: &crate::model::Dataspace) -> String {
    let text = space_text(space);
    match text.split_once('/') {
        Some((dims, max)) if dims == max => dims.to_owned(),
        _ => text,
    }
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= VALUE_WIDTH {
        return text.to_owned();
    }
    text.chars().take(VALUE_WIDTH - 3).chain("...".chars()).collect()
}

/// Bytes in a unit that suits them.
fn bytes_text(bytes: u64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB"];
    let step = units.len().min(1 + (bytes.max(1).ilog10() / 3) as usize) - 1;
    let unit = units.get(step).copied().unwrap_or("B");
    if step == 0 {
        format!("{bytes} {unit}")
    } else {
        format!("{:.1} {unit}", bytes as f64 / 1000f64.powi(step as i32))
    }
}

/// The value of an attribute: its only element, or a list. References to listed objects are paths.
fn value_of(file: &File, listing: &Listing, attribute: &AttributeData) -> Option<Value> {
    let elements = Value::decode_all(&attribute.datatype, &attribute.value, Some(file.store())).ok()?;
    let path = |reference: &Reference| {
        let object = file.dereference(reference).ok()??;
        listing.paths.get(&object.id()).map(|path| path.as_slice().into())
    };
    let mut elements: Vec<_> = elements.into_iter().map(|value| value::with_paths(value, &path)).collect();
    match attribute.dataspace {
        crate::model::Dataspace::Scalar => elements.pop(),
        _ => Some(Value::List(elements)),
    }
}

fn json_line(file: &File, listing: &Listing, line: &ListingLine, stored: Option<&StoredChunks>) -> serde_json::Value {
    match &line.entry {
        ListingEntry::Plain(kind @ ("soft" | "external" | "hard"), target) => {
            json!({ "path": line.path, "kind": kind, "target": target })
        }
        ListingEntry::Plain(kind, text) if text == "-" => json!({ "path": line.path, "kind": kind }),
        ListingEntry::Plain(kind, text) => json!({ "path": line.path, "kind": kind, "type": text }),
        ListingEntry::Dataset(id, spec) => {
            let max = |m: &u64| if *m == crate::model::UNLIMITED { None } else { Some(*m) };
            let mut described = json!({
                "path": line.path,
                "kind": "dataset",
                "type": type_text(&spec.datatype),
                "space": space_text(&spec.dataspace),
                "shape": spec.dataspace.dims(),
                "max_shape": spec.dataspace.max().iter().map(max).collect::<Vec<_>>(),
                "storage": storage_text(spec),
                "chunks": stored.map(|s| s.chunks),
                "stored_bytes": stored.map(|s| s.bytes),
            });
            if let Some(states) = sources(file, *id, spec) {
                let counts = STATES.map(|(state, name)| (name.replace(' ', "_"), count(&states, state).into()));
                described["sources"] = counts.into_iter().collect::<serde_json::Map<_, _>>().into();
            }
            described
        }
        ListingEntry::Attribute(attribute) => json!({
            "path": line.path,
            "kind": "attribute",
            "type": type_text(&attribute.datatype),
            "space": space_text(&attribute.dataspace),
            "value": value_of(file, listing, attribute).map(|v| value::json(&v)),
        }),
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
        use SourceState::{Closed, InUse, Live, Missing};
        assert_eq!(sources_text(&[Closed, Closed]), None);
        assert_eq!(sources_text(&[Live]).unwrap(), "1 of 1 sources being written");
        let states = [Closed, Missing, Live, InUse, Missing];
        assert_eq!(sources_text(&states).unwrap(), "1 of 5 sources being written, 1 in use, 2 missing");
    }

    #[test]
    fn damaged_sizes_add_up_without_overflow() {
        assert_eq!(total_bytes([u64::MAX, 1, u64::MAX].into_iter()), u64::MAX);
        assert_eq!(total_bytes([3, 4].into_iter()), 7);
    }

    #[test]
    fn long_values_are_cut() {
        assert_eq!(shorten("abc"), "abc");
        let cut = shorten(&"ü".repeat(100));
        assert_eq!((cut.chars().count(), cut.ends_with("ü...")), (60, true));
    }
}

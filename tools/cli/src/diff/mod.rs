//! `h5live diff A B`: in what two files differ, however they are stored.

mod elements;
mod maps;
mod tolerance;

use std::collections::BTreeMap;

use h5live::{Dataset, File, Location, Object, Reference};

use crate::error::{Outcome, Result};
use crate::escaped_path;
use crate::manifest::listing::{Listing, ListingEntry};
use crate::manifest::space_text;
use crate::model::{AttributeData, Dataspace, ObjectId};
use crate::number_arg::{at_least, not_negative};
use crate::output::Output;
use crate::value::{Value, hex, json};
use crate::{open, progress};

use elements::Comparison;
use tolerance::Tolerance;

/// Says in what two files differ, however they are stored; exit code 1 if they do
///
/// Compared are groups, links, attributes, committed types, shapes and values; not layouts, filters, byte orders and
/// sizes of numbers.
#[derive(Debug, clap::Args)]
pub struct Diff {
    /// One file
    a: Location,
    /// The other
    b: Location,
    /// Compare only the objects below this path
    #[arg(long, default_value = "/")]
    path: String,
    /// Numbers may differ by this much
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    delta: f64,
    /// Numbers may differ by this part of the larger one
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    relative: f64,
    /// Differing values of a dataset or an attribute that are shown
    #[arg(long, default_value_t = 5, value_parser = at_least::<0, usize>)]
    limit: usize,
    /// For programs: a difference on each line as JSON
    #[arg(long)]
    json: bool,
}

/// One of the two files.
struct DiffSide {
    file: File,
    listing: Listing,
}

/// A difference between two files.
enum FileDifference {
    /// Something is in one file only; the file's letter, and the kind.
    Only(char, &'static str),
    /// A property, and its value in each file.
    Property(&'static str, String, String),
    /// The value at an index; in each file.
    Value(Vec<u64>, Value, Value),
    /// The number of different values. Not all of them were shown.
    Values(u64),
    /// A key of a map, and its value in each file that has the key.
    Pair(Value, Option<Value>, Option<Value>),
    /// The number of different pairs. Not all of them were shown.
    Pairs(u64),
    /// The values cannot be read in one of the files.
    Unreadable(String),
}

impl DiffSide {
    fn open(path: &Location, start: &str) -> Result<Self> {
        let file = open::for_reading(path)?;
        let (object, path) = escaped_path::object(&file, start)?;
        // Shown as it was asked for.
        let path = if start.starts_with('/') { &path } else { path.strip_prefix(b"/").unwrap_or(&path) };
        let listing = Listing::from_file(&file, object.id(), path, None);
        Ok(DiffSide { file, listing })
    }

    fn lines(&self) -> BTreeMap<&str, &ListingEntry> {
        self.listing.lines.iter().map(|line| (line.path.as_str(), &line.entry)).collect()
    }

    /// The dataset that was listed; `None` if it has become something else meanwhile.
    fn dataset(&self, id: ObjectId) -> h5live::Result<Option<Dataset>> {
        let path = self.listing.paths.get(&id).map(|path| String::from_utf8_lossy(path)).unwrap_or_default();
        match self.file.root().object_by_id(id, &path)? {
            Object::Dataset(dataset) => Ok(Some(dataset)),
            _ => Ok(None),
        }
    }

    /// The path of the object that a reference leads to.
    fn target(&self, value: &Value) -> Option<&[u8]> {
        let Value::Reference(reference) = value else { return None };
        let object = self.file.dereference(reference).ok()??;
        self.listing.paths.get(&object.id()).map(Vec::as_slice)
    }
}

fn kind(entry: &ListingEntry) -> &'static str {
    match entry {
        ListingEntry::Plain(kind, _) => kind,
        ListingEntry::Dataset(..) => "dataset",
        ListingEntry::Map(..) => "map",
        ListingEntry::Attribute(_) => "attribute",
        ListingEntry::Unreadable(_) => "error",
    }
}

impl Diff {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`crate::error::Error`] says.
    pub fn run(self) -> Result<Outcome> {
        let sides = (DiffSide::open(&self.a, &self.path)?, DiffSide::open(&self.b, &self.path)?);
        let (in_a, in_b) = (sides.0.lines(), sides.1.lines());
        let mut out = Output::stdout();
        let mut found = 0u64;
        let bar = progress::bar(in_a.len(), "object");
        for (path, a) in &in_a {
            bar.inc(1);
            match in_b.get(path) {
                None => self.show(&mut out, path, &FileDifference::Only('A', kind(a)), &mut found)?,
                Some(b) => {
                    for difference in self.compare((a, &sides.0), (b, &sides.1)) {
                        self.show(&mut out, path, &difference, &mut found)?;
                    }
                }
            }
        }
        for (path, b) in in_b.iter().filter(|(path, _)| !in_a.contains_key(*path)) {
            self.show(&mut out, path, &FileDifference::Only('B', kind(b)), &mut found)?;
        }
        bar.finish_and_clear();
        out.flush()?;
        Ok(if found == 0 { Outcome::Clean } else { Outcome::Findings })
    }

    fn compare(
        &self,
        (a, in_a): (&ListingEntry, &DiffSide),
        (b, in_b): (&ListingEntry, &DiffSide),
    ) -> Vec<FileDifference> {
        match (a, b) {
            _ if kind(a) != kind(b) => vec![FileDifference::Property("kind", kind(a).into(), kind(b).into())],
            (ListingEntry::Plain(_, a), ListingEntry::Plain(_, b)) if a != b => {
                vec![FileDifference::Property("target or type", a.clone(), b.clone())]
            }
            // What is not known is not equal.
            (ListingEntry::Unreadable(why), ListingEntry::Unreadable(_)) => {
                vec![FileDifference::Unreadable(why.clone())]
            }
            (ListingEntry::Attribute(a), ListingEntry::Attribute(b)) => self.compare_attributes((a, in_a), (b, in_b)),
            (ListingEntry::Dataset(a, _), ListingEntry::Dataset(b, _)) => {
                let opened = in_a.dataset(*a).and_then(|a| Ok(a.zip(in_b.dataset(*b)?)));
                let compared = opened.and_then(|opened| match opened {
                    Some((a, b)) => self.compare_datasets((&a, in_a), (&b, in_b)),
                    None => Ok(vec![FileDifference::Unreadable("no dataset any more".into())]),
                });
                compared.unwrap_or_else(|error| vec![FileDifference::Unreadable(error.to_string())])
            }
            (ListingEntry::Map(a, _), ListingEntry::Map(b, _)) => {
                let map = |side: &DiffSide, id| side.file.root().object_by_id(id, "");
                let compared = map(in_a, *a).and_then(|a| Ok((a, map(in_b, *b)?))).and_then(|opened| match opened {
                    (Object::Map(a), Object::Map(b)) => {
                        maps::compare(self.tolerance(), self.limit, (&a, in_a), (&b, in_b))
                    }
                    _ => Ok(vec![FileDifference::Unreadable("no map any more".into())]),
                });
                compared.unwrap_or_else(|error| vec![FileDifference::Unreadable(error.to_string())])
            }
            _ => Vec::new(),
        }
    }

    fn tolerance(&self) -> Tolerance {
        Tolerance { absolute: self.delta, relative: self.relative }
    }

    fn compare_attributes(
        &self,
        (a, in_a): (&AttributeData, &DiffSide),
        (b, in_b): (&AttributeData, &DiffSide),
    ) -> Vec<FileDifference> {
        if shape(&a.dataspace) != shape(&b.dataspace) {
            return vec![FileDifference::Property("shape", space_text(&a.dataspace), space_text(&b.dataspace))];
        }
        let values = |side: &DiffSide, value: &AttributeData| {
            Value::decode_all(&value.datatype, &value.value, Some(side.file.store()))
        };
        let (Ok(first), Ok(second)) = (values(in_a, a), values(in_b, b)) else {
            return vec![FileDifference::Property("type", a.datatype.to_string(), b.datatype.to_string())];
        };
        let mut found = ValueDifferences { limit: self.limit, shown: Vec::new(), count: 0 };
        found.add(self.tolerance(), (&first, in_a), (&second, in_b), a.dataspace.dims(), 0);
        found.differences()
    }

    fn compare_datasets(
        &self,
        (a, in_a): (&Dataset, &DiffSide),
        (b, in_b): (&Dataset, &DiffSide),
    ) -> h5live::Result<Vec<FileDifference>> {
        let (spec, other) = (a.spec()?, b.spec()?);
        if shape(&spec.dataspace) != shape(&other.dataspace) {
            return Ok(vec![FileDifference::Property(
                "shape",
                space_text(&spec.dataspace),
                space_text(&other.dataspace),
            )]);
        }
        if spec.dataspace.elements().is_none_or(|n| n == 0) {
            return Ok(Vec::new());
        }
        let found = ValueDifferences { limit: self.limit, shown: Vec::new(), count: 0 };
        let sides = ((a, in_a), (b, in_b));
        let mut comparison = Comparison::new(self.tolerance(), sides, (&spec, &other), found)?;
        comparison.run()?;
        Ok(comparison.found.differences())
    }

    fn show(&self, out: &mut Output, path: &str, difference: &FileDifference, found: &mut u64) -> Result<()> {
        *found += 1;
        if self.json {
            let bytes = |reference: &Reference| hex(reference.as_bytes()).into();
            let text = match difference {
                FileDifference::Only(file, kind) => {
                    serde_json::json!({"path": path, "only_in": file.to_string(), "kind": kind})
                }
                FileDifference::Property(what, a, b) => {
                    serde_json::json!({"path": path, "differs": what, "a": a, "b": b})
                }
                FileDifference::Value(at, a, b) => {
                    serde_json::json!({"path": path, "at": at, "a": json(a, &bytes), "b": json(b, &bytes)})
                }
                FileDifference::Values(count) => serde_json::json!({"path": path, "differing_values": count}),
                FileDifference::Pair(key, a, b) => {
                    let value = |value: &Option<Value>| value.as_ref().map(|value| json(value, &bytes));
                    let mut line = serde_json::json!({"path": path, "key": json(key, &bytes)});
                    line.as_object_mut().into_iter().for_each(|line| {
                        line.extend(value(a).map(|a| ("a".to_owned(), a)));
                        line.extend(value(b).map(|b| ("b".to_owned(), b)));
                    });
                    line
                }
                FileDifference::Pairs(count) => serde_json::json!({"path": path, "differing_pairs": count}),
                FileDifference::Unreadable(error) => serde_json::json!({"path": path, "unreadable": error}),
            };
            return out.line(text);
        }
        match difference {
            FileDifference::Only(file, kind) => out.line(format_args!("{path}: {kind} in {file} only")),
            FileDifference::Property(what, a, b) => out.line(format_args!("{path}: {what}: {a} and {b}")),
            FileDifference::Value(at, a, b) if at.is_empty() => out.line(format_args!("{path}: {a} and {b}")),
            FileDifference::Value(at, a, b) => out.line(format_args!("{path}{at:?}: {a} and {b}")),
            FileDifference::Values(1) => out.line(format_args!("{path}: 1 value differs")),
            FileDifference::Values(count) => out.line(format_args!("{path}: {count} values differ")),
            FileDifference::Pair(key, Some(a), Some(b)) => out.line(format_args!("{path}[{key}]: {a} and {b}")),
            FileDifference::Pair(key, a, _) => {
                let file = if a.is_some() { 'A' } else { 'B' };
                out.line(format_args!("{path}[{key}]: in {file} only"))
            }
            FileDifference::Pairs(1) => out.line(format_args!("{path}: 1 pair differs")),
            FileDifference::Pairs(count) => out.line(format_args!("{path}: {count} pairs differ")),
            FileDifference::Unreadable(error) => out.line(format_args!("{path}: {error}")),
        }
    }
}

fn shape(space: &Dataspace) -> Option<&[u64]> {
    (*space != Dataspace::Null).then(|| space.dims())
}

/// The values that differ. Some of them are shown.
struct ValueDifferences {
    limit: usize,
    shown: Vec<FileDifference>,
    count: u64,
}

impl ValueDifferences {
    /// Compares elements from `first` on, of an array of `dims`.
    fn add(
        &mut self,
        tolerance: Tolerance,
        (a, in_a): (&[Value], &DiffSide),
        (b, in_b): (&[Value], &DiffSide),
        dims: &[u64],
        first: u64,
    ) {
        let same_object = |a: &Value, b: &Value| in_a.target(a) == in_b.target(b);
        for (index, (a, b)) in (first..).zip(a.iter().zip(b)) {
            if tolerance.same(a, b, &same_object) {
                continue;
            }
            self.count += 1;
            if self.shown.len() < self.limit {
                self.shown.push(FileDifference::Value(position(index, dims), a.clone(), b.clone()));
            }
        }
    }

    /// As [`add`](Self::add), for this many elements that all have the same value.
    fn add_same(
        &mut self,
        tolerance: Tolerance,
        (a, in_a): (&Value, &DiffSide),
        (b, in_b): (&Value, &DiffSide),
        dims: &[u64],
        (first, count): (u64, u64),
    ) {
        if tolerance.same(a, b, &|a, b| in_a.target(a) == in_b.target(b)) {
            return;
        }
        self.count = self.count.saturating_add(count);
        let room = self.limit.saturating_sub(self.shown.len()).min(usize::try_from(count).unwrap_or(usize::MAX));
        let shown =
            (first..).take(room).map(|index| FileDifference::Value(position(index, dims), a.clone(), b.clone()));
        self.shown.extend(shown);
    }

    fn differences(&mut self) -> Vec<FileDifference> {
        if self.count > self.shown.len() as u64 {
            self.shown.push(FileDifference::Values(self.count));
        }
        std::mem::take(&mut self.shown)
    }
}

/// The indices of element `index` of an array of `dims`.
fn position(mut index: u64, dims: &[u64]) -> Vec<u64> {
    let mut at: Vec<u64> = dims
        .iter()
        .rev()
        .map(|dim| {
            let here = index % (*dim).max(1);
            index /= (*dim).max(1);
            here
        })
        .collect();
    at.reverse();
    at
}

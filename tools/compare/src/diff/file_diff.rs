//! The comparison of two files, path by path.

use std::collections::BTreeMap;

use h5live::model::{AttributeData, Dataspace};
use h5live::{Dataset, Object, Value};

use super::difference::FileDifference;
use super::elements::DatasetComparison;
use super::maps;
use super::side::DiffSide;
use super::tolerance::Tolerance;
use super::value_differences::ValueDifferences;
use crate::manifest::{ListingEntry, space_text};

/// How two files are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiffOptions {
    /// How far numbers may be apart and count as the same.
    pub tolerance: Tolerance,
    /// Differing values of a dataset, an attribute or a map that are shown.
    pub max_shown_per_object: usize,
}

impl Default for DiffOptions {
    /// Numbers are the same or not; five differing values are shown.
    fn default() -> Self {
        DiffOptions { tolerance: Tolerance::default(), max_shown_per_object: 5 }
    }
}

/// The comparison of two files: of groups, links, attributes, committed types, shapes and values; not of layouts, filters,
/// byte orders and sizes of numbers.
pub struct FileDiff<'a> {
    a: (&'a DiffSide, BTreeMap<&'a str, &'a ListingEntry>),
    b: (&'a DiffSide, BTreeMap<&'a str, &'a ListingEntry>),
    options: DiffOptions,
}

impl<'a> FileDiff<'a> {
    /// The comparison of file `a` with file `b`.
    pub fn new(a: &'a DiffSide, b: &'a DiffSide, options: DiffOptions) -> Self {
        FileDiff { a: (a, a.entries_by_path()), b: (b, b.entries_by_path()), options }
    }

    /// The paths of objects and attributes of file A, in order.
    pub fn paths_of_a(&self) -> impl ExactSizeIterator<Item = &'a str> {
        self.a.1.keys().copied()
    }

    /// The paths of what is in file B only, in order.
    pub fn paths_only_in_b(&self) -> impl Iterator<Item = &'a str> {
        self.b.1.keys().copied().filter(|path| !self.a.1.contains_key(path))
    }

    /// In what the files differ at a path.
    pub fn differences(&self, path: &str) -> Vec<FileDifference> {
        match (self.a.1.get(path), self.b.1.get(path)) {
            (Some(a), Some(b)) => self.compare((a, self.a.0), (b, self.b.0)),
            (Some(a), None) => vec![FileDifference::OnlyInOneFile('A', a.kind())],
            (None, Some(b)) => vec![FileDifference::OnlyInOneFile('B', b.kind())],
            (None, None) => Vec::new(),
        }
    }

    fn compare(
        &self,
        (a, in_a): (&ListingEntry, &DiffSide),
        (b, in_b): (&ListingEntry, &DiffSide),
    ) -> Vec<FileDifference> {
        match (a, b) {
            _ if a.kind() != b.kind() => vec![FileDifference::Property("kind", a.kind().into(), b.kind().into())],
            (ListingEntry::GroupLinkOrDatatype(_, a), ListingEntry::GroupLinkOrDatatype(_, b)) if a != b => {
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
                        maps::compare(self.options.tolerance, self.options.max_shown_per_object, (&a, in_a), (&b, in_b))
                    }
                    _ => Ok(vec![FileDifference::Unreadable("no map any more".into())]),
                });
                compared.unwrap_or_else(|error| vec![FileDifference::Unreadable(error.to_string())])
            }
            _ => Vec::new(),
        }
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
        let mut found = ValueDifferences::new(self.options.max_shown_per_object);
        found.compare_elements(self.options.tolerance, (&first, in_a), (&second, in_b), a.dataspace.dims(), 0);
        found.take_differences()
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
        if spec.dataspace.element_count().is_none_or(|n| n == 0) {
            return Ok(Vec::new());
        }
        let found = ValueDifferences::new(self.options.max_shown_per_object);
        let sides = ((a, in_a), (b, in_b));
        let mut comparison = DatasetComparison::new(self.options.tolerance, sides, (&spec, &other), found)?;
        comparison.run()?;
        Ok(comparison.differences.take_differences())
    }
}

fn shape(space: &Dataspace) -> Option<&[u64]> {
    (*space != Dataspace::Null).then(|| space.dims())
}

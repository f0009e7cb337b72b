//! `h5live diff A B`: in what two files differ, however they are stored.

mod difference;
mod elements;
mod maps;
mod side;
mod tolerance;
mod value_differences;

use h5live::{Dataset, Location, Object};

use crate::error::{Outcome, Result};
use crate::manifest::listing::ListingEntry;
use crate::manifest::space_text;
use crate::model::{AttributeData, Dataspace};
use crate::number_arg::{at_least, not_negative};
use crate::output::Output;
use crate::progress;
use crate::value::Value;

use difference::FileDifference;
use elements::Comparison;
use side::DiffSide;
use tolerance::Tolerance;
use value_differences::ValueDifferences;

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
        let mut found = ValueDifferences::new(self.limit);
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
        let found = ValueDifferences::new(self.limit);
        let sides = ((a, in_a), (b, in_b));
        let mut comparison = Comparison::new(self.tolerance(), sides, (&spec, &other), found)?;
        comparison.run()?;
        Ok(comparison.found.differences())
    }

    fn show(&self, out: &mut Output, path: &str, difference: &FileDifference, found: &mut u64) -> Result<()> {
        *found += 1;
        if self.json { out.line(difference.json(path)) } else { out.line(difference.text(path)) }
    }
}

fn shape(space: &Dataspace) -> Option<&[u64]> {
    (*space != Dataspace::Null).then(|| space.dims())
}

//! `h5live dump FILE [GROUP]`: the tree below a group, with the beginning of all values.

use h5live::{Dataset, Group, Object};
use h5live_compare::manifest::{Listing, ListingEntry};

use crate::error::{CommandOutcome, Result, error_with_causes};
use crate::ls::text::{EntryDescriber, EntryDisplayOptions, shape_text, shorten};
use crate::model::{DatasetSpec, Dataspace, ObjectId};
use crate::output::StdoutWriter;
use crate::references::ReferenceFormatter;
use crate::times::TimeColumns;
use crate::{open, value};

use super::lines::nest_next_values;
use super::slices::{DimRange, ascending_selection};

/// About so many elements of a dataset are shown.
const MAX_ELEMENTS: u64 = 10;
/// Longer values are cut (characters).
const VALUE_WIDTH: usize = 100;
/// Longer paths do not push the columns to the right (characters).
const PATH_WIDTH: usize = 40;

/// Prints the tree below a group. Times are numbers if `raw_times` is set. Values that cannot be read have the error in their place.
///
/// # Errors
/// As [`crate::error::Error`] says.
pub fn print_group_tree(group: &Group, raw_times: bool, out: &mut StdoutWriter) -> Result<CommandOutcome> {
    group.links()?;
    let file = group.file();
    let listing = Listing::from_file(file, group.id(), group.path().as_bytes(), None);
    let describer =
        EntryDescriber::new(file, EntryDisplayOptions { shows_sizes: false, shows_whole_attribute_values: false });
    let references = ReferenceFormatter::new(file);
    let width =
        listing.lines.iter().map(|line| line.escaped_path.chars().count()).filter(|width| *width <= PATH_WIDTH).max();
    let width = width.unwrap_or(0);
    let mut outcome = CommandOutcome::Clean;
    for line in &listing.lines {
        let text = match &line.entry {
            ListingEntry::Dataset(id, spec) => {
                let head = head(group, *id, spec, &references, raw_times);
                let head = head.unwrap_or_else(|error| {
                    outcome = CommandOutcome::Findings;
                    format!("(error: {})", error_with_causes(&error))
                });
                format!("{}  {}  {head}", spec.datatype, shape_text(&spec.dataspace))
            }
            ListingEntry::Map(id, _) => map_head(group, *id, &references).unwrap_or_else(|error| {
                outcome = CommandOutcome::Findings;
                format!("(error: {})", error_with_causes(&error))
            }),
            ListingEntry::Attribute(attribute) => {
                let text = describer.value_text(attribute);
                outcome = if text.is_none() { CommandOutcome::Findings } else { outcome };
                shorten(text.as_deref().unwrap_or("(error: this value cannot be read)"), VALUE_WIDTH)
            }
            ListingEntry::Unreadable(why) => {
                outcome = CommandOutcome::Findings;
                format!("(error: {why})")
            }
            ListingEntry::GroupLinkOrDatatype(..) => describer.text_without_path(line),
        };
        out.line(format_args!("{:width$}  {text}", line.escaped_path).to_string().trim_end())?;
    }
    Ok(outcome)
}

/// The first elements of a dataset; with `...` behind them if there are more.
fn head(
    group: &Group,
    id: ObjectId,
    spec: &DatasetSpec,
    references: &ReferenceFormatter<'_>,
    raw_times: bool,
) -> Result<String> {
    if spec.dataspace == Dataspace::Null {
        return Ok(String::new());
    }
    let Object::Dataset(dataset) = group.object_by_id(id, "")? else { return Ok(String::new()) };
    let ranges = first_elements(spec.dataspace.dims());
    let counts: Vec<u64> = ranges.iter().map(|range| range.count).collect();
    let values = if counts.contains(&0) { Vec::new() } else { read(&dataset, &ranges)? };
    let shown = nest_next_values(&counts, &mut values.into_iter());
    let shown = if raw_times { shown } else { TimeColumns::of(&dataset).times_to_texts(shown) };
    let text = value::text(&shown, &|reference| references.display_text(reference));
    let is_whole = counts == spec.dataspace.dims();
    Ok(match text.strip_suffix(']') {
        Some(text) if !is_whole => format!("{}, ...]", shorten(text, VALUE_WIDTH)),
        _ => shorten(&text, VALUE_WIDTH),
    })
}

/// The first pairs of a map; with `...` behind them if there are more.
fn map_head(group: &Group, id: ObjectId, references: &ReferenceFormatter<'_>) -> Result<String> {
    let Object::Map(map) = group.object_by_id(id, "")? else { return Ok(String::new()) };
    let mut shown = Vec::new();
    for pair in map.pairs(..)?.take(MAX_ELEMENTS as usize) {
        let (key, value) = pair?;
        let [key, value] =
            [key, value].map(|value| value::text(&value, &|reference| references.display_text(reference)));
        shown.push(format!("{key}: {value}"));
    }
    let is_whole = map.len()? == shown.len() as u64;
    let text = shorten(&shown.join(", "), VALUE_WIDTH);
    Ok(if is_whole { format!("{{{text}}}") } else { format!("{{{text}, ...}}") })
}

fn read(dataset: &Dataset, ranges: &[DimRange]) -> Result<Vec<value::Value>> {
    let elements = ranges.iter().fold(1, |n: u64, range| n.saturating_mul(range.count));
    open::check_value_memory(dataset, elements)?;
    Ok(dataset.read_values(ascending_selection(ranges))?)
}

/// The first elements along each dimension: more of the last ones, because these follow each other.
fn first_elements(dims: &[u64]) -> Vec<DimRange> {
    let mut left = MAX_ELEMENTS;
    let range = |dim: &u64| {
        let count = (*dim).min(left.max(1));
        left /= count.max(1);
        DimRange { low: 0, step: 1, count, is_reversed: false, is_index: false }
    };
    let mut ranges: Vec<_> = dims.iter().rev().map(range).collect();
    ranges.reverse();
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_elements_are_shown_however_many_dimensions_there_are() {
        let counts = |dims: &[u64]| first_elements(dims).iter().map(|range| range.count).collect::<Vec<_>>();
        assert_eq!(counts(&[1000]), [10]);
        assert_eq!(counts(&[3]), [3]);
        assert_eq!(counts(&[5, 5]), [2, 5]);
        assert_eq!(counts(&[1000, 1000]), [1, 10]);
        assert_eq!(counts(&[2, 2, 2]), [2, 2, 2]);
        assert_eq!(counts(&[4, 0]), [4, 0]);
        assert_eq!(counts(&[]), [] as [u64; 0]);
    }
}

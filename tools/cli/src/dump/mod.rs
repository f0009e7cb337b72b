//! `h5live dump`: values, or the bytes of a structure.

mod bytes;
mod describe;
mod lines;
pub mod slices;
mod tree;
mod values;

use std::sync::Arc;

use h5live::{Attribute, Dataset, File, Group, Location, Object, UntypedMap};
use h5live_format::dump::Dump as Structure;

use crate::error::{CommandOutcome, Result};
use crate::live::processes::register_interrupt_flag;
use crate::number_arg::offset;
use crate::object_or_attribute::ObjectOrAttribute;
use crate::output::StdoutWriter;
use crate::times::TimeColumns;
use crate::wait::WaitArgs;
use crate::{map_text, object_or_attribute, open, watch};

use bytes::DumpedFile;
use lines::{ValueStyle, ValueWriter};
use slices::{DimSlices, RowRange};

/// Prints values, the tree of a group, or the structure at an offset field by field
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").args(["path", "bytes"]))]
pub struct DumpCommand {
    /// The file
    file: Location,
    /// A dataset, or an attribute as OBJECT@NAME: its values. A group, or nothing for the whole file: the tree below it,
    /// with the beginning of all values
    path: Option<String>,
    /// Only these rows: A..B, A.., ..B, A, or -N for the last N
    #[arg(long, allow_hyphen_values = true, requires = "path")]
    rows: Option<RowRange>,
    /// Only these elements: for each dimension an index or START:STOP:STEP as in Python, such as 0:10:2,-5:,3 or ::-1
    #[arg(long, allow_hyphen_values = true, value_name = "SLICE,...", requires = "path", conflicts_with = "rows")]
    slice: Option<DimSlices>,
    /// The structure that begins here (bytes from the start of the file; 0x... for hexadecimal)
    #[arg(long, value_name = "OFFSET", value_parser = offset)]
    bytes: Option<u64>,
    /// For programs: JSON, one row per line. For a group: a description of everything below it, for `h5live new`. An
    /// object that cannot be read has `errors` in its place; then the exit code is 1
    #[arg(long, conflicts_with = "raw")]
    json: bool,
    /// A line of CSV for each row, below the names of the columns
    #[arg(long, requires = "path", conflicts_with_all = ["raw", "json", "bytes"])]
    csv: bool,
    /// For programs: the elements as the file has them, and nothing else
    #[arg(long)]
    raw: bool,
    /// Show times as they are stored: nanoseconds since 1970. JSON has them so anyway
    #[arg(long)]
    raw_times: bool,
    /// Go on with the rows that a writer adds to the dataset, until it ends or Ctrl-C. If it died, the exit code is 1
    #[arg(long, requires = "path", conflicts_with = "bytes")]
    follow: bool,
    #[command(flatten)]
    wait: WaitArgs,
}

impl DumpCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`crate::error::Error`] says.
    pub fn run(self) -> Result<CommandOutcome> {
        let mut out = StdoutWriter::stdout();
        let outcome = match (self.bytes, &self.path) {
            (Some(offset), _) => self.structure(offset, &mut out)?,
            (None, path) => self.values(path.as_deref().unwrap_or("/"), &mut out)?,
        };
        out.flush()?;
        Ok(outcome)
    }

    fn structure(&self, offset: u64, out: &mut StdoutWriter) -> Result<CommandOutcome> {
        let structure = DumpedFile::open(&open::require_any_file_path(&self.file)?)?.structure_at(offset)?;
        if self.json {
            out.line(json(&structure, offset))?;
        } else {
            print(&structure, offset, out)?;
        }
        Ok(if structure.result.is_err() { CommandOutcome::Findings } else { CommandOutcome::Clean })
    }

    fn values(&self, path: &str, out: &mut StdoutWriter) -> Result<CommandOutcome> {
        // Without these, the signal ends the process at once.
        let heeds = self.follow || self.wait.is_asked();
        let interrupted = if heeds { register_interrupt_flag() } else { Arc::default() };
        let options =
            if self.follow { open::command_line_options().swmr_read() } else { open::command_line_options().read() };
        let Some(subject) =
            self.wait.open_and_find_waiting(&self.file, path, &interrupted, options, &|file| subject(file, path))?
        else {
            return Ok(CommandOutcome::INTERRUPTED);
        };
        let slices = self.slice.clone().or(self.rows.map(DimSlices::from));
        let of_dataset = self.follow || self.raw || self.csv || slices.is_some();
        let slices = slices.unwrap_or_else(DimSlices::all);
        let style = self.style();
        match &subject {
            // This says that it is no dataset.
            Subject::Group(group) if of_dataset => drop(group.file().dataset(path)?),
            Subject::Group(group) if self.json => return self.describe(group, out),
            Subject::Group(group) => return tree::print_group_tree(group, self.raw_times, out),
            // This says that it is no dataset.
            Subject::Map(map) if of_dataset => drop(map.file().dataset(path)?),
            Subject::Map(map) => map_text::print(map, .., None, self.json, out)?,
            Subject::Attribute(file, attribute) => values::write_attribute_value(file, attribute, style, out)?,
            Subject::Dataset(dataset) => {
                let times = if self.raw_times { TimeColumns::default() } else { TimeColumns::of(dataset) };
                let writer = ValueWriter::new(style, dataset.file()).with_times(times);
                if self.follow {
                    let file = dataset.file().clone();
                    values::write_and_follow_rows(dataset, slices, writer, &interrupted, out)?;
                    return Ok(watch::report_if_writer_died(&self.file, &file));
                }
                values::write_dataset_rows(dataset, &slices, writer, out)?;
            }
        }
        Ok(CommandOutcome::Clean)
    }

    fn style(&self) -> ValueStyle {
        match (self.raw, self.json, self.csv) {
            (true, ..) => ValueStyle::Raw,
            (_, true, _) => ValueStyle::Json,
            (.., true) => ValueStyle::Csv,
            _ => ValueStyle::Text,
        }
    }

    fn describe(&self, group: &Group, out: &mut StdoutWriter) -> Result<CommandOutcome> {
        let (described, errors) = describe::describe_with_error_count(group)?;
        out.line(serde_json::to_string_pretty(&described).unwrap_or_default())?;
        if errors == 0 {
            return Ok(CommandOutcome::Clean);
        }
        out.flush()?;
        let what = if errors == 1 { "1 error, which is" } else { &format!("{errors} errors, which are") };
        eprintln!("h5live: {}: {what} described in place of what cannot be read", self.file);
        Ok(CommandOutcome::Findings)
    }
}

/// What is dumped.
enum Subject {
    Group(Group),
    Dataset(Dataset),
    Map(UntypedMap),
    Attribute(File, Box<Attribute>),
}

/// What a text means. An object may well have an @ in its name; only where there is none, an attribute is meant.
fn subject(file: &File, text: &str) -> Result<Subject> {
    match object_or_attribute::parse_and_find_object(file, text)? {
        ObjectOrAttribute::Object(Object::Group(group)) => Ok(Subject::Group(group)),
        ObjectOrAttribute::Object(Object::Map(map)) => Ok(Subject::Map(map)),
        ObjectOrAttribute::Object(Object::Dataset(dataset)) => Ok(Subject::Dataset(dataset)),
        ObjectOrAttribute::Object(_) => Ok(Subject::Dataset(file.dataset(text)?)),
        ObjectOrAttribute::AttributeName(object, name) => {
            // It may be behind an external link.
            let of = object.file().clone();
            let attribute = match (object_or_attribute::find_maybe_escaped_attribute(&object, &name)?, object) {
                (Some(found), _) => found,
                // These say that there is none.
                (None, Object::Group(group)) => group.attribute(&name)?,
                (None, Object::Dataset(dataset)) => dataset.attribute(&name)?,
                (None, Object::Datatype(datatype)) => datatype.attribute(&name)?,
                (None, Object::Map(map)) => map.attribute(&name)?,
                (None, other) => return file.dataset(other.path()).map(Subject::Dataset).map_err(Into::into),
            };
            Ok(Subject::Attribute(of, Box::new(attribute)))
        }
    }
}

fn print(structure: &Structure, offset: u64, out: &mut StdoutWriter) -> Result<()> {
    out.line(format_args!("{} at {offset:#x}", structure.name))?;
    let mut record = structure.name;
    for field in structure.fields.iter().filter(|f| f.size > 0) {
        if field.record != record {
            record = field.record;
            out.line(format_args!("  {record}"))?;
        }
        let at = offset.saturating_add(field.offset_in_structure as u64);
        out.line(format_args!("    {at:#010x} {:>6}  {:<30} {}", field.size, field.field, field.value))?;
    }
    match &structure.result {
        Err(fault) => out.line(format_args!("  broken: {fault}")),
        Ok(()) => Ok(()),
    }
}

fn json(structure: &Structure, offset: u64) -> serde_json::Value {
    let field = |f: &h5live_format::Field| {
        serde_json::json!({
            "structure": f.record,
            "field": f.field,
            "offset": offset.saturating_add(f.offset_in_structure as u64),
            "size": f.size,
            "value": f.value,
        })
    };
    serde_json::json!({
        "structure": structure.name,
        "offset": offset,
        "fields": structure.fields.iter().map(field).collect::<Vec<_>>(),
        "fault": structure.result.as_ref().err().map(ToString::to_string),
    })
}

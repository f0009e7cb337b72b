//! `h5live diff A B`: in what two files differ, however they are stored.

use h5live::Location;
use h5live_compare::diff::{DiffOptions, DiffSide, FileDiff, Tolerance};

use crate::error::{CommandOutcome, Result};
use crate::number_arg::{at_least, not_negative};
use crate::output::StdoutWriter;
use crate::{escaped_path, open, progress};

/// Says in what two files differ, however they are stored; exit code 1 if they do
///
/// Compared are groups, links, attributes, committed types, shapes and values; not layouts, filters, byte orders and
/// sizes of numbers.
#[derive(Debug, clap::Args)]
pub struct DiffCommand {
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

impl DiffCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`crate::error::Error`] says.
    pub fn run(self) -> Result<CommandOutcome> {
        let (a, b) = (self.side(&self.a)?, self.side(&self.b)?);
        let tolerance = Tolerance { absolute: self.delta, relative: self.relative };
        let diff = FileDiff::new(&a, &b, DiffOptions { tolerance, max_shown_per_object: self.limit });
        let mut out = StdoutWriter::stdout();
        let bar = progress::bar(diff.paths_of_a().len(), "object");
        let mut found = 0u64;
        for path in diff.paths_of_a() {
            bar.inc(1);
            found += self.show(&mut out, &diff, path)?;
        }
        for path in diff.paths_only_in_b() {
            found += self.show(&mut out, &diff, path)?;
        }
        bar.finish_and_clear();
        out.flush()?;
        Ok(if found == 0 { CommandOutcome::Clean } else { CommandOutcome::Findings })
    }

    /// One of the files, and what is in it below the path.
    fn side(&self, location: &Location) -> Result<DiffSide> {
        let file = open::for_reading(location)?;
        let (object, path) = escaped_path::object_at_maybe_escaped_path(&file, &self.path)?;
        // Shown as it was asked for.
        let path = if self.path.starts_with('/') { &path } else { path.strip_prefix(b"/").unwrap_or(&path) };
        let start = object.id();
        Ok(DiffSide::new(file, start, path))
    }

    /// Shows in what the files differ at a path; in how much.
    fn show(&self, out: &mut StdoutWriter, diff: &FileDiff<'_>, path: &str) -> Result<u64> {
        let differences = diff.differences(path);
        for difference in &differences {
            if self.json { out.line(difference.json(path))? } else { out.line(difference.text(path))? }
        }
        Ok(differences.len() as u64)
    }
}

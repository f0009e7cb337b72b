//! `h5live check`: whether a file is sound.

mod elsewhere;
mod maps;
mod non_structure_finding;
mod replay;
mod stores;
mod unverified;

use std::path::Path;

use h5live::{FileDiagnosis, FileOpenState, Location, StoreCheckOptions, StoreCheckReport};
use h5live_checker::file::{CheckOptions, FileCheckReport, FileRange, Finding, check_path_with};
use h5live_log::local_multi_writer_files::subfile_path;
use serde_json::{Value, json};

use crate::counted::counted;
use crate::diagnosis_text;
use crate::error::{CommandOutcome, Error, FileProblem, Result};
use crate::model::FilterEngine;
use crate::open;
use crate::output::StdoutWriter;
use non_structure_finding::NonStructureFinding;
use unverified::{UnverifiedCounts, print_unchecksummed_bytes, verdict_without_findings};

/// Checks whether a file is sound: checksums, bounds, space, counts, order, links
///
/// Nothing of the code that reads and writes files is used. A file that a process writes while others may follow is
/// checked as with `--live`. With `--data`, what cannot be verified is counted in the last line, and is exit code 1. Of a key-value store (kv:run), each key is accounted for: records of objects, links, counts,
/// creation orders, chunks, variable-length data, pairs of maps. Of a file with a log, the log and its subfiles are checked,
/// too: entries, index table, the datasets that are in it. Exit code 0: sound; 1: there are findings; 2: the file cannot be read, or is no HDF5 file.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct CheckCommand {
    #[command(subcommand)]
    part: Option<CheckSubcommand>,
    /// The files
    #[arg(required = true)]
    files: Vec<Location>,
    /// List the bytes that nothing uses, too, and objects and heap objects to which nothing leads. Of an object store (hsds:run),
    /// also unfinished domains in the same bucket, which killed processes have left
    #[arg(long)]
    leaks: bool,
    /// Also show which structure uses which bytes
    #[arg(long)]
    map: bool,
    /// The files may be open for writing, or their writers may have died: status flags and sums that a writer brings
    /// into order last are no findings
    #[arg(long)]
    live: bool,
    /// Undo the filters of all chunks, to find damaged data; read what lies in other files
    #[arg(long)]
    data: bool,
    /// Also show unusual but allowed things
    #[arg(short, long)]
    verbose: bool,
    /// For programs: a JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum CheckSubcommand {
    Replay(replay::ReplayCommand),
}

/// How much larger data may become by undoing filters, on average, before values in it are no longer looked at.
const MAX_INFLATION: u64 = 64;
/// Most chunks that were not verified and are shown, unless all are to be.
const MAX_SHOWN_UNVERIFIED: usize = 8;

/// A native file that was checked.
#[derive(Clone, Copy)]
struct CheckedFile<'a> {
    path: &'a Path,
    report: &'a FileCheckReport,
    /// What is damaged in it, and is no structure of HDF5.
    parts: &'a [NonStructureFinding],
    /// What lies in other files and could not be read.
    elsewhere: &'a [NonStructureFinding],
    unverified: UnverifiedCounts,
}

/// Whether a process writes the file while others may follow.
fn is_followed(found: Option<&FileDiagnosis>) -> bool {
    matches!(found, Some(FileDiagnosis { open_state: FileOpenState::OpenForWriting { live: true, .. }, .. }))
}

impl CheckCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`crate::error::Error`] says.
    pub fn run(self) -> Result<CommandOutcome> {
        if let Some(CheckSubcommand::Replay(replay)) = self.part {
            return replay.run();
        }
        let mut out = StdoutWriter::stdout();
        let mut outcome = CommandOutcome::Clean;
        for location in &self.files {
            match self.check_file(&mut out, location) {
                Ok(true) => {}
                Ok(false) => outcome = outcome.worse(CommandOutcome::Findings),
                // The other files are checked all the same.
                Err(error) => outcome = outcome.worse(out.flush_and_eprint_error(error)?),
            }
        }
        out.flush()?;
        Ok(outcome)
    }

    /// Checks one file; whether it is sound.
    fn check_file(&self, out: &mut StdoutWriter, location: &Location) -> Result<bool> {
        if let Some(path) = open::log_store_file_path(location)? {
            return self.check_log(out, location, &path);
        }
        if open::is_checkable_non_file(location)? {
            if self.map {
                // No structure of such a store has bytes of its own.
                return Err(Error::NotNativeFile { location: location.to_string() });
            }
            return stores::check_store_is_sound(out, location, self.data, self.leaks, self.json);
        }
        self.check_native(out, location, &open::require_native_file_path(location)?, None)
    }

    /// Checks a file with a log: the native file that it is, the log in it, and its subfiles.
    fn check_log(&self, out: &mut StdoutWriter, location: &Location, path: &Path) -> Result<bool> {
        let log = open::command_line_options()
            .check(location, StoreCheckOptions { verify_data: self.data, find_lost_domains: false });
        let mut is_sound = self.check_native(out, location, path, log.as_ref().ok())?;
        log?;
        // Those of Log VOL begin with 0.
        let first = u32::from(!subfile_path(path, 0).exists());
        for subfile in (first..).map(|number| subfile_path(path, number)).take_while(|path| path.exists()) {
            is_sound &= self.check_native(out, &Location::from(&*subfile), &subfile, None)?;
        }
        Ok(is_sound)
    }

    /// Checks a native file. `log` is what came of the check of the log in it.
    fn check_native(
        &self,
        out: &mut StdoutWriter,
        location: &Location,
        path: &Path,
        log: Option<&StoreCheckReport>,
    ) -> Result<bool> {
        // A file whose state cannot be determined has findings.
        let mut found = h5live::diagnose(path).ok();
        let mut report = self.check(path, is_followed(found.as_ref()))?;
        if !report.is_clean() && !is_followed(found.as_ref()) {
            // Its writer may have come just now.
            found = h5live::diagnose(path).ok();
            if is_followed(found.as_ref()) {
                report = self.check(path, true)?;
            }
        }
        if let Some(found) = &found {
            if self.json {
                let mut line = json!({ "file": path, "is": "state" });
                if let (Value::Object(line), Value::Object(state)) = (&mut line, diagnosis_text::json(found)) {
                    line.extend(state);
                }
                out.line(line)?
            } else if found.open_state != FileOpenState::Closed {
                out.line(format_args!("{}: {}", path.display(), diagnosis_text::text(location, found)))?
            }
        }
        let is_sound = report.is_clean() && !is_followed(found.as_ref());
        let mut damaged = match log {
            None if is_sound => maps::find_damaged_maps(location),
            _ => Vec::new(),
        };
        damaged.extend(log.into_iter().flat_map(|log| &log.findings).map(NonStructureFinding::from_log_finding));
        let elsewhere = match self.data && report.external_or_virtual_dataset_count > 0 {
            true => elsewhere::find_unreadable_data_elsewhere(location),
            false => Vec::new(),
        };
        let chunks = report.unverified_part_count + log.map_or(0, |log| log.unverified_part_count);
        let unverified =
            UnverifiedCounts { parts: chunks, datasets_with_unreadable_data_elsewhere: elsewhere.len() as u64 };
        let checked = CheckedFile { path, report: &report, parts: &damaged, elsewhere: &elsewhere, unverified };
        if self.json {
            self.json(out, &checked)?
        } else {
            self.text(out, &checked)?
        }
        Ok(report.is_clean() && damaged.is_empty() && !(self.data && unverified.count() > 0))
    }

    fn check(&self, path: &Path, is_followed: bool) -> Result<FileCheckReport> {
        let filters = open::filter_engine();
        let (leaks, map, live, data) = (self.leaks, self.map, self.live || is_followed, self.data);
        let filters: Option<&dyn FilterEngine> = Some(&filters);
        let chunk_bytes = open::allocation_limit().bytes();
        let usual = CheckOptions::default().max_total_value_bytes;
        // All data is read anyway, and becomes larger by undoing filters. What has no end is still not read.
        let bytes = path.metadata().map_or(0, |found| found.len());
        let values = if data { usual.max(bytes.saturating_mul(MAX_INFLATION)) } else { usual };
        let options = CheckOptions {
            reports_leaks: leaks,
            builds_space_map: map,
            may_be_live: live,
            unfilters_all_chunks: data,
            filter_engine: filters,
            max_total_value_bytes: values,
            max_chunk_bytes: chunk_bytes,
            ..CheckOptions::default()
        };
        let report = check_path_with(path, options);
        let report = report.map_err(|source| Error::Io { path: path.to_owned(), source })?;
        if report.is_hdf5 {
            return Ok(report);
        }
        Err(Error::UnsuitableFile { path: path.to_owned(), problem: FileProblem::NoSignature })
    }

    fn text(&self, out: &mut StdoutWriter, checked: &CheckedFile<'_>) -> Result<()> {
        let CheckedFile { path, report, parts, elsewhere, unverified } = *checked;
        for FileRange { object_path: path, structure, offset, len } in &report.space_map {
            let path = if path.is_empty() { "-" } else { path };
            out.line(format_args!("{offset:#010x} {len:10}  {structure}  {path}"))?;
        }
        for finding in &report.findings {
            out.line(finding)?;
        }
        for note in report.notes.iter().filter(|_| self.verbose) {
            out.line(format_args!("note: {note}"))?;
        }
        let shown = if self.verbose { FileCheckReport::MAX_FINDINGS } else { MAX_SHOWN_UNVERIFIED };
        for chunk in report.unverified_parts.iter().take(shown) {
            out.line(format_args!("not verified: {chunk}"))?;
        }
        for part in elsewhere.iter().take(shown) {
            out.line(format_args!("not verified: {part}"))?;
        }
        let is_log = || open::log_store_file_path(&Location::from(path)).is_ok_and(|log| log.is_some());
        // Entries of a log lead to what no object of the file leads to, so nothing is deleted there.
        let is_log = (!report.leaks.is_empty() || !report.unreachable_header_offsets.is_empty()) && is_log();
        let advice = if is_log { "log compact` leaves it out" } else { "repair --reclaim` gives it back" };
        // A log that was made compact has padding, too.
        for leak in report.leaks.iter().filter(|leak| !(is_log && leak.may_be_padding())) {
            out.line(format_args!("unused: {} at {:#x}; `h5live {advice}", counted(leak.len, "byte"), leak.offset))?;
        }
        for offset in &report.unreachable_header_offsets {
            out.line(format_args!("unreachable: an object at {offset:#x}; `h5live {advice}"))?;
        }
        for part in parts {
            out.line(part)?;
        }
        if self.data {
            print_unchecksummed_bytes(out, &path.display(), report.unchecksummed_bytes)?;
        }
        let verdict = match report.findings.len() + parts.len() {
            0 => verdict_without_findings(unverified, self.data),
            n if report.has_max_findings() => format!("{}, the check ended there", counted(n, "finding")),
            n => counted(n, "finding").to_string(),
        };
        out.line(format_args!(
            "{}: {verdict}; {}{}, {} of metadata, {} of raw data, {} free",
            path.display(),
            unverified.summary_prefix(),
            counted(report.object_count, "object"),
            counted(report.metadata_bytes, "byte"),
            report.raw_bytes,
            report.tracked_free_bytes
        ))
    }

    fn json(&self, out: &mut StdoutWriter, checked: &CheckedFile<'_>) -> Result<()> {
        let CheckedFile { path, report, parts, elsewhere, unverified } = *checked;
        let file = path.display().to_string();
        for FileRange { object_path: path, structure, offset, len } in &report.space_map {
            let line = json!({
                "file": file,
                "is": "used",
                "path": path,
                "structure": structure,
                "offset": offset,
                "len": len,
            });
            out.line(line)?;
        }
        let line = |is: &str, f: &Finding| -> Value {
            json!({
                "file": file,
                "is": is,
                "path": f.object_path,
                "structure": f.structure,
                "offset": f.offset,
                "kind": f.cause.kind(),
                "cause": f.cause.to_string(),
            })
        };
        for finding in &report.findings {
            out.line(line("finding", finding))?;
        }
        for NonStructureFinding { object_path: path, fault_kind: kind, cause } in parts {
            out.line(json!({ "file": file, "is": "finding", "path": path, "kind": kind, "cause": cause }))?;
        }
        for NonStructureFinding { object_path: path, fault_kind: kind, cause } in elsewhere {
            out.line(json!({ "file": file, "is": "unverified", "path": path, "kind": kind, "cause": cause }))?;
        }
        for note in report.notes.iter().filter(|_| self.verbose) {
            out.line(line("note", note))?;
        }
        for chunk in &report.unverified_parts {
            out.line(line("unverified", chunk))?;
        }
        for FileRange { offset, len, .. } in &report.leaks {
            out.line(json!({ "file": file, "is": "unused", "offset": offset, "len": len }))?;
        }
        for offset in &report.unreachable_header_offsets {
            out.line(json!({ "file": file, "is": "unreachable", "offset": offset }))?;
        }
        out.line(json!({
            "file": file,
            "is": "summary",
            "findings": report.findings.len() + parts.len(),
            "unverified": unverified.count(),
            "complete": !report.has_max_findings(),
            "objects": report.object_count,
            "metadata_bytes": report.metadata_bytes,
            "raw_bytes": report.raw_bytes,
            "free_bytes": report.tracked_free_bytes,
            "unchecksummed_bytes": report.unchecksummed_bytes,
        }))
    }
}

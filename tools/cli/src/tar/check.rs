//! `h5live tar check`: what is in an archive.

use std::path::PathBuf;

use h5live_archive::{CountWithExamples, TarReport, TarSource};
use serde_json::json;

use crate::counted::counted;
use crate::error::{CommandOutcome, Result, error_with_causes};
use crate::output::StdoutWriter;
use crate::progress;

/// What `check` is told.
#[derive(Debug, clap::Args)]
pub struct TarCheckArgs {
    /// The archives; `-` is standard input
    #[arg(required = true)]
    archives: Vec<PathBuf>,
    /// Pass over blocks of zeros, which end an archive: look at those behind it, too
    #[arg(long)]
    ignore_zeros: bool,
    /// Lines of JSON
    #[arg(long)]
    json: bool,
}

impl TarCheckArgs {
    pub fn run(self) -> Result<CommandOutcome> {
        let mut out = StdoutWriter::stdout();
        let mut outcome = CommandOutcome::Clean;
        for path in &self.archives {
            let report = match TarSource::open_file_or_stdin(path) {
                Ok(source) => {
                    let bar = source.file_len.map_or_else(|| progress::counter("entry"), progress::bytes);
                    let is_sized = source.file_len.is_some();
                    let report = h5live_archive::check(source, self.ignore_zeros, &mut |now| {
                        bar.set_position(if is_sized { now.file_bytes_read } else { now.entries });
                    });
                    bar.finish_and_clear();
                    report
                }
                Err(error) => Err(error),
            };
            match report {
                Ok(report) => {
                    let name = path.display().to_string();
                    if self.json {
                        show_json(&mut out, &name, &report)?
                    } else {
                        show(&mut out, &name, &report)?
                    }
                    outcome =
                        outcome.worse(if report.is_clean() { CommandOutcome::Clean } else { CommandOutcome::Findings });
                }
                Err(error) => outcome = outcome.worse(out.flush_and_eprint_error(error.into())?),
            }
        }
        out.flush()?;
        Ok(outcome)
    }
}

/// That another archive follows.
pub fn next_archive_notice(offset: u64) -> String {
    format!(
        "another archive follows at byte {offset}, behind the end of this one; --ignore-zeros takes its entries, too"
    )
}

fn show(out: &mut StdoutWriter, name: &str, report: &TarReport) -> Result<()> {
    out.line(format_args!("|    {name}"))?;
    out.line(format_args!("{}, {}", counted(report.entries, "entry"), report.compression.name()))?;
    for (kind, count) in &report.kinds {
        out.line(format_args!("  {count:>9} {kind}"))?;
    }
    out.line(format_args!("{} files can be extracted.", report.nonempty_files))?;
    out.line(format_args!(
        "  {} in them, {}",
        counted(report.content_bytes, "byte"),
        counted(report.empty_files, "empty file")
    ))?;
    if let Some((path, bytes)) = &report.largest_file {
        out.line(format_args!("  the largest: {path}, {}", counted(*bytes, "byte")))?;
    }
    out.line(format_args!("  {} of more than 64 KiB", counted(report.files_over_64_kib, "file")))?;
    out.line(format_args!("  {} too large for a compact dataset", counted(report.files_over_max_compact, "file")))?;
    out.line(format_args!("  {} in duplicates", counted(report.duplicate_bytes, "byte")))?;
    show_findings(out, "duplicate", &report.duplicate_contents)?;
    show_findings(out, "path that is there twice", &report.path_collisions)?;
    show_findings(out, "path that leads out of the folder", &report.unsafe_paths)?;
    for findings in &report.layouts {
        let layout = findings.layout;
        for (why, refused) in &findings.refused_by_reason {
            show_findings(out, &format!("layout {layout} refuses: {why}"), refused)?;
        }
        let alone = findings.only_in_tables.count;
        if alone > 0 {
            out.line(format_args!("layout {layout}: {} in the tables alone", counted(alone, "entry")))?;
        }
    }
    if let Some(fault) = &report.fault {
        out.line(format_args!("damaged: {}", error_with_causes(fault)))?;
        out.line(format_args!("  the {} before it can be imported: --salvage", counted(report.entries, "entry")))?;
    }
    if let Some(at) = report.next_archive_offset {
        out.line(format_args!("{}", next_archive_notice(at)))?;
    }
    Ok(())
}

fn show_findings(out: &mut StdoutWriter, what: &str, findings: &CountWithExamples) -> Result<()> {
    let more = findings.count - findings.examples.len() as u64;
    for path in &findings.examples {
        out.line(format_args!("{what}: {path}"))?;
    }
    if more > 0 { out.line(format_args!("{what}: {more} more")) } else { Ok(()) }
}

fn show_json(out: &mut StdoutWriter, name: &str, report: &TarReport) -> Result<()> {
    let findings = |found: &CountWithExamples| json!({ "count": found.count, "examples": found.examples });
    let layouts: serde_json::Map<_, _> = report
        .layouts
        .iter()
        .map(|layout| {
            let refused: serde_json::Map<_, _> =
                layout.refused_by_reason.iter().map(|(why, refused)| ((*why).to_owned(), findings(refused))).collect();
            (layout.layout.to_string(), json!({ "refused": refused, "tables_alone": findings(&layout.only_in_tables) }))
        })
        .collect();
    out.line(json!({
        "archive": name,
        "compression": report.compression.name(),
        "entries": report.entries,
        "kinds": report.kinds,
        "files": report.nonempty_files,
        "empty": report.empty_files,
        "content_bytes": report.content_bytes,
        "largest": report.largest_file.as_ref().map(|(path, bytes)| json!({ "path": path, "bytes": bytes })),
        "over_64_kib": report.files_over_64_kib,
        "not_compact": report.files_over_max_compact,
        "duplicates": findings(&report.duplicate_contents),
        "duplicate_bytes": report.duplicate_bytes,
        "collisions": findings(&report.path_collisions),
        "unsafe_paths": findings(&report.unsafe_paths),
        "layouts": layouts,
        "archive_bytes": report.uncompressed_bytes,
        "fault": report.fault.as_ref().map(|fault| error_with_causes(fault)),
        "next_archive": report.next_archive_offset,
    }))
}

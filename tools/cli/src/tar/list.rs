//! `h5live tar ls` and `h5live tar verify`.

use std::time::{Duration, SystemTime};

use h5live::Location;
use h5live::archive::layout::{EntryRow, NO_SAMPLE};
use h5live_archive::{ImportedTar, escaped, is_file_or_unknown_kind};
use serde_json::json;

use super::opened::is_match;
use crate::counted::counted;
use crate::error::{CommandOutcome, Result};
use crate::output::StdoutWriter;
use crate::progress;

/// What is said of a file that lacks entries.
const INCOMPLETE: &str = "not all entries are there: the import is under way, or was interrupted (import --resume goes on, rollback takes it back)";

/// What is said of a file whose contents cannot be verified.
const NO_DIGESTS: &str =
    "it has no digests (the original shredder makes none): contents were read, and compared with nothing";

pub fn list(tar: &ImportedTar, glob: Option<&str>, long: bool, as_json: bool) -> Result<CommandOutcome> {
    let mut out = StdoutWriter::stdout();
    for row in tar.rows().iter().filter(|row| is_match(glob, tar.path(row))) {
        if as_json {
            out.line(as_json_line(tar, row))?;
            continue;
        }
        if long {
            let columns = if tar.has_only_names_and_contents() { size_column(row) } else { long_columns(row) };
            out.bytes(columns.as_bytes())?;
        }
        out.bytes(escaped(tar.path(row)).as_bytes())?;
        if long && !tar.link_target(row).is_empty() {
            out.bytes(if row.kind == b'1' { b" link to " } else { b" -> " })?;
            out.bytes(escaped(tar.link_target(row)).as_bytes())?;
        }
        out.bytes(b"\n")?;
    }
    out.flush()?;
    if tar.has_unfinished_import()? {
        eprintln!("{INCOMPLETE}");
    }
    Ok(CommandOutcome::Clean)
}

/// The letter that `ls` and `tar` have for a kind of entry.
fn kind_letter(row: &EntryRow) -> char {
    match row.kind {
        b'1' => 'h',
        b'2' => 'l',
        b'3' => 'c',
        b'4' => 'b',
        b'5' => 'd',
        b'6' => 'p',
        kind if is_file_or_unknown_kind(kind) => '-',
        _ => '?',
    }
}

/// What is known of an entry of the original shredder.
fn size_column(row: &EntryRow) -> String {
    format!("{} {:>10} ", kind_letter(row), row.size)
}

fn long_columns(row: &EntryRow) -> String {
    let letters =
        [(0o400, 'r'), (0o200, 'w'), (0o100, 'x'), (0o40, 'r'), (0o20, 'w'), (0o10, 'x'), (4, 'r'), (2, 'w'), (1, 'x')];
    let mode: String = letters.iter().map(|(bit, letter)| if row.mode & bit != 0 { *letter } else { '-' }).collect();
    let time = crate::utc::iso8601_seconds(time_of(row.mtime));
    format!("{}{mode} {}/{} {:>10} {time} ", kind_letter(row), row.uid, row.gid, row.size)
}

/// A time of seconds since 1970. One that the system does not have is 1970.
fn time_of(seconds: i64) -> SystemTime {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    let epoch = SystemTime::UNIX_EPOCH;
    let time = if seconds < 0 { epoch.checked_sub(distance) } else { epoch.checked_add(distance) };
    time.unwrap_or(epoch)
}

fn as_json_line(tar: &ImportedTar, row: &EntryRow) -> serde_json::Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // What JSON cannot say of a name is in its escaped form, which `cat` takes.
    let is_known = !tar.has_only_names_and_contents();
    let bytes = |bytes: &[u8]| std::str::from_utf8(bytes).is_err().then(|| escaped(bytes));
    json!({
        "path": text(tar.path(row)),
        "escaped_path": bytes(tar.path(row)),
        "link": (row.link_length > 0).then(|| text(tar.link_target(row))),
        "escaped_link": bytes(tar.link_target(row)),
        "kind": kind_letter(row).to_string(),
        "size": row.size,
        "sample": (row.sample != NO_SAMPLE).then_some(row.sample),
        "mode": is_known.then_some(row.mode),
        "uid": is_known.then_some(row.uid),
        "gid": is_known.then_some(row.gid),
        "mtime": is_known.then_some(row.mtime),
    })
}

pub fn verify_imported_contents(files: &[Location]) -> Result<CommandOutcome> {
    let mut out = StdoutWriter::stdout();
    let mut outcome = CommandOutcome::Clean;
    for location in files {
        let checked = super::opened::read(location).and_then(|tar| {
            let bar = progress::bar(usize::try_from(tar.sample_archive().len()).unwrap_or(usize::MAX), "sample");
            let report = h5live_archive::verify(&tar, &mut |samples| bar.set_position(samples));
            bar.finish_and_clear();
            Ok((report?, tar.has_unfinished_import()?))
        });
        match checked {
            Ok((report, is_importing)) => {
                for (path, why) in &report.wrong {
                    out.line(format_args!("{location}: {path}: {why}"))?;
                }
                let (samples, bytes) = (counted(report.samples, "sample"), counted(report.bytes, "byte"));
                out.line(format_args!("{location}: {samples}, {bytes}, {} wrong", report.wrong.len()))?;
                if is_importing {
                    out.line(format_args!("{location}: {INCOMPLETE}"))?;
                }
                if !report.has_digests {
                    out.line(format_args!("{location}: {NO_DIGESTS}"))?;
                }
                let is_clean = report.wrong.is_empty() && report.has_digests && !is_importing;
                outcome = outcome.worse(if is_clean { CommandOutcome::Clean } else { CommandOutcome::Findings });
            }
            Err(error) => outcome = outcome.worse(out.flush_and_eprint_error(error)?),
        }
    }
    out.flush()?;
    Ok(outcome)
}

//! The check of stores that are no native files.

use h5live::{Location, StoreCheckOptions, StoreCheckReport};
use serde_json::json;

use super::unverified::{UnverifiedCounts, print_unchecksummed_bytes, verdict_without_findings};
use crate::counted::counted;
use crate::error::Result;
use crate::output::StdoutWriter;
use crate::{leak_text, open};

/// Checks a store; whether it is sound.
///
/// # Errors
/// [`crate::error::Error::File`] if it cannot be read, or such stores cannot be checked.
pub fn check_store_is_sound(
    out: &mut StdoutWriter,
    location: &Location,
    checks_data: bool,
    lists_leaks: bool,
    as_json: bool,
) -> Result<bool> {
    let report = open::command_line_options()
        .check(location, StoreCheckOptions { verify_data: checks_data, find_lost_domains: lists_leaks })?;
    match as_json {
        true => print_json(out, location, &report, lists_leaks)?,
        false => print_text(out, location, &report, checks_data, lists_leaks)?,
    }
    Ok(report.has_no_findings() && !(checks_data && report.unverified_part_count > 0))
}

fn print_text(
    out: &mut StdoutWriter,
    location: &Location,
    report: &StoreCheckReport,
    data: bool,
    leaks: bool,
) -> Result<()> {
    for finding in &report.findings {
        out.line(format_args!("{location}: {finding}"))?;
    }
    for leak in report.leaks.iter().filter(|_| leaks) {
        let text = leak_text::text(leak);
        out.line(format_args!("unused: {text}; `h5live repair --reclaim` deletes it"))?;
    }
    print_unchecksummed_bytes(out, location, report.unchecksummed_bytes.unwrap_or(0))?;
    let unverified =
        UnverifiedCounts { parts: report.unverified_part_count, datasets_with_unreadable_data_elsewhere: 0 };
    let verdict = match report.findings.len() {
        0 => verdict_without_findings(unverified, data),
        n if report.has_max_findings() => format!("{}, the check ended there", counted(n, "finding")),
        n => counted(n, "finding").to_string(),
    };
    let unused = match report.leak_count {
        0 => String::new(),
        n => format!(", {n} unused (--leaks)"),
    };
    out.line(format_args!(
        "{location}: {verdict}; {}{}, {} of metadata, {} of raw data{unused}",
        unverified.summary_prefix(),
        counted(report.object_count, "object"),
        counted(report.metadata_bytes, "byte"),
        report.raw_bytes,
    ))
}

fn print_json(out: &mut StdoutWriter, location: &Location, report: &StoreCheckReport, leaks: bool) -> Result<()> {
    let file = location.to_string();
    for finding in &report.findings {
        out.line(json!({
            "file": file,
            "is": "finding",
            "path": finding.path,
            "object": finding.object.map(|id| id.to_string()),
            "kind": finding.kind,
            "cause": finding.cause.to_string(),
        }))?;
    }
    for leak in report.leaks.iter().filter(|_| leaks) {
        let mut line = json!({ "file": file, "is": "unused" });
        leak_text::add_json(&mut line, leak);
        out.line(line)?;
    }
    out.line(json!({
        "file": file,
        "is": "summary",
        "findings": report.findings.len(),
        "complete": !report.has_max_findings(),
        "objects": report.object_count,
        "metadata_bytes": report.metadata_bytes,
        "raw_bytes": report.raw_bytes,
        "unused": report.leak_count,
        "unverified": report.unverified_part_count,
        "unchecksummed_bytes": report.unchecksummed_bytes,
    }))
}

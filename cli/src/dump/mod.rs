//! `h5live dump`: values, or the bytes of a structure.

mod bytes;

use std::path::PathBuf;

use crate::error::{Outcome, Result};
use crate::output::Output;

use bytes::{Bytes, Structure};

/// Prints values, or the structure at an offset field by field
#[derive(Debug, clap::Args)]
pub struct Dump {
    /// The file
    file: PathBuf,
    /// The structure that begins here (bytes from the start of the file; 0x... for hexadecimal)
    #[arg(long, value_name = "OFFSET", value_parser = offset)]
    bytes: u64,
    /// For programs: JSON
    #[arg(long)]
    json: bool,
}

fn offset(text: &str) -> Result<u64, std::num::ParseIntError> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    }
}

impl Dump {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`crate::error::Error`] says.
    pub fn run(self) -> Result<Outcome> {
        let structure = Bytes::open(&self.file)?.structure_at(self.bytes)?;
        let mut out = Output::stdout();
        if self.json {
            out.line(json(&structure, self.bytes))?;
        } else {
            print(&structure, self.bytes, &mut out)?;
        }
        out.flush()?;
        Ok(if structure.fault.is_some() { Outcome::Findings } else { Outcome::Clean })
    }
}

fn print(structure: &Structure, offset: u64, out: &mut Output) -> Result<()> {
    out.line(format_args!("{} at {offset:#x}", structure.name))?;
    let mut record = structure.name;
    for field in structure.fields.iter().filter(|f| f.size > 0) {
        if field.record != record {
            record = field.record;
            out.line(format_args!("  {record}"))?;
        }
        let at = offset.saturating_add(field.at as u64);
        out.line(format_args!("    {at:#010x} {:>6}  {:<30} {}", field.size, field.field, field.value))?;
    }
    match &structure.fault {
        Some(fault) => out.line(format_args!("  broken: {fault}")),
        None => Ok(()),
    }
}

fn json(structure: &Structure, offset: u64) -> serde_json::Value {
    let field = |f: &h5live_format::Field| {
        serde_json::json!({
            "structure": f.record,
            "field": f.field,
            "offset": offset.saturating_add(f.at as u64),
            "size": f.size,
            "value": f.value,
        })
    };
    serde_json::json!({
        "structure": structure.name,
        "offset": offset,
        "fields": structure.fields.iter().map(field).collect::<Vec<_>>(),
        "fault": structure.fault.as_ref().map(ToString::to_string),
    })
}

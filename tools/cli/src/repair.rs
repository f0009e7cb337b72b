//! `h5live repair`: repairs files whose writer has died.

use h5live::{FileDiagnosis, FileOpenState, Location};
use serde_json::json;

use crate::counted::counted;
use crate::diagnosis_text;
use crate::error::{CommandOutcome, Result};
use crate::output::StdoutWriter;
use crate::{leak_text, open, temp_output};

/// Repairs files whose writer has died, so that every program opens them
///
/// h5live uses such files without this. Other programs may refuse them, because their flags say that they are being
/// written, or because the end that they announce is beyond the last byte. Nothing that was flushed is changed; data
/// that was never published is cut off. For files of libhdf5, this does the work of h5clear, and corrects the announced
/// end. Damage of the contents is shown by `h5live check`, and stays. Exit code 0: the files are in order; 1: with --dry-run, some are not, else something in them could not be read; 2: a file is being written, or cannot be
/// repaired.
#[derive(Debug, clap::Args)]
pub struct RepairCommand {
    /// The files
    #[arg(required = true)]
    files: Vec<Location>,
    /// Also delete the objects to which no path leads (`h5live check --leaks` shows them), such as groups that only lead
    /// to each other, and give back their space. Of an object store (hsds:run), also unfinished domains in the same bucket
    #[arg(long, conflicts_with = "dry_run")]
    reclaim: bool,
    /// Change nothing, and say what state the files are in
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// For programs: a JSON object per line
    #[arg(long)]
    json: bool,
}

impl RepairCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`crate::error::Error`] says.
    pub fn run(self) -> Result<CommandOutcome> {
        let mut out = StdoutWriter::stdout();
        let mut outcome = CommandOutcome::Clean;
        for location in &self.files {
            match self.repair(&mut out, location) {
                Ok(done) => outcome = outcome.worse(done),
                // The other files are repaired all the same.
                Err(error) => outcome = outcome.worse(out.flush_and_eprint_error(error)?),
            }
        }
        Ok(outcome)
    }

    /// Repairs one file, or says what state it is in.
    fn repair(&self, out: &mut StdoutWriter, location: &Location) -> Result<CommandOutcome> {
        let (before, after, left) = match self.dry_run {
            true => (open::command_line_options().diagnose(location)?, None, Vec::new()),
            false => {
                temp_output::remove_stale_temps_beside(location)?;
                let done = open::command_line_options().repair(location)?;
                (done.before, Some(done.after), done.unrepaired)
            }
        };
        let is_clean = left.is_empty() && !(self.dry_run && before.needs_repair());
        if self.json {
            let after = after.as_ref().map(diagnosis_text::json);
            let (file, before) = (location.to_string(), diagnosis_text::json(&before));
            out.line(json!({ "file": file, "before": before, "after": after, "left": left }))?;
        } else {
            let said = after
                .as_ref()
                .map_or_else(|| diagnosis_text::text(location, &before), |after| report_text(&before, after));
            out.line(format_args!("{}: {said}", location))?;
            for left in &left {
                out.line(format_args!("{location}: left as it was: {left}"))?;
            }
        }
        if self.reclaim {
            self.reclaim(out, location)?;
        }
        // What comes next may be an error.
        out.flush()?;
        Ok(if is_clean { CommandOutcome::Clean } else { CommandOutcome::Findings })
    }
}

impl RepairCommand {
    /// Deletes the objects to which no path leads, and says which.
    fn reclaim(&self, out: &mut StdoutWriter, location: &Location) -> Result<()> {
        let done = open::command_line_options().repair_and_reclaim_unreachable(location)?;
        for leak in &done.deleted_leaks {
            if self.json {
                let mut line = json!({ "file": location.to_string(), "is": "reclaimed" });
                leak_text::add_json(&mut line, leak);
                out.line(line)?;
            } else {
                out.line(format_args!("{location}: reclaimed: {}", leak_text::text(leak)))?;
            }
        }
        let bytes: u64 = done.deleted_leaks.iter().map(|object| object.bytes).sum();
        if !self.json {
            let shorter = done.size_before.saturating_sub(done.size_after);
            let objects = counted(done.deleted_leaks.len(), "object");
            let (bytes, shorter) = (counted(bytes, "byte"), counted(shorter, "byte"));
            out.line(format_args!("{location}: {objects} reclaimed, {bytes}; the file is {shorter} shorter"))?;
        }
        Ok(())
    }
}

/// The changes of a repair, in words.
fn report_text(before: &FileDiagnosis, after: &FileDiagnosis) -> String {
    if before == after {
        return "nothing to repair".to_owned();
    }
    let mut said = vec!["brought into order".to_owned()];
    if let FileOpenState::Abandoned { .. } = before.open_state {
        said.push("its writer had died".to_owned());
    }
    if after.length < before.length {
        said.push(format!("cut off, as never published: {}", counted(before.length - after.length, "byte")));
    }
    if before.announced_length > before.length.max(after.announced_length) {
        said.push(format!(
            "announced, never there, and given back: {}",
            counted(before.announced_length - after.announced_length, "byte")
        ));
    }
    said.join("; ")
}

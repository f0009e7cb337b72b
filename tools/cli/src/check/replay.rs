//! `h5live check replay`: the story of a counterexample.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use h5live_checker::schedule::{Counterexample, CounterexampleEvent, CounterexampleLog};
use h5live_output::TempOutputFile;
use serde_json::json;

use crate::error::{CommandOutcome, Error, Result};
use crate::output::StdoutWriter;
use crate::temp_output::ForceArgs;

/// Tells what a reader found wrong while a file was written, as the model checker kept it
///
/// On the left what the writer did, by structures and fields, on the right what the reader asked for.
#[derive(Debug, clap::Args)]
pub struct ReplayCommand {
    /// The counterexample
    file: PathBuf,
    /// For programs: a JSON object per line
    #[arg(long)]
    json: bool,
    /// Draws the story into this file, as SVG
    #[arg(long, value_name = "OUT")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    force: ForceArgs,
}

impl ReplayCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`crate::error::Error`] says.
    pub fn run(self) -> Result<CommandOutcome> {
        let path = self.file;
        let file = File::open(&path).map_err(|source| Error::Io { path: path.clone(), source })?;
        let loaded = Counterexample::load(BufReader::new(file));
        let (trace, found) = loaded.map_err(|source| Error::UnreadableCounterexample { path, source })?;
        let story = CounterexampleLog::new(&trace, &found);
        if let Some(path) = self.svg {
            let new = TempOutputFile::reserve_for(&path, self.force.replaces_file)?;
            std::fs::write(new.temp_path(), story.to_svg()).map_err(|source| Error::Io { path, source })?;
            new.persist()?;
            return Ok(CommandOutcome::Clean);
        }
        let mut out = StdoutWriter::stdout();
        if !self.json {
            out.line(&story)?;
            out.flush()?;
            return Ok(CommandOutcome::Clean);
        }
        out.line(json!({ "is": "beginning", "operations": story.prior_op_count }))?;
        for line in &story.events {
            out.line(match line {
                CounterexampleEvent::Writer { operation, what, changes } => {
                    json!({ "is": "writer", "operation": operation, "what": what, "changes": changes })
                }
                CounterexampleEvent::Reader { what } => json!({ "is": "reader", "what": what }),
            })?;
        }
        out.line(json!({ "is": "fault", "what": story.fault }))?;
        out.flush()?;
        Ok(CommandOutcome::Clean)
    }
}

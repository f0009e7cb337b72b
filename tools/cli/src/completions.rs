//! `h5live completions`: what a shell completes behind `h5live`.

use crate::error::{CommandOutcome, Result};
use crate::output::StdoutWriter;

/// Prints the completions for a shell, for the file from which the shell reads them
#[derive(Debug, clap::Args)]
pub struct CompletionsCommand {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

impl CompletionsCommand {
    /// Runs the command, of this program.
    ///
    /// # Errors
    /// [`crate::error::Error::Stdout`].
    pub fn run(self, mut program: clap::Command) -> Result<CommandOutcome> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut program, "h5live", &mut script);
        let mut out = StdoutWriter::stdout();
        out.bytes(&script)?;
        out.flush()?;
        Ok(CommandOutcome::Clean)
    }
}

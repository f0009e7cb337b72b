//! `h5live man`: the manual pages.

use crate::error::{CommandOutcome, Error, Result};
use crate::output::StdoutWriter;

/// Prints the manual page of the program, or of one of its commands
#[derive(Debug, clap::Args)]
pub struct ManCommand {
    /// The command, and the one in it (`tar import`); without one, the page is that of the program
    command: Vec<String>,
}

impl ManCommand {
    /// Runs the command, of this program.
    ///
    /// # Errors
    /// [`Error::UnknownCommand`], [`Error::Stdout`].
    pub fn run(self, mut program: clap::Command) -> Result<CommandOutcome> {
        program.build();
        let source = format!("{} {}", program.get_name(), program.get_version().unwrap_or_default());
        let inner = |of: &clap::Command, name: &String| of.find_subcommand(name).cloned();
        let of = self
            .command
            .iter()
            .try_fold(program, |of, name| inner(&of, name).ok_or_else(|| Error::UnknownCommand(name.clone())))?;
        let mut page = Vec::new();
        clap_mangen::Man::new(of).source(source).render(&mut page).map_err(Error::Stdout)?;
        let mut out = StdoutWriter::stdout();
        out.bytes(&page)?;
        out.flush()?;
        Ok(CommandOutcome::Clean)
    }
}

//! `h5live mv`: links get other names.

use h5live::Location;

use crate::error::{Outcome, Result};
use crate::temp_output;

/// Gives a link another name, or moves it to another group
///
/// Groups on the way that are not there are made. A path that ends in a slash is a group into which the link moves.
#[derive(Debug, clap::Args)]
pub struct Mv {
    /// The file
    file: Location,
    /// The path that there is
    from: String,
    /// The new path
    to: String,
}

impl Mv {
    /// Runs the command.
    ///
    /// # Errors
    /// If the one path is not there, or the other one is.
    pub fn run(self) -> Result<Outcome> {
        temp_output::sweep_beside(&self.file)?;
        let file = crate::open::options().write().open(&self.file)?;
        let name = self.from.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let to = if self.to.ends_with('/') { format!("{}{name}", self.to) } else { self.to.clone() };
        file.root().rename(&self.from, &to)?;
        file.close()?;
        Ok(Outcome::Clean)
    }
}

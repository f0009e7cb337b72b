//! `h5live mv`: links get other names, and domains of object stores other paths.

use h5live::Location;

use crate::error::{CommandOutcome, Result};
use crate::escaped_path;
use crate::temp_output;

/// Gives a link another name, or moves it to another group; or moves a domain of an object store
///
/// Groups on the way that are not there are made. A path that ends in a slash is a group into which the link moves. With
/// `--domain`, the only path is the new one of the domain in its bucket; no object is copied.
#[derive(Debug, clap::Args)]
pub struct MvCommand {
    /// The file
    file: Location,
    /// The path that there is; with --domain, the new path of the domain
    from: String,
    /// The new path
    #[arg(required_unless_present = "domain", conflicts_with = "domain")]
    to: Option<String>,
    /// Move the whole domain of an object store (hsds:bucket?domain=/home/me/run) to another path of its bucket
    #[cfg(feature = "hsds")]
    #[arg(long)]
    domain: bool,
}

impl MvCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// If the one path is not there, or the other one is.
    pub fn run(self) -> Result<CommandOutcome> {
        #[cfg(feature = "hsds")]
        if self.domain {
            let path = crate::open::with_hsds_location(&self.file, |at| h5live_hsds::move_domain(at, &self.from))?;
            let mut out = crate::output::StdoutWriter::stdout();
            out.line(format_args!("moved to {}", crate::model::escape(path.as_bytes())))?;
            out.flush()?;
            return Ok(CommandOutcome::Clean);
        }
        let given = self.to.unwrap_or_default();
        temp_output::remove_stale_temps_beside(&self.file)?;
        let file = crate::open::command_line_options().write().open(&self.file)?;
        let from = escaped_path::find_link_path(&file, &self.from)?.unwrap_or_else(|| self.from.clone().into_bytes());
        let mut to = escaped_path::new_link_path(&file, &given)?;
        if given.ends_with('/') {
            to.extend(from.split(|byte| *byte == b'/').rfind(|name| !name.is_empty()).unwrap_or_default());
        }
        file.root().rename_at_bytes(&from, &to)?;
        file.close()?;
        Ok(CommandOutcome::Clean)
    }
}

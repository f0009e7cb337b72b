//! What commands say of files that they replace, and of what killed commands have left.

use h5live::Location;

use crate::error::Result;
use crate::open;

/// Whether a command may replace a file that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub struct ForceArgs {
    /// Replace a file that exists; one that a process is writing is never replaced
    #[arg(short = 'f', long = "force")]
    pub replaces_file: bool,
}

/// Removes what killed commands have left in the folder of a file that is going to be written.
///
/// # Errors
/// [`Error::OpenFailed`](crate::error::Error::OpenFailed) if no store can open the location.
pub fn remove_stale_temps_beside(location: &Location) -> Result<()> {
    if let Some(path) = open::native_file_path(location)? {
        h5live_output::remove_stale_temps_beside(&path);
    }
    Ok(())
}

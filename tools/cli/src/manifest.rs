//! `h5live manifest`: everything in a file as text that does not depend on how it is stored.

use h5live::Location;
use h5live_compare::manifest::{Listing, ManifestRenderer, UnreadCause};

use crate::counted::counted;
use crate::error::{CommandOutcome, Result};
use crate::number_arg::byte_count;
use crate::output::{StdoutWriter, eprint_prefixed};
use crate::{open, progress};

/// Most lines that were not read of which it is told why.
const MAX_SHOWN_UNREAD: usize = 8;

/// Prints everything in a file as text that does not depend on how it is stored
///
/// Exit code 0: everything was read; 1: something could not be read, and its line has a number of its own, so that it is equal
/// to that of no other file; 2: there is nothing to list.
#[derive(Debug, clap::Args)]
pub struct ManifestCommand {
    /// The file
    file: Location,
    /// Read datasets of at most so many bytes; a larger one is told of, and is exit code 1
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = byte_count)]
    max_dataset: u64,
}

impl ManifestCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`crate::error::Error`] says.
    pub fn run(self) -> Result<CommandOutcome> {
        let file = open::for_reading(&self.file)?;
        let root = file.root();
        // Damage below the root ends nothing, but without the root there is nothing to list.
        root.links()?;
        let listing = Listing::from_file(&file, root.id(), b"/", None);
        let mut out = StdoutWriter::stdout();
        let bar = progress::bar(listing.lines.len(), "object");
        let renderer =
            ManifestRenderer::of_file(&file, &listing, self.max_dataset).max_allocation(open::allocation_limit());
        for line in renderer.render_lines() {
            out.line(line)?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        out.flush()?;
        let unread = renderer.take_unread();
        for (path, cause) in unread.iter().take(MAX_SHOWN_UNREAD) {
            let option = if matches!(cause, UnreadCause::TooLarge { .. }) { ", as --max-dataset says" } else { "" };
            eprint_prefixed(format_args!("{}: {path}: {cause}{option}", self.file));
        }
        if unread.len() > MAX_SHOWN_UNREAD {
            let more = counted(unread.len() - MAX_SHOWN_UNREAD, "line");
            eprint_prefixed(format_args!("{}: {more} more of what was not read", self.file));
        }
        Ok(if unread.is_empty() { CommandOutcome::Clean } else { CommandOutcome::Findings })
    }
}

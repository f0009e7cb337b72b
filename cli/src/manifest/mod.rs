//! `h5live manifest`: everything in a file as text that does not depend on how it is stored.

mod canonical;
mod columns;
mod escape;
pub mod listing;
mod render;

use h5live::{Location, Object};

use crate::error::{Outcome, Result};
use crate::model::{ObjectId, Selection};
use crate::output::Output;
use crate::{open, progress};

pub use columns::{space_text, storage_text};
pub use escape::escape;

use listing::Listing;
use render::Renderer;

/// Prints everything in a file as text that does not depend on how it is stored
#[derive(Debug, clap::Args)]
pub struct Manifest {
    /// The file
    file: Location,
}

impl Manifest {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`crate::error::Error`] says.
    pub fn run(self) -> Result<Outcome> {
        let file = open::for_reading(&self.file)?;
        let root = file.root();
        // Damage below the root ends nothing, but without the root there is nothing to list.
        root.links()?;
        let listing = Listing::from_file(&file, root.id(), b"/", None);
        let read = |id: ObjectId, selection: &Selection| match root.object_by_id(id, "") {
            Ok(Object::Dataset(dataset)) => dataset.read_raw(selection).ok(),
            _ => None,
        };
        let mut out = Output::stdout();
        let bar = progress::bar(listing.lines.len(), "object");
        for line in Renderer::new(file.store(), &listing, &read).lines() {
            out.line(line)?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        out.flush()?;
        Ok(Outcome::Clean)
    }
}

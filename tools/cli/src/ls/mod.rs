//! `h5live ls`: the contents of a file.

mod filters;
mod status;
pub mod text;

use h5live::{Location, Object};

use crate::error::{Outcome, Result};
use crate::manifest::listing::{Listing, ListingEntry};
use crate::number_arg::at_least;
use crate::output::Output;
use crate::{missing_sources, open};

use status::LiveStatus;
use text::{EntryDescriber, EntryDetail};

/// Longer paths do not push the columns to the right (characters).
const PATH_WIDTH: usize = 40;

/// Lists the contents of a file: types, shapes, storage; and who writes it
///
/// Exit code 0: everything was read; 1: something is damaged, and its line says why; 2: nothing can be listed.
#[derive(Debug, clap::Args)]
pub struct Ls {
    /// The file
    file: Location,
    /// The group or object to start from
    #[arg(default_value = "/")]
    path: String,
    /// Go so many groups deep; 0 lists only the object itself
    #[arg(short, long, value_name = "LEVELS", value_parser = at_least::<0, usize>)]
    depth: Option<usize>,
    /// Show sizes: the stored chunks and bytes of datasets, and the bytes of all their elements
    #[arg(short, long)]
    long: bool,
    /// What is shown of attributes
    #[arg(short, long, value_enum, value_name = "WHICH", default_value = "short")]
    attributes: AttributeDetail,
    /// For programs: a JSON object per line
    #[arg(long)]
    json: bool,
}

/// What is shown of attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum AttributeDetail {
    /// No attributes
    None,
    /// Types, and the beginning of each value
    Short,
    /// Types, and whole values
    Full,
}

impl Ls {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`crate::error::Error`] says.
    pub fn run(self) -> Result<Outcome> {
        let file = open::for_reading(&self.file)?;
        let start = file.object(&self.path)?;
        if let Object::Group(group) = &start {
            group.links()?;
        }
        let mut listing = Listing::from_file(&file, start.id(), start.path().as_bytes(), self.depth);
        if self.attributes == AttributeDetail::None {
            listing.lines.retain(|line| !matches!(line.entry, ListingEntry::Attribute(_)));
        }
        let width = listing.lines.iter().map(|line| line.path.chars().count()).filter(|w| *w <= PATH_WIDTH).max();
        let width = width.unwrap_or(0);
        let detail = EntryDetail { has_sizes: self.long, has_whole_values: self.attributes == AttributeDetail::Full };
        let describer = EntryDescriber::new(&file, detail);
        let mut status = LiveStatus::of(&file, &self.file);
        let mut out = Output::stdout();
        for line in &listing.lines {
            // The first line is that of the object from which the listing starts.
            let status = status.take();
            if self.json {
                let mut described = describer.json(line);
                if let Some(status) = status {
                    described["live"] = status.json();
                }
                out.line(described)?;
            } else {
                let text = describer.text(line);
                let status = status.map_or(String::new(), |status| format!("  ({})", status.text()));
                out.line(format_args!("{:width$}  {text}{status}", line.path))?;
            }
        }
        out.flush()?;
        // They are in the lines.
        missing_sources::forget();
        Ok(if listing.has_unreadable() { Outcome::Findings } else { Outcome::Clean })
    }
}

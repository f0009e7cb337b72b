//! `h5live ls`: the contents of a file.

#[cfg(feature = "hsds")]
mod domains;
mod filters;
mod status;
pub mod text;
mod times;

use std::collections::HashMap;

use h5live::{Location, Object};
use h5live_compare::manifest::{Listing, ListingEntry};

#[cfg(feature = "hsds")]
use crate::error::Error;
use crate::error::{CommandOutcome, Result};
use crate::escaped_path;
use crate::model::{ObjectId, escape};
use crate::number_arg::at_least;
use crate::output::StdoutWriter;
use crate::{missing_sources, open};

use status::LiveStatus;
use text::{EntryDescriber, EntryDisplayOptions};
use times::OwnerAndTimesSource;

/// Longer paths do not push the columns to the right (characters).
const PATH_WIDTH: usize = 40;

/// Lists the contents of a file: types, shapes, storage; and who writes it. Lists the domains below a folder of an object store
///
/// A folder of domains is a location where no domain is, or one that ends in a slash: hsds:bucket?domain=/home/.
///
/// Exit code 0: everything was read; 1: something is damaged, and its line says why; 2: nothing can be listed.
#[derive(Debug, clap::Args)]
pub struct LsCommand {
    /// The file
    file: Location,
    /// The group or object to start from
    #[arg(default_value = "/")]
    path: String,
    /// Go so many groups deep; 0 lists only the object itself. Of a folder of domains: so many folders, by default 1
    #[arg(short, long, value_name = "LEVELS", value_parser = at_least::<0, usize>)]
    depth: Option<usize>,
    /// Show sizes: the stored chunks and bytes of datasets, and the bytes of all their elements; when objects were changed, and
    /// the owner, where the store keeps that. Of domains: owners, times, and the bytes that are stored
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

impl LsCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`crate::error::Error`] says.
    pub fn run(self) -> Result<CommandOutcome> {
        #[cfg(feature = "hsds")]
        if domains::domain_has_trailing_slash(&self.file)
            && let Some(outcome) = self.list_domains(true)?
        {
            return Ok(outcome);
        }
        let clock = OwnerAndTimesSource::default();
        let opened = if self.long { clock.open_and_remember(&self.file) } else { open::for_reading(&self.file) };
        let file = match opened {
            #[cfg(feature = "hsds")]
            Err(error) if may_be_folder(&error) => return self.list_domains(false)?.ok_or(error),
            opened => opened?,
        };
        let (start, path) = escaped_path::object_at_maybe_escaped_path(&file, &self.path)?;
        if let Object::Group(group) = &start {
            group.links()?;
        }
        let mut listing = Listing::from_file(&file, start.id(), &path, self.depth);
        if self.attributes == AttributeDetail::None {
            listing.lines.retain(|line| !matches!(line.entry, ListingEntry::Attribute(_)));
        }
        let widths = listing.lines.iter().map(|line| line.escaped_path.chars().count());
        let width = widths.filter(|w| *w <= PATH_WIDTH).max().unwrap_or(0);
        let shows_whole_attribute_values = self.attributes == AttributeDetail::Full;
        let options = EntryDisplayOptions { shows_sizes: self.long, shows_whole_attribute_values };
        let describer = EntryDescriber::new(&file, options);
        let mut status = LiveStatus::of(&file, &self.file);
        let mut out = StdoutWriter::stdout();
        let ids: HashMap<String, ObjectId> = match self.long {
            true => listing.first_paths.iter().map(|(id, path)| (escape(path), *id)).collect(),
            false => HashMap::new(),
        };
        let mut owner = clock.owner().filter(|_| self.long);
        for line in &listing.lines {
            // The first line is that of the object from which the listing starts.
            let (status, owner) = (status.take(), owner.take());
            let times = ids.get(&line.escaped_path).map(|id| clock.times(&file, *id)).unwrap_or_default();
            if self.json {
                let mut described = describer.json(line);
                times.put_json(&mut described);
                if let Some(owner) = owner {
                    described["owner"] = owner.into();
                }
                if let Some(status) = status {
                    described["live"] = status.json();
                }
                out.line(described)?;
            } else {
                let text = format!("{}{}", describer.text_without_path(line), times.modified_suffix());
                let owner = owner.map_or(String::new(), |owner| format!("  owner={}", escape(owner.as_bytes())));
                let status = status.map_or(String::new(), |status| format!("  ({})", status.text()));
                out.line(format_args!("{:width$}  {text}{owner}{status}", line.escaped_path))?;
            }
        }
        out.flush()?;
        // They are in the lines.
        missing_sources::discard_recorded_missing_sources();
        Ok(if listing.has_unreadable() { CommandOutcome::Findings } else { CommandOutcome::Clean })
    }

    /// Lists the domains below the folder at the location; `None` if there is none.
    #[cfg(feature = "hsds")]
    fn list_domains(&self, is_named: bool) -> Result<Option<CommandOutcome>> {
        if self.path != "/" {
            return Ok(None);
        }
        let levels = self.depth.unwrap_or(1);
        let (is_long, is_json) = (self.long, self.json);
        domains::DomainLister { location: &self.file, levels, is_long, is_json }.run(is_named)
    }
}

/// Whether an error of opening a location says nothing against a folder of domains there.
#[cfg(feature = "hsds")]
fn may_be_folder(error: &Error) -> bool {
    use crate::model::StoreErrorKind::{NotFound, NotThisFormat};
    matches!(error, Error::File(error) if matches!(error.store_error_kind(), None | Some(NotFound | NotThisFormat)))
}

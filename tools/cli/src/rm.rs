//! `h5live rm`: links and attributes go, and domains of object stores.

use h5live::{File, Location};

#[cfg(feature = "hsds")]
use crate::counted::counted;
use crate::error::{ChangeRefusal, CommandOutcome, Error, Result};
use crate::escaped_path;
#[cfg(feature = "hsds")]
use crate::ls::text::bytes_text;
#[cfg(feature = "hsds")]
use crate::model::escape;
use crate::object_or_attribute::{self, ObjectOrAttribute};
#[cfg(feature = "hsds")]
use crate::output::StdoutWriter;
use crate::temp_output;

/// Removes links and attributes; or a whole domain of an object store
///
/// An object to which no link leads any more is deleted, and its space used again. `--domain` deletes the domain at the location
/// with all of its objects, or a folder of domains that is empty.
#[derive(Debug, clap::Args)]
pub struct RmCommand {
    /// The file
    file: Location,
    /// Objects, links, or attributes as OBJECT@NAME
    #[arg(required_unless_present = "domain", conflicts_with = "domain")]
    paths: Vec<String>,
    /// Delete the whole domain of an object store (hsds:bucket?domain=/home/me/run), or an empty folder of domains
    #[cfg(feature = "hsds")]
    #[arg(long)]
    domain: bool,
}

impl RmCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// If something is not there; then nothing is removed.
    pub fn run(self) -> Result<CommandOutcome> {
        #[cfg(feature = "hsds")]
        if self.domain {
            return self.remove_domain();
        }
        temp_output::remove_stale_temps_beside(&self.file)?;
        let file = crate::open::command_line_options().write().open(&self.file)?;
        for path in &self.paths {
            self.check(&file, path)?;
        }
        for path in &self.paths {
            self.remove(&file, path)?;
        }
        file.close()?;
        Ok(CommandOutcome::Clean)
    }

    #[cfg(feature = "hsds")]
    fn remove_domain(&self) -> Result<CommandOutcome> {
        let removed = crate::open::with_hsds_location(&self.file, h5live_hsds::remove_domain_or_empty_folder)?;
        let mut out = StdoutWriter::stdout();
        let path = escape(removed.path.as_bytes());
        match &removed.objects_kept_for {
            _ if removed.is_folder => out.line(format_args!("{path}/: the empty folder is deleted"))?,
            Some(other) => {
                let other = escape(other.as_bytes());
                out.line(format_args!("{path}: deleted; its objects stay, because {other} has the same"))?;
            }
            None => {
                let (objects, bytes) =
                    (counted(removed.deleted_object_count, "object"), bytes_text(removed.deleted_bytes));
                out.line(format_args!("{path}: deleted with {objects}, {bytes}"))?;
            }
        }
        out.flush()?;
        Ok(CommandOutcome::Clean)
    }

    /// Whether there is something to remove.
    fn check(&self, file: &File, path: &str) -> Result<()> {
        if path.split('/').all(|name| matches!(name, "" | ".")) {
            return Err(Error::ChangeRefused {
                file: self.file.to_string().into(),
                path: path.to_owned(),
                why: ChangeRefusal::Root,
            });
        }
        // A link that leads nowhere is a link all the same.
        if let Ok(Some(_)) = escaped_path::find_link_path(file, path) {
            return Ok(());
        }
        match object_or_attribute::parse_and_find_object(file, path)? {
            ObjectOrAttribute::AttributeName(object, name)
                if object_or_attribute::find_maybe_escaped_attribute(&object, &name)?.is_none() =>
            {
                let source = h5live::model::Error::NotFound(name.into());
                Err(Error::Store { file: self.file.to_string().into(), path: path.to_owned(), source })
            }
            _ => Ok(()),
        }
    }

    fn remove(&self, file: &File, path: &str) -> Result<()> {
        let link = escaped_path::find_link_path(file, path)?;
        match file.root().unlink_at_bytes(link.as_deref().unwrap_or(path.as_bytes())) {
            Err(error) if error.is_not_found_in_file() && path.contains('@') || path.contains("/@") => {
                match object_or_attribute::parse_and_find_object(file, path) {
                    Ok(ObjectOrAttribute::AttributeName(object, name)) => {
                        object_or_attribute::remove_maybe_escaped_attribute(&object, &name)
                    }
                    _ => Err(error.into()),
                }
            }
            removed => Ok(removed?),
        }
    }
}

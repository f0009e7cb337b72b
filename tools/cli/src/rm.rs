//! `h5live rm`: links and attributes go.

use h5live::{File, Location, Object};

use crate::error::{Error, Outcome, Result, SetRefusal};
use crate::path_target::{self, PathTarget};
use crate::temp_output;

/// Removes links and attributes
///
/// An object to which no link leads any more is deleted, and its space used again.
#[derive(Debug, clap::Args)]
pub struct Rm {
    /// The file
    file: Location,
    /// Objects, links, or attributes as OBJECT@NAME
    #[arg(required = true)]
    paths: Vec<String>,
}

impl Rm {
    /// Runs the command.
    ///
    /// # Errors
    /// If something is not there; then nothing is removed.
    pub fn run(self) -> Result<Outcome> {
        temp_output::sweep_beside(&self.file)?;
        let file = crate::open::options().write().open(&self.file)?;
        for path in &self.paths {
            self.check(&file, path)?;
        }
        for path in &self.paths {
            self.remove(&file, path)?;
        }
        file.close()?;
        Ok(Outcome::Clean)
    }

    /// Whether there is something to remove.
    fn check(&self, file: &File, path: &str) -> Result<()> {
        if path.split('/').all(|name| matches!(name, "" | ".")) {
            return Err(Error::Refused {
                file: self.file.to_string().into(),
                path: path.to_owned(),
                why: SetRefusal::Root,
            });
        }
        // A link that leads nowhere is a link all the same.
        let (above, name) = path.trim_end_matches('/').rsplit_once('/').unwrap_or(("", path));
        let above = if above.is_empty() { "/" } else { above };
        if file.group(above).and_then(|group| group.contains(name)).unwrap_or(false) {
            return Ok(());
        }
        match path_target::find(file, path)? {
            PathTarget::Attribute(object, name) if path_target::attribute(&object, &name)?.is_none() => {
                let source = h5live::model::Error::NotFound(name.into());
                Err(Error::Store { file: self.file.to_string().into(), path: path.to_owned(), source })
            }
            _ => Ok(()),
        }
    }

    fn remove(&self, file: &File, path: &str) -> Result<()> {
        match file.root().unlink(path) {
            Err(error) if error.is_not_found() && path.contains('@') || path.contains("/@") => {
                match path_target::find(file, path) {
                    Ok(PathTarget::Attribute(object, name)) => Ok(match &object {
                        Object::Group(group) => group.remove_attribute(&name),
                        Object::Dataset(dataset) => dataset.remove_attribute(&name),
                        Object::Datatype(datatype) => datatype.remove_attribute(&name),
                        Object::Map(map) => map.remove_attribute(&name),
                        _ => Err(error),
                    }?),
                    _ => Err(error.into()),
                }
            }
            removed => Ok(removed?),
        }
    }
}

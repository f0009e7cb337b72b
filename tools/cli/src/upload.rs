//! New files on object stores: made on this machine, and written there when they are complete.

use std::path::PathBuf;

use h5live::{Location, OpenError};
use h5live_objects::{ObjectClient, ObjectError, ObjectErrorKind};
use h5live_output::ScratchFolder;
use h5live_remote::RemoteLocation;

use crate::error::{Error, Result};
use crate::open;
use crate::temp_output::ForceArgs;

/// A native file that becomes an object when it is complete.
#[derive(Debug)]
pub struct UploadOutput {
    scratch: ScratchFolder,
    location: Location,
    file: RemoteLocation,
    client: ObjectClient,
    force: ForceArgs,
}

impl UploadOutput {
    /// A new file for a location; `None` if that is not on an object store.
    ///
    /// # Errors
    /// [`Error::OpenFailed`] if it cannot be written there, or is there and not to be replaced.
    pub fn prepare_for(location: &Location, force: ForceArgs) -> Result<Option<Self>> {
        let Some((file, options)) = open::remote_file_and_options(location)? else { return Ok(None) };
        let failed = failed_at(location);
        let client = file.place.build_client(&options.objects).map_err(&failed)?;
        if !force.replaces_file {
            match client.head(&file.key) {
                Err(error) if error.kind == ObjectErrorKind::NotThere => {}
                Err(error) => return Err(failed(error)),
                Ok(_) => {
                    return Err(failed(ObjectError::new(
                        ObjectErrorKind::Exists,
                        client.object_display_name(&file.key),
                        "",
                    )));
                }
            }
        }
        let scratch = ScratchFolder::new("copy", true)?;
        Ok(Some(UploadOutput { scratch, location: location.clone(), file, client, force }))
    }

    /// Where the file is until it is complete.
    pub fn local_path(&self) -> PathBuf {
        self.scratch.path().join("file.h5")
    }

    /// Writes the file to its place.
    ///
    /// # Errors
    /// [`Error::OpenFailed`].
    pub fn persist(self) -> Result<()> {
        let written = self.client.put_file(&self.file.key, &self.local_path(), self.force.replaces_file);
        written.map(drop).map_err(failed_at(&self.location))
    }
}

fn failed_at(location: &Location) -> impl Fn(ObjectError) -> Error {
    let location = location.to_string();
    move |error| {
        let source = Box::new(OpenError::Store(error.into()));
        Error::OpenFailed { location: location.clone(), source }
    }
}

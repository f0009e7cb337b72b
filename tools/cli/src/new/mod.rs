//! `h5live new`: files from a description.

mod build;
mod fields;

use std::path::PathBuf;

use h5live::{LibVer, Location};

use crate::checked_json::DuplicateCheckedJson;
use crate::conversion_args::ConversionArgs;
use crate::error::{CommandOutcome, Error, Result};
use crate::file_space_args::{DEFAULT_OFFSET_SIZE, FileSpaceArgs};
use crate::model::FileSpaceSettings;
use crate::new_output::NewOutput;
use crate::temp_output::ForceArgs;

pub use fields::DescriptionFault;

/// Makes a file from a description: JSON, as `dump --json FILE` writes it
///
/// The description is that of the root group; docs/description.md lists its fields.
#[derive(Debug, clap::Args)]
pub struct NewCommand {
    /// The new file
    file: Location,
    /// The file with the description; standard input if there is none, or -
    description: Option<PathBuf>,
    /// The oldest HDF5 release that is to read it: earliest, v18, v110, v112, v114, v200, latest; v110 by default
    #[arg(long)]
    profile: Option<LibVer>,
    #[command(flatten)]
    space: FileSpaceArgs,
    #[command(flatten)]
    lossy: ConversionArgs,
    #[command(flatten)]
    force: ForceArgs,
}

impl NewCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// If the description is none, or contradicts itself; then there is no new file.
    pub fn run(self) -> Result<CommandOutcome> {
        let description = self.description.as_ref().filter(|path| path.as_os_str() != "-");
        let text = match description {
            Some(path) => std::fs::read_to_string(path).map_err(|source| Error::Io { path: path.clone(), source })?,
            None => std::io::read_to_string(std::io::stdin()).map_err(Error::Stdin)?,
        };
        let wrong = |fault| Error::InvalidDescription { file: description.cloned(), fault };
        let json: DuplicateCheckedJson =
            serde_json::from_str(&text).map_err(|error| wrong(DescriptionFault::InvalidJson(error)))?;
        if let Some(key) = json.repeated_key_path {
            return Err(wrong(DescriptionFault::RepeatedKey(key)));
        }
        self.make(&json.value).map_err(|error| match error {
            Error::InvalidDescription { fault, .. } => wrong(fault),
            other => other,
        })
    }

    fn make(&self, json: &serde_json::Value) -> Result<CommandOutcome> {
        let output = NewOutput::prepare_for(&self.file, self.force)?;
        let place = crate::open::new_native_file_path(&self.file)?;
        if let (Some(place), false) = (&place, self.force.replaces_file) {
            build::refuse_existing_raw_files(place, json)?;
        }
        let mut options =
            crate::open::command_line_options().conversion(self.lossy.conversion()).root(build::root(json)?);
        let (space, offset_size) = (build::parse_file_space(json)?, build::parse_offset_size(json)?);
        // What is as by default is no option, so that stores without such options take the file.
        if let Some(profile) = self.profile {
            options = options.libver(profile);
        }
        if self.space.is_given() || space != FileSpaceSettings::default() {
            options = options.file_space(self.space.or(space));
        }
        if offset_size != DEFAULT_OFFSET_SIZE {
            options = options.offset_size(offset_size);
        }
        let file = output.create_file(options)?;
        let raw_files = place.map(|place| build::NewRawFiles::create(&place, json)).transpose()?;
        build::fill(&file, json)?;
        output.persist(file)?;
        raw_files.into_iter().for_each(build::NewRawFiles::keep);
        Ok(CommandOutcome::Clean)
    }
}

//! `h5live tar merge`: the archives of several files in one.

use h5live::{File, Location};
use h5live_archive::{ImportOptions, Importer, OnCollision, TarFile, TarLayout, layout_of, merge};

use crate::counted::counted;
use crate::error::{Error, Outcome, Result};
use crate::temp_output::ForceArgs;
use crate::{open, progress};

/// What `merge` is told.
#[derive(Debug, clap::Args)]
pub struct MergeArgs {
    /// The new file
    to: Location,
    /// The files whose archives it gets, in this order
    #[arg(required = true)]
    files: Vec<Location>,
    /// How the contents are kept: as in the first file, if it is not said
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<TarLayout>,
    /// What is done with a path that is taken, in the layout compactor: error, skip, alias, suffix
    #[arg(long, value_name = "WHAT", default_value = "error")]
    on_collision: OnCollision,
    #[command(flatten)]
    force: ForceArgs,
    /// Say nothing
    #[arg(short, long)]
    quiet: bool,
}

impl MergeArgs {
    pub fn run(self) -> Result<Outcome> {
        let from: Vec<TarFile> = self.files.iter().map(super::read).collect::<Result<_>>()?;
        let Some(first) = from.first() else { return Ok(Outcome::Clean) };
        let layout = match self.layout {
            Some(layout) => layout,
            None => layout_of(first.file())?,
        };
        let options = ImportOptions { layout, on_collision: self.on_collision, ..ImportOptions::default() };
        let to = self.create(options)?;
        let bar = progress::counter("entry");
        let (mut archives, mut samples) = (0u64, 0);
        for tar in &from {
            for archive in tar.archives() {
                let report = merge(tar, archive, &to, options, &mut |now| bar.set_position(now.entries))?;
                archives += 1;
                samples = report.samples;
            }
        }
        bar.finish_and_clear();
        to.close()?;
        if !self.quiet {
            println!("{}, {}", counted(archives, "archive"), counted(samples, "sample"));
        }
        Ok(Outcome::Clean)
    }

    fn create(&self, options: ImportOptions) -> Result<File> {
        let new = if self.force.replaces_file { open::options().create() } else { open::options().create_new() };
        let new = match open::file_path(&self.to)? {
            Some(path) if !self.force.replaces_file && path.symlink_metadata().is_ok() => {
                return Err(Error::Exists { path });
            }
            Some(_) => h5live_archive::file_options(new),
            None => new,
        };
        let file = new.open(&self.to)?;
        drop(Importer::create(&file, options)?);
        Ok(file)
    }
}

//! `h5live tar merge`: the archives of several files in one.

use std::path::{Path, PathBuf};

use h5live::{File, Location, ReferencedFileRole};
use h5live_archive::{
    ImportCollisionPolicy, ImportOptions, ImportedTar, Importer, TarLayout, VirtualMerge, import_layout_kind,
    merge_archive,
};

use crate::copy::FileNameRebaser;
use crate::counted::counted;
use crate::error::{CommandOutcome, Error, Result};
use crate::model::Name;
use crate::new_output::NewOutput;
use crate::temp_output::ForceArgs;
use crate::{open, progress};

/// What `merge` is told.
#[derive(Debug, clap::Args)]
pub struct TarMergeImportsArgs {
    /// The new file
    to: Location,
    /// The files whose archives it gets, in this order
    #[arg(required = true, value_name = "FILES")]
    imported_files: Vec<Location>,
    /// How the contents are kept: as in the first file, if it is not said
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<TarLayout>,
    /// Leave the contents in the files: the new file's image is a virtual dataset over theirs (layout shredder)
    #[arg(long = "virtual", conflicts_with_all = ["layout", "on_collision"])]
    is_virtual: bool,
    /// What is done with a path that is taken, in the layout compactor: error, skip, alias, suffix
    #[arg(long, value_name = "WHAT", default_value = "error")]
    on_collision: ImportCollisionPolicy,
    #[command(flatten)]
    force: ForceArgs,
    /// Say nothing
    #[arg(short, long)]
    quiet: bool,
}

impl TarMergeImportsArgs {
    pub fn run(self) -> Result<CommandOutcome> {
        if self.is_virtual {
            return self.merge_virtual();
        }
        let from: Vec<ImportedTar> = self.imported_files.iter().map(super::opened::read).collect::<Result<_>>()?;
        let Some(first) = from.first() else { return Ok(CommandOutcome::Clean) };
        let layout = match self.layout {
            Some(layout) => layout,
            None => import_layout_kind(first.file())?,
        };
        let options = ImportOptions { layout, on_collision: self.on_collision, ..ImportOptions::default() };
        let output = NewOutput::prepare_for(&self.to, self.force)?;
        let to = open_new(&output)?;
        drop(Importer::create(&to, options)?);
        let bar = progress::counter("entry");
        let (mut archives, mut samples) = (0u64, 0);
        for tar in &from {
            for archive in tar.archives() {
                let report = merge_archive(tar, archive, &to, options, &mut |now| {
                    bar.set_position(now.entries_so_far_all_archives)
                })?;
                archives += 1;
                samples = report.samples_in_all_archives;
            }
        }
        bar.finish_and_clear();
        output.persist(to)?;
        self.report(archives, samples)
    }

    fn report(&self, archives: u64, samples: u64) -> Result<CommandOutcome> {
        if !self.quiet {
            println!("{}, {}", counted(archives, "archive"), counted(samples, "sample"));
        }
        Ok(CommandOutcome::Clean)
    }

    fn merge_virtual(&self) -> Result<CommandOutcome> {
        let to = self.view_path(&self.to)?;
        let from = self.imported_files.iter().map(|file| {
            let path = self.view_path(file)?;
            Ok((super::opened::read(file)?, source_name(&path, &to)))
        });
        let from = from.collect::<Result<Vec<_>>>()?;
        let merge = VirtualMerge::of(from)?;
        let output = NewOutput::prepare_for(&self.to, self.force)?;
        let file = open_new(&output)?;
        let made = merge.write(&file, true)?;
        output.persist(file)?;
        self.report(made.archives, made.samples)
    }

    /// The path of a file that has a virtual dataset or is a source of one.
    fn view_path(&self, location: &Location) -> Result<PathBuf> {
        open::native_file_path(location)?.ok_or_else(|| Error::NotNativeFile { location: location.to_string() })
    }
}

/// Makes the file for merged archives.
fn open_new(output: &NewOutput) -> Result<File> {
    let new = open::command_line_options();
    output.create_file(if output.is_native() { h5live_archive::with_libver_v18(new) } else { new })
}

/// The name of a file as a virtual dataset of another file has it.
fn source_name(file: &Path, holder: &Path) -> Name {
    let bytes = file.file_name().unwrap_or_default().as_encoded_bytes();
    let doubled = bytes.iter().flat_map(|byte| std::iter::repeat_n(*byte, if *byte == b'%' { 2 } else { 1 }));
    let name: Name = doubled.collect::<Vec<u8>>().into();
    match FileNameRebaser::between_files(file, holder) {
        Some(moved) => moved.rebase(&name, ReferencedFileRole::VirtualSource),
        None => name,
    }
}

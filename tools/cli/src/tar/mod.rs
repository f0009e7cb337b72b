//! `h5live tar`: training sets from tar archives, and back.

mod check;
mod import;
mod list;
mod merge;
mod opened;
mod write;

use std::path::PathBuf;

use h5live::Location;
use h5live_archive::{ExtractOptions, ImportedTar};

use crate::error::{CommandOutcome, Result};
use crate::temp_output::ForceArgs;

use opened::read;

/// Training sets: tar archives into HDF5 files, read at random, and back
#[derive(Debug, clap::Args)]
pub struct TarCommand {
    #[command(subcommand)]
    action: TarAction,
}

#[derive(Debug, clap::Subcommand)]
enum TarAction {
    /// What is in an archive: entries by kind, sizes, duplicates, names that collide or are unsafe, and damage
    Check(check::TarCheckArgs),
    /// Put an archive into a file; `-` is standard input. gzip, xz, zstd, bzip2, lz4 and lzip are recognized
    Import(import::TarImportArgs),
    /// Make the archive again, byte for byte (without the compression that it had)
    Export {
        /// The file
        file: Location,
        /// The new archive; standard output without one, or for `-`
        to: Option<PathBuf>,
        /// Which archive of the file, from 0
        #[arg(long, value_name = "NUMBER")]
        archive: Option<u64>,
        #[command(flatten)]
        verify: VerifyArgs,
        #[command(flatten)]
        force: ForceArgs,
    },
    /// Take back an import that did not end (an error, a kill, a full disk): the file has again the archives that it had before
    Rollback {
        /// The file
        file: Location,
    },
    /// Put the archives of several files into one
    Merge(merge::TarMergeImportsArgs),
    /// List the entries
    Ls {
        /// The file
        file: Location,
        /// Only entries whose paths match, as in '**/*.jpg'
        #[arg(long, value_name = "PATTERN")]
        glob: Option<String>,
        /// Permissions, owners, sizes and times, too
        #[arg(short, long)]
        long: bool,
        /// Lines of JSON
        #[arg(long, conflicts_with = "long")]
        json: bool,
    },
    /// Write the contents of files to standard output
    Cat {
        /// The file
        file: Location,
        /// Paths in the archive
        #[arg(required_unless_present = "sample")]
        paths: Vec<String>,
        /// Numbers of samples, from 0
        #[arg(long, value_name = "NUMBER", conflicts_with = "paths")]
        sample: Vec<u64>,
        #[command(flatten)]
        verify: VerifyArgs,
    },
    /// Make files of the entries; nothing is written outside of the folder
    Extract {
        /// The file
        file: Location,
        /// The folder
        to: PathBuf,
        /// Only entries whose paths match, as in '**/*.jpg'
        #[arg(long, value_name = "PATTERN")]
        glob: Option<String>,
        /// Say nothing of entries that are left out, and of what cannot be set
        #[arg(short, long)]
        quiet: bool,
        #[command(flatten)]
        set: ExtractArgs,
        #[command(flatten)]
        verify: VerifyArgs,
    },
    /// Compare all contents with the digests that were made at the import
    Verify {
        /// The files
        #[arg(required = true)]
        files: Vec<Location>,
    },
}

/// Whether contents that are read are compared with their digests.
#[derive(Debug, Clone, Copy, clap::Args)]
struct VerifyArgs {
    /// Do not compare the contents with the digests that were made at the import
    #[arg(long)]
    no_verify: bool,
}

/// What is set beside contents, times and permissions.
#[derive(Debug, Clone, clap::Args)]
struct ExtractArgs {
    /// Set owners and groups, by their names if the system has them, else by their numbers. This mostly needs to be root
    #[arg(long)]
    same_owner: bool,
    /// Take the numbers of owners and groups, and not their names
    #[arg(long, requires = "same_owner")]
    numeric_owner: bool,
    /// Set extended attributes: those called user.*, or what --xattrs-include says
    #[arg(long)]
    xattrs: bool,
    /// Set extended attributes whose names match, as in 'user.*' or '*'
    #[arg(long, value_name = "PATTERN")]
    xattrs_include: Vec<String>,
}

impl ExtractArgs {
    fn options(self) -> ExtractOptions {
        let xattrs = match self.xattrs_include {
            patterns if patterns.is_empty() && self.xattrs => vec!["user.*".to_owned()],
            patterns => patterns,
        };
        ExtractOptions { same_owner: self.same_owner, numeric_owner: self.numeric_owner, xattr_patterns: xattrs }
    }
}

impl VerifyArgs {
    /// The tables of a file, to read its contents.
    fn read(self, location: &Location) -> Result<ImportedTar> {
        let tar = read(location)?;
        Ok(if self.no_verify { tar.without_verification() } else { tar })
    }
}

impl TarCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// If an archive or a file cannot be read or written.
    pub fn run(self) -> Result<CommandOutcome> {
        match self.action {
            TarAction::Check(arguments) => arguments.run(),
            TarAction::Import(arguments) => arguments.run(),
            TarAction::Export { file, to, archive, verify, force } => {
                write::export(&verify.read(&file)?, to, archive, force)
            }
            TarAction::Rollback { file } => import::roll_back_tar_import(&file),
            TarAction::Merge(arguments) => arguments.run(),
            TarAction::Ls { file, glob, long, json } => list::list(&read(&file)?, glob.as_deref(), long, json),
            TarAction::Cat { file, paths, sample, verify } => write::cat(&file, &paths, &sample, !verify.no_verify),
            TarAction::Extract { file, to, glob, quiet, set, verify } => {
                write::extract(&verify.read(&file)?, &to, glob.as_deref(), quiet, set.options())
            }
            TarAction::Verify { files } => list::verify_imported_contents(&files),
        }
    }
}

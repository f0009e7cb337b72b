//! `h5live tar import`: an archive into a file.

use std::path::PathBuf;

use h5live::Location;
use h5live_archive::{
    ContentsFilter, CountWithExamples, DigestAlgorithm, ImportCollisionPolicy, ImportOptions, Importer,
    MAX_COMPACT_BYTES, NoneOfAllowedNames, TarLayout, TarSource, choose_zstd_if_compressible,
};

use super::check::next_archive_notice;
use crate::counted::counted;
use crate::error::{CommandOutcome, Error, Result, error_with_causes};
use crate::number_arg::{byte_count, byte_count_within};
use crate::output::eprint_prefixed;
use crate::temp_output::ForceArgs;
use crate::{open, progress};

/// What `import` is told.
#[derive(Debug, clap::Args)]
pub struct TarImportArgs {
    /// The archive; `-` is standard input
    archive: PathBuf,
    /// The new file; with --append or --resume, one that is there
    to: Location,
    /// How the contents are kept: shredder (all in one dataset, with offsets), compactor (a dataset for each file, under its
    /// path), digest (a dataset for each content, under its digest)
    #[arg(long, value_name = "LAYOUT", default_value = "shredder", conflicts_with_all = ["append", "resume"])]
    layout: TarLayout,
    /// The digests of contents: sha1, blake3, xxh3-128. The default is sha1 for the layout digest, as the original program
    /// names datasets, and else xxh3-128
    #[arg(long, value_name = "ALGORITHM", conflicts_with_all = ["append", "resume"])]
    digest: Option<DigestAlgorithm>,
    /// What is done with a path that is taken, in the layout compactor: error, skip (its contents are kept aside), alias (the
    /// same contents are no collision, else suffix), suffix (~1)
    #[arg(long, value_name = "WHAT", default_value = "error")]
    on_collision: ImportCollisionPolicy,
    /// Offsets without the end of the last element, as the original program writes them
    #[arg(long, conflicts_with_all = ["append", "resume"])]
    no_sentinel: bool,
    /// The largest compact dataset (bytes)
    #[arg(long, value_name = "SIZE", default_value_t = MAX_COMPACT_BYTES, value_parser = byte_count)]
    compact_limit: u64,
    /// The most bytes of contents, against archives that unpack to more than a disk has
    #[arg(long, value_name = "SIZE", value_parser = byte_count_within::<1, { u64::MAX }>)]
    max_bytes: Option<u64>,
    /// Compress contents (layout shredder): none; auto (zstd, if it takes at least a tenth off the first contents); deflate,
    /// zstd or lz4. Compressed contents cannot be viewed in the file without a copy
    #[arg(long, value_name = "FILTER", default_value = "none", value_parser = compression)]
    #[arg(conflicts_with_all = ["append", "resume"])]
    compress: Compression,
    /// Publish what is there after so many bytes of contents
    #[arg(long, value_name = "SIZE", default_value_t = 64 << 20, value_parser = byte_count_within::<1, { u64::MAX }>)]
    commit_bytes: u64,
    /// Take what comes before the damage of an archive for the whole
    #[arg(long)]
    salvage: bool,
    /// Pass over blocks of zeros, which end an archive: take the entries of those behind it, too
    #[arg(long)]
    ignore_zeros: bool,
    /// Add the archive to a file that has others
    #[arg(long, conflicts_with = "resume")]
    append: bool,
    /// Continue the import of this archive, which was interrupted
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    force: ForceArgs,
    /// Say nothing
    #[arg(short, long)]
    quiet: bool,
}

/// When contents are compressed.
#[derive(Debug, Clone, Copy)]
enum Compression {
    Never,
    Auto,
    Always(ContentsFilter),
}

fn compression(text: &str) -> std::result::Result<Compression, NoneOfAllowedNames> {
    match text {
        "none" => Ok(Compression::Never),
        "auto" => Ok(Compression::Auto),
        name => name.parse().map(Compression::Always),
    }
}

impl TarImportArgs {
    pub fn run(self) -> Result<CommandOutcome> {
        let mut source = TarSource::open_file_or_stdin(&self.archive)?;
        let filter = match self.compress {
            Compression::Auto => choose_zstd_if_compressible(&mut source)?,
            Compression::Always(filter) => Some(filter),
            Compression::Never => None,
        };
        let importer = self.importer(ImportOptions { filter, ..self.options() })?;
        let bar = source.file_len.map_or_else(|| progress::counter("entry"), progress::bytes);
        let is_sized = source.file_len.is_some();
        let mut show = |now: h5live_archive::ImportProgress| {
            bar.set_position(if is_sized { now.file_bytes_read } else { now.entries_so_far_all_archives });
        };
        let done = if self.resume { importer.resume(source, &mut show) } else { importer.import(source, &mut show) };
        bar.finish_and_clear();
        let report = done.inspect_err(|_| self.tell_rollback())?;
        if !self.quiet {
            if report.files_denied_own_path.count > 0 {
                eprint_prefixed(moved_text(&report.files_denied_own_path));
            }
            let (samples, bytes) = (
                counted(report.samples_in_all_archives, "sample"),
                counted(report.content_bytes_in_all_archives, "byte"),
            );
            println!("{}, {samples}, {bytes}", counted(report.entries_in_this_archive, "entry"));
        }
        let more =
            report.unread_archive_offset.map(|at| format!("{}: {}", self.archive.display(), next_archive_notice(at)));
        let findings: Vec<_> = report.fault.iter().map(|fault| error_with_causes(fault)).chain(more).collect();
        findings.iter().for_each(eprint_prefixed);
        Ok(if findings.is_empty() { CommandOutcome::Clean } else { CommandOutcome::Findings })
    }

    /// Says how an import that failed is taken back.
    fn tell_rollback(&self) {
        if self.append {
            eprint_prefixed(format_args!(
                "{}: the archives that were there are as before; `h5live tar rollback` takes back what came of this one, `h5live tar import --resume` continues it",
                self.to
            ));
        }
    }

    fn options(&self) -> ImportOptions {
        let digest = self.digest.unwrap_or(match self.layout {
            TarLayout::Digest => DigestAlgorithm::Sha1,
            _ => DigestAlgorithm::Xxh3_128,
        });
        let default = ImportOptions::default();
        ImportOptions {
            layout: self.layout,
            digest,
            on_collision: self.on_collision,
            offsets_have_sentinel: !self.no_sentinel,
            compact_limit: self.compact_limit,
            max_total_content_bytes: self.max_bytes.unwrap_or(default.max_total_content_bytes),
            commit_bytes: self.commit_bytes,
            finishes_import_at_fault: self.salvage,
            ignores_zeros: self.ignore_zeros,
            ..default
        }
    }

    fn importer(&self, options: ImportOptions) -> Result<Importer> {
        if self.append || self.resume {
            let file = open::command_line_options().write().open(&self.to)?;
            let importer = Importer::open(&file, options)?;
            file.start_swmr()?;
            return Ok(importer);
        }
        let Some(path) = open::new_native_file_path(&self.to)? else {
            let new = if self.force.replaces_file {
                open::command_line_options().create()
            } else {
                open::command_line_options().create_new()
            };
            return Ok(Importer::create(&new.open(&self.to)?, options)?);
        };
        if path.symlink_metadata().is_ok() {
            if !self.force.replaces_file {
                return Err(Error::FileExists { path });
            }
            // A file that a process writes cannot be opened so.
            open::command_line_options().write().open(&*path)?.close()?;
        }
        Ok(Importer::create_file_for_swmr(&path, open::command_line_options(), options)?)
    }
}

/// Takes back an import that did not end.
pub fn roll_back_tar_import(location: &Location) -> Result<CommandOutcome> {
    let file = open::command_line_options().write().open(location)?;
    let report = Importer::open(&file, ImportOptions::default())?.roll_back()?;
    file.close()?;
    let (entries, archives) = (counted(report.removed_entries, "entry"), counted(report.kept_archives, "archive"));
    if report.removed_links.count > 0 {
        println!(
            "{} removed, which the file did not have before: {}",
            counted(report.removed_links.count, "link"),
            named(&report.removed_links)
        );
    }
    println!("{entries} taken back; the file has {archives}, as before");
    Ok(CommandOutcome::Clean)
}

/// Which entries have no object under their path.
fn moved_text(moved: &CountWithExamples) -> String {
    let entries = counted(moved.count, "entry");
    format!("{entries} without an object under the path, which is taken or cannot be one: {}", named(moved))
}

/// The first of some paths.
fn named(found: &CountWithExamples) -> String {
    let examples: Vec<String> = found.examples.iter().map(|path| format!("\"{path}\"")).collect();
    let more = if found.count > examples.len() as u64 { ", ..." } else { "" };
    format!("{}{more}", examples.join(", "))
}

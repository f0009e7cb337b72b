//! `h5live copy`: writes files anew.

mod filter;
#[cfg(feature = "hsds")]
mod link;
mod names;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

use clap::{Args, ValueEnum};
use h5live::model::{FileSpaceSettings, ObjectKindSpec, ObjectSpec};
use h5live::{
    Attribute, Copier, CopyReport, DroppedFillValue, File, Group, LibVer, Location, LostReferences, ObjectMetadataKind,
    Options, SkippedItem, WalkItem,
};
use h5live_format::Superblock;
use h5live_output::replace_temp_names;

pub use self::filter::FilterArg;
#[cfg(feature = "hsds")]
use self::link::{ChunkLinkPlan, ChunkLinker};
pub(crate) use self::names::FileNameRebaser;
pub(crate) use self::names::ReferencedFileNameMapper;
use crate::counted::counted;
use crate::error::{CommandOutcome, Error, Result};
use crate::escaped_path;
use crate::file_space_args::FileSpaceArgs;
use crate::new_output::NewOutput;
use crate::number_arg::at_least;
use crate::output::{StdoutWriter, eprint_line};
use crate::temp_output::ForceArgs;
use crate::{open, progress};

/// An attribute with a value of more bytes may not fit a message of 64 KiB, together with its name, type and shape.
const LARGE_ATTRIBUTE_BYTES: usize = 56 << 10;
/// Bytes of elements after which a new store is flushed that keeps changes in memory until then: longer commits only take more
/// memory, and the time to get it.
const MAX_UNFLUSHED_BYTES: u64 = 4 << 20;

/// Writes a file anew: without gaps, with other chunks or filters, for older or newer programs.
///
/// The new file appears when it is complete; with --force it replaces an existing one. Chunks that are copied as they
/// are stored are also decoded, to verify them. A chunk that cannot be decoded is copied all the same. Exit code 0:
/// everything was verified, and is in the new file; 1: the new file holds chunks that cannot be decoded, or lacks something that standard
/// error names: what its store does not keep, a fill value that does not fit, references to objects that are not copied, sources
/// that are not there, what --on-unsupported=skip and --on-damage=skip leave out; 2: there is no new file.
#[derive(Debug, Args)]
pub struct CopyCommand {
    /// The file to copy
    #[arg(value_name = "SRC")]
    from: Location,
    /// The new file
    #[arg(value_name = "DST")]
    to: Location,
    /// The oldest HDF5 release that is to read it: earliest, v18, v110, v112, v114, v200, latest; v110 by default
    #[arg(long)]
    profile: Option<LibVer>,
    /// Dimensions of chunks, for the datasets that have as many dimensions
    #[arg(long, visible_alias = "chunk", value_delimiter = ',', value_name = "N,..", value_parser = at_least::<1, u64>)]
    chunks: Vec<u64>,
    /// A filter, with its parameters: deflate:4, shuffle, fletcher32, szip, zstd:3, ...; none for no filters at all.
    /// Given several times, they come one after the other
    #[arg(long, value_name = "NAME[:N,..]")]
    filter: Vec<FilterArg>,
    /// Copy only the objects at these paths. Behind the files, or with `--` after the last path
    #[arg(long, num_args = 1.., value_name = "PATH")]
    select: Vec<String>,
    #[command(flatten)]
    space: FileSpaceArgs,
    #[command(flatten)]
    force: ForceArgs,
    /// Copy the elements of virtual datasets and of raw files to the new file, too
    #[arg(long)]
    inline: bool,
    /// Move no data: the new domain of an object store (hsds:, hsds+s3:) has the chunks of SRC, which is a native file in
    /// the same bucket, and must not change any more. Datasets whose chunks cannot be read there are copied
    #[cfg(feature = "hsds")]
    #[arg(long, conflicts_with_all = ["chunks", "filter", "inline"])]
    link: bool,
    /// Leave the names of other files as they are. Otherwise, a copy in another folder has names that still lead there
    #[arg(long)]
    keep_names: bool,
    /// What to do with an object, attribute or link that the new store cannot hold, or h5live cannot read
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    on_unsupported: OnObstacle,
    /// What to do with an object, attribute or link that is damaged
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    on_damage: OnObstacle,
    /// Do not decode chunks that are copied as they are stored; this is faster for compressed chunks
    #[arg(long)]
    no_verify: bool,
    /// Say nothing
    #[arg(short, long)]
    quiet: bool,
}

/// What a copy does with what cannot be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum OnObstacle {
    /// The copy fails
    #[default]
    Error,
    /// It is left out and named; exit code 1
    Skip,
}

impl CopyCommand {
    /// Copies all of a file, as it is.
    pub fn for_whole_file(from: Location, to: Location, force: ForceArgs, quiet: bool) -> Self {
        CopyCommand {
            from,
            to,
            profile: None,
            chunks: Vec::new(),
            filter: Vec::new(),
            select: Vec::new(),
            space: FileSpaceArgs::default(),
            force,
            inline: false,
            #[cfg(feature = "hsds")]
            link: false,
            keep_names: false,
            on_unsupported: OnObstacle::Error,
            on_damage: OnObstacle::Error,
            no_verify: false,
            quiet,
        }
    }

    /// Copies the file.
    ///
    /// # Errors
    /// If the file cannot be read, or the new one not be written; then there is no new file.
    pub fn run(&self) -> Result<CommandOutcome> {
        let from = open::for_reading(&self.from)?;
        let output = NewOutput::prepare_for(&self.to, self.force)?;
        let root = from.root();
        // Attributes of the root group that cannot be listed are told of when they are copied, if they may be left out.
        let large_attributes = match self.on_damage {
            OnObstacle::Error => has_large_attributes(&root)?,
            OnObstacle::Skip => has_large_attributes(&root).unwrap_or(false),
        };
        let options = open::command_line_options().root(described_with(&root, large_attributes)?);
        let options = if output.is_native() { self.native_options(options, &from)? } else { self.asked_for(options) };
        #[cfg(feature = "hsds")]
        let domain =
            self.link.then(|| ChunkLinkPlan::new(&self.from, &self.to, output.draft_domain_session())).transpose()?;
        let output_is_native = output.is_native();
        let to = output.create_file(options)?;
        #[cfg(feature = "hsds")]
        let mut links = domain.map(ChunkLinkPlan::into_chunk_linker).transpose()?;
        let bar = if self.quiet || !io::stderr().is_terminal() {
            indicatif::ProgressBar::hidden()
        } else {
            progress::bytes(stored_bytes(&root))
        };
        let names = (!self.keep_names).then(|| ReferencedFileNameMapper::between(&self.from, &self.to)).transpose()?;
        let mut copy = Copier::new(&from, &to).verify(!self.no_verify).progress(|bytes| bar.inc(bytes));
        if output.buffers_until_flush() {
            copy = copy.flush_every(MAX_UNFLUSHED_BYTES);
        }
        copy = self.with_changes(copy, names.as_ref())?;
        #[cfg(feature = "hsds")]
        if let Some(links) = &mut links {
            copy = copy.elements_by(|dataset| links.link_chunks(dataset));
        }
        if self.select.is_empty() {
            copy.contents(&root, &to.root())?;
        }
        for path in &self.select {
            let (object, path) = escaped_path::object_at_maybe_escaped_path(&from, path)?;
            copy.object_at_bytes(&object, &to.root(), &path)?;
        }
        let report = copy.copy_data_and_finish()?;
        output.persist(to)?;
        bar.finish_and_clear();
        if !self.quiet {
            self.sizes()?;
            losses(&report).iter().for_each(|loss| eprint_line(replace_temp_names(loss)));
            names.iter().flat_map(ReferencedFileNameMapper::lost_name_messages).for_each(eprint_line);
            #[cfg(feature = "hsds")]
            links.iter().for_each(ChunkLinker::eprint_summary);
        }
        let user_block = if output_is_native { 0 } else { self.user_block()?.len() };
        if user_block > 0 && !self.quiet {
            let lost = counted(user_block, "byte");
            eprintln!("left out: the user block of {lost}, for which only native files have room");
        }
        let named = if user_block > 0 { CommandOutcome::Findings } else { CommandOutcome::Clean };
        let named = named.worse(names.map_or(CommandOutcome::Clean, |names| names.outcome()));
        Ok(if report.is_clean() { named } else { CommandOutcome::Findings })
    }

    /// The copy, with what is asked for that changes datasets or names.
    fn with_changes<'a>(
        &self,
        mut copy: Copier<'a>,
        names: Option<&'a ReferencedFileNameMapper>,
    ) -> Result<Copier<'a>> {
        copy = copy.inline_external_storage_and_virtual(self.inline).skip_damaged(self.on_damage == OnObstacle::Skip);
        copy = copy.skip_unsupported(self.on_unsupported == OnObstacle::Skip);
        if let Some(names) = names {
            copy = copy.rewrite_file_names(|file_name, role| names.rename_and_record_lost(file_name, role));
        }
        if !self.chunks.is_empty() {
            copy = copy.chunk(&self.chunks);
        }
        if !self.filter.is_empty() {
            copy = copy.filters(&self.filter.iter().filter_map(|filter| filter.0.clone()).collect::<Vec<_>>());
        }
        Ok(copy)
    }

    /// The options of a new native file that is like `from` where nothing else is asked for.
    fn native_options(&self, options: Options, from: &File) -> Result<Options> {
        let profile = self.profile.unwrap_or_default();
        // Before 1.10 nobody knew of anything but the default.
        let space = if profile >= LibVer::V110 { from.file_space() } else { FileSpaceSettings::default() };
        let options = options.libver(profile).file_space(self.space.or(space)).offset_size(from.offset_size());
        Ok(options.user_block(&self.user_block()?))
    }

    /// The bytes in front of the HDF5 file that is copied, if it is a file of this machine.
    fn user_block(&self) -> Result<Vec<u8>> {
        open::any_file_path(&self.from)?.map_or(Ok(Vec::new()), |path| user_block(&path))
    }

    /// What is asked for that only native files have: another store refuses it.
    fn asked_for(&self, options: Options) -> Options {
        let options = match self.profile {
            Some(profile) => options.libver(profile),
            None => options,
        };
        if self.space.is_given() { options.file_space(self.space.or(FileSpaceSettings::default())) } else { options }
    }

    /// Says how many bytes the files have, if both are files.
    fn sizes(&self) -> Result<()> {
        let (Some(from), Some(to)) = (open::any_file_path(&self.from)?, open::any_file_path(&self.to)?) else {
            return Ok(());
        };
        let size = |path: &Path| {
            let found = fs::metadata(path).map_err(|source| Error::Io { path: path.to_owned(), source });
            Ok::<_, Error>(found?.len())
        };
        let (before, after) = (size(&from)?, size(&to)?);
        let percent = after as f64 / before.max(1) as f64 * 100.0;
        let mut out = StdoutWriter::stdout();
        out.line(format_args!("{} became {after} ({percent:.1} %)", counted(before, "byte")))?;
        out.flush()
    }
}

/// What could not be verified, and what the copy does not have, in lines.
pub(crate) fn losses(report: &CopyReport) -> Vec<String> {
    let mut lines = Vec::new();
    for dataset in &report.undecodable_chunks {
        lines.extend(dataset.first_errors.iter().map(|error| format!("unverified: {error}")));
        let more = dataset.count - dataset.first_errors.len() as u64;
        if more > 0 {
            lines.push(format!("unverified: {}: {} more", dataset.path, counted(more, "chunk")));
        }
    }
    for DroppedFillValue { path, fill_value_size: found, element_size: expected, .. } in &report.dropped_fill_values {
        let (found, expected) = (counted(*found, "byte"), counted(*expected, "byte"));
        lines.push(format!("left out: {path}: a fill value of {found} for elements of {expected}"));
    }
    for path in &report.lossily_reencoded_datasets {
        let what = "its filter does not keep all values, and has encoded them once more";
        lines.push(format!("rounded again: {path}: {what}"));
    }
    lines.extend(report.skipped_items.iter().map(left_out));
    lines.extend(lost_parts(report));
    for LostReferences { path, count, .. } in &report.lost_references {
        lines.push(format!("left out: {path}: {} to objects that are not copied", counted(*count, "reference")));
    }
    if !report.undecodable_chunks.is_empty() {
        let chunks = counted(report.undecodable_chunk_count(), "chunk");
        let datasets = counted(report.undecodable_chunks.len(), "dataset");
        lines.push(format!("copied as stored, and cannot be decoded: {chunks} of {datasets}"));
    }
    lines
}

/// Something that is not in the copy, and why, in a line.
fn left_out(SkippedItem { path, error, .. }: &SkippedItem) -> String {
    match error.object() == Some(path) {
        true => format!("left out: {error:#}"),
        false => format!("left out: {path}: {error:#}"),
    }
}

/// Most objects of which it is said by name what their copies do not have.
const MAX_SHOWN_OBJECTS: usize = 4;

/// What the copies of objects do not have.
fn lost_parts(report: &CopyReport) -> Vec<String> {
    let parts: BTreeSet<ObjectMetadataKind> = report.lost_metadata.iter().map(|lost| lost.part).collect();
    let mut lines = Vec::new();
    for part in parts {
        let mut of_part = report.lost_metadata.iter().filter(|lost| lost.part == part);
        let shown = of_part.by_ref().take(MAX_SHOWN_OBJECTS);
        lines.extend(shown.map(|lost| format!("left out: {}: {part}", lost.path)));
        let more = of_part.count();
        if more > 0 {
            lines.push(format!("left out: {part} of {}", counted(more, "more object")));
        }
    }
    lines
}

/// The bytes of a file before its superblock.
fn user_block(path: &Path) -> Result<Vec<u8>> {
    let failed = |source| Error::Io { path: path.to_owned(), source };
    // A file that is cut into several has none.
    let Ok(mut file) = fs::File::open(path) else { return Ok(Vec::new()) };
    let len = file.metadata().map_err(failed)?.len();
    let mut start = Vec::new();
    for at in Superblock::possible_offsets(len) {
        let missing = at.saturating_add(Superblock::SIGNATURE.len() as u64).saturating_sub(start.len() as u64);
        file.by_ref().take(missing).read_to_end(&mut start).map_err(failed)?;
        let before = usize::try_from(at).unwrap_or(usize::MAX);
        if start.get(before..).is_some_and(|found| found.starts_with(&Superblock::SIGNATURE)) {
            start.truncate(before);
            return Ok(start);
        }
    }
    Ok(Vec::new())
}

/// The description of a group, for another one like it.
pub(crate) fn described(group: &Group) -> Result<ObjectSpec> {
    described_with(group, has_large_attributes(group)?)
}

/// Whether a group has attributes that need an object header of version 2.
fn has_large_attributes(group: &Group) -> Result<bool> {
    let needs_newer_header = |attribute: &Attribute| {
        attribute.raw().len() > LARGE_ATTRIBUTE_BYTES || attribute.datatype().has_number_over_half_unused()
    };
    Ok(group.attributes()?.iter().any(needs_newer_header))
}

fn described_with(group: &Group, large_attributes: bool) -> Result<ObjectSpec> {
    let info = group.info()?;
    let (attributes, times) = (info.attribute_storage, info.times.is_some());
    Ok(ObjectSpec {
        body: ObjectKindSpec::Group(group.spec()?),
        attribute_storage: attributes,
        track_times: times,
        expects_large_attributes: large_attributes,
    })
}

/// Bytes of elements below a group, about.
fn stored_bytes(group: &Group) -> u64 {
    let bytes = |visit| match visit {
        Ok(WalkItem::Object(h5live::Object::Dataset(dataset))) => {
            let spec = group.file().store().dataset(dataset.id()).and_then(|chunks| chunks.spec()).ok()?;
            spec.dataspace.element_count()?.checked_mul(spec.datatype.size().into())
        }
        _ => None,
    };
    group.walk().filter_map(bytes).fold(0, u64::saturating_add)
}

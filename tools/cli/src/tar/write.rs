//! `h5live tar export`, `cat` and `extract`.

use std::fs;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use h5live::Location;
use h5live::archive::Archive;
use h5live_archive::{
    ExtractOptions, Extractor, ImportedTar, SampleDigests, UnsuitableFileReason, choose_archive, unescaped,
};

use super::opened::is_match;
use crate::error::{CommandOutcome, Error, Result};
use crate::open;
use crate::output::{StdoutWriter, eprint_prefixed};
use crate::temp_output::ForceArgs;

pub fn export(
    tar: &ImportedTar,
    to: Option<PathBuf>,
    archive_number: Option<u64>,
    force: ForceArgs,
) -> Result<CommandOutcome> {
    let archive = choose_archive(tar, archive_number)?;
    let Some(path) = to.filter(|path| path.as_os_str() != "-") else {
        h5live_archive::export(tar, archive, &mut BufWriter::with_capacity(1 << 20, io::stdout().lock()))?;
        return Ok(CommandOutcome::Clean);
    };
    let failed = |source| Error::Io { path: path.clone(), source };
    if !force.replaces_file && path.symlink_metadata().is_ok() {
        return Err(Error::FileExists { path });
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.exporting", std::process::id()));
    let unfinished = path.with_file_name(name);
    let file = fs::File::create_new(&unfinished).map_err(failed)?;
    let written = h5live_archive::export(tar, archive, &mut BufWriter::with_capacity(1 << 20, file));
    let done = written.map_err(Error::from).and_then(|()| fs::rename(&unfinished, &path).map_err(failed));
    done.inspect_err(|_| drop(fs::remove_file(&unfinished)))?;
    Ok(CommandOutcome::Clean)
}

/// Writes contents of files with these paths, which may be escaped as `ls` does it, or of samples with these numbers.
pub fn cat(
    location: &Location,
    paths: &[String],
    sample_numbers: &[u64],
    check_digests: bool,
) -> Result<CommandOutcome> {
    let file = open::for_reading(location.clone())?;
    let archive = Archive::open(&file)?;
    // Files of the original programs have no digests.
    let has_tables = h5live_archive::import_layout_kind(&file).is_ok();
    let digests = if check_digests && has_tables { SampleDigests::read_from(&file)? } else { None };
    let mut out = StdoutWriter::stdout();
    let mut write = |sample: u64, contents: Vec<u8>, name: &str| match &digests {
        Some(digests) if !digests.matches_or_unknown(sample, &contents) => {
            Err(h5live_archive::Error::unsuitable_file(&file, UnsuitableFileReason::WrongContents(name.to_owned()))
                .into())
        }
        _ => out.bytes(&contents),
    };
    for path in paths {
        let name = match unescaped(path) {
            Some(name) if !has_name(&archive, path.as_bytes())? && has_name(&archive, &name)? => name,
            _ => path.clone().into_bytes(),
        };
        let contents = archive.read_by_name(&name)?;
        match archive.find_sample(&name)? {
            Some(sample) => write(sample, contents, path)?,
            None => write(u64::MAX, contents, path)?,
        }
    }
    for sample in sample_numbers {
        write(*sample, archive.read(*sample)?, &format!("sample {sample}"))?;
    }
    out.flush()?;
    Ok(CommandOutcome::Clean)
}

/// Whether a file of the archive has this name, also one without contents.
fn has_name(archive: &Archive, name: &[u8]) -> Result<bool> {
    Ok(archive.find_sample(name)?.is_some() || archive.read_by_name(name).is_ok())
}

pub fn extract(
    tar: &ImportedTar,
    to: &Path,
    glob: Option<&str>,
    quiet: bool,
    options: ExtractOptions,
) -> Result<CommandOutcome> {
    let report = Extractor::open_or_create_target(tar, to)?.options(options).extract(&|path| is_match(glob, path))?;
    if !quiet {
        for (path, why) in &report.refused_paths_with_reasons {
            eprint_prefixed(format_args!("\"{path}\" is not extracted: {why}"));
        }
        for (path, what) in &report.metadata_failures {
            eprint_prefixed(format_args!("\"{path}\" is extracted without {what}"));
        }
    }
    Ok(if report.refused_paths_with_reasons.is_empty() && report.metadata_failures.is_empty() {
        CommandOutcome::Clean
    } else {
        CommandOutcome::Findings
    })
}

//! `h5live tar export`, `cat` and `extract`.

use std::fs;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use h5live::Location;
use h5live::archive::Archive;
use h5live_archive::{Extractor, TarFile, choose_archive};

use super::is_match;
use crate::error::{Error, Outcome, Result};
use crate::open;
use crate::output::Output;
use crate::temp_output::ForceArgs;

pub fn export(tar: &TarFile, to: Option<PathBuf>, number: Option<u64>, force: ForceArgs) -> Result<Outcome> {
    let archive = choose_archive(tar, number)?;
    let Some(path) = to.filter(|path| path.as_os_str() != "-") else {
        h5live_archive::export(tar, archive, &mut BufWriter::with_capacity(1 << 20, io::stdout().lock()))?;
        return Ok(Outcome::Clean);
    };
    let failed = |source| Error::Path { path: path.clone(), source };
    if !force.replaces_file && path.symlink_metadata().is_ok() {
        return Err(Error::Exists { path });
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.exporting", std::process::id()));
    let unfinished = path.with_file_name(name);
    let file = fs::File::create_new(&unfinished).map_err(failed)?;
    let written = h5live_archive::export(tar, archive, &mut BufWriter::with_capacity(1 << 20, file));
    let done = written.map_err(Error::from).and_then(|()| fs::rename(&unfinished, &path).map_err(failed));
    done.inspect_err(|_| drop(fs::remove_file(&unfinished)))?;
    Ok(Outcome::Clean)
}

pub fn cat(location: &Location, paths: &[String], samples: &[u64]) -> Result<Outcome> {
    let archive = Archive::open(&open::for_reading(location.clone())?)?;
    let mut out = Output::stdout();
    for path in paths {
        out.bytes(&archive.read_by_name(path)?)?;
    }
    for sample in samples {
        out.bytes(&archive.read(*sample)?)?;
    }
    out.flush()?;
    Ok(Outcome::Clean)
}

pub fn extract(tar: &TarFile, to: &Path, glob: Option<&str>, quiet: bool) -> Result<Outcome> {
    let report = Extractor::new(tar, to)?.extract(&|path| is_match(glob, path))?;
    if !quiet {
        for (path, why) in &report.refused {
            eprintln!("h5live: {path:?} is not extracted: {why}");
        }
    }
    Ok(if report.refused.is_empty() { Outcome::Clean } else { Outcome::Findings })
}

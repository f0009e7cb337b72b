//! From a file of HDF5 to files: nothing is written outside of the target, and no link is made that leads out of it.
//!
//! Everything is done below one open folder, by `cap-std`: no name leads out of it, whatever is at that name when it is used, and
//! whoever changes it meanwhile (on Linux, the system call `openat2` sees to it). Entries whose paths are absolute or have `..`
//! are not extracted. Symbolic links are made when everything else is there, and nothing is written through one: neither one of
//! the archive nor one that was in the target before.
//!
//! Whether a symbolic link may be made is decided by what it leads to when it is made, and not by its names alone. `..` is
//! followed through folders only. Behind a link, or behind a name that is not there yet, it would lead elsewhere as soon as
//! another link takes this name. So links that stay below the target now do so later, too.

use std::fs::FileTimes;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cap_fs_ext::{DirExt, SystemTimeSpec};
#[cfg(unix)]
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use h5live::archive::layout::{EntryRow, NO_SAMPLE};

use crate::entry::is_file_or_unknown_kind;
use crate::error::{Error, Result, UnsuitableFileReason, WRONG_DIGEST};
use crate::extract_owner::ExtractOptions;
use crate::link_target::symlink_target_if_inside;
use crate::owner_and_xattrs::OwnerXattrReader;
use crate::paths::safe_path;
use crate::reader::{CONTENT_PIECE_BYTES, ImportedTar};
use crate::shown_name::escaped;

/// Why a time is not set.
const NO_TIME: &str = "the system has no such time";

/// What was extracted.
#[derive(Debug, Default)]
pub struct ExtractReport {
    /// Files, folders and links that were made.
    pub extracted_entries: u64,
    /// Entries that were left out: path and reason.
    pub refused_paths_with_reasons: Vec<(String, String)>,
    /// What could not be set of entries that were made: path, and what with the reason.
    pub metadata_failures: Vec<(String, String)>,
}

/// Extracts entries into a folder, which is made if it is not there.
#[derive(Debug)]
pub struct Extractor<'a> {
    tar: &'a ImportedTar,
    /// What errors call the target.
    name: PathBuf,
    target: Dir,
    report: ExtractReport,
    options: ExtractOptions,
    attributes: OwnerXattrReader<'a>,
    /// What is made when all files are there: folders get their times, links their targets.
    links: Vec<usize>,
    folders: Vec<usize>,
    /// The symbolic links that were made, with their entries.
    symlinks: Vec<(usize, PathBuf)>,
}

impl<'a> Extractor<'a> {
    /// Extracts into `target`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open_or_create_target(tar: &'a ImportedTar, target: &Path) -> Result<Self> {
        std::fs::create_dir_all(target).map_err(Error::io(target))?;
        let folder = Dir::open_ambient_dir(target, ambient_authority()).map_err(Error::io(target))?;
        let (links, folders, symlinks) = Default::default();
        let (name, report) = (target.to_owned(), ExtractReport::default());
        let (options, attributes) = (ExtractOptions::default(), OwnerXattrReader::new(tar));
        Ok(Extractor { tar, name, target: folder, report, options, attributes, links, folders, symlinks })
    }

    /// Says what else is set.
    pub fn options(self, options: ExtractOptions) -> Self {
        Extractor { options, ..self }
    }

    /// Extracts all entries that `is_wanted` takes, by their paths.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::File`]. An entry that must not be extracted is no error, but in the report.
    pub fn extract(mut self, is_wanted: &dyn Fn(&[u8]) -> bool) -> Result<ExtractReport> {
        let needs_headers = self.options.needs_headers() && !self.tar.has_only_names_and_contents();
        for number in 0..self.tar.rows().len() {
            if let Some(row) = self.row(number).filter(|_| needs_headers) {
                self.attributes.read_next_entry_headers(number, row)?;
            }
            if self.row(number).is_some_and(|row| is_wanted(self.tar.path(row))) {
                self.extract_entry(number)?;
            } else {
                self.attributes.take(number);
            }
        }
        for number in std::mem::take(&mut self.links) {
            self.extract_link(number)?;
        }
        self.remove_links_that_lead_out()?;
        for number in std::mem::take(&mut self.folders).into_iter().rev() {
            self.finish_folder(number);
        }
        Ok(self.report)
    }

    fn row(&self, number: usize) -> Option<&'a EntryRow> {
        self.tar.rows().get(number)
    }

    /// An error at a place below the target.
    fn failed(&self, place: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
        Error::io(self.name.join(place))
    }

    fn refuse(&mut self, row: &EntryRow, why: impl Into<String>) {
        let path = escaped(self.tar.path(row));
        self.report.refused_paths_with_reasons.push((path, why.into()));
    }

    /// Sets what belongs to an open file or folder. What cannot be set is in the report.
    fn set_all(&mut self, number: usize, row: &EntryRow, file: &std::fs::File, mode: u32) {
        let mut unset = Vec::new();
        let mut failed = |what: String, error: io::Error| unset.push(format!("{what}: {error}"));
        let found = self.attributes.take(number);
        self.options.apply_owner_and_xattrs(file, row, &found, &mut failed);
        if let Err(error) = set_mode(file, mode) {
            failed("its permissions".to_owned(), error);
        }
        match modified(row).map(|time| file.set_times(FileTimes::new().set_modified(time))) {
            Some(Ok(())) => {}
            Some(Err(error)) => failed("its time".to_owned(), error),
            None => failed("its time".to_owned(), io::Error::other(NO_TIME)),
        }
        self.tell_unset(row, unset);
    }

    /// Sets what belongs to a symbolic link.
    fn set_all_of_link(&mut self, number: usize, row: &EntryRow, place: &Path) {
        let mut unset = Vec::new();
        let mut failed = |what: String, error: io::Error| unset.push(format!("{what}: {error}"));
        let found = self.attributes.take(number);
        let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match (self.target.open_dir(parent), place.file_name()) {
            (Ok(folder), Some(name)) => self.options.apply_owner_to_symlink((&folder, name), row, &found, &mut failed),
            (Err(error), _) => failed("its folder".to_owned(), error),
            (Ok(_), None) => {}
        }
        let time = modified(row).map(|time| SystemTimeSpec::Absolute(cap_std::time::SystemTime::from_std(time)));
        match time.map(|time| self.target.set_symlink_times(place, None, Some(time))) {
            Some(Ok(())) => {}
            Some(Err(error)) => failed("its time".to_owned(), error),
            None => failed("its time".to_owned(), io::Error::other(NO_TIME)),
        }
        self.tell_unset(row, unset);
    }

    fn tell_unset(&mut self, row: &EntryRow, unset: Vec<String>) {
        let path = escaped(self.tar.path(row));
        self.report.metadata_failures.extend(unset.into_iter().map(|what| (path.clone(), what)));
    }

    fn extract_entry(&mut self, number: usize) -> Result<()> {
        let Some(row) = self.row(number) else { return Ok(()) };
        let path = self.tar.path(row);
        let safe = match safe_path(path) {
            Ok(safe) => safe,
            Err(why) => {
                self.refuse(row, why);
                return Ok(());
            }
        };
        match row.kind {
            b'5' => self.make_folder(number, row, &safe),
            0 if path.ends_with(b"/") => self.make_folder(number, row, &safe),
            b'1' if row.sample == NO_SAMPLE => {
                self.links.push(number);
                Ok(())
            }
            b'2' => {
                self.links.push(number);
                Ok(())
            }
            kind if is_file_or_unknown_kind(kind) || row.sample != NO_SAMPLE => self.write_file(number, row, &safe),
            _ => {
                self.refuse(row, "it is neither a file nor a folder nor a link");
                Ok(())
            }
        }
    }

    /// Makes the folders of a path below the target. Returns whether it is there: one of them may be something else.
    fn make_folders(&mut self, row: &EntryRow, path: &Path) -> Result<bool> {
        let mut folder = PathBuf::new();
        for name in path {
            folder.push(name);
            match self.target.symlink_metadata(&folder) {
                Ok(metadata) if metadata.is_dir() => {}
                Ok(_) => {
                    self.refuse(row, format!("{} is no folder", self.name.join(folder).display()));
                    return Ok(false);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.target.create_dir(&folder).map_err(self.failed(&folder))?;
                }
                Err(error) => return Err(self.failed(&folder)(error)),
            }
        }
        Ok(true)
    }

    /// Makes the place free where a file or a link is to be made, and the folders above it. What was extracted there before is
    /// removed, unless it is a folder. Returns whether it is free.
    fn make_free(&mut self, row: &EntryRow, place: &Path) -> Result<bool> {
        if place.file_name().is_none() {
            self.refuse(row, "its path names nothing");
            return Ok(false);
        }
        if !self.make_folders(row, place.parent().unwrap_or(Path::new("")))? {
            return Ok(false);
        }
        match self.target.symlink_metadata(place) {
            Ok(metadata) if metadata.is_dir() => {
                self.refuse(row, format!("{} is a folder", self.name.join(place).display()));
                return Ok(false);
            }
            Ok(_) => self.target.remove_file(place).map_err(self.failed(place))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(self.failed(place)(error)),
        }
        Ok(true)
    }

    fn make_folder(&mut self, number: usize, row: &EntryRow, safe: &Path) -> Result<()> {
        if self.make_folders(row, safe)? {
            self.folders.push(number);
            self.report.extracted_entries += 1;
        }
        Ok(())
    }

    fn finish_folder(&mut self, number: usize) {
        let Some(row) = self.row(number) else { return };
        let Ok(safe) = safe_path(self.tar.path(row)) else { return };
        let place = if safe.as_os_str().is_empty() { Path::new(".") } else { &safe };
        // A link may have taken its place.
        if !self.target.symlink_metadata(place).is_ok_and(|metadata| metadata.is_dir()) {
            return;
        }
        match open_folder(&self.target, place) {
            Ok(folder) => self.set_all(number, row, &folder, row.mode | 0o700),
            Err(error) => self.tell_unset(row, vec![format!("its permissions and time: {error}")]),
        }
    }

    fn write_file(&mut self, number: usize, row: &EntryRow, place: &Path) -> Result<()> {
        if !self.make_free(row, place)? {
            return Ok(());
        }
        // Fails if somebody has made something there since.
        let made = self.target.open_with(place, OpenOptions::new().write(true).create_new(true));
        let mut file = made.map_err(self.failed(place))?.into_std();
        if row.sample != NO_SAMPLE {
            let written = self.tar.for_each_piece_then_verify(row, &mut |_, piece| {
                match piece.len() as u64 == CONTENT_PIECE_BYTES && piece.iter().all(|byte| *byte == 0) {
                    true => io::Seek::seek_relative(&mut file, CONTENT_PIECE_BYTES as i64),
                    false => file.write_all(piece),
                }
                .map_err(self.failed(place))
            });
            if let Err(error) = written {
                drop(file);
                self.target.remove_file(place).map_err(self.failed(place))?;
                if matches!(error, Error::UnsuitableFile { problem: UnsuitableFileReason::WrongContents(_), .. }) {
                    self.refuse(row, WRONG_DIGEST);
                    return Ok(());
                }
                return Err(error);
            }
            file.set_len(row.size).map_err(self.failed(place))?;
        }
        match self.tar.has_only_names_and_contents() {
            false => self.set_all(number, row, &file, row.mode),
            true if self.options.needs_headers() => {
                self.tell_unset(row, vec!["its owner and extended attributes: they are not known".to_owned()]);
            }
            true => {}
        }
        self.report.extracted_entries += 1;
        Ok(())
    }

    fn extract_link(&mut self, number: usize) -> Result<()> {
        let Some(row) = self.row(number) else { return Ok(()) };
        let Ok(place) = safe_path(self.tar.path(row)) else { return Ok(()) };
        match row.kind == b'2' {
            true => self.make_symlink(number, row, place),
            false => self.make_hard_link(row, &place),
        }
    }

    fn make_symlink(&mut self, number: usize, row: &EntryRow, place: PathBuf) -> Result<()> {
        let parent = place.parent().unwrap_or(Path::new(""));
        if !self.make_folders(row, parent)? {
            return Ok(());
        }
        let target = match symlink_target_if_inside(&self.target, parent, self.tar.link_target(row)) {
            Ok(target) => target,
            Err(why) => {
                self.refuse(row, why);
                return Ok(());
            }
        };
        if !self.make_free(row, &place)? {
            return Ok(());
        }
        symlink(&self.target, &target, &place).map_err(self.failed(&place))?;
        self.set_all_of_link(number, row, &place);
        self.symlinks.push((number, place));
        self.report.extracted_entries += 1;
        Ok(())
    }

    fn make_hard_link(&mut self, row: &EntryRow, place: &Path) -> Result<()> {
        let Ok(linked) = safe_path(self.tar.link_target(row)) else {
            self.refuse(row, "its target lies outside of the folder");
            return Ok(());
        };
        if !self.make_folders(row, linked.parent().unwrap_or(Path::new("")))? {
            return Ok(());
        }
        if !self.target.symlink_metadata(&linked).is_ok_and(|metadata| metadata.is_file()) {
            self.refuse(row, "its target is no file that was extracted");
            return Ok(());
        }
        if linked == place {
            return Ok(());
        }
        if self.make_free(row, place)? {
            self.target.hard_link(&linked, &self.target, place).map_err(self.failed(place))?;
            self.report.extracted_entries += 1;
        }
        Ok(())
    }

    /// A link that led nowhere when it was made may lead out now: by way of one that was in the target before.
    fn remove_links_that_lead_out(&mut self) -> Result<()> {
        for (number, place) in std::mem::take(&mut self.symlinks) {
            let Some(row) = self.row(number) else { continue };
            // Another entry may have taken its place.
            let is_link = self.target.symlink_metadata(&place).is_ok_and(|metadata| metadata.is_symlink());
            if is_link
                && symlink_target_if_inside(
                    &self.target,
                    place.parent().unwrap_or(Path::new("")),
                    self.tar.link_target(row),
                )
                .is_err()
            {
                self.target.remove_file(&place).map_err(self.failed(&place))?;
                self.report.extracted_entries -= 1;
                self.refuse(row, "its target lies outside of the folder");
            }
        }
        Ok(())
    }
}

#[cfg(unix)]
fn symlink(folder: &Dir, target: &Path, place: &Path) -> io::Result<()> {
    folder.symlink(target, place)
}

#[cfg(not(unix))]
fn symlink(_: &Dir, _: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A folder, opened so that it can be changed. A handle of `Dir` may stand for its path alone.
#[cfg(unix)]
fn open_folder(target: &Dir, place: &Path) -> io::Result<std::fs::File> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    Ok(target.open_with(place, &options)?.into_std())
}

#[cfg(not(unix))]
fn open_folder(target: &Dir, place: &Path) -> io::Result<std::fs::File> {
    Ok(target.open_dir(place)?.into_std_file())
}

/// Permissions without those to run as somebody else.
#[cfg(unix)]
fn set_mode(file: &std::fs::File, mode: u32) -> io::Result<()> {
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode & 0o777))
}

#[cfg(not(unix))]
fn set_mode(_: &std::fs::File, _: u32) -> io::Result<()> {
    Ok(())
}

/// When an entry was changed last; `None` for a time that the system does not have.
fn modified(row: &EntryRow) -> Option<SystemTime> {
    let seconds = Duration::from_secs(row.mtime.unsigned_abs());
    let whole = match row.mtime < 0 {
        true => SystemTime::UNIX_EPOCH.checked_sub(seconds),
        false => SystemTime::UNIX_EPOCH.checked_add(seconds),
    };
    whole.and_then(|time| time.checked_add(Duration::from_nanos(row.mtime_nanos.into())))
}

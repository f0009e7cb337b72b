//! From a file of HDF5 to files: nothing is written outside of the target.
//!
//! Entries whose paths are absolute or have `..` are not extracted. Symbolic links are made when everything else is there,
//! and nothing is written through one: neither one of the archive nor one that was in the target before.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use h5live::archive::layout::{EntryRow, NO_SAMPLE};

use crate::entry::is_file_kind;
use crate::error::{Error, Result};
use crate::paths::safe_path;
use crate::reader::TarFile;

/// Bytes of contents that are in memory at once.
const PIECE_BYTES: u64 = 4 << 20;

/// What was extracted.
#[derive(Debug, Default)]
pub struct ExtractReport {
    /// Files, folders and links that were made.
    pub made: u64,
    /// Entries that were left out: path and reason.
    pub refused: Vec<(String, String)>,
}

/// Extracts entries into a folder, which is made if it is not there.
#[derive(Debug)]
pub struct Extractor<'a> {
    tar: &'a TarFile,
    target: PathBuf,
    report: ExtractReport,
    /// What is made when all files are there: folders get their times, links their targets.
    links: Vec<usize>,
    folders: Vec<usize>,
}

impl<'a> Extractor<'a> {
    /// Extracts into `target`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn new(tar: &'a TarFile, target: &Path) -> Result<Self> {
        fs::create_dir_all(target).map_err(Error::io(target))?;
        let (links, folders) = Default::default();
        Ok(Extractor { tar, target: target.to_owned(), report: ExtractReport::default(), links, folders })
    }

    /// Extracts all entries that `is_wanted` takes, by their paths.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::File`]. An entry that must not be extracted is no error, but in the report.
    pub fn extract(mut self, is_wanted: &dyn Fn(&[u8]) -> bool) -> Result<ExtractReport> {
        for number in 0..self.tar.rows().len() {
            if self.row(number).is_some_and(|row| is_wanted(self.tar.path(row))) {
                self.extract_entry(number)?;
            }
        }
        for number in std::mem::take(&mut self.links) {
            self.extract_link(number)?;
        }
        for number in std::mem::take(&mut self.folders).into_iter().rev() {
            self.finish_folder(number);
        }
        Ok(self.report)
    }

    fn row(&self, number: usize) -> Option<&'a EntryRow> {
        self.tar.rows().get(number)
    }

    fn refuse(&mut self, row: &EntryRow, why: impl Into<String>) {
        let path = String::from_utf8_lossy(self.tar.path(row)).into_owned();
        self.report.refused.push((path, why.into()));
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
            kind if is_file_kind(kind) || row.sample != NO_SAMPLE => self.write_file(row, &safe),
            _ => {
                self.refuse(row, "it is neither a file nor a folder nor a link");
                Ok(())
            }
        }
    }

    /// Makes the folders of a path below the target. Returns the folder, or `None` if one of them is something else.
    fn folder(&mut self, row: &EntryRow, path: &Path) -> Result<Option<PathBuf>> {
        let mut folder = self.target.clone();
        for name in path {
            folder.push(name);
            match fs::symlink_metadata(&folder) {
                Ok(metadata) if metadata.is_dir() => {}
                Ok(_) => {
                    self.refuse(row, format!("{} is no folder", folder.display()));
                    return Ok(None);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs::create_dir(&folder).map_err(Error::io(&folder))?;
                }
                Err(error) => return Err(Error::io(&folder)(error)),
            }
        }
        Ok(Some(folder))
    }

    /// The path where a file or a link is to be made. What was extracted there before is removed, unless it is a folder.
    fn free_place(&mut self, row: &EntryRow, safe: &Path) -> Result<Option<PathBuf>> {
        let Some(name) = safe.file_name() else {
            self.refuse(row, "its path names nothing");
            return Ok(None);
        };
        let parent = safe.parent().unwrap_or(Path::new(""));
        let Some(folder) = self.folder(row, parent)? else { return Ok(None) };
        let place = folder.join(name);
        match fs::symlink_metadata(&place) {
            Ok(metadata) if metadata.is_dir() => {
                self.refuse(row, format!("{} is a folder", place.display()));
                return Ok(None);
            }
            Ok(_) => fs::remove_file(&place).map_err(Error::io(&place))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(&place)(error)),
        }
        Ok(Some(place))
    }

    fn make_folder(&mut self, number: usize, row: &EntryRow, safe: &Path) -> Result<()> {
        if self.folder(row, safe)?.is_some() {
            self.folders.push(number);
            self.report.made += 1;
        }
        Ok(())
    }

    fn finish_folder(&mut self, number: usize) {
        let Some(row) = self.row(number) else { return };
        let Ok(safe) = safe_path(self.tar.path(row)) else { return };
        let place = self.target.join(safe);
        // A link may have taken its place.
        if fs::symlink_metadata(&place).is_ok_and(|metadata| metadata.is_dir())
            && let Ok(folder) = File::open(&place)
        {
            // Not every file system keeps times and permissions.
            let _ = folder.set_times(times(row));
            let _ = set_mode(&folder, row.mode | 0o700);
        }
    }

    fn write_file(&mut self, row: &EntryRow, safe: &Path) -> Result<()> {
        let Some(place) = self.free_place(row, safe)? else { return Ok(()) };
        // Fails if somebody has made something there since.
        let mut file = OpenOptions::new().write(true).create_new(true).open(&place).map_err(Error::io(&place))?;
        if row.sample != NO_SAMPLE {
            let mut at = 0;
            while at < row.size {
                let end = row.size.min(at + PIECE_BYTES);
                let piece = self.tar.contents(row.sample, at..end)?;
                match piece.iter().all(|byte| *byte == 0) && end - at == PIECE_BYTES {
                    true => io::Seek::seek_relative(&mut file, PIECE_BYTES as i64),
                    false => file.write_all(&piece),
                }
                .map_err(Error::io(&place))?;
                at = end;
            }
            file.set_len(row.size).map_err(Error::io(&place))?;
        }
        let _ = set_mode(&file, row.mode);
        let _ = file.set_times(times(row));
        self.report.made += 1;
        Ok(())
    }

    fn extract_link(&mut self, number: usize) -> Result<()> {
        let Some(row) = self.row(number) else { return Ok(()) };
        let Ok(safe) = safe_path(self.tar.path(row)) else { return Ok(()) };
        let target = self.tar.link(row);
        if row.kind == b'2' {
            if !is_inside(&safe, target) {
                self.refuse(row, "its target lies outside of the folder");
                return Ok(());
            }
            let Some(place) = self.free_place(row, &safe)? else { return Ok(()) };
            make_symlink(target, &place).map_err(Error::io(&place))?;
        } else {
            let Ok(linked) = safe_path(target) else {
                self.refuse(row, "its target lies outside of the folder");
                return Ok(());
            };
            let parent = linked.parent().unwrap_or(Path::new("")).to_owned();
            let Some(folder) = self.folder(row, &parent)? else { return Ok(()) };
            let from = folder.join(linked.file_name().unwrap_or_default());
            if !fs::symlink_metadata(&from).is_ok_and(|metadata| metadata.is_file()) {
                self.refuse(row, "its target is no file that was extracted");
                return Ok(());
            }
            if self.target.join(&safe) == from {
                return Ok(());
            }
            let Some(place) = self.free_place(row, &safe)? else { return Ok(()) };
            fs::hard_link(&from, &place).map_err(Error::io(&place))?;
        }
        self.report.made += 1;
        Ok(())
    }
}

/// Whether the target of a symbolic link lies below the folder, by its names.
fn is_inside(link: &Path, target: &[u8]) -> bool {
    let mut depth = link.components().count().saturating_sub(1);
    !target.starts_with(b"/")
        && !target.contains(&0)
        && !target.is_empty()
        && target.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".").all(|name| match name {
            b".." => match depth.checked_sub(1) {
                Some(less) => {
                    depth = less;
                    true
                }
                None => false,
            },
            _ => {
                depth += 1;
                true
            }
        })
}

#[cfg(unix)]
fn make_symlink(target: &[u8], place: &Path) -> io::Result<()> {
    let target: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(target);
    std::os::unix::fs::symlink(target, place)
}

#[cfg(not(unix))]
fn make_symlink(_: &[u8], _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Permissions without those to run as somebody else.
#[cfg(unix)]
fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode & 0o777))
}

#[cfg(not(unix))]
fn set_mode(_: &File, _: u32) -> io::Result<()> {
    Ok(())
}

fn times(row: &EntryRow) -> FileTimes {
    let seconds = Duration::from_secs(row.mtime.unsigned_abs());
    let whole = match row.mtime < 0 {
        true => SystemTime::UNIX_EPOCH.checked_sub(seconds),
        false => SystemTime::UNIX_EPOCH.checked_add(seconds),
    };
    let time = whole.and_then(|time| time.checked_add(Duration::from_nanos(row.mtime_nanos.into())));
    time.map_or(FileTimes::new(), |time| FileTimes::new().set_modified(time))
}

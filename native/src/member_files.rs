//! Files that libhdf5's family, multi and split drivers cut into several.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use h5live_cache::{BaseOffsetStorage, Cache, CacheOptions, FileStorage, ReadOnlyMultiFileStorage, Storage};
use h5live_format::messages::DriverInfo;
use h5live_format::{DriverInfoBlock, Superblock, decode_prefix};
use h5live_model as model;

use crate::{Error, Result, superblock_extension};

/// The driver that cuts files into subfiles.
const SUBFILING: [u8; 8] = *b"Subfilin";
/// Most members of a family.
const MAX_MEMBERS: u64 = 1 << 16;
/// Bytes of a driver information block that are read.
const MAX_DRIVER_INFO_BYTES: usize = 4096;

/// The name and the parameters of the driver that wrote the file, from the superblock.
fn load_driver_info(
    storage: &Arc<dyn Storage>,
    at: u64,
    superblock: &Superblock,
    settings: CacheOptions,
) -> Result<Option<DriverInfo>> {
    let based: Arc<dyn Storage> = Arc::new(BaseOffsetStorage::new(storage.clone(), at));
    let cache = Arc::new(Cache::new_read_only(based, settings));
    if superblock.version >= 2 {
        let header = superblock_extension::load_extension_header(&cache, superblock)?;
        return header.map_or(Ok(None), |header| header.get_message::<DriverInfo>());
    }
    if !superblock.driver_info.is_defined() {
        return Ok(None);
    }
    let bytes = cache.read_uncached_to_eof(superblock.driver_info, MAX_DRIVER_INFO_BYTES)?;
    let decoded = decode_prefix::<DriverInfoBlock>(&bytes, superblock.widths);
    let at = superblock.driver_info;
    let (block, _) = decoded.map_err(|source| h5live_cache::Error::Decode { at, source })?;
    Ok(Some(DriverInfo { driver: block.driver, data: block.data }))
}

/// Refuses a file beside which HDF5's onion driver keeps newer revisions, which would not be seen.
///
/// # Errors
/// [`h5live_swmr::Error::OnionFile`]; [`h5live_swmr::Error::Io`] if such a file is there and cannot be read.
pub(crate) fn refuse_revisions(path: &Path) -> Result<()> {
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    let mut history = path.as_os_str().to_owned();
    history.push(".onion");
    // To open a pipe would wait for its other end.
    if !std::fs::metadata(&history).is_ok_and(|history| history.is_file()) {
        return Ok(());
    }
    let mut start = [0; 8];
    let read = match File::open(history).and_then(|mut file| file.read(&mut start)) {
        // It has gone meanwhile.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
        read => read.map_err(h5live_swmr::Error::io("read the revisions beside the file (.onion)"))?,
    };
    if h5live_swmr::is_onion(&start[..read]) { Err(h5live_swmr::Error::OnionFile.into()) } else { Ok(()) }
}

/// The whole file whose first member, opened from `path`, is `first`, with its superblock at `at`. `first` itself if it
/// is the whole file.
///
/// # Errors
/// If a member does not exist, or does not have the name that the file states.
pub(crate) fn join_members(
    path: &Path,
    first: Arc<dyn Storage>,
    at: u64,
    superblock: &Superblock,
    settings: CacheOptions,
) -> Result<Arc<dyn Storage>> {
    match load_driver_info(&first, at, superblock, settings)? {
        // The names of members lead nowhere from what is no file.
        Some(info) if path.as_os_str().is_empty() && is_cut(&info) => {
            Err(Error::Model(model::Error::Unsupported("a file that is cut into several and not in the file system")))
        }
        Some(info) if info.driver == SUBFILING => Err(Error::Model(model::Error::Unsupported(
            "a file of HDF5's subfiling driver, whose bytes are in subfiles",
        ))),
        Some(info) if info.driver == *b"NCSAfami" => join_family(
            path,
            read_le_u64(&info.data, 0).ok_or_else(|| damaged_driver_info_error("members of a family have a size"))?,
        ),
        Some(info) if info.driver == *b"NCSAmult" => join_multi(path, &info.data),
        Some(_) => Ok(first),
        None => {
            // Before HDF5 1.8 families did not say of themselves that they are.
            let len = first.len().map_err(Error::io("ask for the length of the file"))?;
            let is_short = superblock.end_of_file.get().is_some_and(|end| len < end);
            let goes_on = member_path(path, 0).is_some_and(|name| name == *path)
                && member_path(path, 1).is_some_and(|m| m.exists());
            if is_short && goes_on { join_family(path, len) } else { Ok(first) }
        }
    }
}

/// Whether a driver cuts files into several.
fn is_cut(info: &DriverInfo) -> bool {
    [*b"NCSAfami", *b"NCSAmult"].contains(&info.driver)
}

fn damaged_driver_info_error(rule: &'static str) -> Error {
    Error::Model(model::Error::Invalid(format!("driver information: {rule}")))
}

fn read_le_u64(data: &[u8], at: usize) -> Option<u64> {
    data.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

fn open_member(path: &Path) -> Result<FileStorage> {
    match File::open(path) {
        Ok(file) => Ok(FileStorage::new(file)),
        Err(source) => Err(Error::MemberFile { file: path.to_owned(), source }),
    }
}

/// The path of member `read_le_u64` of a family with this first member. The last digits in the name of the first member
/// count.
fn member_path(first: &Path, number: u64) -> Option<PathBuf> {
    let name = first.file_name()?.to_str()?;
    let end = name.rfind(|c: char| c.is_ascii_digit())? + 1;
    // The digit of an extension as in `.h5` does not count.
    let end = match name.rfind('.') {
        Some(dot) if dot < end => name.get(..dot)?.rfind(|c: char| c.is_ascii_digit())? + 1,
        _ => end,
    };
    let start = name.get(..end)?.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    let width = end - start;
    Some(first.with_file_name(format!("{}{number:0width$}{}", name.get(..start)?, name.get(end..)?)))
}

/// The file that a name with a printf pattern (`run%05d.h5`) calls its first; the name itself if it has none.
pub(crate) fn first_member_path(path: &Path) -> PathBuf {
    let found = path.file_name().and_then(|name| name.to_str()).and_then(|name| {
        let percent = name.find('%')?;
        let rest = name.get(percent + 1..)?;
        let end = rest.find('d')?;
        let width = rest.get(..end)?;
        let width = if width.is_empty() { 0 } else { width.parse::<usize>().ok().filter(|width| *width < 20)? };
        Some(format!("{}{:0width$}{}", name.get(..percent)?, 0, rest.get(end + 1..)?))
    });
    match found {
        Some(name) if !path.exists() => path.with_file_name(name),
        _ => path.to_owned(),
    }
}

fn join_family(path: &Path, size: u64) -> Result<Arc<dyn Storage>> {
    if size == 0 {
        return Err(damaged_driver_info_error("members of a family have a size"));
    }
    let name = |number| {
        member_path(path, number).ok_or_else(|| damaged_driver_info_error("names of a family's members are counted"))
    };
    if name(0)? != *path {
        return Err(damaged_driver_info_error("a family is opened from its first member"));
    }
    let mut members = vec![(0, open_member(path)?)];
    for number in 1..MAX_MEMBERS {
        let next = name(number)?;
        if !next.exists() {
            break;
        }
        let start =
            number.checked_mul(size).ok_or_else(|| damaged_driver_info_error("members of a family have a size"))?;
        members.push((start, open_member(&next)?));
    }
    Ok(Arc::new(ReadOnlyMultiFileStorage::new(members)))
}

/// The number of kinds of data for which a multi file may have separate members.
const MULTI_MEMBER_KINDS: usize = 6;

fn join_multi(path: &Path, data: &[u8]) -> Result<Arc<dyn Storage>> {
    let short = || damaged_driver_info_error("the members of a multi file are described");
    let map = data.get(..MULTI_MEMBER_KINDS).ok_or_else(short)?;
    let mut unique: Vec<u8> = Vec::new();
    for (kind, member) in (1u8..).zip(map) {
        let member = if *member == 0 { kind } else { *member };
        if !unique.contains(&member) {
            unique.push(member);
        }
    }
    let mut names = data.get(MULTI_MEMBER_KINDS + 2 + 16 * unique.len()..).ok_or_else(short)?;
    let mut described = Vec::new();
    for position in 0..unique.len() {
        let start = read_le_u64(data, MULTI_MEMBER_KINDS + 2 + 16 * position).ok_or_else(short)?;
        let end = names.iter().position(|byte| *byte == 0).ok_or_else(short)?;
        let name = names.get(..end).and_then(|name| std::str::from_utf8(name).ok()).ok_or_else(short)?;
        names = names.get((end + 1).next_multiple_of(8)..).unwrap_or_default();
        described.push((start, name));
    }
    let opened = path.to_str().ok_or_else(|| damaged_driver_info_error("names of members are text"))?;
    let stem = described.iter().find_map(|(_, name)| {
        let (before, after) = name.split_once("%s")?;
        opened.strip_suffix(after).and_then(|rest| if before.is_empty() { Some(rest) } else { None })
    });
    let stem =
        stem.ok_or_else(|| damaged_driver_info_error("a multi file is opened from a member, called as the file says"))?;
    let mut members = Vec::new();
    for (start, name) in described {
        members.push((start, open_member(Path::new(&name.replacen("%s", stem, 1)))?));
    }
    Ok(Arc::new(ReadOnlyMultiFileStorage::new(members)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_family_are_counted_in_their_names() {
        let name = |first: &str, number| member_path(Path::new(first), number).map(|path| path.display().to_string());
        assert_eq!(name("a/run00000.h5", 12).as_deref(), Some("a/run00012.h5"));
        assert_eq!(name("a/2024-run-0.h5", 12).as_deref(), Some("a/2024-run-12.h5"));
        assert_eq!(name("a/run.h5", 1), None);
    }

    #[test]
    fn a_pattern_names_the_first_member() {
        assert_eq!(first_member_path(Path::new("/none/run%05d.h5")), Path::new("/none/run00000.h5"));
        assert_eq!(first_member_path(Path::new("/none/run%d.h5")), Path::new("/none/run0.h5"));
        assert_eq!(first_member_path(Path::new("/none/run.h5")), Path::new("/none/run.h5"));
        assert_eq!(first_member_path(Path::new("/none/100%.h5")), Path::new("/none/100%.h5"));
    }

    #[test]
    fn only_a_file_of_revisions_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, history) = (folder.path().join("run.h5"), folder.path().join("run.h5.onion"));
        assert!(refuse_revisions(&path).is_ok());
        std::fs::create_dir(&history).unwrap();
        assert!(refuse_revisions(&path).is_ok());
        std::fs::remove_dir(&history).unwrap();
        for (begin, is_refused) in [(&b"OHDH\x01"[..], true), (b"OHD", false), (b"", false)] {
            std::fs::write(&history, begin).unwrap();
            assert_eq!(refuse_revisions(&path).is_err(), is_refused, "{begin:?}");
        }
    }
}

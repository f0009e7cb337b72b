//! The processes that have a file open, as `/proc` shows them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use h5live_model::FileHolderProcess;

/// The processes that have the same file open for writing.
pub fn find_writers(file: &File) -> io::Result<Vec<FileHolderProcess>> {
    find_processes(file, process_writes_file)
}

/// The processes that have the same file open.
pub fn find_openers(file: &File) -> io::Result<Vec<FileHolderProcess>> {
    find_processes(file, |process, wanted| handles_of_file(process, wanted).next().is_some())
}

/// The processes that hold a lock of the whole file.
pub fn find_flock_holders(file: &File) -> io::Result<Vec<FileHolderProcess>> {
    find_processes(file, |process, wanted| fdinfo_of_handles(process, wanted).any(|info| is_locking_fdinfo(&info)))
}

fn find_processes(file: &File, has_file: impl Fn(&Path, (u64, u64)) -> bool) -> io::Result<Vec<FileHolderProcess>> {
    let wanted = file.metadata()?;
    let mut found = Vec::new();
    for process in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if has_file(&process.path(), (wanted.dev(), wanted.ino())) {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            found.push(FileHolderProcess { pid, name: name.trim_end().to_owned() });
        }
    }
    Ok(found)
}

/// Whether the process has the file open for writing, and not only because this process has just started it. A
/// process that has executed another program since then no longer has the file, unless it was given to it. So this
/// is asked last.
pub fn is_writer_not_forked_child(file: &File, pid: u32) -> bool {
    let process = Path::new("/proc").join(pid.to_string());
    !is_forked_child(pid)
        && file.metadata().is_ok_and(|wanted| process_writes_file(&process, (wanted.dev(), wanted.ino())))
}

/// Whether this process has just started the other one, which still runs this program. Until it executes another
/// program, it has all files that were open at that moment.
fn is_forked_child(pid: u32) -> bool {
    let read_proc = |of: &str, what| fs::read_to_string(format!("/proc/{of}/{what}"));
    let pid = pid.to_string();
    let is_child = read_proc(&pid, "status").is_ok_and(|status| {
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        parent.is_some_and(|parent| parent.trim() == std::process::id().to_string())
    });
    is_child && read_proc(&pid, "cmdline").is_ok_and(|line| read_proc("self", "cmdline").is_ok_and(|own| own == line))
}

/// The handles of a process that lead to a file.
fn handles_of_file(process: &Path, wanted: (u64, u64)) -> impl Iterator<Item = fs::DirEntry> {
    let handles = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    handles.filter(move |handle| fs::metadata(handle.path()).is_ok_and(|m| (m.dev(), m.ino()) == wanted))
}

fn process_writes_file(process: &Path, wanted: (u64, u64)) -> bool {
    fdinfo_of_handles(process, wanted).any(|info| is_writing_fdinfo(&info))
}

/// The handles of a process that lead to a file, as descriptions in `/proc`.
fn fdinfo_of_handles(process: &Path, wanted: (u64, u64)) -> impl Iterator<Item = String> {
    let fdinfo = process.join("fdinfo");
    handles_of_file(process, wanted).filter_map(move |handle| fs::read_to_string(fdinfo.join(handle.file_name())).ok())
}

/// As [`fdinfo_of_handles`], of this process.
fn fdinfo_of_own_handles(file: &File) -> impl Iterator<Item = String> {
    let wanted = file.metadata().map(|wanted| (wanted.dev(), wanted.ino()));
    wanted.into_iter().flat_map(|wanted| fdinfo_of_handles(Path::new("/proc/self"), wanted))
}

/// How many handles this process has through which it can write the file.
pub fn count_own_writing_handles(file: &File) -> usize {
    fdinfo_of_own_handles(file).filter(|info| is_writing_fdinfo(info)).count()
}

/// Whether this process holds a lock of the whole file.
pub fn is_flocked_by_this_process(file: &File) -> bool {
    fdinfo_of_own_handles(file).any(|info| is_locking_fdinfo(&info))
}

fn is_locking_fdinfo(info: &str) -> bool {
    info.lines().any(|line| line.starts_with("lock:") && line.contains("FLOCK"))
}

fn is_writing_fdinfo(info: &str) -> bool {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).is_some_and(|flags| flags & 3 != 0)
}

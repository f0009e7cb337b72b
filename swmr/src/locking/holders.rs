//! The processes that have a file open, as `/proc` shows them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use h5live_model::Holder;

/// The processes that have the same file open for writing.
pub fn find_holders(file: &File) -> io::Result<Vec<Holder>> {
    find_processes(file, process_writes_file)
}

/// The processes that have the same file open.
pub fn find_openers(file: &File) -> io::Result<Vec<Holder>> {
    find_processes(file, |process, wanted| handles_of_file(process, wanted).next().is_some())
}

fn find_processes(file: &File, has_file: impl Fn(&Path, (u64, u64)) -> bool) -> io::Result<Vec<Holder>> {
    let wanted = file.metadata()?;
    let mut found = Vec::new();
    for process in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if has_file(&process.path(), (wanted.dev(), wanted.ino())) {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            found.push(Holder { pid, name: name.trim_end().to_owned() });
        }
    }
    Ok(found)
}

/// Whether the process has the file open for writing, and not only because this process has just started it. A
/// process that has executed another program since then no longer has the file, unless it was given to it. So this
/// is asked last.
pub fn is_persistent_holder(file: &File, pid: u32) -> bool {
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
    handles_of_file(process, wanted).any(|handle| is_open_for_writing(&process.join("fdinfo").join(handle.file_name())))
}

/// The handles that this process has of the file, as descriptions in `/proc`.
fn fdinfo_of_own_handles(file: &File) -> Vec<String> {
    let Ok(wanted) = file.metadata().map(|wanted| (wanted.dev(), wanted.ino())) else { return Vec::new() };
    let own = Path::new("/proc/self");
    let handles = fs::read_dir(own.join("fd")).into_iter().flatten().flatten();
    let same =
        handles.filter(|handle| fs::metadata(handle.path()).is_ok_and(|found| (found.dev(), found.ino()) == wanted));
    same.filter_map(|handle| fs::read_to_string(own.join("fdinfo").join(handle.file_name())).ok()).collect()
}

/// How many handles this process has through which it can write the file.
pub fn count_own_writing_handles(file: &File) -> usize {
    fdinfo_of_own_handles(file).iter().filter(|info| is_writing_fdinfo(info)).count()
}

/// Whether this process holds a lock of the whole file.
pub fn is_locked_by_this_process(file: &File) -> bool {
    fdinfo_of_own_handles(file)
        .iter()
        .any(|info| info.lines().any(|line| line.starts_with("lock:") && line.contains("FLOCK")))
}

fn is_open_for_writing(info: &Path) -> bool {
    is_writing_fdinfo(&fs::read_to_string(info).unwrap_or_default())
}

fn is_writing_fdinfo(info: &str) -> bool {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).is_some_and(|flags| flags & 3 != 0)
}

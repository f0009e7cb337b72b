//! The files that a program writes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most processes whose open files are listed.
const MAX_PROCESSES: usize = 256;

/// Files that a program writes, and that programs write which it has started.
#[derive(Debug, Default)]
pub struct WrittenFileCandidates {
    /// Those that were named before they were there, perhaps.
    named: Vec<PathBuf>,
    /// Those that were seen to be open for writing, by device and number.
    seen: BTreeMap<(u64, u64), PathBuf>,
}

impl WrittenFileCandidates {
    /// Those that are named, and those that arguments name, also behind an `=`.
    pub fn from_files_and_arguments(files: &[PathBuf], arguments: &[OsString]) -> Self {
        let values = arguments.iter().filter_map(|argument| argument.to_str()?.split_once('=').map(|(_, value)| value));
        let named = files.iter().cloned().chain(arguments.iter().map(PathBuf::from)).chain(values.map(PathBuf::from));
        WrittenFileCandidates { named: named.collect(), seen: BTreeMap::new() }
    }

    /// Looks at what the process has open, and its descendants.
    pub fn scan_process_tree(&mut self, pid: u32) {
        let mut processes = vec![pid];
        let mut next = 0;
        while let Some(pid) = processes.get(next).copied().filter(|_| next < MAX_PROCESSES) {
            self.look_at(pid);
            processes.extend(children_of(pid));
            next += 1;
        }
    }

    fn look_at(&mut self, pid: u32) {
        let process = Path::new("/proc").join(pid.to_string());
        for handle in fs::read_dir(process.join("fd")).into_iter().flatten().flatten() {
            let Ok(found) = fs::metadata(handle.path()) else { continue };
            let identity = (found.dev(), found.ino());
            if !found.is_file() || self.seen.contains_key(&identity) {
                continue;
            }
            let info = fs::read_to_string(process.join("fdinfo").join(handle.file_name())).unwrap_or_default();
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
            let writes = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).is_some_and(|f| f & 3 != 0);
            if let (true, Ok(path)) = (writes, fs::read_link(handle.path())) {
                self.seen.insert(identity, path);
            }
        }
    }

    /// All of them that are there, each once. A file that was moved meanwhile is not found where it was.
    pub fn existing_files(&self) -> Vec<PathBuf> {
        let mut all = BTreeMap::new();
        for path in self.named.iter().chain(self.seen.values()) {
            if let Ok(found) = fs::metadata(path)
                && found.is_file()
            {
                all.entry((found.dev(), found.ino())).or_insert_with(|| path.clone());
            }
        }
        all.into_values().collect()
    }
}

fn children_of(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    children.flat_map(|ids| ids.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_name_and_by_open_handle_each_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        ["a", "b", "c", "d"].into_iter().for_each(|name| fs::write(at(name), "").unwrap());
        let option = format!("--out={}", at("b").display());
        let mut files = WrittenFileCandidates::from_files_and_arguments(
            &[at("a")],
            &[option.into(), at("a").into(), at("none").into()],
        );
        let (_read, _written) =
            (fs::File::open(at("d")).unwrap(), fs::File::options().append(true).open(at("c")).unwrap());
        files.scan_process_tree(std::process::id());
        let mut all = files.existing_files();
        all.retain(|path| path.starts_with(folder.path()));
        all.sort();
        assert_eq!(all, [at("a"), at("b"), at("c")]);
    }

    #[test]
    fn the_files_of_descendants_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = fs::File::create(folder.path().join("of the child")).unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").stdout(file).spawn().unwrap();
        let mut files = WrittenFileCandidates::default();
        files.scan_process_tree(std::process::id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(files.existing_files().iter().filter(|path| path.ends_with("of the child")).count(), 1);
    }
}

//! What the phases of a run took.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::axes::Outcome;

/// A run, and the folder in which it works.
pub struct Phases {
    folder: PathBuf,
}

impl Phases {
    pub fn new(folder: &Path) -> Self {
        Phases { folder: folder.to_owned() }
    }

    /// The path of a file of this run.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The location of a file of this run in a store.
    pub fn location(&self, scheme: &str, name: &str) -> String {
        format!("{scheme}:{}", self.path(name).display())
    }

    /// Does one part of the run, and prints what it took. The result of the work is what it keeps open: the memory is
    /// measured with it.
    pub fn phase<T>(&mut self, name: &str, operations: u64, work: impl FnOnce() -> h5live::Result<T>) -> Outcome<T> {
        let before = resident_bytes()?;
        let begin = Instant::now();
        let done = work()?;
        let seconds = begin.elapsed().as_secs_f64();
        let (after, most) = (resident_bytes()?, most_resident_bytes()?);
        println!(
            "{{\"phase\": \"{name}\", \"operations\": {operations}, \"seconds\": {seconds:.6}, \"grown\": {}, \
             \"resident\": {after}, \"most\": {most}}}",
            after.saturating_sub(before)
        );
        Ok(done)
    }
}

/// The memory of this process that is in use (bytes).
fn resident_bytes() -> Outcome<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = pages.split_whitespace().nth(1).ok_or("no second field in statm")?.parse()?;
    Ok(pages * 4096)
}

/// The most memory that this process had in use up to now (bytes).
fn most_resident_bytes() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM in status")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib << 10)
}

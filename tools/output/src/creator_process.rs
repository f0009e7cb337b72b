//! Which process makes an unfinished file, and whether it still lives.

use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use h5live_swmr::ReplacementLock;

/// Files of processes that may be alive are left alone for this long.
const OF_OTHERS: Duration = Duration::from_secs(24 * 60 * 60);

/// A process, as the names of its files say it. The number of a process is used again; the time of its start tells them
/// apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatorProcess {
    /// Identifies this machine, its boot, and the processes that can be seen from here.
    world: String,
    pid: u32,
    /// When the process began, in ticks since the machine did.
    start: u64,
}

impl CreatorProcess {
    /// This process.
    pub fn this_process() -> Self {
        let pid = std::process::id();
        CreatorProcess { world: world(), pid, start: start_of(pid).unwrap_or(0) }
    }

    /// A process of this machine; `None` if there is none.
    #[cfg(test)]
    pub fn of_process(pid: u32) -> Option<Self> {
        Some(CreatorProcess { world: world(), pid, start: start_of(pid)? })
    }

    /// Whether the process that makes the file at `path` is dead. If the process cannot be seen from here, the age of
    /// the file decides, and whether a process writes it.
    pub fn has_abandoned(&self, path: &Path) -> bool {
        if self.start != 0 && self.world == world() {
            return start_of(self.pid) != Some(self.start);
        }
        let changed = fs::metadata(path).and_then(|found| found.modified());
        let age = changed.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        age.is_some_and(|age| age > OF_OTHERS)
            && (path.is_dir() || matches!(ReplacementLock::acquire_if_exists(path), Ok(Some(_))))
    }
}

impl fmt::Display for CreatorProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.world, self.pid, self.start)
    }
}

impl FromStr for CreatorProcess {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.rsplitn(3, '-');
        let mut number = || parts.next().ok_or(())?.parse::<u64>().map_err(drop);
        let (start, pid) = (number()?, number()?);
        let world = parts.next().filter(|world| world.starts_with('w')).ok_or(())?;
        Ok(CreatorProcess { world: world.to_owned(), pid: u32::try_from(pid).map_err(drop)?, start })
    }
}

/// A word for the machine as long as it runs, and for the processes that can be seen from here: containers of one
/// machine do not see each other's.
fn world() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let boot = boot.split('-').next().unwrap_or_default();
    let processes = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let processes: String = processes.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    format!("w{boot}.{processes}").replace('.', "_")
}

/// When a process began; `None` if there is none, or if only its exit status is left.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may hold anything.
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?;
    // The state is the third field, the start the twenty-second.
    fields.nth(18)?.parse().ok().filter(|_| !matches!(state, "Z" | "X"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_text() {
        let this = CreatorProcess::this_process();
        assert_eq!(this.to_string().parse(), Ok(this.clone()));
        assert!(!this.to_string().contains('.'));
        for text in ["", "12", "a-b-c", "1-2", "w-1-x", "v-1-2"] {
            assert!(text.parse::<CreatorProcess>().is_err(), "{text}");
        }
        let earlier = CreatorProcess { start: this.start + 1, ..this };
        assert!(earlier.has_abandoned(Path::new("nowhere")), "another process has its number now");
    }

    #[test]
    fn of_processes_elsewhere_only_old_files_that_nobody_writes_are_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.h5");
        let file = h5live::File::create(&path).unwrap();
        let elsewhere = CreatorProcess { world: "w0_0".to_owned(), ..CreatorProcess::this_process() };
        let age = |days: u64| {
            let at = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60 + 60);
            fs::File::open(&path).unwrap().set_modified(at).unwrap();
        };
        age(2);
        assert!(!elsewhere.has_abandoned(&path), "it is being written");
        file.close().unwrap();
        age(0);
        assert!(!elsewhere.has_abandoned(&path), "it is not old");
        age(2);
        assert!(elsewhere.has_abandoned(&path));
    }
}

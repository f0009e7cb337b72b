//! Who writes a file, since when, and when it was last flushed.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use h5live::{File, FileHolderProcess, FileOpenState, Location};
use serde_json::{Value as Json, json};

use crate::diagnosis_text::space_awaits_readers_text;
use crate::{open, utc};

/// Ticks of a second in `/proc/PID/stat`: the kernel has the same for all programs.
const TICKS_PER_SECOND: u64 = 100;

/// The state of a file that is being written, or whose writer died.
pub struct LiveStatus {
    /// Whether somebody writes it.
    is_written: bool,
    writers: Vec<(FileHolderProcess, Option<SystemTime>)>,
    /// The other processes that have the file open.
    readers: Vec<FileHolderProcess>,
    changed: Option<SystemTime>,
}

impl LiveStatus {
    /// The state of a file; `None` if it is closed.
    pub fn of(file: &File, location: &Location) -> Option<Self> {
        let is_written = matches!(file.is_live(), Ok(true));
        let found = open::command_line_options().diagnose(location);
        let readers = found.as_ref().map(|found| found.other_readers.clone()).unwrap_or_default();
        let holders = match found.map(|found| found.open_state) {
            Ok(FileOpenState::OpenForWriting { holders, .. }) if is_written => holders,
            Ok(FileOpenState::Abandoned { .. }) if !is_written => Vec::new(),
            _ if !is_written => return None,
            _ => Vec::new(),
        };
        let writers = holders.into_iter().map(|holder| {
            let started = started(holder.pid);
            (holder, started)
        });
        let path: Option<PathBuf> = open::native_file_path(location).ok().flatten();
        let changed = path.as_deref().and_then(changed);
        Some(LiveStatus { is_written, writers: writers.collect(), readers, changed })
    }

    /// For people.
    pub fn text(&self) -> String {
        let writer = |(holder, started): &(FileHolderProcess, Option<SystemTime>)| match started {
            Some(at) => format!("{holder}, which runs since {}", utc::iso8601_seconds(*at)),
            None => holder.to_string(),
        };
        let writers: Vec<_> = self.writers.iter().map(writer).collect();
        let by = if writers.is_empty() { "another process".to_owned() } else { writers.join(" and ") };
        let flushed = self.changed.map_or(String::new(), |at| {
            let age = SystemTime::now().duration_since(at).unwrap_or_default();
            format!("; last flush {} ({} ago)", utc::iso8601_seconds(at), age_text(age))
        });
        match self.is_written {
            true => {
                let readers =
                    space_awaits_readers_text(&self.readers).map_or(String::new(), |readers| format!("; {readers}"));
                format!("being written by {by}{flushed}{readers}")
            }
            false => format!("its writer died{flushed}; `h5live repair` lets every program open it"),
        }
    }

    /// For programs.
    pub fn json(&self) -> Json {
        let writer = |(holder, started): &(FileHolderProcess, Option<SystemTime>)| json!({ "pid": holder.pid, "name": holder.name, "started": started.map(utc::iso8601_seconds) });
        json!({
            "died": !self.is_written,
            "writers": self.writers.iter().map(writer).collect::<Vec<_>>(),
            "readers": self.readers.iter().map(|holder| json!({ "pid": holder.pid, "name": holder.name })).collect::<Vec<_>>(),
            "last_flush": self.changed.map(utc::iso8601_seconds),
        })
    }
}

fn changed(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}

/// When a process was started, where the system tells.
fn started(pid: u32) -> Option<SystemTime> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let boot = std::fs::read_to_string("/proc/stat").ok()?;
    let boot: u64 = boot.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    let ticks = start_ticks(&stat)?;
    UNIX_EPOCH.checked_add(Duration::from_secs(boot.checked_add(ticks / TICKS_PER_SECOND)?))
}

/// The field `starttime` of `/proc/PID/stat`. The name of the program, in parentheses, may have any characters.
fn start_ticks(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn age_text(age: Duration) -> String {
    match age.as_secs() {
        0..10 => format!("{:.1} s", age.as_secs_f64()),
        seconds @ 10..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_process_is_found_behind_any_name() {
        let fields: Vec<_> = (3..=30).map(|field| field.to_string()).collect();
        assert_eq!(start_ticks(&format!("7 (a) b) {}", fields.join(" "))), Some(22));
        assert_eq!(start_ticks("7 (a"), None);
    }

    #[test]
    fn ages_have_a_unit_that_suits_them() {
        let text = [0, 9, 119, 600, 7200, 172_800].map(|seconds| age_text(Duration::from_secs(seconds)));
        assert_eq!(text, ["0.0 s", "9.0 s", "119 s", "10 min", "2 h", "2 days"]);
    }
}

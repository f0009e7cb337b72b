//! Checks of a file that a writer is changing.
//!
//! A check takes longer than a change. So it may see one structure before a change and the next one after it, and report
//! what is wrong with neither. Damage is still there when the file is checked again.

use std::io;
use std::thread;
use std::time::Duration;

use super::report::{FileCheckReport, Finding};

/// Checks of a live file that are made at most, until one is clean or two agree about a finding.
const MAX_LIVE_CHECKS: usize = 8;
/// The time between two checks of a live file.
const PAUSE: Duration = Duration::from_millis(50);

/// Checks a file until a check is clean, or until a check finds again what an earlier one found: only such findings
/// count. If each check finds something else, the findings of the last one count.
///
/// # Errors
/// Those of `check`.
pub(super) fn confirmed_report(mut check: impl FnMut() -> io::Result<FileCheckReport>) -> io::Result<FileCheckReport> {
    let mut earlier: Vec<Finding> = Vec::new();
    for _ in 1..MAX_LIVE_CHECKS {
        let mut report = check()?;
        // A check that ended early may end elsewhere the next time. It is no accident either.
        if report.is_clean() || !report.is_hdf5 || report.has_max_findings() {
            return Ok(report);
        }
        let (again, new): (Vec<_>, Vec<_>) = report.findings.drain(..).partition(|found| earlier.contains(found));
        if !again.is_empty() {
            report.findings = again;
            return Ok(report);
        }
        earlier.extend(new);
        thread::sleep(PAUSE);
    }
    check()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::FindingCause;

    fn finding(offset: u64) -> Finding {
        Finding { object_path: "/a".to_owned(), structure: "chunk", offset, cause: FindingCause::BrokenRule("r") }
    }

    /// The report after checks that find something at these offsets, and how many checks there were.
    fn after(checks: &[&[u64]]) -> (Vec<u64>, usize) {
        let mut made = 0;
        let report = confirmed_report(|| {
            let found = checks[made % checks.len()].iter().map(|offset| finding(*offset)).collect();
            made += 1;
            Ok(FileCheckReport { findings: found, is_hdf5: true, ..FileCheckReport::default() })
        });
        (report.unwrap().findings.iter().map(|found| found.offset).collect(), made)
    }

    #[test]
    fn a_finding_counts_if_a_later_check_finds_it_again() {
        assert_eq!(after(&[&[]]), (vec![], 1));
        assert_eq!(after(&[&[1, 2], &[]]), (vec![], 2), "what a writer was changing");
        assert_eq!(after(&[&[1, 2], &[2, 3]]), (vec![2], 2), "damage, and what a writer was changing");
        assert_eq!(after(&[&[1], &[3], &[1]]), (vec![1], 3), "damage that one check did not reach");
    }

    #[test]
    fn a_file_in_which_each_check_finds_something_else_is_not_called_sound() {
        let all: Vec<[u64; 1]> = (0..20).map(|offset| [offset]).collect();
        let all: Vec<&[u64]> = all.iter().map(|offsets| &offsets[..]).collect();
        assert_eq!(after(&all), (vec![MAX_LIVE_CHECKS as u64 - 1], MAX_LIVE_CHECKS));
    }
}

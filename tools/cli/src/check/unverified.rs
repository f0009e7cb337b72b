//! What a check could not verify.

use std::fmt;

use crate::counted::counted;
use crate::error::Result;
use crate::output::StdoutWriter;

/// How much was not verified.
#[derive(Clone, Copy)]
pub struct UnverifiedCounts {
    /// Chunks, heap blocks and entries of a log that went through filters.
    pub parts: u64,
    /// Datasets whose elements lie in other files.
    pub datasets_with_unreadable_data_elsewhere: u64,
}

impl UnverifiedCounts {
    /// Chunks and datasets.
    pub fn count(self) -> u64 {
        self.parts + self.datasets_with_unreadable_data_elsewhere
    }

    /// What is said of it in front of the other numbers.
    pub fn summary_prefix(self) -> String {
        let parts = [("chunk", self.parts), ("dataset", self.datasets_with_unreadable_data_elsewhere)];
        let parts: Vec<_> =
            parts.into_iter().filter(|(_, n)| *n > 0).map(|(what, n)| counted(n, what).to_string()).collect();
        if parts.is_empty() { String::new() } else { format!("not verified: {}, ", parts.join(" and ")) }
    }
}

/// What is said of a file without findings.
pub fn verdict_without_findings(unverified: UnverifiedCounts, checked_data: bool) -> String {
    if checked_data && unverified.count() > 0 { "nothing wrong found".to_owned() } else { "sound".to_owned() }
}

/// Says how many bytes may have been changed unseen.
///
/// # Errors
/// [`Error::Stdout`](crate::error::Error::Stdout).
pub fn print_unchecksummed_bytes(out: &mut StdoutWriter, whose: &dyn fmt::Display, bytes: u64) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let bytes = counted(bytes, "byte");
    out.line(format_args!("{whose}: without checksums, so that damage of values may not be seen: {bytes}"))
}

//! Progress bars on standard error, where that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar for `total` things of a kind.
pub fn bar(total: usize, things: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}, {eta} left");
    ProgressBar::new(total as u64)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_message(things)
}

/// A bar for `total` bytes.
pub fn bytes(total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left");
    ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// A counter of things whose total number is not known.
pub fn counter(things: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {human_pos} {msg}, {per_sec}");
    ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner())).with_message(things)
}

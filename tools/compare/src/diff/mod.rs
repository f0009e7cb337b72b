//! In what two files differ, however they are stored.

mod difference;
mod elements;
mod file_diff;
mod maps;
mod side;
mod tolerance;
mod value_differences;

pub use difference::FileDifference;
pub use file_diff::{DiffOptions, FileDiff};
pub use side::DiffSide;
pub use tolerance::Tolerance;

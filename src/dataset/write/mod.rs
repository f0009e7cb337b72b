//! The first step of a write: from the caller's values to rows and chunks.
//!
//! In come values with a selection or as rows, or an extent. They are converted to the type of the file and cut by
//! chunks. What is short goes out to `stage`, where it waits. What is long goes out to `store` at once.

mod append;
#[cfg(test)]
mod append_tests;
mod chunk_writer;
mod dataset_write;
mod extent;
mod selection;

pub(super) use self::selection::write_selection;

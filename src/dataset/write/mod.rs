//! The first step of a write: from the caller's values to rows and chunks.
//!
//! In come values with a selection or as rows, and an extent. They are converted to the type of the file and cut by
//! chunks. Out goes what is short to what is staged (`stage`), and what is long to the store (`store`).

#[cfg(test)]
mod append_tests;
mod chunk_writer;
mod dataset_write;
mod selection;

pub(super) use self::selection::fill_outside_extent;

//! Checks HDF5 files, and what writers and readers make of them.
//!
//! Nothing here depends on the crates that read and write files (`indexes`, `swmr`), so a mistake of theirs cannot hide
//! itself.
//!
//! [`mod@file`] looks at one file. [`trace`] is what a writer did to a file, in order: every schedule of a reader that
//! runs meanwhile ([`schedule`]), and every state that a crash may leave ([`crash`]), follows from it, and is gone
//! through on the real code of the reader.

pub mod crash;
pub mod file;
pub mod schedule;
pub mod trace;

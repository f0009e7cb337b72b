//! The checker: checks HDF5 files, and explores what writers and readers do with them.
//!
//! It does not depend on the crates that read and write files (`indexes`, `swmr`), so it cannot repeat their mistakes.
//! It shares the decoders of `format` and the storage of `cache` with them; docs/design/checker.md says why a common
//! mistake would still be found.
//!
//! [`mod@file`] checks one file. [`trace`] is the record of what a writer did to a file, in order. From it follow every
//! schedule of a reader beside the writer ([`schedule`]), and every state that a crash may leave ([`crash`]). The real
//! code of the reader runs through all of them.

pub mod crash;
pub mod file;
pub mod schedule;
pub mod trace;

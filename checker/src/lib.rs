//! Checks HDF5 files, and what writers and readers make of them.
//!
//! Nothing here depends on the crates that read and write files (`indexes`, `swmr`), so a mistake of theirs cannot hide
//! itself.

pub mod file;

//! The file checker: walks everything in an HDF5 file, and tells what contradicts what.

mod report;

pub use report::{Finding, Report};

//! Writers that join one file.

mod conformance;
mod files;
mod hostile;
mod reads;
mod waiting;

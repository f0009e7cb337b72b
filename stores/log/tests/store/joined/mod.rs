//! Writers that join one file.

mod appends;
mod conformance;
mod files;
mod hostile;
mod leaving;
mod reads;
mod waiting;

//! Writers that join one file.

mod conformance;
mod files;
mod hostile;
#[path = "../common/random.rs"]
mod random;
mod reads;
mod waiting;

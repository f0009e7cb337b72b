//! Writers that join one file.

mod appends;
mod conformance;
mod failing;
mod files;
mod hostile;
mod leaving;
mod order;
mod reads;
mod waiting;

//! The part of a process in a run that another process of this program directs.

/// The role of a process in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum WorkerRole {
    /// It writes.
    Writer,
    /// It follows the file, and checks it.
    Reader,
}

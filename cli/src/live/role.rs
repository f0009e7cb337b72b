//! The part of a process in a run that another process of this program directs.

/// What a process does with the file of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum WorkerRole {
    /// It writes.
    Writer,
    /// It follows, and checks what it sees.
    Reader,
}

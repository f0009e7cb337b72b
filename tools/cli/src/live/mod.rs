//! Common parts of the commands that start several processes on one live file.

pub mod latency;
pub mod location;
pub mod message;
pub mod processes;
pub mod reader;
pub mod role;
pub mod writer_and_readers;

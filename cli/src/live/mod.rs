//! What the commands share that start several processes on one live file.

pub mod latency;
pub mod message;
pub mod process_group;
pub mod processes;
pub mod reader;
pub mod role;

//! `h5live record`: appends what comes in on standard input to a live file.

pub mod input;
pub mod kind;
pub mod row;

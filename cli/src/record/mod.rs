//! `h5live record`: appends what comes in on standard input to a live file.

mod input;
mod kind;
mod row;

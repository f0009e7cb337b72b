//! On systems without `/proc`, nothing is known of the processes that have a file open.

use std::fs::File;
use std::io;

use h5live_model::FileHolderProcess;

pub fn find_writers(_file: &File) -> io::Result<Vec<FileHolderProcess>> {
    Ok(Vec::new())
}

pub fn find_openers(_file: &File) -> io::Result<Vec<FileHolderProcess>> {
    Ok(Vec::new())
}

pub fn is_writer_not_forked_child(_file: &File, _pid: u32) -> bool {
    true
}

pub fn count_own_writing_handles(_file: &File) -> usize {
    0
}

pub fn is_flocked_by_this_process(_file: &File) -> bool {
    false
}

/// The processes that hold a lock of the whole file: not known.
pub fn find_flock_holders(_: &File) -> io::Result<Vec<FileHolderProcess>> {
    Ok(Vec::new())
}

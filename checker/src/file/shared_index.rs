//! An index of shared messages, with what was found in it.

use std::collections::HashMap;

use h5live_format::SharedMessageIndex;

use super::checked_heap::CheckedFractalHeap;

/// How often a shared message is used, by its own statement and in truth.
#[derive(Debug, Default)]
pub(super) struct UseCount {
    pub stated: u32,
    pub found: u32,
}

/// An index of shared messages, with its heap.
#[derive(Debug)]
pub(super) struct SharedIndex {
    pub index: SharedMessageIndex,
    pub heap: CheckedFractalHeap,
    pub uses: HashMap<[u8; 8], UseCount>,
    /// The heap IDs of messages by their hashes.
    pub by_hash: HashMap<u32, [u8; 8]>,
    /// Whether all records were seen.
    pub whole: bool,
}

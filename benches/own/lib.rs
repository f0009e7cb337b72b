//! What the benchmarks have in common.

use std::path::PathBuf;

use tempfile::TempDir;

/// A folder that goes when it is dropped.
pub fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// A file in it.
pub fn file(folder: &TempDir, name: &str) -> PathBuf {
    folder.path().join(name)
}

/// A slow signal with noise in its low bits, which compresses about 3:1.
pub fn signal(len: usize) -> Vec<i32> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut noise = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % 64) as i32
    };
    (0..len).map(|i| ((i as f64 / 500.0).sin() * 20_000.0) as i32 + noise()).collect()
}

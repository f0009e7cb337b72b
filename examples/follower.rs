//! Follows a live file to its end: `cargo run --example follower -- run.h5`. It may be started before the file is there.

use std::time::Duration;

use h5live::{File, H5Type};

/// A row, as the writer has it.
#[derive(Debug, Clone, PartialEq, H5Type)]
pub struct Sample {
    /// Its number.
    pub number: u64,
    /// What was measured.
    pub value: f64,
}

/// Calls `each` with every sample, until the writer closes the file, or is dead.
pub fn follow(path: &std::path::Path, mut each: impl FnMut(Sample)) -> h5live::Result<()> {
    // Waits until the file is there and its writer lets others in.
    let file = File::options().swmr_read().wait(Duration::from_secs(60)).open(path)?;
    // Sleeps until the system says that the file was written to. Each batch is what was flushed since the last one.
    for batch in file.dataset("samples")?.follow::<Sample>() {
        batch?.into_iter().for_each(&mut each);
    }
    Ok(())
}

#[allow(dead_code, reason = "the test of the examples calls `follow`")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    Ok(follow(path.as_ref(), |sample| println!("{} {}", sample.number, sample.value))?)
}

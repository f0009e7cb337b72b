//! Writes a live file: `cargo run --example writer -- run.h5`. Meanwhile `cargo run --example follower -- run.h5` shows
//! each row as it comes, and `cargo run --example reader -- run.h5` what is there so far.

use std::time::Duration;

use h5live::{File, H5Type};

/// A row of the dataset: a compound type of HDF5.
#[derive(Debug, Clone, PartialEq, H5Type)]
pub struct Sample {
    /// Its number.
    pub number: u64,
    /// What was measured.
    pub value: f64,
}

/// Writes this many samples, with a pause after each.
pub fn write(path: &std::path::Path, sample_count: u64, pause: Duration) -> h5live::Result<()> {
    let file = File::create(path)?;
    // Rows are unlimited. A chunk is what is stored, found and filtered as a whole.
    let data = file.new_dataset::<Sample>().unlimited_rows(&[]).chunk_shape(&[1024]).create("samples")?;
    data.set_attribute("unit", "V")?;
    // From here on others may read the file. What is there can still be changed, and more can be made.
    file.start_swmr()?;
    for number in 0..sample_count {
        data.append(&[Sample { number, value: (number as f64 / 10.0).sin() }])?;
        // Only a flush shows others what was appended. It survives the death of this process; `flush_durable` makes it
        // survive a power failure, too.
        data.flush()?;
        std::thread::sleep(pause);
    }
    // Followers end when the file is closed.
    file.close()
}

#[allow(dead_code, reason = "the test of the examples calls `write`")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    Ok(write(path.as_ref(), 1000, Duration::from_millis(10))?)
}

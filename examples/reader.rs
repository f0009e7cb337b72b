//! Reads what is in a file so far, whether its writer is at work, has closed it, or has died:
//! `cargo run --example reader -- run.h5`.

use h5live::{File, H5Type};

/// A row, as the writer has it. Members are found by name, and converted.
#[derive(Debug, Clone, PartialEq, H5Type)]
pub struct Sample {
    /// Its number.
    pub number: u64,
    /// What was measured.
    pub value: f64,
}

/// The last samples, at most so many, and their unit.
pub fn read_last_samples(path: &std::path::Path, max_samples: u64) -> h5live::Result<(Vec<Sample>, String)> {
    // A file that is being written is followed. That of a dead writer is brought into order first, if it may be changed.
    let file = File::open_or_recover(path)?;
    let data = file.dataset("samples")?;
    // What the file shows does not move until `refresh`.
    let rows = data.shape()?[0];
    let samples = data.read_slice(rows.saturating_sub(max_samples)..rows)?;
    Ok((samples, data.attribute("unit")?.read_scalar()?))
}

#[allow(dead_code, reason = "the test of the examples calls `read`")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    let (samples, unit) = read_last_samples(path.as_ref(), 10)?;
    samples.iter().for_each(|sample| println!("{} {} {unit}", sample.number, sample.value));
    Ok(())
}

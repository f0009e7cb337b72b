//! Opens a file, reads rows of a dataset of 64-bit floats, and says how many seconds that took, and the sum of the values:
//! `remote_read s3://bucket/run.h5 DATASET FIRST COUNT`. `benches/remote.py` runs it.

use std::time::Instant;

use h5live::File;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("remote_read LOCATION DATASET FIRST COUNT");
    let (location, dataset, first, count) = (next()?, next()?, next()?.parse::<u64>()?, next()?.parse::<u64>()?);
    let begin = Instant::now();
    let file = File::open(location)?;
    let values: Vec<f64> = file.dataset(&dataset)?.read_slice(first..first + count)?;
    println!("{} {}", begin.elapsed().as_secs_f64(), values.iter().sum::<f64>());
    Ok(())
}

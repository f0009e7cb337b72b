//! Writes chunks of 1 MiB to an object store, or reads them, and says how many seconds that took, and the sum of some values:
//! `hsds_speed hsds:run write|read CHUNKS`. `benches/hsds.py` runs it.

use std::time::Instant;

use h5live::File;

/// Elements of a chunk, each of 8 bytes.
const CHUNK: u64 = 1 << 17;
/// Chunks that are written or read at a time.
const BATCH: u64 = 64;

fn write(location: &str, chunks: u64) -> h5live::Result<f64> {
    let file = File::options().create().open(location)?;
    let data = file.new_dataset::<f64>().shape(&[chunks * CHUNK]).chunk_shape(&[CHUNK]).create("data")?;
    let mut values: Vec<f64> = (0..BATCH * CHUNK).map(|at| at as f64).collect();
    for first in (0..chunks).step_by(BATCH as usize) {
        let count = BATCH.min(chunks - first);
        values.iter_mut().step_by(CHUNK as usize).zip(first..).for_each(|(value, chunk)| *value = chunk as f64);
        data.write_slice(first * CHUNK..(first + count) * CHUNK, &values[..(count * CHUNK) as usize])?;
    }
    file.close()?;
    Ok((0..chunks).map(|chunk| chunk as f64).sum())
}

fn read(location: &str, chunks: u64) -> h5live::Result<f64> {
    let data = File::open(location)?.dataset("data")?;
    let mut values = vec![0f64; (BATCH * CHUNK) as usize];
    let mut sum = 0.0;
    for first in (0..chunks).step_by(BATCH as usize) {
        let count = BATCH.min(chunks - first);
        let part = &mut values[..(count * CHUNK) as usize];
        data.read_into(first * CHUNK..(first + count) * CHUNK, part)?;
        sum += part.iter().step_by(CHUNK as usize).sum::<f64>();
    }
    Ok(sum)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("hsds_speed LOCATION write|read CHUNKS");
    let (location, what, chunks) = (next()?, next()?, next()?.parse()?);
    let begin = Instant::now();
    let sum = if what == "write" { write(&location, chunks)? } else { read(&location, chunks)? };
    println!("{} {sum}", begin.elapsed().as_secs_f64());
    Ok(())
}

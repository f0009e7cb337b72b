//! Appends rows to a key-value store in SlateDB, a flush for each chunk of them, and says how many flushes a second that
//! were: `slate_speed LOCATION FLUSHES ROWS [RATE]`. `benches/slate.py` runs it beside `bare_slate`.

use std::thread;
use std::time::{Duration, Instant};

use h5live::File;

/// Elements of a row, each of 8 bytes.
const ROW: u64 = 128;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [location, flushes, rows, rest @ ..] = &arguments[..] else {
        return Err("slate_speed LOCATION FLUSHES ROWS [RATE]".into());
    };
    let (flushes, rows): (u64, u64) = (flushes.parse()?, rows.parse()?);
    let pause =
        rest.first().map(|rate| rate.parse()).transpose()?.map(|rate: f64| Duration::from_secs_f64(rate.recip()));
    let file = File::options().create().open(&**location)?;
    let data = file.new_dataset::<f64>().unlimited_rows(&[ROW]).chunk_shape(&[rows, ROW]).create("rows")?;
    file.flush()?;
    let (begin, mut waited) = (Instant::now(), Duration::ZERO);
    for flush in 0..flushes {
        if let Some(pause) = pause {
            let early = (pause * flush as u32).saturating_sub(begin.elapsed());
            thread::sleep(early);
            waited += early;
        }
        data.append(&vec![flush as f64; (rows * ROW) as usize])?;
        file.flush()?;
    }
    file.flush_durable()?;
    println!("{}", flushes as f64 / (begin.elapsed() - waited).as_secs_f64());
    file.close()?;
    let read = File::open(&**location)?.dataset("rows")?;
    let last: Vec<f64> = read.read_slice((flushes * rows - 1, ..))?;
    if read.shape()? != [flushes * rows, ROW] || last.iter().any(|value| *value != (flushes - 1) as f64) {
        return Err("what was read is not what was appended".into());
    }
    Ok(())
}

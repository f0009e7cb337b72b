//! Writes 100,000 blocks of 4 KiB, scattered over a dataset of two dimensions, into a native file and into a log, and
//! reads the dataset back: `cargo run --release --example scattered_writes [FOLDER [STORE...]]`.

use std::time::Instant;

use h5live::{File, Selection};

/// Blocks along a side of the dataset.
const SIDE: u64 = 316;
/// Elements along the sides of a block.
const BLOCK: [u64; 2] = [16, 32];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).map_or_else(std::env::temp_dir, Into::into);
    let shape = [SIDE * BLOCK[0], SIDE * BLOCK[1]];
    let bytes = (shape[0] * shape[1] * 8) as f64 / 1e9;
    let asked: Vec<String> = std::env::args().skip(2).collect();
    for scheme in ["native", "log"].into_iter().filter(|known| asked.is_empty() || asked.iter().any(|a| a == known)) {
        let path = folder.join(format!("scattered-{scheme}.h5"));
        let location = format!("{scheme}:{}", path.display());
        let file = File::options().create().open(location.as_str())?;
        let data = file.new_dataset::<f64>().shape(&shape).create("data")?;
        let begin = Instant::now();
        // Each block once, in an order that jumps: the multiplier has no factor in common with the number of blocks.
        for number in 0..SIDE * SIDE {
            let at = number * 31_337 % (SIDE * SIDE);
            let start = [at / SIDE * BLOCK[0], at % SIDE * BLOCK[1]];
            data.write_slice(Selection::block(&start, &BLOCK), &[at as f64; 512])?;
        }
        file.close()?;
        let written = begin.elapsed().as_secs_f64();
        let file = File::open(location.as_str())?;
        let begin = Instant::now();
        let values = file.dataset("data")?.read::<f64>()?;
        let read = begin.elapsed().as_secs_f64();
        assert!(values.iter().enumerate().all(|(i, value)| {
            let [row, column] = [i as u64 / shape[1] / BLOCK[0], i as u64 % shape[1] / BLOCK[1]];
            *value == (row * SIDE + column) as f64
        }));
        println!("{scheme}: written at {:.2} GB/s, read at {:.2} GB/s", bytes / written, bytes / read);
        drop(file);
        std::fs::remove_file(path)?;
    }
    Ok(())
}

//! Reads 1 GiB of elements, contiguous and in chunks behind filters, and says how long that takes:
//! `cargo run --release --example read_speed -- /tmp/speed.h5`. README, 'Use', says what makes it fast without `--release`.

use std::path::Path;
use std::time::Instant;

use h5live::{Dataset, File};

/// Elements of a row, each of 4 bytes.
const ROW: u64 = 1 << 18;
/// Rows of each dataset: 512 MiB.
const ROWS: u64 = 1 << 9;

fn create(path: &Path) -> h5live::Result<()> {
    let file = File::create(path)?;
    let plain = file.new_dataset::<f32>().shape(&[ROWS, ROW]).create("contiguous")?;
    let chunked = file.new_dataset::<f32>().shape(&[ROWS, ROW]).chunk_shape(&[1, ROW]);
    let filtered = chunked.shuffle().deflate(1).fletcher32().create("filtered")?;
    let mut noise = 1u64;
    for row in 0..ROWS {
        let mut value = |i| {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (i / 100 + (noise >> 56)) as f32
        };
        let values: Vec<f32> = (0..ROW).map(&mut value).collect();
        plain.write_slice(row, &values)?;
        filtered.write_slice(row, &values)?;
    }
    file.close()
}

/// Reads a dataset in parts of 64 rows.
fn time<T: h5live::H5Type>(data: &Dataset, what: &str) -> h5live::Result<()> {
    let started = Instant::now();
    let mut elements = 0;
    for row in (0..ROWS).step_by(64) {
        elements += data.read_slice::<T>(row..row + 64)?.len() as u64;
    }
    assert_eq!(elements, ROWS * ROW);
    println!("{:12} {what:8} {:.3} s", data.path(), started.elapsed().as_secs_f64());
    Ok(())
}

fn main() -> h5live::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "speed.h5".into());
    let path = Path::new(&path);
    if !path.exists() {
        create(path)?;
    }
    let file = File::open(path)?;
    for name in ["contiguous", "filtered"] {
        let data = file.dataset(name)?;
        time::<f32>(&data, "as f32")?;
        time::<f64>(&data, "as f64")?;
    }
    Ok(())
}

//! Appends rows to a live file: `cargo run --example append -- run.h5 1000`.

use h5live::File;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap_or_else(|| "run.h5".into());
    let rows: u64 = args.next().map_or(Ok(1000), |rows| rows.parse())?;
    let file = File::create(&path)?;
    let frames =
        file.new_dataset::<u16>().unlimited_rows(&[16, 32]).chunk_shape(&[4, 16, 32]).deflate(4).create("frames")?;
    let times = file.new_dataset::<f64>().unlimited_rows(&[]).chunk_shape(&[256]).create("times")?;
    file.start_swmr()?;
    for row in 0..rows {
        frames.append(&vec![row as u16; 16 * 32])?;
        times.append(&[row as f64 / 1000.0])?;
        file.flush()?;
    }
    file.close()?;
    Ok(())
}

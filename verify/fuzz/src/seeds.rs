//! Writes sound structures to `corpus/TARGET` beside this package's manifest, from which the fuzzer starts.

use std::error::Error;
use std::fs;
use std::path::Path;

use h5live::{File, UNLIMITED};
use h5live_log::entry::{DimVec, EntryChange, EntryHead};

/// Rows of the datasets in the log.
const ROWS: u64 = 12;

/// Entries of each kind.
fn entries() -> Vec<Vec<u8>> {
    let dims = |dims: &[u64]| DimVec::from_slice(dims);
    let changes = [
        (2, EntryChange::Block { start: dims(&[1, 2]), count: dims(&[3, 4]) }),
        (2, EntryChange::PointCoords(vec![1, 2, 3, 4])),
        (1, EntryChange::GrowToAtLeast(dims(&[9]))),
        (3, EntryChange::ShrinkTo(dims(&[1, 2, 3]))),
        (0, EntryChange::EndOfBatch { order: 7, shifts: Vec::new() }),
    ];
    let entry = |(rank, change)| {
        let head = EntryHead { batch_number: 1, file: 0, dataset: 1, change, filter_id: 0, data_len: 24, data_crc: 5 };
        let mut bytes = Vec::new();
        head.encode(rank, &mut bytes);
        bytes.resize(head.lengths().len as usize, 3);
        bytes
    };
    changes.into_iter().map(entry).collect()
}

/// A file with a log of boxes, points, growth and a shrink, in so many log datasets; closed or not.
fn log_file(path: &Path, layout: &str, is_closed: bool) -> Result<(), Box<dyn Error>> {
    let _ = fs::remove_file(path);
    let file = File::options().create().open(&*format!("log:{}?{layout}", path.display()))?;
    let table = file.new_dataset::<u16>().shape(&[0, 8]).max_shape(&[UNLIMITED, 8]).create("table")?;
    let points = file.new_dataset::<u16>().shape(&[ROWS, 4]).contiguous().create("points")?;
    for row in 0..ROWS {
        table.append(&[row as u16; 8])?;
        points.write_slice((row, row % 4), &[row as u16])?;
        points.write_slice((row, ..), &[row as u16; 4])?;
        if row % 4 == 3 {
            file.flush()?;
        }
    }
    if layout.is_empty() {
        table.resize(&[ROWS - 2, 8])?;
    }
    file.flush()?;
    match is_closed {
        true => file.close()?,
        false => std::mem::forget((table, points, file)),
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut count = 0;
    let mut save = |target: &str, bytes: &[u8]| {
        count += 1;
        fs::create_dir_all(corpus.join(target))?;
        fs::write(corpus.join(target).join(format!("seed-{count:03}")), bytes)
    };
    h5live_format::fuzz::all_seeds().iter().try_for_each(|seed| save(seed.target, &seed.data))?;
    entries().iter().try_for_each(|entry| save("log_entry", entry))?;
    let path = corpus.join("log.h5");
    for (layout, is_closed) in [("", true), ("", false), ("layout=logvol", true)] {
        log_file(&path, layout, is_closed)?;
        save("log_file", &fs::read(&path)?)?;
    }
    fs::remove_file(path)?;
    println!("{count} seeds in {}", corpus.display());
    Ok(())
}

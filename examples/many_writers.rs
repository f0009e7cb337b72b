//! Four processes write the columns of one dataset into a log, each every fourth column, and one process writes them all
//! into a native file: `cargo run --release --example many_writers [FOLDER]`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use h5live::{File, Selection};

/// Rows and columns of the dataset.
const SHAPE: [u64; 2] = [4096, 4096];
/// Processes.
const WRITERS: u64 = 4;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [location, first] = &arguments[..] {
        return write_columns(location, first.parse()?, WRITERS);
    }
    let folder = arguments.first().map_or_else(std::env::temp_dir, PathBuf::from);
    let bytes = (SHAPE[0] * SHAPE[1] * 8) as f64 / 1e9;
    for (name, log, writers) in [("native, 1 process", false, 1), ("log, 4 processes", true, WRITERS)] {
        let path = folder.join(if log { "many-log.h5" } else { "many-native.h5" });
        let location = if log { format!("log:{}?join=yes", path.display()) } else { path.display().to_string() };
        create(&location)?;
        let begin = Instant::now();
        match writers {
            1 => write_columns(&location, 0, 1)?,
            _ => in_processes(&location)?,
        }
        let written = begin.elapsed().as_secs_f64();
        check(&path, log)?;
        println!("{name}: written at {:.2} GB/s", bytes / written);
        std::fs::remove_file(&path)?;
    }
    std::fs::remove_dir_all(folder.join("many-log.h5.subfiles"))?;
    Ok(())
}

fn create(location: &str) -> Outcome {
    let file = File::options().create().open(location)?;
    file.new_dataset::<f64>().shape(&SHAPE).chunk_shape(&[256, 256]).create("data")?;
    Ok(file.close()?)
}

/// Writes every `step`th column from `first` on.
fn write_columns(location: &str, first: u64, step: u64) -> Outcome {
    let file = File::options().swmr_write().open(location)?;
    let data = file.dataset("data")?;
    for column in (first..SHAPE[1]).step_by(step as usize) {
        data.write_slice(Selection::block(&[0, column], &[SHAPE[0], 1]), &vec![column as f64; SHAPE[0] as usize])?;
    }
    Ok(file.close()?)
}

fn in_processes(location: &str) -> Outcome {
    let start = |number: u64| Command::new(std::env::current_exe()?).args([location, &number.to_string()]).spawn();
    let children = (0..WRITERS).map(start).collect::<Result<Vec<_>, _>>()?;
    for mut child in children {
        assert!(child.wait()?.success());
    }
    Ok(())
}

/// All columns are there.
fn check(path: &Path, log: bool) -> Outcome {
    let text = path.display().to_string();
    let file = File::open(if log { format!("log:{text}") } else { text }.as_str())?;
    let values: Vec<f64> = file.dataset("data")?.read()?;
    assert!(values.iter().enumerate().all(|(at, value)| *value == (at as u64 % SHAPE[1]) as f64));
    Ok(())
}

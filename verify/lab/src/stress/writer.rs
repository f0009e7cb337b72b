//! The writer of a stress run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use h5live::{Dataset, File, Location};

use h5live_cli::error::Result;
use h5live_cli::live::message::{TimedExtents, WorkerMessage, unix_nanos_now};
use h5live_cli::output::StdoutWriter;
use h5live_cli::watch::row_count;

use super::rule::{StressSeries, all_series, mix};

/// How far the writer may be behind its rate and still catch up.
const MAX_LAG: Duration = Duration::from_millis(250);

/// Makes the datasets in a new file, still empty.
///
/// # Errors
/// [`h5live_cli::error::Error::File`].
pub fn make_datasets(file: &File) -> Result<()> {
    for series in all_series() {
        let chunk: Vec<_> = std::iter::once(series.chunk_rows).chain(series.row.iter().copied()).collect();
        let mut builder =
            file.root().new_dataset_with_type(series.datatype.clone()).unlimited_rows(&series.row).chunk_shape(&chunk);
        if series.compressed {
            builder = builder.shuffle().deflate(1);
        }
        builder.create(series.name)?;
    }
    Ok(())
}

/// Appends rows at the end of the datasets, and reports each flush, until `stop` is set.
///
/// # Errors
/// As [`h5live_cli::error::Error`] says.
pub fn run(location: &Location, seed: u64, flushes_per_second: f64, stop: &AtomicBool) -> Result<()> {
    let file = File::options().swmr_write().open(location)?;
    let all = all_series();
    let datasets: Vec<Dataset> = all.iter().map(|series| file.dataset(series.name)).collect::<Result<_, _>>()?;
    let mut rows: Vec<u64> = datasets.iter().map(row_count).collect::<Result<_>>()?;
    let mut out = StdoutWriter::stdout();
    let pause = Duration::from_secs_f64(1.0 / flushes_per_second);
    let mut next = Instant::now();
    let mut bytes = Vec::new();
    while !stop.load(Ordering::Acquire) {
        let step = rows.first().copied().unwrap_or(0);
        for ((series, dataset), rows) in all.iter().zip(&datasets).zip(&mut rows) {
            let count = batch(series, seed, step);
            bytes.clear();
            (*rows..*rows + count).for_each(|row| series.write_row(seed, row, &mut bytes));
            dataset.append_raw(&bytes)?;
            *rows += count;
        }
        let at = unix_nanos_now();
        // Both ways to publish, by turns.
        if step.is_multiple_of(2) {
            file.flush()?
        } else {
            datasets.iter().try_for_each(Dataset::flush)?
        }
        out.line(WorkerMessage::Flushed(TimedExtents { unix_nanos: at, row_counts: rows.clone() }))?;
        out.flush()?;
        next += pause;
        thread::sleep(next.saturating_duration_since(Instant::now()));
        // Flushes that are late are made up for; those of a long standstill are not.
        next = next.max(Instant::now().checked_sub(MAX_LAG).unwrap_or(next));
    }
    Ok(file.close()?)
}

/// Rows to append at a step: few at a time for frames, now and then more than a chunk of anything else.
fn batch(series: &StressSeries, seed: u64, step: u64) -> u64 {
    let random = mix(seed ^ mix(step ^ series.row_bytes() as u64));
    if series.row.len() > 1 || !random.is_multiple_of(16) { 1 + random % 3 } else { 1 + series.chunk_rows * 2 }
}

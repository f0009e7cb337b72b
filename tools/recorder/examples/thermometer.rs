//! A recorder of its own: it records what an instrument sends line by line, and somebody follows the file meanwhile.
//!
//! `cargo run -p h5live-recorder --example thermometer -- run.h5`

use std::io::{PipeWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use std::{env, io, thread};

use h5live::{File, FileWaiter, H5Type};
use h5live_recorder::{
    FlushPolicy, InputFormat, OnError, RecordNotice, RecordObserver, RecordOptions, RecordSummary, Recorder, RefusedRow,
};

/// A row of the dataset.
#[derive(Debug, Clone, PartialEq, H5Type)]
pub struct Reading {
    /// Seconds since the start.
    pub seconds: f64,
    /// The temperature (degrees Celsius).
    pub celsius: f64,
}

/// What the recorder shows on a screen.
struct Screen;

impl RecordObserver for Screen {
    fn notice(&mut self, notice: &RecordNotice) {
        println!("note: {notice}");
    }

    fn row_skipped_or_rejected(&mut self, row: &RefusedRow) {
        println!("left out: {row}");
    }
}

/// The instrument: it sends a line of JSON now and then, and one that is garbled.
fn send_readings(mut line: PipeWriter, readings: u32) -> io::Result<()> {
    for n in 0..readings {
        let seconds = f64::from(n) / 10.0;
        writeln!(line, "{{\"seconds\": {seconds:?}, \"celsius\": {:?}}}", 20.0 + seconds.sin())?;
        if n == 7 {
            writeln!(line, "{{\"seconds\": 0.75, \"celsius\": \"#err\"}}")?;
        }
    }
    Ok(())
}

/// Records readings into the dataset `room/temperature` of a new file, and follows it meanwhile. Returns what was stored,
/// and what the follower has seen.
///
/// # Errors
/// If the file cannot be made, written or read.
pub fn record(path: &Path, readings: u32) -> Result<(RecordSummary, Vec<Reading>), Box<dyn std::error::Error>> {
    let file = File::create(path)?;
    file.start_swmr()?;
    let (input, instrument) = io::pipe()?;
    thread::spawn(move || send_readings(instrument, readings));
    let follower = thread::spawn({
        let path = path.to_owned();
        move || -> h5live::Result<Vec<Reading>> {
            let mut waiter = FileWaiter::new(File::options().swmr_read(), path)?;
            let dataset = waiter.wait_for(Duration::from_secs(60), |file| file.dataset("room/temperature"))?;
            let mut seen = Vec::new();
            for batch in dataset.into_iter().flat_map(|dataset| dataset.follow()) {
                seen.extend::<Vec<Reading>>(batch?);
                if seen.len() >= readings as usize {
                    break;
                }
            }
            Ok(seen)
        }
    });
    let options = RecordOptions {
        format: InputFormat::Json,
        given_column_types: vec!["seconds=f64".parse()?, "celsius=f64".parse()?],
        infer_rows: 1,
        on_error: OnError::Skip,
        flush: FlushPolicy { max_unflushed_rows: 1, ..FlushPolicy::default() },
        ..RecordOptions::default()
    };
    let mut screen = Screen;
    let recorder = Recorder::new(&file, "room/temperature", options, &mut screen)?;
    // A program that is to end at Ctrl-C sets this flag then.
    let recording = recorder.record(input, &Arc::new(AtomicBool::new(false)));
    recording.outcome?;
    let seen = follower.join().map_err(|_| "the follower has failed")??;
    file.close()?;
    Ok((recording.summary, seen))
}

#[allow(dead_code, reason = "a test calls `record`")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = env::args().nth(1).ok_or("which file?")?;
    let (summary, seen) = record(Path::new(&path), 20)?;
    println!(
        "{} rows stored, {} left out; the follower has seen {}",
        summary.accepted_rows,
        summary.skipped_or_rejected_rows,
        seen.len()
    );
    Ok(())
}

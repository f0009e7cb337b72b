//! Runs works: each side in a process of its own, so that memory is its own, in turns, so that noise meets both.

use std::fs;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::row::Row;
use crate::work::{Done, Ground, Growth, Requests, Unit, Work};
use crate::{Error, Result, Side, cold, peer};

/// One run of one side.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measure {
    pub seconds: f64,
    pub units: u64,
    pub sum: u64,
    pub size: Option<f64>,
    pub tail: Option<f64>,
    /// The most memory that the process had (bytes).
    pub peak: u64,
    pub growth: Option<Growth>,
    pub requests: Option<Requests>,
}

impl Measure {
    /// Units a second; for latencies the seconds.
    pub fn rate(&self, unit: Unit) -> f64 {
        if unit == Unit::Latency { self.seconds } else { self.units as f64 / self.seconds }
    }
}

/// One side, in this process.
pub fn here(work: &Work, side: Side, ground: &Ground) -> Result<Measure> {
    peer::start()?;
    if work.cold {
        cold::forget(&ground.folder)?;
    }
    let done = (work.run)(side, ground)?;
    let Done { seconds, units, sum, size, tail, peak, growth, requests } = done;
    Ok(Measure { seconds, units, sum, size, tail, peak, growth, requests })
}

/// How long another crate may take for one run. Nobody waits for hours for what is a side-show.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs that are shorter than this, on every side (s), are done so many times as often: a moment of noise is much of
/// them.
const SHORT: f64 = 0.3;
const OFTENER: usize = 3;

/// Writes as many bytes as a large run does, to a file that goes again. Of a virtual machine the host may have taken
/// back memory that lay idle, and who first writes there would pay for that, several times what the write costs. What a
/// process has had for itself and given back is not what the next file gets, so it must be a file. Pairs write less.
fn touch_memory(ground: &Ground) -> Result<()> {
    let path = ground.file("touched");
    let (file, block) = (fs::File::create(&path)?, vec![1; 1 << 20]);
    let mebibytes = if ground.part.is_some() { 128 } else { 1 << 10 };
    (0..ground.times(mebibytes)).try_for_each(|n| file.write_all_at(&block, n << 20))?;
    drop(file);
    Ok(fs::remove_file(path)?)
}

fn child(work: &Work, side: Side, ground: &Ground) -> Result<Measure> {
    touch_memory(ground)?;
    let (program, as_side, folder) = match (&ground.earlier, side) {
        (Some(earlier), Side::Earlier) => (earlier.clone(), Side::H5live, earlier_ground(ground).folder),
        _ => (std::env::current_exe()?, side, ground.folder.clone()),
    };
    let part = ground.part.map(|part| ["--part".to_owned(), part.to_string()]);
    let mut child = Command::new(program)
        .args(["--child", work.name, &as_side.to_string()])
        .args(["--scale", &ground.scale.to_string(), "--chunk", &ground.chunk.to_string(), "--folder"])
        .arg(folder)
        .args(part.into_iter().flatten())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let start = Instant::now();
    while side.is_crate() && child.try_wait()?.is_none() {
        if start.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Err(Error::Child(format!("not done in {} s", PATIENCE.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output()?;
    let failed = || {
        Error::Child({
            let said = String::from_utf8_lossy(&output.stderr);
            said.trim_end().trim_start_matches("compare: ").to_owned()
        })
    };
    if !output.status.success() {
        return Err(failed());
    }
    serde_json::from_slice(&output.stdout).map_err(|_| failed())
}

/// Where the earlier build has its files: both have the side's name in them.
fn earlier_ground(ground: &Ground) -> Ground {
    Ground { folder: ground.folder.join("earlier"), ..ground.clone() }
}

/// All sides, `rounds` times in turns, after one round that warms everything up. If their runs are short, other crates
/// are done with then, and the others go on.
///
/// # Errors
/// If we or libhdf5 fail or disagree. Another crate that does so is left out, and the row says why.
pub fn in_turns(work: &Work, ground: &Ground, rounds: usize) -> Result<Row> {
    peer::start()?;
    (work.prepare)(ground)?;
    if ground.earlier.is_some() {
        let ground = earlier_ground(ground);
        fs::create_dir_all(&ground.folder)?;
        (work.prepare)(&ground)?;
    }
    let mut row = Row { work: *work, chunk: ground.chunk, pair: ground.part, runs: Vec::new(), left_out: Vec::new() };
    let earlier = ground.earlier.iter().map(|_| Side::Earlier);
    row.runs = work
        .sides
        .iter()
        .copied()
        .filter(|side| !ground.alone || *side == Side::H5live)
        .chain(earlier)
        .map(|side| (side, Vec::new()))
        .collect();
    let count = row.runs.len();
    for round in 0..=rounds * OFTENER {
        if round > rounds && (ground.chunk > 0 || ground.part.is_some() || !row.is_short(SHORT)) {
            break;
        }
        let mut done: Vec<(usize, Measure)> = Vec::new();
        // Each comes first in its turn, for what ran just before may leave traces.
        for at in (0..count).map(|at| (round + at) % count) {
            let side = row.runs[at].0;
            if (round > rounds && side.is_crate()) || row.left_out.iter().any(|(out, _)| *out == side) {
                continue;
            }
            match child(work, side, ground) {
                Ok(measure) => done.push((at, measure)),
                Err(error) if side.is_crate() || side == Side::Earlier => row.left_out.push((side, error.to_string())),
                Err(error) => return Err(Error::Child(format!("{}, {side}: {error}", work.name))),
            }
        }
        let ours = done.iter().find(|(at, _)| row.runs[*at].0 == Side::H5live).map(|(_, measure)| measure.sum);
        for (at, measure) in done {
            let (side, measures) = &mut row.runs[at];
            if *side == Side::Bare || ours.is_none_or(|sum| sum == measure.sum) {
                if round > 0 {
                    measures.push(measure);
                }
            } else if side.is_crate() || *side == Side::Earlier {
                row.left_out.push((*side, "what it read or wrote is not what the others did".to_owned()));
            } else {
                let Measure { sum, .. } = measure;
                return Err(Error::Differ(format!("{}: {side} has {sum:x}, not {ours:x?}", work.name)));
            }
        }
    }
    row.runs.retain(|(side, _)| !row.left_out.iter().any(|(out, _)| out == side));
    Ok(row)
}

//! Runs works: each side in a process of its own, so that memory is its own, in turns, so that noise meets both.

use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::work::{Ground, Unit, Work};
use crate::{Error, Result, Side, peer};

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
}

impl Measure {
    /// Units a second; for latencies the seconds.
    pub fn rate(&self, unit: Unit) -> f64 {
        if unit == Unit::Latency { self.seconds } else { self.units as f64 / self.seconds }
    }
}

/// All runs of a work.
pub struct Row {
    pub name: &'static str,
    pub title: &'static str,
    pub unit: Unit,
    pub aim: f64,
    pub bare_aim: Option<f64>,
    pub size_aim: Option<f64>,
    pub runs: Vec<(Side, Vec<Measure>)>,
}

impl Row {
    fn of(&self, side: Side) -> Option<&[Measure]> {
        self.runs.iter().find(|(whose, _)| *whose == side).map(|(_, runs)| &**runs)
    }

    /// The median rate of a side, and half the distance between its quartiles, as a part of it.
    pub fn rate(&self, side: Side) -> Option<(f64, f64)> {
        let mut rates: Vec<f64> = self.of(side)?.iter().map(|run| run.rate(self.unit)).collect();
        rates.sort_by(f64::total_cmp);
        let at = |part: f64| rates[((rates.len() - 1) as f64 * part).round() as usize];
        Some((at(0.5), (at(0.75) - at(0.25)) / 2.0 / at(0.5)))
    }

    /// How many times faster than `side` we are.
    pub fn ratio(&self, side: Side) -> Option<f64> {
        let (ours, theirs) = (self.rate(Side::H5live)?.0, self.rate(side)?.0);
        Some(if self.unit == Unit::Latency { theirs / ours } else { ours / theirs })
    }

    pub fn peak(&self, side: Side) -> Option<u64> {
        self.of(side)?.iter().map(|run| run.peak).max()
    }

    pub fn size(&self, side: Side) -> Option<f64> {
        self.of(side)?.last()?.size
    }

    pub fn tail(&self, side: Side) -> Option<f64> {
        let mut tails: Vec<f64> = self.of(side)?.iter().filter_map(|run| run.tail).collect();
        tails.sort_by(f64::total_cmp);
        tails.get(tails.len() / 2).copied()
    }

    /// Whether every aim is reached.
    pub fn is_reached(&self) -> bool {
        let bare = self.bare_aim.is_none_or(|aim| self.ratio(Side::Bare).is_some_and(|ratio| ratio >= aim));
        let size = self.size_aim.is_none_or(|aim| self.size(Side::H5live).is_some_and(|size| size <= aim));
        self.ratio(Side::Libhdf5).is_none_or(|ratio| ratio >= self.aim) && bare && size
    }
}

/// The most memory that this process has had (bytes).
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) << 10
}

/// One side, in this process.
pub fn here(work: &Work, side: Side, folder: &Path, scale: f64) -> Result<Measure> {
    peer::start()?;
    let done = (work.run)(side, &Ground { folder: folder.to_owned(), scale })?;
    let (seconds, units, sum) = (done.seconds, done.units, done.sum);
    Ok(Measure { seconds, units, sum, size: done.size, tail: done.tail, peak: peak() })
}

fn child(work: &Work, side: Side, folder: &Path, scale: f64) -> Result<Measure> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--child", work.name, &side.to_string(), "--scale", &scale.to_string(), "--folder"])
        .arg(folder)
        .output()?;
    let failed = || Error::Child(format!("{} {side}: {}", work.name, String::from_utf8_lossy(&output.stderr)));
    if !output.status.success() {
        return Err(failed());
    }
    serde_json::from_slice(&output.stdout).map_err(|_| failed())
}

/// All sides, `rounds` times in turns, after one round that warms everything up.
pub fn in_turns(work: &Work, folder: &Path, rounds: usize, scale: f64) -> Result<Row> {
    peer::start()?;
    (work.prepare)(&Ground { folder: folder.to_owned(), scale })?;
    let mut runs: Vec<(Side, Vec<Measure>)> = work.sides.iter().map(|side| (*side, Vec::new())).collect();
    for round in 0..=rounds {
        for (side, measures) in &mut runs {
            let measure = child(work, *side, folder, scale)?;
            if round > 0 {
                measures.push(measure);
            }
        }
    }
    let sums: Vec<_> =
        runs.iter().filter(|(side, _)| *side != Side::Bare).map(|(side, runs)| (side, runs[0].sum)).collect();
    if sums.windows(2).any(|pair| pair[0].1 != pair[1].1) {
        return Err(Error::Differ(format!("{}: {sums:x?}", work.name)));
    }
    let Work { name, title, unit, aim, bare_aim, size_aim, .. } = *work;
    Ok(Row { name, title, unit, aim, bare_aim, size_aim, runs })
}

//! One work that both sides do.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::{Result, Side};

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things a second.
    Things(&'static str),
    /// Bytes a second.
    Bytes,
    /// Seconds, of which fewer are better.
    Latency,
}

/// A work: what is done, by whom, and what is aimed at.
#[derive(Clone, Copy)]
pub struct Work {
    pub name: &'static str,
    pub title: &'static str,
    pub unit: Unit,
    /// How many times faster than libhdf5 we want to be. Of latencies that holds for the 99th percentile too.
    pub aim: f64,
    /// What part of the bare machine's rate we want to reach.
    pub bare_aim: Option<f64>,
    /// Whether the bare machine does the same bytes by the same calls, so that nobody can do better. An aim that it does not
    /// reach itself is reached by [`BOUND_PART`] of what it does.
    pub bare_is_bound: bool,
    /// How large our file may be, against the bytes of the data.
    pub size_aim: Option<f64>,
    /// A work, and how many times as long as there a unit may take us here.
    pub within: Option<(&'static str, f64)>,
    /// Bytes of memory that we may have beyond what libhdf5 has.
    pub budget: u64,
    /// The most memory that our process may have (bytes).
    pub peak_aim: Option<u64>,
    /// How much memory our process may have after the run, against that after a tenth of it.
    pub growth_aim: Option<f64>,
    /// Whether nothing of the files is in the page cache when a run begins.
    pub cold: bool,
    /// Bytes of a chunk: the work is done with each, for a plot. Empty for rows of the table.
    pub chunks: &'static [u64],
    /// From what to what: the work is done with each pair of these, for a table of its own. Empty for other works.
    pub pairs_of: &'static [&'static str],
    pub sides: &'static [Side],
    /// Makes what the sides read. Not measured.
    pub prepare: fn(&Ground) -> Result<()>,
    pub run: fn(Side, &Ground) -> Result<Done>,
}

/// What part of a bound is to be reached.
pub const BOUND_PART: f64 = 0.9;

/// What [`h5live::Options`] says that reading takes by default: 32 MiB of decoded chunks, and 64 MiB while threads
/// decode.
pub const READING: u64 = 96 << 20;
/// What it says that writing takes: 64 MiB until the next flush, and 64 MiB while threads encode.
pub const WRITING: u64 = 128 << 20;

impl Work {
    /// What most works have in common. What is done stands in each.
    pub const PLAIN: Work = Work {
        name: "",
        title: "",
        unit: Unit::Bytes,
        aim: 1.0,
        bare_aim: None,
        bare_is_bound: false,
        size_aim: None,
        within: None,
        budget: READING,
        peak_aim: None,
        growth_aim: None,
        cold: false,
        chunks: &[],
        pairs_of: &[],
        sides: &[Side::H5live, Side::Libhdf5],
        prepare: |_| Ok(()),
        run: |_, _| Ok(Done::default()),
    };
}

/// Where and how much.
#[derive(Debug, Clone)]
pub struct Ground {
    pub folder: PathBuf,
    pub scale: f64,
    /// Bytes of a chunk, in works that are done with several sizes.
    pub chunk: u64,
    /// Which one this process is of those that a work has started, or which pair the work is done with.
    pub part: Option<u64>,
    /// Another build of this program, whose h5live is measured, too.
    pub earlier: Option<PathBuf>,
    /// Whether no other library is measured.
    pub alone: bool,
}

impl Ground {
    /// A file of this run.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// `number`, scaled; at least one.
    pub fn times(&self, number: u64) -> u64 {
        ((number as f64 * self.scale) as u64).max(1)
    }
}

/// What was done, and in what time.
#[derive(Debug, Default)]
pub struct Done {
    pub seconds: f64,
    /// Units that were done: things, or bytes.
    pub units: u64,
    /// A sum over what was read or written; both sides' are the same.
    pub sum: u64,
    /// The file's bytes against those of the data.
    pub size: Option<f64>,
    /// The 99th percentile, for latencies (s).
    pub tail: Option<f64>,
    /// The most memory that the process had until this was done (bytes): what checks it comes later and does not count.
    pub peak: u64,
    pub growth: Option<Growth>,
    pub requests: Option<Requests>,
}

/// The last tenth of a run against the first.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Growth {
    /// The memory after it.
    pub memory: f64,
    /// The time that it took.
    pub time: f64,
}

/// What was asked of object stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    pub number: u64,
    /// How often somebody waited: requests of one wave are under way together.
    pub waves: u64,
}

/// The most memory that this process has had (bytes), without the pages of files that it has mapped now: they are the page
/// cache's, and the system takes them back when it needs them.
pub fn peak() -> u64 {
    let status = ProcessStatus::read();
    status.bytes("VmHWM:").saturating_sub(status.bytes("RssFile:")).max(status.bytes("RssAnon:"))
}

/// The memory that this process has for itself now (bytes).
pub fn anonymous_memory() -> u64 {
    ProcessStatus::read().bytes("RssAnon:")
}

/// What the system says of this process.
struct ProcessStatus(String);

impl ProcessStatus {
    fn read() -> Self {
        ProcessStatus(std::fs::read_to_string("/proc/self/status").unwrap_or_default())
    }

    fn bytes(&self, name: &str) -> u64 {
        let line = self.0.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) << 10
    }
}

/// Times `what`.
pub fn timed<T>(units: u64, what: impl FnOnce() -> Result<T>) -> Result<(Done, T)> {
    let start = Instant::now();
    let value = what()?;
    Ok((Done { seconds: start.elapsed().as_secs_f64(), units, peak: peak(), ..Done::default() }, value))
}

impl Done {
    pub fn sum(mut self, sum: u64) -> Self {
        self.sum = sum;
        self
    }

    /// Notes how large the file became, against `data` bytes.
    pub fn size_of(mut self, path: &Path, data: u64) -> Result<Self> {
        self.size = Some(std::fs::metadata(path)?.len() as f64 / data as f64);
        Ok(self)
    }
}

/// A sum that tells contents apart, at the speed of memory.
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().fold(0u64, |sum, word| sum.rotate_left(1).wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(words, |sum, byte| sum.rotate_left(1).wrapping_add(u64::from(*byte)))
}

/// Numbers that look random and are the same on both sides.
pub struct Numbers(u64);

impl Numbers {
    pub fn new() -> Self {
        Numbers(0x9e37_79b9_7f4a_7c15)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// What detectors give: a slow signal with noise in its low bits. Compresses about 2:1.
pub fn signal(len: usize) -> Vec<i32> {
    let mut numbers = Numbers::new();
    (0..len).map(|i| ((i as f64 / 500.0).sin() * 20_000.0) as i32 + numbers.below(64) as i32).collect()
}

/// Values as the bytes that they are in memory.
pub fn bytes<T: bytemuck::NoUninit>(values: &[T]) -> &[u8] {
    bytemuck::cast_slice(values)
}

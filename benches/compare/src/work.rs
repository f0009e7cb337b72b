//! One work that both sides do.

use std::path::{Path, PathBuf};
use std::time::Instant;

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

/// A work: what is done, by whom, and what ratio is the aim.
#[derive(Clone, Copy)]
pub struct Work {
    pub name: &'static str,
    pub title: &'static str,
    pub unit: Unit,
    /// How many times faster than libhdf5 we want to be.
    pub aim: f64,
    /// What part of the bare machine's rate we want to reach.
    pub bare_aim: Option<f64>,
    /// How large our file may be, against the bytes of the data.
    pub size_aim: Option<f64>,
    pub sides: &'static [Side],
    /// Makes what the sides read. Not measured.
    pub prepare: fn(&Ground) -> Result<()>,
    pub run: fn(Side, &Ground) -> Result<Done>,
}

/// Where and how much.
pub struct Ground {
    pub folder: PathBuf,
    pub scale: f64,
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
}

/// Times `what`.
pub fn timed<T>(units: u64, what: impl FnOnce() -> Result<T>) -> Result<(Done, T)> {
    let start = Instant::now();
    let value = what()?;
    Ok((Done { seconds: start.elapsed().as_secs_f64(), units, ..Done::default() }, value))
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

//! The samples of an epoch: which ones, and in which order.

use super::Archive;
use super::epoch_sample_numbers::EpochSampleNumbers;
use super::fault::ArchiveFault;
use super::order::{EpochOrder, Permutation};
use super::prefetch::PrefetchedSamples;
use crate::Result;

/// The samples of an epoch, of which a process and a worker of it may have their part.
///
/// An epoch is an order of all samples: positions from 0 on. Rank `r` of `w` has the positions `p` with `p mod w = r`. The
/// `i`-th of `n` workers has every `n`-th of those, from the `i`-th on. So the order depends on seed and epoch only, and
/// `n` workers that are asked in turn give what one would.
///
/// ```
/// # use h5live::{File, archive::Archive};
/// # let file = File::in_memory();
/// # file.new_dataset::<u8>().create_with_data("image", &[0u8; 100])?;
/// # file.new_dataset::<u64>().create_with_data("image_offset", &(0..100).collect::<Vec<u64>>())?;
/// # let archive = Archive::open(&file)?;
/// let mut numbers = archive.samples().shuffled(42).epoch(3).shard(0, 2).worker(1, 4).numbers()?;
/// let first: Vec<u64> = numbers.by_ref().take(5).collect();
/// // A run that was interrupted goes on where it was.
/// let position = numbers.next_position_in_epoch();
/// let rest: Vec<u64> = numbers.collect();
/// let again = archive.samples().shuffled(42).epoch(3).shard(0, 2).worker(1, 4).start_at(position).numbers()?;
/// assert_eq!(again.collect::<Vec<u64>>(), rest);
/// # assert_eq!((first.len() + rest.len()), 13);
/// # Ok::<(), h5live::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "samples are read by an iterator that this describes"]
pub struct EpochSamples {
    archive: Archive,
    seed: Option<u64>,
    block: Option<u64>,
    epoch: u64,
    shard: (u64, u64),
    worker: (u64, u64),
    start: u64,
}

impl EpochSamples {
    fn new(archive: Archive) -> Self {
        EpochSamples { archive, seed: None, block: None, epoch: 0, shard: (0, 1), worker: (0, 1), start: 0 }
    }

    /// In a random order that a seed chooses.
    pub fn shuffled(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Shuffles blocks of this many neighbours, and the samples in each, so that a disk reads what lies together. Needs
    /// [`EpochSamples::shuffled`].
    pub fn shuffle_block_size(mut self, samples: u64) -> Self {
        self.block = Some(samples);
        self
    }

    /// The epoch: each has another order.
    pub fn epoch(mut self, epoch: u64) -> Self {
        self.epoch = epoch;
        self
    }

    /// The part of one process, `rank` of `world`.
    pub fn shard(mut self, rank: u64, world: u64) -> Self {
        self.shard = (rank, world);
        self
    }

    /// The part of one worker of the process, `worker` of `workers`.
    pub fn worker(mut self, worker: u64, workers: u64) -> Self {
        self.worker = (worker, workers);
        self
    }

    /// Starts at a position of the epoch: earlier ones are left out. [`EpochSampleNumbers::next_position_in_epoch`] gives it.
    pub fn start_at(mut self, position_in_epoch: u64) -> Self {
        self.start = position_in_epoch;
        self
    }

    /// The numbers of the samples.
    ///
    /// # Errors
    /// [`ArchiveFault::InvalidEpochOptions`] if a rank or a worker is not below their number, or blocks are not shuffled.
    pub fn numbers(&self) -> Result<EpochSampleNumbers> {
        let wrong = |text| Err(self.archive.error(ArchiveFault::InvalidEpochOptions(text)));
        let ((rank, world), (worker, workers)) = (self.shard, self.worker);
        if rank >= world {
            return wrong("the rank of a shard is not below their number");
        }
        if worker >= workers {
            return wrong("the number of a worker is not below how many there are");
        }
        let n = self.archive.len();
        let order = match (self.seed, self.block) {
            (None, Some(_)) => return wrong("blocks without a seed"),
            (_, Some(0)) => return wrong("blocks of no samples"),
            (None, None) => EpochOrder::Stored,
            (Some(seed), None) => EpochOrder::Shuffled(Permutation::new(n, Permutation::epoch_key(seed, self.epoch))),
            (Some(seed), Some(block)) => EpochOrder::blocks(n, block, Permutation::epoch_key(seed, self.epoch)),
        };
        let (Some(first), Some(step)) =
            (worker.checked_mul(world).and_then(|first| first.checked_add(rank)), workers.checked_mul(world))
        else {
            return wrong("more shards and workers than 64 bits can count");
        };
        let behind = self.start.saturating_sub(first).div_ceil(step);
        let next = behind.checked_mul(step).and_then(|behind| behind.checked_add(first)).unwrap_or(u64::MAX);
        Ok(EpochSampleNumbers::new(order, n, next, step))
    }

    /// Reads the samples in this thread, one after another.
    ///
    /// # Errors
    /// As [`EpochSamples::numbers`].
    pub fn contents(&self) -> Result<impl Iterator<Item = Result<(u64, Vec<u8>)>> + use<>> {
        let archive = self.archive.clone();
        let numbers = self.numbers()?;
        Ok(numbers.map(move |sample| archive.read(sample).map(|contents| (sample, contents))))
    }

    /// Reads the samples ahead in so many threads. At most `memory` bytes are held of samples that nobody took yet, or one
    /// sample that is larger.
    ///
    /// # Errors
    /// As [`EpochSamples::numbers`]; [`ArchiveFault::ThreadSpawn`].
    pub fn prefetch(&self, threads: usize, memory: u64) -> Result<PrefetchedSamples> {
        PrefetchedSamples::start(self.archive.clone(), self.numbers()?, threads, memory)
    }
}

impl Archive {
    /// The samples of an epoch, in an order.
    pub fn samples(&self) -> EpochSamples {
        EpochSamples::new(self.clone())
    }
}

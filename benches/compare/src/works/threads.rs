//! Two threads of one process.

use std::fs;

use h5live::File;

use super::alone::Stored;
use crate::peer::{self, Make, Type};
use crate::work::{Done, Ground, Unit, Work, bytes, signal, sum, timed};
use crate::{Result, Side};

const CHUNK: u64 = 64 << 10;
const NAMES: [&str; 2] = ["a", "b"];

/// A file of two datasets.
#[derive(Clone, Copy)]
struct Pair {
    name: &'static str,
    /// Chunks of each.
    chunks: u64,
    /// Each is read so often.
    times: usize,
    filters: &'static [(i32, &'static [u32])],
}

/// Reading is what is measured; memory is the limit.
const PLAIN: Pair = Pair { name: "threads", chunks: 256, times: 16, filters: &[] };
/// What the threads have to wait for each other for is what is measured: the processors' own caches hold each dataset.
const SMALL: Pair = Pair { name: "threads-small", chunks: 1, times: 4096, filters: &[] };
/// The processor is the limit.
const DEFLATE: Pair = Pair { name: "threads-deflate", chunks: 128, times: 16, filters: &[(2, &[4]), (1, &[4])] };

impl Pair {
    fn len(self, ground: &Ground) -> u64 {
        ground.times(self.chunks) * CHUNK
    }

    fn prepare(self, ground: &Ground) -> Result<()> {
        let len = self.len(ground);
        let file = peer::File::create(&ground.file(self.name))?;
        NAMES.iter().try_for_each(|name| {
            let make = Make { dims: &[len], chunk: &[CHUNK], filters: self.filters, ..Make::default() };
            file.create_dataset(name, Type::I32, &make)?.write_all(Type::I32.id(), &signal(len as usize))
        })
    }

    /// Reads both datasets: with "libhdf5" one after the other by one thread of ours, or else each in a thread of its
    /// own. A single read of many chunks would use all cores by itself, so each thread has a pool of its own, of one
    /// thread that it waits for.
    fn run(self, side: Side, ground: &Ground) -> Result<Done> {
        let (path, len) = (ground.file(self.name), self.len(ground));
        let file = File::open(&path)?;
        // SAFETY: nobody changes the file while the bench reads it.
        let mapped = unsafe { memmap2::Mmap::map(&fs::File::open(&path)?) }?;
        let mut values = [vec![1i32; len as usize], vec![1i32; len as usize]];
        let pool = || rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let pools = [pool(), pool()].map(|pool| pool.expect("a thread"));
        let stored = match side {
            Side::Bare if !self.filters.is_empty() => NAMES.iter().map(|name| Stored::of(&path, name)).collect(),
            _ => Ok(Vec::new()),
        };
        let stored: Vec<Stored> = stored?;
        let read = |n: usize, values: &mut [i32]| -> Result<()> {
            if let Some(stored) = stored.get(n) {
                return (0..self.times).try_for_each(|_| stored.decode(CHUNK, values));
            }
            if side == Side::Bare {
                let into: &mut [u8] = bytemuck::cast_slice_mut(values);
                let from = &mapped[n * into.len()..][..into.len()];
                (0..self.times).for_each(|_| into.copy_from_slice(std::hint::black_box(from)));
                return Ok(());
            }
            let data = file.dataset(NAMES[n])?;
            pools[n].install(|| (0..self.times).try_for_each(|_| Ok(data.read_into(.., values)?)))
        };
        let (done, ()) = timed(len * 4 * 2 * self.times as u64, || {
            if side == Side::Libhdf5 {
                return values.iter_mut().enumerate().try_for_each(|(n, values)| read(n, values));
            }
            std::thread::scope(|scope| {
                let read = &read;
                let running: Vec<_> =
                    values.iter_mut().enumerate().map(|(n, values)| scope.spawn(move || read(n, values))).collect();
                running.into_iter().try_for_each(|thread| thread.join().expect("a reading thread"))
            })
        })?;
        Ok(done.sum(values.iter().map(|values| sum(bytes(values))).fold(0, u64::wrapping_add)))
    }
}

/// As "libhdf5" stands what one thread of ours does: the ratio is that of two threads to one. Bare are two threads that
/// copy as many bytes of the file from a mapping, or decode as many chunks that are in memory.
pub fn works() -> Vec<Work> {
    let plain = Work {
        name: PLAIN.name,
        title: "two threads reading different unfiltered datasets of one file, against one thread of ours",
        unit: Unit::Bytes,
        aim: 1.9,
        sides: &[Side::H5live, Side::Libhdf5, Side::Bare],
        prepare: |ground| PLAIN.prepare(ground),
        run: |side, ground| PLAIN.run(side, ground),
        ..Work::PLAIN
    };
    let deflate = Work {
        name: DEFLATE.name,
        title: "the same, deflate(4)+shuffle",
        prepare: |ground| DEFLATE.prepare(ground),
        run: |side, ground| DEFLATE.run(side, ground),
        ..plain
    };
    let small = Work {
        name: SMALL.name,
        title: "the same, datasets of 256 KiB",
        prepare: |ground| SMALL.prepare(ground),
        run: |side, ground| SMALL.run(side, ground),
        ..plain
    };
    vec![plain, small, deflate]
}

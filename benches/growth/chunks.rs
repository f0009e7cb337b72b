//! Many chunks of one dataset, and many elements before a flush.

use h5live::model::{ChunkCoord, UNLIMITED};
use h5live::{Dataset, File, LibVer, Result, Selection};

use crate::axes::Outcome;
use crate::names::jumping;
use crate::phases::Phases;

/// Bytes of a chunk.
const CHUNK: [u8; 8] = [7; 8];
/// Chunks between two flushes.
const FLUSHED: u64 = 1000;

/// Writes the chunks `at`, and reads as many.
fn write_and_read<const D: usize>(
    phases: &mut Phases,
    (file, dataset): (&File, &Dataset),
    count: u64,
    at: impl Fn(u64) -> [u64; D],
) -> Outcome {
    phases.phase("write", count, || {
        jumping(count).enumerate().try_for_each(|(done, n)| {
            dataset.write_chunk(&ChunkCoord::new(&at(n)), 0, &CHUNK)?;
            if (done as u64 + 1).is_multiple_of(FLUSHED) { dataset.flush() } else { Ok(()) }
        })?;
        file.flush()
    })?;
    phases.phase("read", count, || {
        let mut value = [0u8; 8];
        jumping(count).try_for_each(|n| {
            let (mut start, mut size) = (at(n), [1; D]);
            (start[0], size[0]) = (start[0] * 8, 8);
            dataset.read_into(Selection::block(&start, &size), &mut value)
        })
    })?;
    phases.phase("close", count, || file.close())
}

/// Chunks that are appended, in an extensible array.
pub fn appended(phases: &mut Phases, count: u64) -> Outcome {
    let file = File::create(phases.path("appended.h5"))?;
    let dataset = file.new_dataset::<u8>().unlimited_rows(&[]).chunk_shape(&[8]).create("d")?;
    file.start_swmr()?;
    phases.phase("append", count, || {
        (0..count).try_for_each(|n| {
            dataset.append(&CHUNK)?;
            if (n + 1).is_multiple_of(FLUSHED) { dataset.flush() } else { Ok(()) }
        })
    })?;
    write_and_read(phases, (&file, &dataset), count, |n| [n])
}

/// Chunks of a dataset of fixed shape, in a fixed array.
pub fn fixed(phases: &mut Phases, count: u64) -> Outcome {
    let file = File::create(phases.path("fixed.h5"))?;
    let dataset = file.new_dataset::<u8>().shape(&[count * 8]).chunk_shape(&[8]).create("d")?;
    write_and_read(phases, (&file, &dataset), count, |n| [n])
}

/// Chunks of a dataset of two unlimited dimensions, a thousand chunks apart, in a B-tree.
pub fn spread(phases: &mut Phases, count: u64) -> Outcome {
    let file = File::create(phases.path("spread.h5"))?;
    let new = file.new_dataset::<u8>().shape(&[count * 8000, 1000]).max_shape(&[UNLIMITED; 2]).chunk_shape(&[8, 1]);
    let dataset = new.create("d")?;
    file.start_swmr()?;
    write_and_read(phases, (&file, &dataset), count, |n| [n * 1000, n % 1000])
}

/// Chunks of an old file, a thousand chunks apart.
pub fn old(phases: &mut Phases, count: u64) -> Outcome {
    let options = File::options().create().libver(LibVer::Earliest);
    let file = options.open(phases.path("old.h5"))?;
    let new = file.new_dataset::<u8>().shape(&[count * 8000]).chunk_shape(&[8]);
    let dataset = new.create("d")?;
    write_and_read(phases, (&file, &dataset), count, |n| [n * 1000])
}

/// Single elements, all over a dataset, and one flush for all.
pub fn dirty(phases: &mut Phases, count: u64) -> Outcome {
    let file = File::create(phases.path("dirty.h5"))?;
    let dataset = file.new_dataset::<u64>().shape(&[count * 64]).chunk_shape(&[1024]).create("d")?;
    phases.phase("write", count, || jumping(count).try_for_each(|n| dataset.write_slice(n * 64..n * 64 + 1, &[n])))?;
    phases.phase("flush", count, || file.flush())?;
    phases.phase("close", count, || file.close())
}

/// Texts of a live file that are written again and again: what they leave rests, and is looked at when it is used again.
pub fn rewritten(phases: &mut Phases, count: u64) -> Outcome {
    let file = File::create(phases.path("rewritten.h5"))?;
    let dataset = file.new_dataset::<String>().shape(&[64]).max_shape(&[UNLIMITED]).chunk_shape(&[8]).create("d")?;
    file.start_swmr()?;
    phases.phase("write", count, || {
        (0..count).try_for_each(|n| -> Result<()> {
            dataset.write_slice(n % 64..n % 64 + 1, &[format!("text number {n}")])?;
            dataset.flush()
        })
    })?;
    phases.phase("close", count, || file.close())
}

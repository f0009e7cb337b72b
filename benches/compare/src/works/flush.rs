//! What a flush costs among many open datasets.

use std::fs;

use h5live::{File, Mode};

use crate::peer::{self, Make, Type};
use crate::work::{Done, Ground, Unit, WRITING, Work, timed};
use crate::{Result, Side};

const CHUNK: u64 = 64;

/// Appends to one of `open` datasets and flushes the whole file.
fn run(open: u64, side: Side, ground: &Ground) -> Result<Done> {
    // Fewer where many are open: libhdf5 goes through all of them at each flush, which takes milliseconds.
    let (open, times) = if open > 1 { (ground.times(open), 2_000) } else { (open, 20_000) };
    let times = ground.times(times);
    let path = ground.file(&format!("flush-{open}-{side}"));
    let values = [3u64; CHUNK as usize];
    let done = match side {
        Side::H5live => {
            let file = File::options().mode(Mode::Create).open(&path)?;
            let all = (0..open)
                .map(|i| file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[CHUNK]).create(&format!("{i}")));
            let all = all.collect::<h5live::Result<Vec<_>>>()?;
            file.start_swmr()?;
            let done = timed(times, || {
                (0..times).try_for_each(|_| {
                    all[0].append(&values)?;
                    Ok(file.flush()?)
                })
            })?;
            drop(all);
            done
        }
        _ => {
            let file = peer::File::create(&path)?;
            let make = Make { dims: &[0], max: &[u64::MAX], chunk: &[CHUNK], ..Make::default() };
            let all = (0..open)
                .map(|i| file.create_dataset(&format!("{i}"), Type::U64, &make))
                .collect::<Result<Vec<_>>>()?;
            file.start_swmr()?;
            timed(times, || {
                (0..times).try_for_each(|i| {
                    all[0].extend(&[(i + 1) * CHUNK])?;
                    all[0].write_chunk(&[i * CHUNK], crate::work::bytes(&values))?;
                    file.flush()
                })
            })?
        }
    }
    .0;
    let sum = File::open(&path)?.dataset("0")?.size()?;
    fs::remove_file(path)?;
    Ok(done.sum(sum))
}

pub fn works() -> Vec<Work> {
    let work = Work {
        name: "flush-1",
        title: "flush with 1 dirty of 1 open dataset",
        unit: Unit::Things("flushes"),
        aim: 1.0,
        budget: WRITING,
        run: |side, ground| run(1, side, ground),
        ..Work::PLAIN
    };
    let many = Work {
        name: "flush-10k",
        title: "flush with 1 dirty of 10,000 open datasets",
        within: Some(("flush-1", 1.5)),
        run: |side, ground| run(10_000, side, ground),
        ..work
    };
    vec![work, many]
}

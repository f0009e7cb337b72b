//! Many followers, and many that are followed.

use h5live::{Dataset, File, Result};

use crate::axes::Outcome;
use crate::phases::Phases;

/// Publications that each follower sees.
const ROUNDS: u64 = 50;

/// Readers in this process that have one file open, and look at each publication.
pub fn of_one_file(phases: &mut Phases, count: u64) -> Outcome {
    let path = phases.path("one.h5");
    let file = File::create(&path)?;
    let written = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[1024]).create("d")?;
    file.start_swmr()?;
    let readers = phases.phase("open", count, || {
        (0..count)
            .map(|_| File::options().swmr_read().open(&path).and_then(|file| file.dataset("d")))
            .collect::<Result<Vec<Dataset>>>()
    })?;
    phases.phase("follow", count * ROUNDS, || {
        (0..ROUNDS).try_for_each(|round| {
            written.append(&[round; 16])?;
            written.flush()?;
            readers.iter().try_for_each(|reader| {
                reader.refresh()?;
                reader.read_slice::<u64>(round * 16..round * 16 + 16).map(drop)
            })
        })
    })?;
    phases.phase("close", count, || file.close())
}

/// Datasets that one reader follows: it looks at each after one of them has grown, and then after all have.
pub fn of_many_datasets(phases: &mut Phases, count: u64) -> Outcome {
    let path = phases.path("many.h5");
    let file = File::create(&path)?;
    let new = |n: u64| file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[16]).create(&format!("{n}"));
    let written = (0..count).map(new).collect::<Result<Vec<_>>>()?;
    file.start_swmr()?;
    let reader = File::options().swmr_read().open(&path)?;
    let mut followers = phases.phase("open", count, || {
        (0..count).map(|n| Ok(reader.dataset(&format!("{n}"))?.follow::<u64>())).collect::<Result<Vec<_>>>()
    })?;
    phases.phase("one grows", count, || {
        written.iter().zip(&mut followers).try_for_each(|(dataset, follower)| {
            dataset.append(&[7; 16])?;
            dataset.flush()?;
            follower.next().transpose().map(drop)
        })
    })?;
    phases.phase("all grow", count, || {
        written.iter().try_for_each(|dataset| dataset.append(&[7; 16]))?;
        file.flush()?;
        followers.iter_mut().try_for_each(|follower| follower.next().transpose().map(drop))
    })?;
    drop(followers);
    phases.phase("close", count, || file.close())
}

//! Many datasets.

use h5live::{Dataset, File, H5Type, Result};

use crate::axes::Outcome;
use crate::phases::Phases;

/// Datasets in a group.
const IN_A_GROUP: u64 = 1000;
const ROWS: [u64; 16] = [7; 16];

/// Makes `count` datasets of chunks of 128 bytes, in groups.
fn create(file: &File, count: u64) -> Result<Vec<Dataset>> {
    let name = |n: u64| format!("{}/{}", n / IN_A_GROUP, n % IN_A_GROUP);
    (0..count).map(|n| file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[16]).create(&name(n))).collect()
}

/// Datasets of a live file: each gets rows and is flushed with all others, and then by itself.
pub fn live(phases: &mut Phases, count: u64) -> Outcome {
    let path = phases.path("live.h5");
    let file = File::create(path)?;
    let datasets = phases.phase("create", count, || create(&file, count))?;
    phases.phase("start", count, || file.start_swmr())?;
    phases.phase("append", count, || datasets.iter().try_for_each(|dataset| dataset.append(&ROWS)))?;
    phases.phase("flush all", count, || file.flush())?;
    phases.phase("append and flush each", count, || {
        datasets.iter().try_for_each(|dataset| dataset.append(&ROWS).and_then(|()| dataset.flush()))
    })?;
    phases.phase("append and flush the file", count / 10, || {
        datasets.iter().step_by(10).try_for_each(|dataset| dataset.append(&ROWS).and_then(|()| file.flush()))
    })?;
    phases.phase("close", count, || file.close())
}

/// Datasets that are open and not touched, in a writer and in a follower.
pub fn open(phases: &mut Phases, count: u64) -> Outcome {
    let path = phases.path("open.h5");
    let file = File::create(&path)?;
    drop(create(&file, count)?);
    file.close()?;
    let open_each = |file: &File| -> Result<Vec<Dataset>> {
        let names = (0..count).map(|n| format!("{}/{}", n / IN_A_GROUP, n % IN_A_GROUP));
        names.map(|name| file.dataset(&name)).collect()
    };
    let writer = File::options().swmr_write().open(&path)?;
    let written = phases.phase("open in a writer", count, || open_each(&writer))?;
    let follower = File::options().swmr_read().open(&path)?;
    let followed = phases.phase("open in a follower", count, || open_each(&follower))?;
    phases.phase("refresh each", count, || followed.iter().try_for_each(|dataset| dataset.refresh().map(drop)))?;
    drop((written, followed));
    phases.phase("close", count, || writer.close())
}

/// Datasets that come and go in a live file: nothing may stay of them.
pub fn unlinked(phases: &mut Phases, count: u64) -> Outcome {
    let file = File::create(phases.path("unlinked.h5"))?;
    file.start_swmr()?;
    phases.phase("create and unlink", count, || {
        (0..count).try_for_each(|_| {
            let dataset = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[16]).create("d")?;
            dataset.append(&ROWS)?;
            file.flush()?;
            file.unlink("d")
        })
    })?;
    phases.phase("close", count, || file.close())
}

/// Datasets of one committed datatype, with a text as attribute each, before anything is flushed; then flushed one by one.
pub fn typed(phases: &mut Phases, count: u64) -> Outcome {
    let path = phases.path("typed.h5");
    let file = File::create(path)?;
    let datatype = file.root().commit_datatype("row", &u64::datatype())?;
    let names = (0..count).map(|n| format!("{}/{}", n / IN_A_GROUP, n % IN_A_GROUP));
    let new = |name: String| -> Result<Dataset> {
        let shape = file.new_dataset::<u64>().committed_datatype(&datatype).unlimited_rows(&[]).chunk_shape(&[16]);
        let dataset = shape.create(&name)?;
        dataset.set_attribute("unit", "a text that is not short")?;
        Ok(dataset)
    };
    let datasets = phases.phase("create", count, || names.map(new).collect::<Result<Vec<_>>>())?;
    phases.phase("append and flush each", count, || {
        datasets.iter().try_for_each(|dataset| dataset.append(&ROWS).and_then(|()| dataset.flush()))
    })?;
    phases.phase("close", count, || file.close())
}

/// Datasets of which each is published after the one before, and rows in all of them.
pub fn published_after(phases: &mut Phases, count: u64) -> Outcome {
    let file = File::create(phases.path("after.h5"))?;
    let datasets = create(&file, count)?;
    file.start_swmr()?;
    phases.phase("order", count, || {
        datasets.windows(2).try_for_each(|pair| pair[1].publish_after(&pair[0]))?;
        datasets.windows(3).try_for_each(|pair| pair[2].publish_after(&pair[0]))
    })?;
    phases.phase("append", count, || datasets.iter().try_for_each(|dataset| dataset.append(&ROWS)))?;
    phases.phase("flush", count, || file.flush())?;
    phases.phase("close", count, || file.close())
}

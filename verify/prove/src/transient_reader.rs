//! The reader of datasets that come and go.

use std::sync::Arc;

use h5live_checker::schedule::{ReaderHistory, ReaderView, Verdict};
use h5live_model::{ChunkCoord, Error, LinkTarget, ObjectId, Store};
use h5live_native::NativeFile;

use crate::observer::{ConcurrentObserver, Observer, RunEnd, run_verdict};
use crate::{find_in_root, workloads};

/// A reader of the datasets `x0`, `x1`, ... in the root group. Each holds all of its rows from when it appears until it
/// is removed. A reader that has a removed dataset open gets an error.
pub fn transient_dataset_reader(passes: usize) -> impl Fn(&Arc<ReaderView>) -> Verdict + Sync + use<> {
    move |view| run_verdict(follow_transient_datasets(&ConcurrentObserver::new(view, &Arc::default()), passes))
}

fn follow_transient_datasets(observer: &ConcurrentObserver<'_>, passes: usize) -> Result<(), RunEnd> {
    let file = observer.open()?;
    let opened = observer.set_history(ReaderHistory::NONE);
    for pass in 0..passes {
        // Objects are opened and closed again, and each look at one reads its header again.
        observer.reset((pass, opened))?;
        let mut objects = Vec::new();
        observer.observe("list the links", || {
            objects.clear();
            file.for_each_link(file.session().root, &mut |link| {
                if let (LinkTarget::Hard(id), true) = (&link.target, link.name.to_string().starts_with('x')) {
                    objects.push((link.name.to_string(), *id));
                }
                true
            })
        })?;
        for (number, (name, id)) in objects.iter().enumerate() {
            observer.reset((pass, opened, &objects, number))?;
            let is_there = read_dataset(observer, &file, name, *id)?;
            let found = observer.observe("find a dataset", || find_in_root(&file, name))?;
            if !is_there && found == Some(*id) {
                return Err(format!("{name} is gone, and its link is there").into());
            }
        }
    }
    Ok(())
}

/// Reads a dataset; `false` if it is gone.
fn read_dataset(
    observer: &ConcurrentObserver<'_>,
    file: &NativeFile,
    name: &str,
    id: ObjectId,
) -> Result<bool, RunEnd> {
    let Some(dataset) = if_present(observer, "open a dataset", || file.dataset(id))? else { return Ok(false) };
    let (series, rows) = workloads::transient_series();
    let spec = dataset.spec().map_err(|error| format!("a description that was read is gone: {error}"))?;
    let found = spec.dataspace.dims().first().copied().unwrap_or(0);
    if found != rows {
        return Err(format!("{name} has {found} rows").into());
    }
    for at in 0..rows / series.chunk {
        let Some(chunk) = if_present(observer, "look up a chunk", || dataset.locate(&ChunkCoord::new(&[at])))? else {
            return Ok(false);
        };
        let chunk = chunk.ok_or_else(|| format!("{name} has no chunk {at}"))?;
        let mut bytes = vec![0; series.chunk as usize * 8];
        if if_present(observer, "read a chunk", || dataset.read(&chunk, 0, &mut bytes))?.is_none() {
            return Ok(false);
        }
        for (row, value) in (at * series.chunk..).zip(bytes.chunks_exact(8)) {
            let value = value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            if series.version(row, value).is_none() {
                return Err(format!("row {row} of {name} is {value:#x}").into());
            }
        }
    }
    Ok(true)
}

/// As [`Observer::observe`]; `None` if the object is gone.
fn if_present<T>(
    observer: &ConcurrentObserver<'_>,
    what: &str,
    operation: impl FnOnce() -> h5live_model::Result<T>,
) -> Result<Option<T>, RunEnd> {
    observer.observe(what, || match operation() {
        Err(Error::NoObject(_)) => Ok(None),
        other => other.map(Some),
    })
}

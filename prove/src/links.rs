//! The reader of groups that grow.

use std::sync::Arc;

use h5live_checker::schedule::{Verdict, View};
use h5live_checker::trace::{Counter, Trace};
use h5live_model::{ChunkCoord, LinkTarget, Objects};

use crate::checked::{End, Eyes, verdict};
use crate::workloads::object;

/// A reader of the datasets `o0`, `o1`, ... in the root group, which the trace counts as `o`: each holds two rows when
/// it appears.
pub fn links(trace: &Trace, passes: usize) -> impl Fn(&Arc<View>) -> Verdict + Sync + use<> {
    let (issued, flushed) = (Counter::new(trace, "o.issued"), Counter::new(trace, "o.flushed"));
    move |view| verdict(follow(&Eyes(view), passes, &issued, &flushed))
}

fn follow(eyes: &Eyes<'_>, passes: usize, issued: &Counter, flushed: &Counter) -> Result<(), End> {
    let view = eyes.0;
    let file = eyes.open()?;
    let mut before = 0;
    for _ in 0..passes {
        let least = flushed.at(view.prefix()).unwrap_or(0);
        let mut found = Vec::new();
        eyes.see("list the links", || {
            found.clear();
            file.for_each_link(file.root(), &mut |link| {
                found.push(link);
                true
            })
        })?;
        let most = issued.at(view.prefix()).unwrap_or(0);
        let count = found.len() as u64;
        if count < before.max(least) || count > most {
            return Err(
                format!("there are {count} links, of {} that were there and {most} made", before.max(least)).into()
            );
        }
        before = count;
        for link in found {
            let LinkTarget::Hard(id) = link.target else {
                return Err(format!("the link {} leads nowhere", link.name).into());
            };
            let dataset = eyes.see("open a new dataset", || file.dataset(id))?;
            let spec = dataset.spec().map_err(|error| format!("a new dataset is closed: {error}"))?;
            let series = object();
            let rows = spec.dataspace.dims().first().copied().unwrap_or(0);
            if rows != 2 {
                return Err(format!("the new dataset {} has {rows} rows", link.name).into());
            }
            let chunk = eyes.see("look up a chunk", || dataset.chunk(&ChunkCoord::new(&[0])))?;
            let chunk = chunk.ok_or_else(|| format!("the new dataset {} has no chunk", link.name))?;
            let mut bytes = [0; 16];
            eyes.see("read a chunk", || dataset.read(&chunk, 0, &mut bytes))?;
            for (row, value) in bytes.chunks_exact(8).enumerate() {
                let value = value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                if series.version(row as u64, value).is_none() {
                    return Err(format!("row {row} of the new dataset {} is {value:#x}", link.name).into());
                }
            }
        }
    }
    Ok(())
}

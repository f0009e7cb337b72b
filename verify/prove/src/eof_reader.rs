//! A reader that compares addresses with the end of file that the superblock announces. Other programs refuse anything
//! beyond.

use std::sync::Arc;

use h5live_cache::Storage;
use h5live_checker::schedule::{ReaderHistory, ReaderView, Verdict};
use h5live_format::Superblock;
use h5live_model::{LinkTarget, ObjectKind, Store};

use crate::observer::{ConcurrentObserver, Observer, RunEnd, run_verdict};

/// Looks, `passes` times, where all objects and chunks are, and how long the file is.
///
/// # Errors
/// What lies beyond the announced end, or that this lies beyond the end of the file.
pub fn check_below_eof(view: &Arc<ReaderView>, passes: usize) -> Verdict {
    run_verdict(check_objects_below_eof(&ConcurrentObserver::new(view, &Arc::default()), passes))
}

fn announced_end(observer: &ConcurrentObserver<'_>) -> Result<u64, RunEnd> {
    observer.observe("read the superblock", || {
        // Torn once, it is whole when it is read again, or the writer rests.
        let mut last = None;
        for _ in 0..4 {
            let mut bytes = vec![0; Superblock::MAX_SIZE];
            let len = observer.view.read_at(&mut bytes, 0)?;
            bytes.truncate(len);
            match Superblock::decode(&bytes) {
                Ok(superblock) => return Ok(superblock.end_of_file.get().unwrap_or(0)),
                Err(error) => last = Some(std::io::Error::other(error)),
            }
            observer.view.mark_operation_restart();
        }
        Err(last.unwrap_or_else(|| std::io::Error::other("no superblock")))
    })
}

fn check_objects_below_eof(observer: &ConcurrentObserver<'_>, passes: usize) -> Result<(), RunEnd> {
    let file = observer.open()?;
    let opened = observer.set_history(ReaderHistory::NONE);
    for pass in 0..passes {
        // Objects are opened and closed again, and each look at one reads its header again.
        observer.reset((pass, opened))?;
        let before = announced_end(observer)?;
        let length = observer.observe("ask for the length", || observer.view.len())?;
        if before > length && announced_end(observer)? == before {
            return Err(format!("the end is announced at {before}, and the file has {length} bytes").into());
        }
        observer.reset((pass, opened, "checked"))?;
        let mut objects = Vec::new();
        observer.observe("list the links", || {
            objects.clear();
            file.for_each_link(file.session().root, &mut |link| {
                if let LinkTarget::Hard(id) = link.target {
                    objects.push(id);
                }
                true
            })
        })?;
        let mut far = 0;
        for (number, id) in objects.iter().copied().enumerate() {
            observer.reset((pass, opened, &objects, number, far))?;
            far = far.max(u64::try_from(id.0).unwrap_or(u64::MAX));
            if observer.observe("look at an object", || file.kind(id))? != ObjectKind::Dataset {
                continue;
            }
            let dataset = observer.observe("open a dataset", || file.dataset(id))?;
            observer.observe("refresh a dataset", || dataset.refresh())?;
            observer.observe("list the chunks", || {
                dataset.for_each_chunk(&mut |chunk| {
                    far = far.max(chunk.file_offset.unwrap_or(0).saturating_add(chunk.size));
                    true
                })
            })?;
        }
        observer.reset((pass, opened, far))?;
        let after = announced_end(observer)?;
        if far > after {
            return Err(format!("something lies up to {far}, and the end is announced at {after}").into());
        }
    }
    Ok(())
}

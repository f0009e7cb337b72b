//! The reader that holds what it finds against the end of file that the superblock announces: other programs refuse
//! what lies beyond.

use std::sync::Arc;

use h5live_cache::Storage;
use h5live_checker::schedule::{History, Verdict, View};
use h5live_format::Superblock;
use h5live_model::{LinkTarget, ObjectKind, Objects};

use crate::checked::{End, Eyes, See, verdict};

/// Looks, `passes` times, where all objects and chunks are, and how long the file is.
///
/// # Errors
/// What lies beyond the announced end, or that this lies beyond the end of the file.
pub fn announced(view: &Arc<View>, passes: usize) -> Verdict {
    verdict(look(&Eyes::new(view, &Arc::default()), passes))
}

fn end(eyes: &Eyes<'_>) -> Result<u64, End> {
    eyes.see("read the superblock", || {
        // Torn once, it is whole when it is read again, or the writer rests.
        let mut last = None;
        for _ in 0..4 {
            let mut bytes = vec![0; Superblock::MAX_SIZE];
            let len = eyes.0.read_at(&mut bytes, 0)?;
            bytes.truncate(len);
            match Superblock::decode(&bytes) {
                Ok(superblock) => return Ok(superblock.end_of_file.get().unwrap_or(0)),
                Err(error) => last = Some(std::io::Error::other(error)),
            }
            eyes.0.begin_anew();
        }
        Err(last.unwrap_or_else(|| std::io::Error::other("no superblock")))
    })
}

fn look(eyes: &Eyes<'_>, passes: usize) -> Result<(), End> {
    let file = eyes.open()?;
    let opened = eyes.set_history(History::NONE);
    for pass in 0..passes {
        // Objects are opened and closed again, and each look at one reads its header anew.
        eyes.forget((pass, opened))?;
        let before = end(eyes)?;
        let length = eyes.see("ask for the length", || eyes.0.len())?;
        if before > length && end(eyes)? == before {
            return Err(format!("the end is announced at {before}, and the file has {length} bytes").into());
        }
        eyes.forget((pass, opened, "checked"))?;
        let mut objects = Vec::new();
        eyes.see("list the links", || {
            objects.clear();
            file.for_each_link(file.root(), &mut |link| {
                if let LinkTarget::Hard(id) = link.target {
                    objects.push(id);
                }
                true
            })
        })?;
        let mut far = 0;
        for (number, id) in objects.iter().copied().enumerate() {
            eyes.forget((pass, opened, &objects, number, far))?;
            far = far.max(u64::try_from(id.0).unwrap_or(u64::MAX));
            if eyes.see("look at an object", || file.kind(id))? != ObjectKind::Dataset {
                continue;
            }
            let dataset = eyes.see("open a dataset", || file.dataset(id))?;
            eyes.see("refresh a dataset", || dataset.refresh())?;
            eyes.see("list the chunks", || {
                dataset.for_each_chunk(&mut |chunk| {
                    far = far.max(chunk.offset.unwrap_or(0).saturating_add(chunk.size));
                    true
                })
            })?;
        }
        eyes.forget((pass, opened, far))?;
        let after = end(eyes)?;
        if far > after {
            return Err(format!("something lies up to {far}, and the end is announced at {after}").into());
        }
    }
    Ok(())
}

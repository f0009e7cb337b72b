//! Attributes and links, which readers and recoveries check beside rows of numbers.

use h5live::File;
use h5live_model::{ChunkCoord, LinkTarget, ObjectId, Store, read_blob};
use h5live_native::NativeFile;

use std::hash::Hash;

use crate::observer::{Observer, RunEnd};
use crate::workloads::{linked_object_series, string_of_row};

/// Checks the attributes `a0`, `a1`, ... of an object: there are from `min_count` to `max_count` of them, and each holds its
/// number, or its text. Returns how many there are. The rest of the run depends on `run_state` only.
pub(crate) fn check_attributes(
    file: &NativeFile,
    id: ObjectId,
    observer: &impl Observer,
    min_count: u64,
    max_count: &dyn Fn() -> u64,
    run_state: impl Hash,
) -> Result<u64, RunEnd> {
    let names = observer.observe("list the attributes", || file.attribute_names(id))?;
    let (count, max_count) = (names.len() as u64, max_count());
    if count < min_count || count > max_count {
        return Err(format!(
            "there are the attributes {names:?}, of {min_count} that were there and {max_count} written"
        )
        .into());
    }
    for number in 0..count {
        // Each look at an object reads its header again.
        observer.reset((&run_state, count, number))?;
        let name = format!("a{number}");
        let found = observer.observe("read an attribute", || file.attribute(id, &name.as_str().into()))?;
        let value = found.map(|attribute| attribute.value).unwrap_or_default();
        observer.checkpoint_state((&run_state, count, number, &value))?;
        let holds = match value.len() {
            8 => value == number.to_le_bytes(),
            _ => observer.observe("read from a heap", || read_blob(file, &value))? == string_of_row(number).as_bytes(),
        };
        if !holds {
            return Err(format!("the attribute {name} is {value:?}").into());
        }
    }
    Ok(count)
}

/// Checks the datasets `o0`, `o1`, ... in the root group: there are from `min_count` to `max_count` of them, and each holds two
/// rows. Returns how many there are. The rest of the run depends on `run_state` only.
pub(crate) fn check_links(
    file: &NativeFile,
    observer: &impl Observer,
    min_count: u64,
    max_count: &dyn Fn() -> u64,
    run_state: impl Hash,
) -> Result<u64, RunEnd> {
    let mut found = Vec::new();
    observer.observe("list the links", || {
        found.clear();
        file.for_each_link(file.session().root, &mut |link| {
            found.push(link);
            true
        })
    })?;
    let (count, max_count) = (found.len() as u64, max_count());
    if count < min_count || count > max_count {
        return Err(format!("there are {count} links, of {min_count} that were there and {max_count} made").into());
    }
    let mut objects = Vec::new();
    for link in found {
        let LinkTarget::Hard(id) = link.target else {
            return Err(format!("the link {} leads nowhere", link.name).into());
        };
        objects.push((link.name.to_string(), id));
    }
    for (number, (name, id)) in objects.iter().enumerate() {
        observer.reset((&run_state, &objects, number))?;
        let dataset = observer.observe("open a new dataset", || file.dataset(*id))?;
        observer.checkpoint_state((&run_state, &objects, number, "open"))?;
        let spec = dataset.spec().map_err(|error| format!("a new dataset is closed: {error}"))?;
        let series = linked_object_series();
        let rows = spec.dataspace.dims().first().copied().unwrap_or(0);
        if rows != 2 {
            return Err(format!("the new dataset {name} has {rows} rows").into());
        }
        let chunk = observer.observe("look up a chunk", || dataset.locate(&ChunkCoord::new(&[0])))?;
        let chunk = chunk.ok_or_else(|| format!("the new dataset {name} has no chunk"))?;
        observer.checkpoint_state((&run_state, &objects, number, chunk.file_offset, chunk.size))?;
        let mut bytes = [0; 16];
        observer.observe("read a chunk", || dataset.read(&chunk, 0, &mut bytes))?;
        for (row, value) in bytes.chunks_exact(8).enumerate() {
            let value = value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            if series.version(row as u64, value).is_none() {
                return Err(format!("row {row} of the new dataset {name} is {value:#x}").into());
            }
        }
    }
    Ok(count)
}

/// Looks at the rows of the dataset `s`: there are from `min_count` to `max_count` of them, and each holds its text. Returns how
/// many there are.
pub(crate) fn check_strings(
    file: &File,
    observer: &impl Observer,
    min_count: u64,
    max_count: &dyn Fn() -> u64,
) -> Result<u64, RunEnd> {
    let dataset = observer.observe("open the dataset", || file.dataset("s"))?;
    observer.observe("refresh", || dataset.refresh())?;
    let shape = observer.observe("ask for the shape", || dataset.shape())?;
    let (rows, max_count) = (shape.first().copied().unwrap_or(0), max_count());
    if rows < min_count || rows > max_count {
        return Err(format!("there are {rows} texts, of {min_count} that were there and {max_count} written").into());
    }
    let texts = observer.observe("read texts", || dataset.read_slice::<String>(0..rows))?;
    for (row, found) in texts.iter().enumerate() {
        if *found != string_of_row(row as u64) {
            return Err(format!("text {row} of {rows} is {found:?}").into());
        }
    }
    Ok(rows)
}

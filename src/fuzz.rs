//! Checks that must hold for a file of any bytes: the body of a fuzz target, and of the tests that damage files.
//!
//! Not part of the interface; needs the feature `fuzz`.

use std::collections::HashSet;

use h5live_model::{LinkTarget, Name, ObjectId, ObjectKind, Selection};

use crate::{File, Object, Value};

/// Objects that are looked at.
const MAX_OBJECTS: usize = 256;
/// Links, attributes and chunks of one object that are looked at.
const MAX_PARTS: usize = 256;
/// Bytes of a dataset that are read.
const MAX_VALUE_BYTES: u64 = 1 << 20;

/// Reads the contents of a file with these bytes, up to limits. Returns the number of objects that could be opened.
///
/// # Panics
/// If reading does.
pub fn read_image_objects(bytes: Vec<u8>) -> usize {
    File::options().read().open_image(bytes).map_or(0, |file| read_objects(&file))
}

/// Reads the contents of an open file, up to limits. Returns the number of objects that could be opened.
///
/// # Panics
/// If reading does.
pub fn read_objects(file: &File) -> usize {
    let mut opened = 0;
    let mut seen = HashSet::new();
    let mut waiting = vec![file.root().id()];
    while let Some(id) = waiting.pop().filter(|_| seen.len() < MAX_OBJECTS) {
        if seen.insert(id) && read_object(file, id, &mut waiting) {
            opened += 1;
        }
    }
    opened
}

/// Reads one object; the objects that it links to have to wait. Whether there is one.
fn read_object(file: &File, id: ObjectId, waiting: &mut Vec<ObjectId>) -> bool {
    let store = file.store();
    let Ok(kind) = store.kind(id) else { return false };
    for name in store.attribute_names(id).unwrap_or_default().iter().take(MAX_PARTS) {
        // What it says is of no interest.
        if let Ok(Some(found)) = store.attribute(id, name)
            && found.value.len() as u64 <= MAX_VALUE_BYTES
        {
            let _ = Value::decode_all(&found.datatype, &found.value, Some(store));
        }
    }
    match kind {
        ObjectKind::Group => {
            let mut names: Vec<Name> = Vec::new();
            let _ = store.for_each_link(id, &mut |link| {
                if let LinkTarget::Hard(target) = link.target {
                    waiting.push(target);
                }
                names.push(link.name);
                names.len() < MAX_PARTS
            });
            names.iter().for_each(|name| drop(store.link(id, name)));
        }
        ObjectKind::Dataset => drop(read_dataset(file, id)),
        ObjectKind::Map => drop(read_map(file, id)),
        _ => drop(store.spec(id)),
    }
    true
}

fn read_map(file: &File, id: ObjectId) -> crate::Result<()> {
    let Object::Map(map) = file.root().object_by_id(id, "")? else { return Ok(()) };
    map.len()?;
    for pair in map.pairs(..)?.take(MAX_PARTS) {
        let (key, _) = pair?;
        let _ = map.get_value(&key);
    }
    Ok(())
}

fn read_dataset(file: &File, id: ObjectId) -> crate::Result<()> {
    let Object::Dataset(dataset) = file.root().object_by_id(id, "")? else { return Ok(()) };
    let spec = dataset.spec()?;
    let mut chunks = 0;
    let _ = file.store().dataset(id).and_then(|stored| {
        stored.for_each_chunk(&mut |_| {
            chunks += 1;
            chunks < MAX_PARTS
        })
    });
    let bytes = spec.dataspace.element_count().and_then(|n| n.checked_mul(spec.datatype.size().into()));
    let selection = match bytes {
        Some(bytes) if bytes <= MAX_VALUE_BYTES => Selection::All,
        _ if u64::from(spec.datatype.size()) > MAX_VALUE_BYTES => return Ok(()),
        _ => Selection::Points(vec![spec.dataspace.dims().iter().map(|n| n / 2).collect()]),
    };
    dataset.read_raw(&selection)?;
    for value in dataset.read_values(&selection)?.iter().take(MAX_PARTS) {
        let _ = value.to_string();
        if let Value::Reference(reference) = value {
            let _ = file.reference_target(reference);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! The operations on each mutant.

use std::fs;
use std::path::{Path, PathBuf};

use h5live::{Copier, Dataset, Datatype, File, Mode, Object, Options, Selection, Value, WalkItem};
use h5live_cli::error_with_causes;

use crate::allocator::MAX_ALLOCATION_BYTES;

/// Bytes of a dataset, an attribute or a chunk that the caller has room for.
const MAX_CALLER_BYTES: u64 = 1 << 20;
/// Objects of a file that are read or changed.
const MAX_OBJECTS: usize = 200;
/// Chunks of a dataset that are looked at.
const MAX_CHUNKS: usize = 200;

/// An operation on a file. Its result does not matter, if it ends.
pub type Operation = fn(&Place) -> Result<(), String>;

/// The files of a mutant.
pub struct Place {
    /// The mutant.
    pub file: PathBuf,
    /// A folder for the files that it makes.
    pub folder: PathBuf,
}

/// All operations, by name.
pub const OPERATIONS: [(&str, Operation); 14] = [
    ("read", read),
    ("ls", |place| command(&["ls", "--long", &text(&place.file)])),
    ("dump", |place| command(&["dump", "--json", &text(&place.file)])),
    ("manifest", |place| command(&["manifest", &text(&place.file)])),
    ("check", |place| command(&["check", "--data", "--leaks", &text(&place.file)])),
    ("copy", |place| command(&["copy", "--quiet", &text(&place.file), &place.beside("copy.h5")])),
    ("chunks", |place| {
        let chunks = ["--chunks", if place.is_even() { "5" } else { "3,2" }];
        command(&[
            "copy",
            "--quiet",
            chunks[0],
            chunks[1],
            "--filter",
            "none",
            &text(&place.file),
            &place.beside("c.h5"),
        ])
    }),
    ("memory", |place| copy_to_memory(&place.file)),
    ("diff", |place| command(&["diff", &text(&place.file), &text(&place.file)])),
    ("edit", |place| edit(&place.clone_as("edit.h5")?, Mode::Write)),
    ("live", |place| edit(&place.clone_as("live.h5")?, Mode::SwmrWrite)),
    ("repair", |place| command(&["repair", &text(&place.clone_as("repair.h5")?)])),
    ("reclaim", |place| command(&["repair", "--reclaim", &text(&place.clone_as("reclaim.h5")?)])),
    ("follow", |place| options().swmr_read().open(&place.file).map(|file| read_all(&file)).map_err(error_text)),
];

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn error_text(error: impl std::error::Error) -> String {
    error_with_causes(&error)
}

impl Place {
    fn beside(&self, name: &str) -> String {
        text(&self.folder.join(name))
    }

    fn is_even(&self) -> bool {
        fs::metadata(&self.file).is_ok_and(|found| found.len() % 2 == 0)
    }

    fn clone_as(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        fs::copy(&self.file, &path).map_err(error_text)?;
        Ok(path)
    }
}

/// By default, more may be allocated at once on a machine with much memory.
fn options() -> Options {
    Options::default().max_allocation(MAX_ALLOCATION_BYTES as u64)
}

fn command(words: &[&str]) -> Result<(), String> {
    let limit = format!("--max-allocation={MAX_ALLOCATION_BYTES}");
    let words: Vec<&str> = words.iter().copied().chain([&*limit]).collect();
    h5live_cli::run_words(&words).map(drop)
}

fn read(place: &Place) -> Result<(), String> {
    options().open(&place.file).map(|file| read_all(&file)).map_err(error_text)
}

/// Everything in a file, up to limits. An error in one place is no reason to leave the others out.
fn read_all(file: &File) {
    for visit in file.walk().take(MAX_OBJECTS) {
        match visit {
            Ok(WalkItem::Object(object)) => read_object(file, &object),
            Ok(WalkItem::UnfollowedLink { path, .. }) => drop(file.object(&path)),
            _ => {}
        }
    }
}

fn read_object(file: &File, object: &Object) {
    let attributes = match object {
        Object::Group(group) => group.attributes(),
        Object::Dataset(dataset) => {
            let _ = read_dataset(file, dataset);
            dataset.attributes()
        }
        _ => return,
    };
    for attribute in attributes.unwrap_or_default() {
        if attribute.raw().len() as u64 <= MAX_CALLER_BYTES {
            let _ = attribute.values().map(|values| follow(file, &values));
        }
    }
}

fn read_dataset(file: &File, dataset: &Dataset) -> h5live::Result<()> {
    let spec = dataset.spec()?;
    let mut chunks = Vec::new();
    let _ = dataset.for_each_stored_chunk(|chunk| {
        chunks.push(chunk);
        chunks.len() < MAX_CHUNKS
    });
    for chunk in chunks.iter().filter(|chunk| chunk.size <= MAX_CALLER_BYTES) {
        let _ = dataset.read_chunk(chunk);
    }
    let Some(selection) = part(&spec.datatype, spec.dataspace.dims()) else { return Ok(()) };
    let _ = dataset.read_raw(&selection);
    let _ = dataset.read_slice::<f64>(&selection);
    let _ = dataset.read_slice::<String>(&selection);
    dataset.read_values(&selection).map(|values| follow(file, &values))
}

/// The elements that the caller has room for: all, or one in the middle; none if there is no room for that either.
fn part(datatype: &Datatype, dims: &[u64]) -> Option<Selection> {
    let size = u64::from(datatype.size());
    let bytes = dims.iter().try_fold(size, |bytes, dim| bytes.checked_mul(*dim));
    match bytes {
        Some(bytes) if bytes <= MAX_CALLER_BYTES => Some(Selection::All),
        _ if size <= MAX_CALLER_BYTES => Some(Selection::Points(vec![dims.iter().map(|dim| dim / 2).collect()])),
        _ => None,
    }
}

fn follow(file: &File, values: &[Value]) {
    for value in values.iter().take(MAX_OBJECTS) {
        let _ = value.to_string();
        if let Value::Reference(reference) = value {
            let _ = file.reference_target(reference);
            let _ = file.dereference(reference);
        }
    }
}

fn copy_to_memory(path: &Path) -> Result<(), String> {
    let from = options().open(path).map_err(error_text)?;
    let to = File::in_memory();
    let mut copy = Copier::new(&from, &to);
    copy.contents(&from.root(), &to.root()).map_err(error_text)?;
    copy.copy_data_and_finish().map_err(error_text)?;
    read_all(&to);
    Ok(())
}

/// Appends, writes, resizes, sets and removes attributes, creates and deletes objects. Ignores refusals.
fn edit(path: &Path, mode: Mode) -> Result<(), String> {
    let file = options().mode(mode).open(path).map_err(error_text)?;
    let visits: Vec<_> = file.walk().take(MAX_OBJECTS).filter_map(Result::ok).collect();
    for visit in &visits {
        match visit {
            WalkItem::Object(Object::Dataset(dataset)) => {
                let _ = change(dataset);
                let _ = dataset.set_attribute("attack", &1.5);
            }
            WalkItem::Object(Object::Group(group)) => {
                let _ = group.set_attribute("attack", &1.5);
                let _ = group.create_group("attack");
                let _ = group.new_dataset::<i32>().shape(&[3]).max_shape(&[9]).chunk_shape(&[2]).create("attacked");
            }
            _ => {}
        }
    }
    let _ = file.flush();
    for visit in &visits {
        let names = match visit {
            WalkItem::Object(Object::Group(group)) => group.attribute_names(),
            WalkItem::Object(Object::Dataset(dataset)) => dataset.attribute_names(),
            _ => continue,
        };
        for name in names.unwrap_or_default().iter().take(MAX_OBJECTS) {
            let _ = match visit {
                WalkItem::Object(Object::Group(group)) => group.remove_attribute(&name.to_string()),
                WalkItem::Object(Object::Dataset(dataset)) => dataset.remove_attribute(&name.to_string()),
                _ => Ok(()),
            };
        }
    }
    let _ = file.flush();
    // Every second one, so that there is something left to be closed.
    for visit in visits.iter().rev().step_by(2).filter(|visit| visit.path() != "/") {
        let _ = file.root().unlink(visit.path());
    }
    let _ = file.flush();
    file.close().map_err(error_text)
}

fn change(dataset: &Dataset) -> h5live::Result<()> {
    let spec = dataset.spec()?;
    let dims = spec.dataspace.dims().to_vec();
    if let Some(selection) = part(&spec.datatype, &dims) {
        let bytes = dataset.read_raw(&selection)?;
        let _ = dataset.write_raw(&selection, &bytes);
    }
    let row = dims.iter().skip(1).try_fold(u64::from(spec.datatype.size()), |row, dim| row.checked_mul(*dim));
    if let Some(row) = row.filter(|row| *row <= MAX_CALLER_BYTES) {
        let _ = dataset.append_raw(&vec![0; row as usize]);
    }
    let larger: Vec<_> = dims.iter().map(|dim| dim.saturating_add(3)).collect();
    let _ = dataset.resize(&larger);
    let smaller: Vec<_> = dims.iter().map(|dim| dim / 2).collect();
    dataset.resize(&smaller)
}

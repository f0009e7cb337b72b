//! The maps of a file: whether each row of their tables makes sense.

use std::error::Error as _;

use h5live::{Location, Object, WalkItem};
use h5live_map_table::MapTableError;

use super::non_structure_finding::NonStructureFinding;
use crate::open;

/// The damaged maps of a file whose structures are sound. None, if the file cannot be opened: another process may write
/// it.
pub fn find_damaged_maps(location: &Location) -> Vec<NonStructureFinding> {
    let Ok(file) = open::command_line_options().read().open(location) else { return Vec::new() };
    file.walk().filter_map(|item| item.and_then(read_pairs).err()).filter_map(damage_of).collect()
}

/// Reads all pairs, if it is a map.
fn read_pairs(item: WalkItem) -> h5live::Result<()> {
    let WalkItem::Object(Object::Map(map)) = item else { return Ok(()) };
    // Before any value is read, all keys are.
    map.len()?;
    map.pairs(..)?.try_for_each(|pair| pair.map(drop))
}

/// What is said of a map; other objects are the matter of the checker.
fn damage_of(error: h5live::Error) -> Option<NonStructureFinding> {
    let mut cause = error.source();
    while let Some(source) = cause {
        if source.downcast_ref::<MapTableError>().is_some() {
            let path = error.object().unwrap_or_default().to_owned();
            return Some(NonStructureFinding { object_path: Some(path), fault_kind: "map", cause: source.to_string() });
        }
        cause = source.source();
    }
    None
}

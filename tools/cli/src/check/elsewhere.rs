//! Elements that lie in other files: those of virtual datasets, and of external raw files. No structure of the file that is
//! checked says anything about them, so they are read.

use h5live::{Dataset, File, Location, MissingSourcePolicy, Object, WalkItem};
use h5live_compare::block::split_into_blocks;

use super::non_structure_finding::NonStructureFinding;
use crate::error::error_with_causes;
use crate::model::Layout;
use crate::open;

/// The word for programs.
const KIND: &str = "elsewhere";
/// Bytes that are read at once.
const BLOCK_BYTES: u64 = 16 << 20;
/// Datasets of more bytes are not read: most elements of such a virtual dataset are fill values.
const MAX_DATASET_BYTES: u64 = 1 << 40;

/// The datasets with elements in other files that are not there, or cannot be read, and why.
pub fn find_unreadable_data_elsewhere(location: &Location) -> Vec<NonStructureFinding> {
    let part = |path, cause| NonStructureFinding { object_path: path, fault_kind: KIND, cause };
    let file = match open_file(location) {
        Ok(file) => file,
        Err(error) => return vec![part(None, error_with_causes(&error))],
    };
    let unread = file.walk().filter_map(|item| match item {
        Ok(WalkItem::Object(Object::Dataset(dataset))) => {
            read_elements(&dataset).err().map(|cause| part(Some(dataset.path().to_owned()), cause))
        }
        Ok(_) => None,
        // It may be a dataset.
        Err(error) => Some(part(error.object().map(str::to_owned), error_with_causes(error.kind()))),
    });
    unread.collect()
}

fn open_file(location: &Location) -> h5live::Result<File> {
    let options = open::command_line_options().missing_sources(MissingSourcePolicy::Error);
    match options.clone().read().open(location) {
        Err(error) if error.is_in_use() => options.swmr_read().open(location),
        opened => opened,
    }
}

/// Reads all elements, if they lie in other files.
fn read_elements(dataset: &Dataset) -> Result<(), String> {
    let spec = dataset.spec().map_err(|error| error_with_causes(error.kind()))?;
    if !matches!(spec.layout, Layout::Virtual(_) | Layout::External(_)) {
        return Ok(());
    }
    let element = u64::from(spec.datatype.size());
    let bytes = spec.dataspace.element_count().and_then(|elements| elements.checked_mul(element)).unwrap_or(u64::MAX);
    if bytes > MAX_DATASET_BYTES {
        return Err(format!("its elements lie in other files, and are more than {MAX_DATASET_BYTES} bytes"));
    }
    split_into_blocks(spec.dataspace.dims(), &[], element, BLOCK_BYTES).iter().try_for_each(|block| {
        dataset.read_raw(block.selection()).map(drop).map_err(|error| error_with_causes(error.kind()))
    })
}

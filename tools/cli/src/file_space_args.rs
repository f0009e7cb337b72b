//! How a new file allocates its space: options of the command line, and fields of descriptions.

use clap::Args;
use serde_json::{Value as Json, json};

use crate::model::{FileSpaceSettings, FileSpaceStrategy};
use crate::number_arg::{byte_count, byte_count_within};

/// The default size of an address in a file (bytes).
pub const DEFAULT_OFFSET_SIZE: u32 = 8;

/// Options of a command about the space of the file that it makes.
#[derive(Debug, Default, Args)]
pub struct FileSpaceArgs {
    /// How space in the file is allocated: fsm-aggr, page, aggr, none
    #[arg(long, value_name = "NAME", value_parser = strategy)]
    strategy: Option<FileSpaceStrategy>,
    /// Bytes of a page, of a file with pages
    #[arg(long, value_name = "SIZE", value_parser = byte_count_within::<512, { 1 << 30 }>)]
    page_size: Option<u64>,
    /// The file stores its list of free space when it is closed
    #[arg(long)]
    persist: bool,
    /// The smallest free section that is kept
    #[arg(long, value_name = "SIZE", value_parser = byte_count)]
    threshold: Option<u64>,
}

fn strategy(name: &str) -> Result<FileSpaceStrategy, String> {
    FileSpaceStrategy::from_name(name).ok_or_else(|| "allowed are fsm-aggr, page, aggr and none".to_owned())
}

impl FileSpaceArgs {
    /// Whether anything is said here.
    pub fn is_given(&self) -> bool {
        self.strategy.is_some() || self.page_size.is_some() || self.persist || self.threshold.is_some()
    }

    /// The given options, and those of `base` for the rest.
    pub fn or(&self, base: FileSpaceSettings) -> FileSpaceSettings {
        FileSpaceSettings {
            strategy: self.strategy.unwrap_or(base.strategy),
            persist: self.persist || base.persist,
            threshold: self.threshold.unwrap_or(base.threshold),
            page_size: self.page_size.unwrap_or(base.page_size),
        }
    }
}

/// As a description has it; nothing, if it is as by default.
pub fn non_default_to_json(space: FileSpaceSettings) -> Option<Json> {
    let FileSpaceSettings { strategy, persist, threshold, page_size } = space;
    let json =
        json!({ "strategy": strategy.name(), "persist": persist, "threshold": threshold, "page_size": page_size });
    (space != FileSpaceSettings::default()).then_some(json)
}

/// From a description.
pub fn from_json(json: &Json) -> Option<FileSpaceSettings> {
    let mut space = FileSpaceSettings::default();
    for (field, value) in json.as_object()? {
        match field.as_str() {
            "strategy" => space.strategy = FileSpaceStrategy::from_name(value.as_str()?)?,
            "persist" => space.persist = value.as_bool()?,
            "threshold" => space.threshold = value.as_u64()?,
            "page_size" => space.page_size = value.as_u64()?,
            _ => return None,
        }
    }
    Some(space)
}

//! Names that the store keeps for itself.
//!
//! A user's name that looks like one of them gets one more underscore in front
//! ([`LogLayout::stored_name`](crate::layout::LogLayout::stored_name)).

/// The group of the log, a child of the root group.
pub const LOG_GROUP: &str = "_LOG";
/// What errors call that group.
pub const OF_GROUP: &str = "the group of the log";
/// The attribute of the root group with the version of the layout: the file has a log, even if the group of it is gone.
pub const LOG_MARK: &str = "_log_layout";
/// The attribute of the log group with the version of the layout.
pub const LAYOUT_VERSION: &str = "layout_version";
/// The attribute of the log group that counts the datasets that were ever made.
pub const CREATED_DATASET_COUNT: &str = "datasets";
/// The attribute of the log group that counts the log datasets.
pub const LOG_DATASET_COUNT: &str = "log_datasets";
/// The attribute of the log group with a number that tells the file, and its subfiles, from others.
pub const FILE_ID: &str = "file_id";
/// The attribute of the log group that counts the subfiles.
pub const SUBFILE_COUNT: &str = "subfiles";
/// The attribute of a log dataset that says where its published entries end (bytes).
pub const PUBLISHED_END: &str = "end";
/// The attribute of a log dataset with the bytes of entries in the log datasets before it.
pub const START_POSITION: &str = "first";

/// The attribute of an anchor with the number of the dataset.
pub const DATASET_NUMBER: &str = "_log_id";
/// The attribute of an anchor with the extent.
pub const SHAPE: &str = "_log_shape";
/// The attribute of an anchor with the largest extent; -1 where there is no limit.
pub const MAX_SHAPE: &str = "_log_max_shape";
/// The attribute of an anchor with the layout that the dataset would have without the log.
pub const STORAGE: &str = "_log_storage";
/// The attribute of an anchor with the filters.
pub const FILTERS: &str = "_log_filters";
/// The attribute of an anchor with the names of the filters.
pub const FILTER_NAMES: &str = "_log_filter_names";

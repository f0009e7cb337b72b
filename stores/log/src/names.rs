//! Names that the store keeps for itself, and how names of users that look like them are stored.
//!
//! As Log VOL has it, a user's name that looks like one of the store's gets one more underscore in front.

use h5live_model::Name;

/// The group of the log, a child of the root group.
pub const LOG_GROUP: &str = "_LOG";
/// What errors call that group.
pub const OF_GROUP: &str = "the group of the log";
/// The attribute of the log group with the version of the layout.
pub const LAYOUT_VERSION: &str = "layout_version";
/// The attribute of the log group that counts the datasets that were ever made.
pub const DATASET_COUNT: &str = "datasets";
/// The attribute of the log group that counts the log datasets.
pub const LOG_DATASET_COUNT: &str = "log_datasets";
/// The attribute of the log group with a number that tells the file, and its subfiles, from others.
pub const FILE_ID: &str = "file_id";
/// The attribute of the log group that counts the subfiles.
pub const SUBFILES: &str = "subfiles";
/// The attribute of a log dataset that says where its published entries end (bytes).
pub const END: &str = "end";
/// The attribute of a log dataset with the bytes of entries in the log datasets before it.
pub const FIRST: &str = "first";

/// The attribute of an anchor with the number of the dataset.
pub const ID: &str = "_log_id";
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

/// What a user's name looks like if it could be taken for the store's.
const RESERVED: &[u8] = b"log";

/// Whether a name is an underscore or several, and then `log` in any case.
fn is_reserved(name: &[u8]) -> bool {
    let bare = name.iter().position(|byte| *byte != b'_').map_or(&[][..], |at| &name[at..]);
    bare.len() < name.len() && bare.get(..RESERVED.len()).is_some_and(|head| head.eq_ignore_ascii_case(RESERVED))
}

/// Whose names a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// Those of this module.
    Design,
    /// Those of Log VOL: everything with an underscore in front is its own.
    LogVol,
}

impl Naming {
    fn is_reserved(self, name: &[u8]) -> bool {
        match self {
            Naming::Design => is_reserved(name),
            Naming::LogVol => name.starts_with(b"_"),
        }
    }

    /// A user's name as it is stored.
    pub fn stored_name(self, name: &Name) -> Name {
        match name.as_bytes() {
            bytes if self.is_reserved(bytes) => Name::from([b"_", bytes].concat()),
            _ => name.clone(),
        }
    }

    /// The user's name that is stored like this; `None` if it is the store's own.
    pub fn user_name(self, stored: &Name) -> Option<Name> {
        match stored.as_bytes() {
            [b'_', rest @ ..] if self.is_reserved(rest) => Some(Name::from(rest)),
            bytes if self.is_reserved(bytes) => None,
            _ => Some(stored.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_user_comes_back_and_none_is_the_stores() {
        for text in ["a", "", "_", "log", "_a", "_LOG", "__LOG", "_log_id", "___log", "_lo", "_logs"] {
            for naming in [Naming::Design, Naming::LogVol] {
                let stored = naming.stored_name(&Name::from(text));
                assert_eq!(naming.user_name(&stored), Some(Name::from(text)));
            }
            let stored = Naming::Design.stored_name(&Name::from(text));
            for own in [LOG_GROUP, ID, SHAPE, MAX_SHAPE, STORAGE, FILTERS, FILTER_NAMES] {
                assert_ne!(stored, own);
                assert_eq!(Naming::Design.user_name(&Name::from(own)), None);
            }
        }
    }
}

//! How a log lies in its file: as this program has it, or as the program Log VOL 1.4.0 has it.
//!
//! What differs between the two is here, but for the bytes of entries (`entry.rs`, `log_vol_entry.rs`).

use h5live_model::{
    AttributeData, Capabilities, ChunkEncodedBy, ChunkReadStrategy, ConsistencyScope, DatasetSpec, Dataspace, Datatype,
    DurabilitySupport, Error, Layout, Name, ObjectId, PartialWrites, ReferenceKind, ReferentPart, SettingValue,
    SmallWritesStagedBy, Store, StoreFeatures, StoreSizeLimits, name_of_value, value_with_name,
};

use crate::anchor::{self, AnchorDataset};
use crate::encode::EntryFilter;
use crate::error::Result;
use crate::log_vol_anchor;

/// How a log lies in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum LogLayout {
    /// As this program has it (`docs/log-format.md`).
    #[default]
    H5live,
    /// As Log VOL 1.4.0 has it ("Files of Log VOL" in `docs/log-format.md`).
    LogVol,
}

/// What a user's name looks like if it could be taken for one of this program's.
const RESERVED: &[u8] = b"log";

/// Whether a name is an underscore or several, and then `log` in any case.
fn is_reserved(name: &[u8]) -> bool {
    let bare = name.iter().position(|byte| *byte != b'_').map_or(&[][..], |at| &name[at..]);
    bare.len() < name.len() && bare.get(..RESERVED.len()).is_some_and(|head| head.eq_ignore_ascii_case(RESERVED))
}

impl LogLayout {
    const NAMES: [(LogLayout, &'static str); 2] = [(LogLayout::H5live, "h5live"), (LogLayout::LogVol, "logvol")];

    /// What a session on such a log can do, over a store that can do `inner`.
    pub fn capabilities(self, inner: &Capabilities) -> Capabilities {
        let lacks = match self {
            LogLayout::H5live => StoreFeatures::MAPS,
            LogLayout::LogVol => StoreFeatures::MAPS
                .with(StoreFeatures::SHRINK)
                .with(StoreFeatures::VIRTUAL)
                .with(StoreFeatures::EXTERNAL_FILES)
                .with(StoreFeatures::REGION_REFERENCES),
        };
        Capabilities {
            features: inner.features.without(lacks),
            partial_writes: PartialWrites::ElementBlocks,
            staging: SmallWritesStagedBy::Store,
            encoding: ChunkEncodedBy::Store,
            reads: ChunkReadStrategy::ElementBlocks,
            commit: ConsistencyScope::Object,
            view: ConsistencyScope::Object,
            durability: DurabilitySupport::OnRequest,
            supports_live_reads: inner.supports_live_reads && self == LogLayout::H5live,
            limits: StoreSizeLimits::NONE,
        }
    }

    /// Whether every name with an underscore in front is the log's own, and not only those in the root group and those
    /// of attributes that look like one.
    pub fn reserves_all_underscore_names(self) -> bool {
        self == LogLayout::LogVol
    }

    fn is_reserved(self, name: &[u8]) -> bool {
        if self.reserves_all_underscore_names() { name.starts_with(b"_") } else { is_reserved(name) }
    }

    /// A user's name as it is stored.
    pub fn stored_name(self, name: &Name) -> Name {
        match name.as_bytes() {
            bytes if self.is_reserved(bytes) => Name::from([b"_", bytes].concat()),
            _ => name.clone(),
        }
    }

    /// The user's name that is stored like this; `None` if it is the log's own.
    pub fn user_name(self, stored: &Name) -> Option<Name> {
        match stored.as_bytes() {
            [b'_', rest @ ..] if self.is_reserved(rest) => Some(Name::from(rest)),
            bytes if self.is_reserved(bytes) => None,
            _ => Some(stored.clone()),
        }
    }

    /// Refuses to write data through a filter if the layout has no such entries.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn check_filter(self, filter: EntryFilter) -> Result<()> {
        match (self, filter) {
            (LogLayout::H5live, _) | (_, EntryFilter::OfDataset | EntryFilter::Never) => Ok(()),
            _ => Err(Error::Unsupported("a filter of entries in Log VOL's layout (layout=logvol)")),
        }
    }

    /// Refuses to be followed while it is written, if the layout cannot show a flush at once.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn check_swmr_write(self) -> Result<()> {
        match self {
            LogLayout::H5live => Ok(()),
            LogLayout::LogVol => {
                Err(Error::Unsupported("following a log in Log VOL's layout (layout=logvol) while it is written"))
            }
        }
    }

    /// Refuses a reference to elements if anchors have no extent that other programs would look for them in.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn check_referent(self, part: &ReferentPart) -> Result<()> {
        match (self, part) {
            (LogLayout::LogVol, ReferentPart::Region(_)) => {
                Err(Error::Unsupported("a reference to a region in Log VOL's layout (layout=logvol)"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a dataset that the layout cannot hold.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn check_dataset(self, spec: &DatasetSpec) -> Result<()> {
        let refused = match (self, &spec.layout) {
            (LogLayout::H5live, _) => return Ok(()),
            (_, Layout::Virtual(_)) => "a virtual dataset in Log VOL's layout (layout=logvol)",
            (_, Layout::External(_)) => "a dataset in raw files in Log VOL's layout (layout=logvol)",
            _ if spec.dataspace == Dataspace::Null => "a null dataspace in Log VOL's layout (layout=logvol)",
            _ if leads_to_heap(&spec.datatype) => {
                "a dataset with variable-length elements, or with references that lead to a heap, in Log VOL's layout \
                 (layout=logvol)"
            }
            _ => return Ok(()),
        };
        Err(Error::Unsupported(refused))
    }

    /// Whether entries say the extents of datasets. Otherwise their anchors say it after each commit.
    pub fn has_extents_in_entries(self) -> bool {
        self == LogLayout::H5live
    }

    /// The anchor at `id`; `None` if the object is none.
    ///
    /// # Errors
    /// If its attributes contradict each other; errors of the store beneath.
    pub fn read_anchor_dataset(self, store: &dyn Store, id: ObjectId) -> Result<Option<AnchorDataset>> {
        match self {
            LogLayout::H5live => AnchorDataset::read(store, id),
            LogLayout::LogVol => log_vol_anchor::read_anchored_dataset(store, id),
        }
    }

    /// The dataset that the file gets for an anchor.
    pub fn placeholder_spec(self, anchor: &AnchorDataset) -> DatasetSpec {
        match self {
            LogLayout::H5live => anchor.placeholder_spec(),
            LogLayout::LogVol => log_vol_anchor::placeholder_spec(anchor),
        }
    }

    /// The attributes that an anchor gets.
    pub fn anchor_attributes(self, anchor: &AnchorDataset) -> Vec<AttributeData> {
        match self {
            LogLayout::H5live => anchor.anchor_attributes(),
            LogLayout::LogVol => log_vol_anchor::anchor_attributes(anchor),
        }
    }

    /// The attribute of an anchor with the dimensions of its dataset.
    pub fn dims_attribute(self, dims: &[u64]) -> AttributeData {
        match self {
            LogLayout::H5live => anchor::dims_attribute(dims),
            LogLayout::LogVol => log_vol_anchor::dims_attribute(dims),
        }
    }
}

/// Whether elements of a type lead to bytes in a heap of the file. Log VOL would take the bytes for the value.
fn leads_to_heap(datatype: &Datatype) -> bool {
    match datatype {
        Datatype::VarLen(_) => true,
        Datatype::Reference(of) => of.kind != ReferenceKind::Object1,
        Datatype::Array(of) => leads_to_heap(&of.base),
        Datatype::Compound(of) => of.members.iter().any(|member| leads_to_heap(&member.datatype)),
        _ => false,
    }
}

impl SettingValue for LogLayout {
    const FORM: &'static str = "h5live|logvol";

    fn from_text(text: &str) -> Option<Self> {
        value_with_name(&LogLayout::NAMES, text)
    }

    fn to_text(&self) -> String {
        name_of_value(&LogLayout::NAMES, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{DATASET_NUMBER, FILTERS, LOG_GROUP, MAX_SHAPE, SHAPE, STORAGE};

    #[test]
    fn every_name_of_a_user_comes_back_and_none_is_the_logs() {
        for text in ["a", "", "_", "log", "_a", "_LOG", "__LOG", "_log_id", "___log", "_lo", "_logs", "_ID", "_dims"] {
            for layout in [LogLayout::H5live, LogLayout::LogVol] {
                let stored = layout.stored_name(&Name::from(text));
                assert_eq!(layout.user_name(&stored), Some(Name::from(text)));
                for own in [LOG_GROUP, DATASET_NUMBER, SHAPE, MAX_SHAPE, STORAGE, FILTERS] {
                    assert_ne!(stored, own);
                    assert_eq!(layout.user_name(&Name::from(own)), None);
                }
            }
        }
    }

    #[test]
    fn values_of_the_option_are_read_as_they_are_written() {
        for (layout, text) in LogLayout::NAMES {
            assert_eq!((LogLayout::from_text(text), layout.to_text()), (Some(layout), text.to_owned()));
        }
        assert_eq!(LogLayout::from_text("LogVOL"), None);
    }
}

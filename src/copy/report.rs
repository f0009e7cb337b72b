//! The report of a finished copy.

use std::fmt;

use crate::Error;

/// What a finished copy could not verify, and where it differs from its source.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct CopyReport {
    /// Datasets with chunks that were copied as they are stored and cannot be decoded: a filter is not known, a
    /// checksum is wrong, or compressed data is damaged. The copy has the same bytes.
    pub undecodable_chunks: Vec<UndecodableChunks>,
    /// The paths of datasets whose elements went through a filter that rounds them, such as the scale-offset filter of floats,
    /// once more: some may be others in the copy. Chunks are not encoded again where both stores keep them as filters left
    /// them, and neither the chunks nor the filters are to change.
    pub lossily_reencoded_datasets: Vec<String>,
    /// What objects have and the store of the copy does not keep.
    pub lost_metadata: Vec<LostMetadata>,
    /// Datasets whose fill value does not fit their elements. Other programs refuse such datasets, and the right value
    /// is not known, so the copy has no fill value.
    pub dropped_fill_values: Vec<DroppedFillValue>,
    /// Datasets, attributes and maps with references to objects that were not copied: they are null in the copy. Either
    /// such an object is not below what was copied, or no link leads to it any more.
    pub lost_references: Vec<LostReferences>,
    /// What is not in the copy, as was asked for ([`Copier::skip_unsupported`](super::Copier::skip_unsupported),
    /// [`Copier::skip_damaged`](super::Copier::skip_damaged)).
    pub skipped_items: Vec<SkippedItem>,
}

/// Something that is not in the copy.
#[derive(Debug)]
#[non_exhaustive]
pub struct SkippedItem {
    /// The path of the object or link in the file that was copied, or that of an object, `@`, and the name of its attribute. If
    /// the links or attributes of an object cannot be listed, its own path: the others are missing.
    pub path: String,
    /// Why.
    pub error: Error,
}

/// The chunks of a dataset that were copied and cannot be decoded.
#[derive(Debug)]
#[non_exhaustive]
pub struct UndecodableChunks {
    /// The path of the dataset in the file that was copied.
    pub path: String,
    /// Their number.
    pub count: u64,
    /// Why they cannot be decoded, with the chunk: of the first [`MAX_ERRORS`](UndecodableChunks::MAX_ERRORS).
    pub first_errors: Vec<Error>,
}

/// Something that an object has, and its copy has not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostMetadata {
    /// The path of the object in the file that was copied.
    pub path: String,
    /// What it is.
    pub part: ObjectMetadataKind,
}

/// Something that an object may have beside its elements, attributes and links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ObjectMetadataKind {
    /// The times of its access and changes.
    Times,
    /// Its comment.
    Comment,
    /// The order in which its links were made.
    LinkCreationOrder,
    /// The order in which its attributes were made.
    AttributeCreationOrder,
}

impl fmt::Display for ObjectMetadataKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ObjectMetadataKind::Times => "the times",
            ObjectMetadataKind::Comment => "the comment",
            ObjectMetadataKind::LinkCreationOrder => "the order of links",
            ObjectMetadataKind::AttributeCreationOrder => "the order of attributes",
        })
    }
}

/// A fill value that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedFillValue {
    /// The path of the dataset in the file that was copied.
    pub path: String,
    /// Bytes of the fill value.
    pub fill_value_size: u64,
    /// Bytes of an element.
    pub element_size: u64,
}

/// References that are null in the copy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostReferences {
    /// The path of the dataset or map in the file that was copied, or that of an object, `@`, and the name of its attribute.
    pub path: String,
    /// Their number.
    pub count: u64,
}

impl UndecodableChunks {
    /// Most errors that are kept of one dataset.
    pub const MAX_ERRORS: usize = 8;
}

impl CopyReport {
    /// Whether all of the copy was verified, and says what its source says.
    pub fn is_clean(&self) -> bool {
        self.undecodable_chunks.is_empty()
            && self.lossily_reencoded_datasets.is_empty()
            && self.lost_metadata.is_empty()
            && self.dropped_fill_values.is_empty()
            && self.lost_references.is_empty()
            && self.skipped_items.is_empty()
    }

    /// Chunks that were copied and cannot be decoded, of all datasets.
    pub fn undecodable_chunk_count(&self) -> u64 {
        self.undecodable_chunks.iter().map(|dataset| dataset.count).sum()
    }

    /// How many lines it has of what elements are.
    pub(super) fn lens(&self) -> [usize; 3] {
        [self.undecodable_chunks.len(), self.lossily_reencoded_datasets.len(), self.lost_references.len()]
    }

    /// Forgets what was noted of elements since [`CopyReport::lens`].
    pub(super) fn truncate(&mut self, [unverified, rounded_again, lost_references]: [usize; 3]) {
        self.undecodable_chunks.truncate(unverified);
        self.lossily_reencoded_datasets.truncate(rounded_again);
        self.lost_references.truncate(lost_references);
    }

    /// Notes that references of something are null in the copy.
    pub(super) fn add_lost_references(&mut self, path: &str, count: u64) {
        if count > 0 {
            self.lost_references.push(LostReferences { path: path.to_owned(), count });
        }
    }

    /// Notes that a chunk of a dataset cannot be decoded.
    pub(super) fn add_unverified(&mut self, path: &str, error: Error) {
        match self.undecodable_chunks.last_mut().filter(|dataset| dataset.path == path) {
            Some(dataset) => {
                dataset.count += 1;
                if dataset.first_errors.len() < UndecodableChunks::MAX_ERRORS {
                    dataset.first_errors.push(error);
                }
            }
            None => self.undecodable_chunks.push(UndecodableChunks {
                path: path.to_owned(),
                count: 1,
                first_errors: vec![error],
            }),
        }
    }
}

/// Whether a copy has the times that are known of an object: old headers know one of them alone, and say 0 for the others.
pub(super) fn keeps_times(had: h5live_model::ObjectTimes, has: h5live_model::ObjectTimes) -> bool {
    let of = |times: h5live_model::ObjectTimes| [times.access, times.modification, times.change, times.birth];
    of(had).into_iter().zip(of(has)).all(|(had, has)| had == 0 || had == has)
}

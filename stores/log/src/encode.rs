//! Filters of entries: the data of an entry goes through one filter, if that makes it smaller.

use std::borrow::Cow;

use h5live_model::{
    DatasetSpec, Error, FilterEngine, FilterSpec, Result, SettingValue, StoreErrorKind, name_of_value, value_with_name,
};

use crate::boxes::BoxRange;
use crate::entry::{DimVec, EntryChange};
use crate::error::LogError;
use crate::parallel::{available_threads, for_each_in_parallel};

/// Smaller data stays as it is (bytes).
const MIN_BYTES: usize = 512;
/// Larger boxes are cut into entries of about so many bytes, so that a reader of a part decodes little more.
const FILTERED_PIECE_BYTES: u64 = 256 << 10;
/// The same of boxes without a filter: a reader of a part compares the checksum of all of an entry.
const PLAIN_PIECE_BYTES: u64 = 4 << 20;
/// Data for one thread (bytes): less is done by fewer threads.
const THREAD_BYTES: usize = 64 << 10;

/// Registered numbers of the filters that entries have.
const DEFLATE: u16 = 1;
const LZ4: u16 = 32004;
const ZSTD: u16 = 32015;

/// Through which filter the data of entries goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum EntryFilter {
    /// The last one of deflate, lz4 and zstd among the filters of the dataset, if there is one.
    #[default]
    OfDataset,
    /// None.
    Never,
    /// Deflate, level 6, whatever filters a dataset has.
    Deflate,
    /// LZ4, whatever filters a dataset has.
    Lz4,
    /// Zstandard, level 3, whatever filters a dataset has.
    Zstd,
}

impl EntryFilter {
    const NAMES: [(EntryFilter, &'static str); 5] = [
        (EntryFilter::OfDataset, "of-dataset"),
        (EntryFilter::Never, "none"),
        (EntryFilter::Deflate, "deflate"),
        (EntryFilter::Lz4, "lz4"),
        (EntryFilter::Zstd, "zstd"),
    ];

    /// The filter for entries of a dataset.
    pub fn filter_for(self, spec: &DatasetSpec) -> Option<FilterSpec> {
        let filter =
            |id: u16, params: &[u32]| Some(FilterSpec { id, params: params.to_vec(), ..FilterSpec::default() });
        match self {
            EntryFilter::OfDataset => {
                let is_known = |filter: &&FilterSpec| matches!(filter.id, DEFLATE | LZ4 | ZSTD);
                spec.filters.iter().rfind(is_known).cloned()
            }
            EntryFilter::Never => None,
            EntryFilter::Deflate => filter(DEFLATE, &[6]),
            EntryFilter::Lz4 => filter(LZ4, &[]),
            EntryFilter::Zstd => filter(ZSTD, &[3]),
        }
    }
}

impl SettingValue for EntryFilter {
    const FORM: &'static str = "of-dataset|none|deflate|lz4|zstd";

    fn from_text(text: &str) -> Option<Self> {
        value_with_name(&EntryFilter::NAMES, text)
    }

    fn to_text(&self) -> String {
        name_of_value(&EntryFilter::NAMES, self)
    }
}

/// A box of elements: the first one, the sides, and the bytes of the elements.
pub type BlockData<'a> = (DimVec, DimVec, &'a [u8]);

/// An entry that is ready to be staged.
#[derive(Debug)]
pub struct UnstagedEntry<'a> {
    /// What it changes.
    pub change: EntryChange,
    /// The registered number of the filter of its data, or 0.
    pub filter_id: i32,
    /// Its data, as it is stored.
    pub data: Cow<'a, [u8]>,
}

impl<'a> UnstagedEntry<'a> {
    /// An entry whose data has no filter.
    pub fn plain(change: EntryChange, data: &'a [u8]) -> Self {
        UnstagedEntry { change, filter_id: 0, data: Cow::Borrowed(data) }
    }
}

/// Cuts a large box into pieces of about so many bytes, along its first dimension that is longer than 1.
fn pieces<'a>((start, count, bytes): BlockData<'a>, piece_bytes: u64) -> Vec<BlockData<'a>> {
    let end: DimVec = start.iter().zip(&count).map(|(start, count)| start.saturating_add(*count)).collect();
    let mut rest = bytes;
    let piece = |(low, high, len): (DimVec, DimVec, u64)| {
        let (data, behind) = rest.split_at(len as usize);
        rest = behind;
        let sides = low.iter().zip(&high).map(|(low, high)| high - low).collect();
        (low, sides, data)
    };
    BoxRange { start: &start, end: &end }.slabs(bytes.len() as u64, piece_bytes).map(piece).collect()
}

/// The entries of boxes, with their data as it is.
pub fn split_into_plain_entries<'a>(boxes: Vec<BlockData<'a>>) -> Vec<UnstagedEntry<'a>> {
    plain_entries(boxes, PLAIN_PIECE_BYTES)
}

/// The entries of boxes that are cut into pieces of so many bytes.
fn plain_entries<'a>(boxes: Vec<BlockData<'a>>, piece_bytes: u64) -> Vec<UnstagedEntry<'a>> {
    let entry = |(start, count, bytes): BlockData<'a>| UnstagedEntry::plain(EntryChange::Block { start, count }, bytes);
    boxes.into_iter().flat_map(|whole| pieces(whole, piece_bytes)).map(entry).collect()
}

/// The entries of boxes, whose data goes through a filter where that makes it smaller. Several threads do it, at most as
/// many as there are processors.
///
/// # Errors
/// If the filter is not known or fails.
pub fn split_into_filtered_entries<'a>(
    boxes: Vec<BlockData<'a>>,
    filter: &FilterSpec,
    filters: &dyn FilterEngine,
) -> Result<Vec<UnstagedEntry<'a>>> {
    let mut entries = plain_entries(boxes, FILTERED_PIECE_BYTES);
    let filter = [FilterSpec { optional: false, ..filter.clone() }];
    let total: usize = entries.iter().map(|entry| entry.data.len()).sum();
    let threads = available_threads().min(1 + total / THREAD_BYTES);
    let large = entries.iter_mut().filter(|entry| entry.data.len() >= MIN_BYTES).collect();
    for_each_in_parallel(large, threads, |entry: &mut UnstagedEntry<'_>| {
        if let Some(data) = encode(&filter, &entry.data, filters)? {
            (entry.filter_id, entry.data) = (filter[0].id.into(), Cow::Owned(data));
        }
        Ok(())
    })?;
    Ok(entries)
}

/// The data behind the filter; `None` if it is not smaller.
fn encode(filter: &[FilterSpec], bytes: &[u8], filters: &dyn FilterEngine) -> Result<Option<Vec<u8>>> {
    let failed = |source| Error::store(StoreErrorKind::Io, LogError::EncodeEntry { source });
    let (encoded, mask) = filters.filter(filter, bytes).map_err(failed)?;
    Ok(Some(encoded).filter(|encoded| mask == 0 && encoded.len() < bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_boxes_are_cut_into_pieces_that_are_all_of_them() {
        let bytes: Vec<u8> = (0..1_200_000u32).map(|n| n as u8).collect();
        let whole = (DimVec::from_slice(&[7, 5, 2]), DimVec::from_slice(&[1, 600, 2000]), &bytes[..]);
        let cut = pieces(whole, FILTERED_PIECE_BYTES);
        assert!(cut.len() > 4 && cut.iter().all(|(.., bytes)| bytes.len() as u64 <= FILTERED_PIECE_BYTES));
        let mut next = 5;
        for (start, count, part) in &cut {
            assert_eq!((&start[..], part.len() as u64), (&[7, next, 2][..], count.iter().product::<u64>()));
            next += count[1];
        }
        assert_eq!(cut.iter().flat_map(|(.., bytes)| bytes.iter().copied()).collect::<Vec<_>>(), bytes);
        let small = (DimVec::from_slice(&[1]), DimVec::from_slice(&[9]), &bytes[..9]);
        assert_eq!(pieces(small.clone(), FILTERED_PIECE_BYTES), [small]);
    }
}

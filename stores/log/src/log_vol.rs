//! Reading the log of a file of Log VOL 1.4.0. It is in the group `_LOG` of the file, or of subfiles beside it.

use std::sync::Arc;

use h5live_model::{AllocationLimit, ChunkCoord, DatasetSpec, LinkTarget, Name, ObjectId, ObjectKind, Store};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::entry::{DimVec, EntryChange, EntryHead};
use crate::entry_box_index::EntryBoxIndex;
use crate::error::{LogError, Result};
use crate::index_table::IndexTableRow;
use crate::log_datasets::{DataLogPlace, LogDatasets, hard_target};
use crate::log_file::existing_log_group;
use crate::log_vol_anchor;
use crate::log_vol_entry::{LogVolEntry, decode_entries};
use crate::log_vol_root_attribute::LogVolRootAttribute;
use crate::position::LogPosition;

/// The registered number of deflate.
const DEFLATE: i32 = 1;

/// The log of such a file.
#[derive(Debug)]
pub struct LogVolLog {
    /// Where the data is.
    pub data_logs: LogDatasets,
    /// The index of each dataset, by its number.
    pub datasets: FxHashMap<u64, EntryBoxIndex>,
    /// How many datasets were made so far: no anchor has this number, or a larger one.
    pub created_dataset_count: u64,
    /// Where the last byte of data ends in its file (bytes).
    pub data_end_in_file: u64,
}

/// All anchors of a file, by their numbers.
fn anchors(store: &dyn Store) -> Result<FxHashMap<u64, DatasetSpec>> {
    let mut found = FxHashMap::default();
    let (mut seen, mut groups) = (FxHashSet::default(), vec![store.session().root]);
    while let Some(group) = groups.pop() {
        if !seen.insert(group) {
            continue;
        }
        let mut below = Vec::new();
        store.for_each_link(group, &mut |link| {
            if let LinkTarget::Hard(id) = link.target {
                below.push(id);
            }
            true
        })?;
        for id in below {
            match store.kind(id)? {
                ObjectKind::Group => groups.push(id),
                ObjectKind::Dataset => found.extend(
                    log_vol_anchor::read_anchored_dataset(store, id)?.map(|anchor| (anchor.number, anchor.spec)),
                ),
                _ => {}
            }
        }
    }
    Ok(found)
}

/// A dataset of the group of the log: `_ld_N` or `_md_N`.
fn member(file: &dyn Store, group: ObjectId, kind: &str, number: i32) -> Result<ObjectId> {
    let name = format!("_{kind}_{number}");
    let found = hard_target(file.link(group, &Name::from(name.as_str()))?);
    found.ok_or_else(|| LogError::MissingPart(format!("dataset {name:?} in its group")).into())
}

impl LogVolLog {
    /// The log in a file, or in its subfiles.
    ///
    /// # Errors
    /// If it is damaged; errors of the stores.
    pub fn open(main: &dyn Store, files: &[Arc<dyn Store>], limit: AllocationLimit) -> Result<Self> {
        let anchors = anchors(main)?;
        let counted =
            LogVolRootAttribute::read(main)?.map_or(0, |counters| counters.created_dataset_count.unsigned_abs().into());
        let mut log = LogVolLog {
            data_logs: LogDatasets::empty(),
            datasets: FxHashMap::default(),
            // A writer that died may have made anchors that are not counted.
            created_dataset_count: anchors.keys().map(|number| number.saturating_add(1)).fold(counted, u64::max),
            data_end_in_file: 0,
        };
        for file in files {
            log.add_file(&**file, &anchors, limit)?;
        }
        Ok(log)
    }

    fn add_file(
        &mut self,
        file: &dyn Store,
        anchors: &FxHashMap<u64, DatasetSpec>,
        limit: AllocationLimit,
    ) -> Result<()> {
        // What is not counted was not published.
        let counters =
            LogVolRootAttribute::read(file)?.ok_or_else(|| LogError::MissingPart("counters in a file".to_owned()))?;
        if counters.data_log_count == 0 && counters.metadata_log_count == 0 {
            return Ok(());
        }
        let group = existing_log_group(file)?;
        let mut places = Vec::new();
        for number in 0..counters.data_log_count {
            let place = self.data_logs.add_full_dataset(file, member(file, group, "ld", number)?)?;
            self.data_end_in_file = self.data_end_in_file.max(place.file_end);
            places.push(place);
        }
        places.sort_unstable_by_key(|place| place.file_start);
        for number in 0..counters.metadata_log_count {
            let chunks = file.dataset(member(file, group, "md", number)?)?;
            let Some(chunk) = chunks.locate(&ChunkCoord::origin(1))? else { continue };
            let mut bytes = limit.zeroed(chunk.size)?;
            chunks.read(&chunk, 0, &mut bytes)?;
            let rank = |dataset: u64| anchors.get(&dataset).map(|spec| spec.dataspace.rank());
            let entries = decode_entries(&bytes, rank).map_err(|(at, source)| {
                let at = LogPosition::new(0, at.min(LogPosition::MAX_LOG_BYTES - 1));
                LogError::DamagedEntry { at, source }
            })?;
            entries.iter().try_for_each(|entry| self.add_entry(entry, &places, anchors))?;
        }
        Ok(())
    }

    /// Puts an entry into the index. Its data is in a data log of `places`, which are in the order of the file.
    fn add_entry(
        &mut self,
        entry: &LogVolEntry,
        places: &[DataLogPlace],
        anchors: &FxHashMap<u64, DatasetSpec>,
    ) -> Result<()> {
        let LogVolEntry { dataset, file_offset: offset, data_len, .. } = *entry;
        let misfit = |rule| LogError::EntryDatasetMismatch { dataset, rule };
        let before = places.partition_point(|place| place.file_start <= offset).checked_sub(1);
        let place = before
            .map(|number| places[number])
            .filter(|place| offset.checked_add(data_len).is_some_and(|end| end <= place.file_end));
        let place = place.ok_or_else(|| misfit("leads outside of the log"))?;
        let at = place.log_start + (offset - place.file_start);
        let spec = anchors.get(&dataset).ok_or_else(|| misfit("leads to no anchor"))?;
        let size = u64::from(spec.datatype.size());
        let bytes = |count: &DimVec| count.iter().try_fold(size, |n, side| n.checked_mul(*side));
        let all = entry.blocks.iter().try_fold(0u64, |sum, (_, count)| sum.checked_add(bytes(count)?));
        let all = all.ok_or_else(|| misfit("has too many elements"))?;
        // Nothing but the number of bytes tells that data went through deflate.
        let filter = if all == data_len { 0 } else { DEFLATE };
        if filter != 0 && entry.blocks.len() != 1 {
            return Err(misfit("has deflated data of several blocks").into());
        }
        let index = self.datasets.entry(dataset).or_insert_with(|| EntryBoxIndex::new(spec.dataspace.rank()));
        let mut at = at;
        for (start, count) in &entry.blocks {
            let len = if filter == 0 { bytes(count).unwrap_or(0) } else { data_len };
            let change = EntryChange::Block { start: start.clone(), count: count.clone() };
            let head =
                EntryHead { batch_number: 0, file: 0, dataset, change, filter_id: filter, data_len: len, data_crc: 0 };
            let at_position = LogPosition::new(0, at.min(LogPosition::MAX_LOG_BYTES - 1));
            index.push_without_checksum(&IndexTableRow { head, batch_order: 0, data_at: at_position });
            at += len;
        }
        Ok(())
    }
}

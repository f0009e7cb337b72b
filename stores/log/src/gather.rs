//! Reading: elements of a box are brought together from the entries that have them.

use h5live_model::{AllocationLimit, DatasetSpec, Error, FilterEngine, FilterSpec};

use crate::boxes::BoxRange;
use crate::copies::CopyQueue;
use crate::coverage::is_provably_covered;
use crate::entry::{DimVec, EntryChange, decode_head_and_rank, points_head_bytes};
use crate::entry_box_index::{EntryBoxIndex, EntryDataLocation, EntrySelectionKind, FoundChange, FoundEntry};
use crate::error::{LogError, Result, with_subfile_number};
use crate::log_bytes::{ChecksummedRange, LogSource};
use crate::log_state::LogState;
use crate::parallel::available_threads;
use crate::position::LogPosition;
use crate::strided_copy::StridedCopy;
use crate::verify::verify_all;

/// The parts of fewer entries are read by calls: what is copied from memory is followed by a question for the length of
/// the file.
const MIN_MAPPED_ENTRIES: usize = 16;
/// So many bytes of data are compared with their checksums by several threads.
const MIN_PARALLEL_BYTES: u64 = 256 << 10;
/// With fewer boxes, it is soon seen whether they cover what is read.
const MIN_COVERING_BOXES: usize = 64;

/// The checksum of the data of an entry, if it has one.
fn checksum_of(place: &EntryDataLocation) -> Option<ChecksummedRange> {
    place.crc.map(|crc| ChecksummedRange { position_bits: place.at.to_bits(), len: place.len, crc })
}

/// Brings boxes together, which follow each other in `into`. Several threads work on large ones.
///
/// # Errors
/// As [`Gatherer::gather`].
pub fn gather_boxes(
    gatherer: &Gatherer<'_>,
    index: &EntryBoxIndex,
    boxes: impl Iterator<Item = (DimVec, DimVec)>,
    into: &mut [u8],
) -> Result<()> {
    let mut rest = into;
    for (start, end) in boxes {
        let wanted = BoxRange { start: &start, end: &end };
        let bytes = wanted.element_count().unwrap_or(0) * gatherer.element_size();
        let (into, behind) = std::mem::take(&mut rest).split_at_mut(bytes as usize);
        rest = behind;
        gatherer.gather(index, &wanted, into)?;
    }
    Ok(())
}

/// Brings elements of one dataset together.
pub struct Gatherer<'a> {
    /// The log.
    pub state: &'a LogState,
    /// The number of the dataset.
    pub dataset: u64,
    /// What it is like.
    pub spec: &'a DatasetSpec,
    /// What undoes the filters of entries.
    pub filter_engine: &'a dyn FilterEngine,
    /// Most bytes that are allocated for an entry that is decoded as a whole.
    pub limit: AllocationLimit,
}

impl Gatherer<'_> {
    /// Reads the elements of a box, row-major. What nobody wrote is the fill value.
    ///
    /// # Errors
    /// If the log is damaged; errors of the store beneath.
    pub fn gather(&self, index: &EntryBoxIndex, wanted: &BoxRange<'_>, into: &mut [u8]) -> Result<()> {
        let found = index.find_changes(wanted.start, wanted.end);
        // What came before an entry that has all of the box does not count.
        let whole = found.iter().rposition(|change| change.written_block().is_some_and(|block| block.contains(wanted)));
        let found = &found[whole.unwrap_or(0)..];
        if whole.is_none() {
            let is_shrunk = |change: &FoundChange<'_>| matches!(change, FoundChange::ShrunkTo(_));
            let first = found.iter().rposition(is_shrunk).map_or(0, |shrunk| shrunk + 1);
            let blocks: Vec<_> = found[first..].iter().filter_map(FoundChange::written_block).collect();
            if !self.is_dataset_covered(index, blocks.len()) && !is_provably_covered(wanted, &blocks, into.len()) {
                self.spec.fill_into(0, into);
            }
        }
        self.verify_parts(found, wanted)?;
        let mut queue = CopyQueue::new(self, into, available_threads());
        queue.set_copy_from_mmap(found.len() >= MIN_MAPPED_ENTRIES);
        for change in found {
            match change {
                FoundChange::Written(entry) => match entry.place.kind {
                    EntrySelectionKind::Points(count) => {
                        self.copy_points(entry, count, wanted, queue.flush_and_get_buffer()?)?
                    }
                    EntrySelectionKind::Block => self.copy_block(entry, wanted, &mut queue)?,
                },
                FoundChange::ShrunkTo(dims) => self.fill_outside(dims, wanted, queue.flush_and_get_buffer()?),
            }
        }
        queue.flush()
    }

    /// Compares the data of entries with its checksum of which only a part is read, once for each entry.
    fn verify_parts(&self, found: &[FoundChange<'_>], wanted: &BoxRange<'_>) -> Result<()> {
        let is_part = |entry: &&FoundEntry<'_>| {
            let is_plain = entry.place.kind == EntrySelectionKind::Block && entry.place.filter_id == 0;
            is_plain && entry.needs_verification() && !wanted.contains(&entry.bounding_box())
        };
        let written = found.iter().filter_map(|change| match change {
            FoundChange::Written(entry) => Some(entry),
            FoundChange::ShrunkTo(_) => None,
        });
        let parts: Vec<_> = written.filter(is_part).collect();
        let bytes = parts.iter().fold(0u64, |bytes, entry| bytes.saturating_add(entry.place.len));
        let check = |entry: &&FoundEntry<'_>| match self.has_bytes_of_box(entry) {
            true => Ok(checksum_of(&entry.place)),
            false => Err(self.invalid_entry_error(entry.place.at, "has another number of bytes than its box")),
        };
        let checks = parts.iter().map(check).collect::<Result<Vec<_>>>()?;
        let threads = if bytes < MIN_PARALLEL_BYTES { 1 } else { available_threads() };
        verify_all(self, &mut checks.into_iter().flatten().collect::<Vec<_>>(), threads)?;
        parts.iter().for_each(|entry| entry.mark_verified());
        Ok(())
    }

    /// Whether an entry without a filter has the bytes of its elements, and the log has room for them.
    fn has_bytes_of_box(&self, entry: &FoundEntry<'_>) -> bool {
        let bytes = entry.bounding_box().element_count().and_then(|elements| elements.checked_mul(self.element_size()));
        bytes == Some(entry.place.len) && entry.place.at.has_room_for(entry.place.len)
    }

    /// Whether entries cover all of the dataset. That is looked at for those who read many of them, as they may again.
    fn is_dataset_covered(&self, index: &EntryBoxIndex, found: usize) -> bool {
        let extent = self.spec.dataspace.dims();
        let bytes = extent.iter().fold(self.element_size(), |bytes, dim| bytes.saturating_mul(*dim));
        found >= MIN_COVERING_BOXES
            && found >= index.data_entry_count() / 2
            && index.provably_covers(extent, usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Bytes of an element.
    pub fn element_size(&self) -> u64 {
        u64::from(self.spec.datatype.size())
    }

    /// The error of an entry whose data is at a position.
    pub fn invalid_entry_error(&self, at: LogPosition, rule: &'static str) -> Error {
        with_subfile_number(at.file(), LogError::EntryDatasetMismatch { dataset: self.dataset, rule }.into())
    }

    /// Has what an entry has of a box be copied.
    fn copy_block(&self, entry: &FoundEntry<'_>, wanted: &BoxRange<'_>, queue: &mut CopyQueue<'_, Self>) -> Result<()> {
        let (size, place, has) = (self.element_size(), entry.place, entry.bounding_box());
        let Some(shared) = has.intersection(wanted) else { return Ok(()) };
        let bytes = has.element_count().and_then(|elements| elements.checked_mul(size));
        let runs_from = |begin: u64| {
            shared.strided_runs().map(move |(run, count, (from_stride, to_stride))| StridedCopy {
                from: begin + run.offset_in_first * size,
                from_stride: from_stride * size,
                to: run.offset_in_second * size,
                to_stride: to_stride * size,
                run_len: run.len * size,
                count,
            })
        };
        if place.filter_id != 0 {
            let bytes = bytes.ok_or_else(|| self.invalid_entry_error(place.at, "has too many elements"))?;
            return queue.push_encoded_entry(place, self.limit.check(bytes)?, runs_from(0));
        }
        if !self.has_bytes_of_box(entry) {
            return Err(self.invalid_entry_error(place.at, "has another number of bytes than its box"));
        }
        // What is read in part was compared before.
        let check = checksum_of(&place).filter(|_| wanted.contains(&has));
        queue.push_plain_entry(runs_from(place.at.to_bits()), check)
    }

    /// Checks the data of an entry, if these bytes are all of it.
    fn check_if_whole(&self, place: &EntryDataLocation, bytes: &[u8]) -> Result<()> {
        match place.crc {
            Some(crc) if bytes.len() as u64 == place.len && crc32c::crc32c(bytes) != crc => {
                Err(self.checksum_error(place.at.to_bits()))
            }
            _ => Ok(()),
        }
    }

    /// The data of an entry, before the filter.
    fn decode(&self, place: &EntryDataLocation, bytes: u64) -> Result<Vec<u8>> {
        let mut stored = self.limit.zeroed(place.len)?;
        self.limit.check(bytes)?;
        self.state.read(place.at, &mut stored)?;
        self.check_if_whole(place, &stored)?;
        let failed = |source| LogError::DecodeEntry { at: place.at, source };
        let id =
            u16::try_from(place.filter_id).map_err(|_| self.invalid_entry_error(place.at, "has an unknown filter"))?;
        let filter = FilterSpec { id, ..FilterSpec::default() };
        Ok(self.filter_engine.unfilter(&[filter], 0, stored, bytes).map_err(failed)?)
    }

    /// Copies the points of an entry that lie in a box.
    fn copy_points(&self, entry: &FoundEntry<'_>, count: u64, wanted: &BoxRange<'_>, into: &mut [u8]) -> Result<()> {
        let (size, place, rank) = (self.element_size(), entry.place, wanted.start.len());
        let coords = self.read_coords(&place, count, rank)?;
        let bytes = count.saturating_mul(size);
        let data = match place.filter_id {
            0 if bytes != place.len => {
                return Err(self.invalid_entry_error(place.at, "has another number of bytes than its points"));
            }
            0 => {
                let mut data = self.limit.zeroed(bytes)?;
                self.state.read(place.at, &mut data)?;
                self.check_if_whole(&place, &data)?;
                data
            }
            _ => self.decode(&place, bytes)?,
        };
        let points = coords.chunks_exact(rank.max(1)).zip(data.chunks_exact(size.max(1) as usize));
        let sides: Vec<_> =
            wanted.start.iter().zip(wanted.end).zip(wanted.strides()).map(|((a, b), n)| (*a..*b, n)).collect();
        for (point, element) in points {
            let place = point.iter().zip(&sides).try_fold(0, |place, (at, (side, stride))| {
                side.contains(at).then(|| place + (at - side.start) * stride)
            });
            if let Some(place) = place {
                into[(place * size) as usize..][..element.len()].copy_from_slice(element);
            }
        }
        Ok(())
    }

    /// The coordinates of the points of an entry, which are in its head. It is compared with what the index has.
    pub fn read_coords(&self, place: &EntryDataLocation, count: u64, rank: usize) -> Result<Vec<u64>> {
        let len = points_head_bytes(count, rank);
        let begin =
            place.at.checked_sub(len).ok_or_else(|| self.invalid_entry_error(place.at, "has too many points"))?;
        let mut bytes = self.limit.zeroed(len)?;
        self.state.read(begin, &mut bytes)?;
        let (head, found) =
            decode_head_and_rank(&bytes).map_err(|source| LogError::DamagedEntry { at: begin, source })?;
        let is_same = (head.dataset, head.data_len, Some(head.data_crc)) == (self.dataset, place.len, place.crc);
        match head.change {
            EntryChange::PointCoords(coords) if is_same && found == rank => Ok(coords),
            _ => Err(self.invalid_entry_error(place.at, "is not the one that the index table has")),
        }
    }

    /// Makes everything of a box that is outside of an extent the fill value.
    fn fill_outside(&self, dims: &[u64], wanted: &BoxRange<'_>, into: &mut [u8]) {
        let size = self.element_size();
        for dim in 0..dims.len() {
            let mut start = DimVec::from_slice(wanted.start);
            start[dim] = start[dim].max(dims[dim]);
            if start[dim] >= wanted.end[dim] {
                continue;
            }
            if let Some(shared) = (BoxRange { start: &start, end: wanted.end }).intersection(wanted) {
                shared.for_each_run(|run| {
                    let part =
                        (run.offset_in_second * size) as usize..((run.offset_in_second + run.len) * size) as usize;
                    self.spec.fill_into(0, &mut into[part]);
                });
            }
        }
    }
}

impl LogSource for Gatherer<'_> {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.state.read(LogPosition::from_bits(at), into)
    }

    fn read_decoded(&self, data: &EntryDataLocation, into: &mut [u8]) -> Result<()> {
        let decoded = Gatherer::decode(self, data, into.len() as u64)?;
        if decoded.len() != into.len() {
            return Err(self.invalid_entry_error(data.at, "has another number of bytes than its box"));
        }
        into.copy_from_slice(&decoded);
        Ok(())
    }

    fn try_map(&self, at: u64, len: u64) -> bool {
        self.state.try_map(LogPosition::from_bits(at), len)
    }

    fn copy_mapped(&self, at: u64, into: &mut [u8]) -> bool {
        self.state.copy_mapped(LogPosition::from_bits(at), into)
    }

    fn check_or_disable_mappings(&self) -> bool {
        self.state.is_mapping_intact()
    }

    fn contiguous_bytes_at(&self, at: u64) -> u64 {
        self.state.contiguous_bytes_at(LogPosition::from_bits(at))
    }

    fn checksum_error(&self, at: u64) -> Error {
        self.invalid_entry_error(LogPosition::from_bits(at), "has data with another checksum")
    }
}

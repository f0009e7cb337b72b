//! Reading: elements of a box are brought together from the entries that have them.

use h5live_model::{AllocationLimit, DatasetSpec, FilterSpec, Unfilter};

use crate::boxes::BoxRange;
use crate::entry::Dims;
use crate::entry_index::{DataKind, DataPlace, EntryIndex, FoundChange, FoundEntry};
use crate::error::{LogError, Result};
use crate::log_state::LogState;

/// Bytes of an entry that are read at once though not all of them are wanted.
const MAX_SPAN_BYTES: u64 = 1 << 20;
/// Bytes between the coordinates of points and their data: byte order and filter.
const FIELDS_BEFORE_DATA: u64 = 8;

/// Brings elements of one dataset together.
pub struct Gatherer<'a> {
    /// The log.
    pub state: &'a LogState,
    /// The number of the dataset.
    pub dataset: u64,
    /// What it is like.
    pub spec: &'a DatasetSpec,
    /// What undoes the filters of entries.
    pub unfilter: &'a dyn Unfilter,
    /// Most bytes that are allocated for an entry that is decoded as a whole.
    pub limit: AllocationLimit,
}

impl Gatherer<'_> {
    /// Reads the elements of a box, row-major. What nobody wrote is the fill value.
    ///
    /// # Errors
    /// If the log is damaged; errors of the store beneath.
    pub fn gather(&self, index: &EntryIndex, wanted: &BoxRange<'_>, into: &mut [u8]) -> Result<()> {
        self.spec.fill_into(0, into);
        for change in index.find(wanted.start, wanted.end) {
            match change {
                FoundChange::Written(entry) => match entry.place.kind {
                    DataKind::Points(count) => self.copy_points(&entry, count, wanted, into)?,
                    DataKind::Block => self.copy_block(&entry, wanted, into)?,
                },
                FoundChange::Shrunk(dims) => self.fill_outside(dims, wanted, into),
            }
        }
        Ok(())
    }

    fn size(&self) -> u64 {
        u64::from(self.spec.datatype.size())
    }

    fn misfit(&self, rule: &'static str) -> LogError {
        LogError::Misfit { dataset: self.dataset, rule }
    }

    /// Copies what an entry has of a box.
    fn copy_block(&self, entry: &FoundEntry<'_>, wanted: &BoxRange<'_>, into: &mut [u8]) -> Result<()> {
        let has = BoxRange { start: entry.start, end: entry.end };
        let (size, place) = (self.size(), entry.place);
        let bytes = has.elements().and_then(|elements| elements.checked_mul(size));
        if place.filter == 0 && bytes != Some(place.len) {
            return Err(self.misfit("has another number of bytes than its box").into());
        }
        let decoded = match place.filter {
            0 => None,
            _ => Some(self.decode(&place, bytes.ok_or_else(|| self.misfit("has too many elements"))?)?),
        };
        let mut runs = Runs { first: u64::MAX, end: 0, count: 0 };
        has.for_each_shared(wanted, |run| runs.add(run.first, run.len));
        let span = runs.first.saturating_mul(size)..runs.end.saturating_mul(size);
        let mut result = Ok(());
        let mut window = Vec::new();
        let source = match &decoded {
            Some(bytes) => Some((&bytes[..], 0)),
            None if runs.count > 1 && span.end - span.start <= MAX_SPAN_BYTES => {
                window.resize((span.end - span.start) as usize, 0);
                self.state.read(place.at + span.start, &mut window)?;
                self.check_if_whole(&place, &window)?;
                Some((&window[..], span.start))
            }
            None => None,
        };
        has.for_each_shared(wanted, |run| {
            let to = &mut into[(run.second * size) as usize..((run.second + run.len) * size) as usize];
            let at = run.first * size;
            match source {
                Some((bytes, first)) => to.copy_from_slice(&bytes[(at - first) as usize..][..to.len()]),
                None if result.is_ok() => {
                    result = self.state.read(place.at + at, to);
                    result = std::mem::replace(&mut result, Ok(())).and_then(|()| self.check_if_whole(&place, to));
                }
                None => {}
            }
        });
        result
    }

    /// Checks the data of an entry, if these bytes are all of it.
    fn check_if_whole(&self, place: &DataPlace, bytes: &[u8]) -> Result<()> {
        match place.crc {
            Some(crc) if bytes.len() as u64 == place.len && crc32c::crc32c(bytes) != crc => {
                Err(self.misfit("has data with another checksum").into())
            }
            _ => Ok(()),
        }
    }

    /// The data of an entry, before the filter.
    fn decode(&self, place: &DataPlace, bytes: u64) -> Result<Vec<u8>> {
        let mut stored = self.limit.zeroed(place.len)?;
        self.limit.check(bytes)?;
        self.state.read(place.at, &mut stored)?;
        self.check_if_whole(place, &stored)?;
        let failed = |source| LogError::Filter { at: place.at, source };
        let id = u16::try_from(place.filter).map_err(|_| self.misfit("has an unknown filter"))?;
        let filter = FilterSpec { id, ..FilterSpec::default() };
        Ok(self.unfilter.unfilter(&[filter], 0, stored, bytes).map_err(failed)?)
    }

    /// Copies the points of an entry that lie in a box.
    fn copy_points(&self, entry: &FoundEntry<'_>, count: u64, wanted: &BoxRange<'_>, into: &mut [u8]) -> Result<()> {
        let (size, place, rank) = (self.size(), entry.place, wanted.start.len());
        let coords_len = count.saturating_mul(8 * rank as u64);
        let begin = place.at.checked_sub(coords_len.saturating_add(FIELDS_BEFORE_DATA));
        let begin = begin.ok_or_else(|| self.misfit("has too many points"))?;
        let mut coords = self.limit.zeroed(coords_len)?;
        self.state.read(begin, &mut coords)?;
        let bytes = count.saturating_mul(size);
        let data = match place.filter {
            0 if bytes != place.len => return Err(self.misfit("has another number of bytes than its points").into()),
            0 => {
                let mut data = self.limit.zeroed(bytes)?;
                self.state.read(place.at, &mut data)?;
                self.check_if_whole(&place, &data)?;
                data
            }
            _ => self.decode(&place, bytes)?,
        };
        let points = coords.chunks_exact(8 * rank.max(1)).zip(data.chunks_exact(size.max(1) as usize));
        for (point, element) in points {
            let at: Dims = point.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
            let end: Dims = at.iter().map(|at| at.saturating_add(1)).collect();
            BoxRange { start: &at, end: &end }.for_each_shared(wanted, |run| {
                into[(run.second * size) as usize..((run.second + 1) * size) as usize].copy_from_slice(element);
            });
        }
        Ok(())
    }

    /// Makes everything of a box that is outside of an extent the fill value.
    fn fill_outside(&self, dims: &[u64], wanted: &BoxRange<'_>, into: &mut [u8]) {
        let size = self.size();
        for dim in 0..dims.len() {
            let mut start = Dims::from_slice(wanted.start);
            start[dim] = start[dim].max(dims[dim]);
            if start[dim] >= wanted.end[dim] {
                continue;
            }
            BoxRange { start: &start, end: wanted.end }.for_each_shared(wanted, |run| {
                let part = (run.second * size) as usize..((run.second + run.len) * size) as usize;
                self.spec.fill_into(0, &mut into[part]);
            });
        }
    }
}

/// The runs that are wanted of an entry: where the first one begins, and the last one ends.
struct Runs {
    first: u64,
    end: u64,
    count: u64,
}

impl Runs {
    fn add(&mut self, at: u64, len: u64) {
        self.first = self.first.min(at);
        self.end = self.end.max(at + len);
        self.count += 1;
    }
}

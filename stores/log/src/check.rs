//! The check of a log: whether its entries, its index table and its anchors make sense together, and are there.
//!
//! The whole log is read. What the index table has is compared with it.

use std::error::Error as StdError;
use std::sync::Arc;

use h5live_model::{
    AllocationLimit, FilterEngine, FilterSpec, LinkTarget, Name, ObjectId, ObjectKind, ObjectScope, Store,
    StoreCheckReport, StoreFinding, is_unfilter_limitation,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::anchor::AnchorDataset;
use crate::blobs::check_blobs;
use crate::boxes::BoxRange;
use crate::entry::{EntryChange, EntryError};
use crate::entry_box_index::{EntryDataLocation, EntrySelectionKind};
use crate::error::{LogError, Result, with_subfile_number};
use crate::index_table::{IndexTableRow, SavedIndexTable};
use crate::layout::LogLayout;
use crate::log_file::{LogFile, log_group_attribute};
use crate::multi_writer_files::MultiWriterFiles;
use crate::names;
use crate::position::LogPosition;
use crate::session::LogSession;
use crate::subfile_opener::{SubfileOpener, subfile_count};

/// Bytes of data that are read at once.
const PIECE_BYTES: u64 = 1 << 20;

/// Something that is wrong with a log whose structures can all be read.
#[derive(Debug, thiserror::Error)]
enum LogFault {
    #[error("it is dataset {number} of the log, of which {count} were made")]
    AnchorNumber { number: u64, count: u64 },
    #[error("it is dataset {number} of the log, and so is {other}")]
    SharedNumber { number: u64, other: String },
    #[error("the entry of the log with data at byte {at} is of dataset {number}, and {count} were made")]
    EntryNumber { at: LogPosition, number: u64, count: u64 },
    #[error("the entry of the log with data at byte {at} has {found} dimensions, and the dataset {rank}")]
    Rank { at: LogPosition, found: usize, rank: usize },
    #[error("the entry of the log with data at byte {at} has {found} bytes of data, and its elements take {expected}")]
    DataBytes { at: LogPosition, found: u64, expected: u64 },
    #[error(
        "the index table of {of} does not have the entries of dataset {number} that the log has; `h5live log rebuild` \
         makes it anew"
    )]
    Table { of: String, number: u64 },
}

/// How a log is checked.
pub struct LogCheck<'a> {
    /// What undoes the filters of entries, if their data is to be read.
    pub check_data_with: Option<&'a dyn FilterEngine>,
    /// Whether nobody writes meanwhile. Otherwise the index table may just be made anew.
    pub is_at_rest: bool,
    /// Most bytes that are allocated at once for what the log states.
    pub limit: AllocationLimit,
}

/// The entries of datasets, by the numbers of these: the dimensions, and the rest of each.
type ScannedEntries = FxHashMap<u64, Vec<(usize, IndexTableRow)>>;

/// Why something is a finding.
type Cause = Box<dyn StdError + Send + Sync>;
/// What came of checking something.
type Checked<T> = std::result::Result<T, Cause>;

/// An anchor, and where it is.
struct FoundAnchor {
    path: String,
    id: ObjectId,
    anchor: AnchorDataset,
}

/// A finding of the log as a whole.
pub fn log_finding(kind: &'static str, cause: impl Into<Cause>) -> StoreFinding {
    StoreFinding { object: None, path: None, kind, cause: cause.into() }
}

/// A finding of a dataset, if its anchor is known.
fn finding_of(anchor: Option<&FoundAnchor>, kind: &'static str, cause: Cause) -> StoreFinding {
    let (object, path) = (anchor.map(|found| found.id), anchor.map(|found| found.path.clone()));
    StoreFinding { object, path, kind, cause }
}

impl LogCheck<'_> {
    /// Checks a log in the layout of this program: of a main file, and its subfiles. `log_group` is the group of the log.
    pub fn run_h5live(
        &self,
        main: Arc<dyn Store>,
        files: &dyn MultiWriterFiles,
        log_group: ObjectId,
    ) -> StoreCheckReport {
        let mut report = StoreCheckReport::default();
        let mut scanned = Vec::new();
        for mut file in self.open_files(&main, files, log_group, &mut report) {
            let mut entries = ScannedEntries::default();
            let read = self.scan(&mut file, &mut entries, &mut report);
            report.findings.extend(read.err().map(|error| log_finding("log", error)));
            scanned.push((file, entries));
        }
        let anchors = find_anchors(&*main, LogLayout::H5live, &mut report);
        // Entries and anchors are of datasets that were counted before.
        let refreshed = main.refresh(ObjectScope::All);
        let count = refreshed.and_then(|()| log_group_attribute(&*main, log_group, names::CREATED_DATASET_COUNT));
        // A subfile by itself does not know how many datasets there are.
        let is_subfile = scanned.iter().any(|(file, _)| file.is_subfile_opened_as_main());
        let count = count.map(|count| if is_subfile { u64::MAX } else { count }).unwrap_or_else(|error| {
            report.findings.push(log_finding("log", error));
            u64::MAX
        });
        let by_number = check_anchors(&anchors, count, &mut report);
        let store_of = |number| scanned.iter().find(|(file, _)| file.number == number).map(|(file, _)| &*file.store);
        for (file, entries) in &scanned {
            for (rank, row) in entries.values().flatten() {
                if report.has_max_findings() {
                    return report;
                }
                let anchor = by_number.get(&row.head.dataset).copied();
                let read = |at: LogPosition, into: &mut [u8]| file.read(at.offset(), into);
                let place = EntryDataLocation {
                    at: row.data_at,
                    len: row.head.data_len,
                    filter_id: row.head.filter_id,
                    crc: Some(row.head.data_crc),
                    kind: EntrySelectionKind::Block,
                };
                let checked = check_entry(*rank, row, anchor, count);
                let checked = checked.and_then(|decoded| {
                    let found = anchor.filter(|found| found.anchor.spec.datatype.has_vlen());
                    let elements = self.check_data(&read, &place, (decoded, found.is_some()), &mut report)?;
                    let (Some(mut elements), Some(found)) = (elements, found) else { return Ok(()) };
                    Ok(check_blobs(&store_of, &found.anchor.spec.datatype, &mut elements)?)
                });
                report.findings.extend(checked.err().map(|cause| finding_of(anchor, "entry", cause)));
            }
        }
        report
    }

    /// Checks a log in Log VOL's layout, whose entries were read when it was opened.
    pub fn run_log_vol(&self, session: &LogSession) -> StoreCheckReport {
        let mut report = StoreCheckReport::default();
        let anchors = find_anchors(&*session.inner, LogLayout::LogVol, &mut report);
        let by_number = check_anchors(&anchors, session.created_dataset_count(), &mut report);
        let state = session.state();
        report.raw_bytes = state.data_bytes_outside_tables();
        let read = |at: LogPosition, into: &mut [u8]| state.read(at, into);
        for (number, found) in by_number {
            let Some(dataset) = state.dataset(number) else { continue };
            let size = u64::from(found.anchor.spec.datatype.size());
            dataset.index.for_each_data_entry(|start, end, place| {
                let elements = BoxRange { start, end }.element_count().unwrap_or(u64::MAX);
                let checked = self.check_data(&read, place, (Some(elements.saturating_mul(size)), false), &mut report);
                // Its datasets have no variable-length elements.
                report.findings.extend(checked.err().map(|cause| finding_of(Some(found), "entry", cause)));
                !report.has_max_findings()
            });
        }
        report
    }

    /// The files that have logs: the main file, and its subfiles. What cannot be opened is a finding.
    fn open_files(
        &self,
        main: &Arc<dyn Store>,
        files: &dyn MultiWriterFiles,
        group: ObjectId,
        report: &mut StoreCheckReport,
    ) -> Vec<LogFile> {
        let mode = main.session().mode;
        let subfiles = SubfileOpener { files: Some(files), mode, reads_table: false, own_file: None };
        let count = subfile_count(&**main, group).unwrap_or_else(|error| {
            report.findings.push(log_finding("log", error));
            0
        });
        let mut opened = Vec::new();
        for number in 0..=count {
            if report.has_max_findings() {
                break;
            }
            let (kind, file) = match number {
                0 => ("log", LogFile::open(0, main.clone(), group, false, self.limit)),
                _ => ("subfile", subfiles.open_numbered(&**main, group, (number, count), self.limit)),
            };
            match file {
                Ok(file) => opened.push(file),
                Err(error) => report.findings.push(log_finding(kind, error)),
            }
        }
        opened
    }

    /// Reads all entries of a file, and compares the index table with them.
    fn scan(&self, file: &mut LogFile, entries: &mut ScannedEntries, report: &mut StoreCheckReport) -> Result<()> {
        file.read_new_batches(self.limit, |batch| {
            for entry in batch.ranks_and_entries {
                let head = &entry.1.head;
                report.metadata_bytes = report.metadata_bytes.saturating_add(head.lengths().head_len as u64);
                report.raw_bytes = report.raw_bytes.saturating_add(head.data_len);
                entries.entry(head.dataset).or_default().push(entry);
            }
            Ok(())
        })?;
        match self.is_at_rest {
            true => self.compare_table(file, entries, report).map_err(|error| with_subfile_number(file.number, error)),
            false => Ok(()),
        }
    }

    /// Compares the index table of a file with the entries that its log has.
    fn compare_table(&self, file: &LogFile, entries: &ScannedEntries, report: &mut StoreCheckReport) -> Result<()> {
        let Some(saved) = SavedIndexTable::open(&*file.store, file.log_group, self.limit)? else { return Ok(()) };
        let position = |place| file.log.log_offset_of(place).map(|offset| file.position(offset));
        let mut numbers: Vec<u64> = (0..saved.dataset_count()).collect();
        numbers.extend(entries.keys().filter(|number| **number >= saved.dataset_count()));
        for number in numbers {
            let in_log = entries.get(&number).into_iter().flatten();
            let mut in_log = in_log.filter(|(_, row)| row.data_at.offset() < saved.indexed_bytes);
            let mut is_same = true;
            saved.for_each_rank_and_row(number, position, &mut |rank, row| {
                is_same &= in_log.next().is_some_and(|known| *known == (rank, row));
                Ok(())
            })?;
            if !is_same || in_log.next().is_some() {
                let of = if file.number == 0 { "the log".to_owned() } else { format!("subfile {}", file.number) };
                report.findings.push(log_finding("table", LogFault::Table { of, number }));
            }
        }
        Ok(())
    }

    /// Reads the data of an entry if that is wanted, compares its checksum, and undoes its filter. It has `decoded` bytes
    /// then; `None` if its dataset was deleted. They are returned if that `is_wanted`, or a filter was undone.
    fn check_data(
        &self,
        read: &dyn Fn(LogPosition, &mut [u8]) -> Result<()>,
        place: &EntryDataLocation,
        (decoded, is_wanted): (Option<u64>, bool),
        report: &mut StoreCheckReport,
    ) -> Checked<Option<Vec<u8>>> {
        let Some(unfilter) = self.check_data_with else { return Ok(None) };
        let EntryDataLocation { at, len, filter_id: filter, crc, .. } = *place;
        let (mut found, mut piece) = (0, vec![0; PIECE_BYTES.min(len) as usize]);
        for done in (0..len).step_by(PIECE_BYTES as usize) {
            let piece = &mut piece[..PIECE_BYTES.min(len - done) as usize];
            read(at + done, piece)?;
            found = crc32c::crc32c_append(found, piece);
        }
        if crc.is_some_and(|crc| crc != found) {
            return Err(LogError::DamagedEntry { at, source: EntryError::DataChecksum }.into());
        }
        let Some(expected) = decoded.filter(|_| is_wanted || filter > 0) else { return Ok(None) };
        self.limit.check(expected)?;
        let mut bytes = self.limit.zeroed(len)?;
        read(at, &mut bytes)?;
        if filter <= 0 {
            return Ok(Some(bytes));
        }
        let filter = FilterSpec { id: u16::try_from(filter).unwrap_or(u16::MAX), ..FilterSpec::default() };
        match unfilter.unfilter(&[filter], 0, bytes, expected) {
            Ok(elements) if elements.len() as u64 == expected => Ok(Some(elements)),
            Ok(elements) => Err(LogFault::DataBytes { at, found: elements.len() as u64, expected }.into()),
            Err(error) if is_unfilter_limitation(&*error) => {
                report.unverified_part_count += 1;
                Ok(None)
            }
            Err(source) => Err(LogError::DecodeEntry { at, source }.into()),
        }
    }
}

/// Checks an entry against what is known of its dataset. Returns the bytes of its elements; `None` if it has none, or the
/// dataset was deleted.
fn check_entry(found: usize, row: &IndexTableRow, anchor: Option<&FoundAnchor>, count: u64) -> Checked<Option<u64>> {
    let IndexTableRow { head, data_at: at, .. } = row;
    let at = *at;
    if head.dataset >= count {
        return Err(LogFault::EntryNumber { at, number: head.dataset, count }.into());
    }
    let Some(FoundAnchor { anchor, .. }) = anchor else { return Ok(None) };
    let rank = anchor.spec.dataspace.rank();
    if found != rank {
        return Err(LogFault::Rank { at, found, rank }.into());
    }
    let elements = match &head.change {
        EntryChange::Block { count, .. } => count.iter().fold(1u64, |n, side| n.saturating_mul(*side)),
        EntryChange::PointCoords(coords) => (coords.len() / rank.max(1)) as u64,
        EntryChange::GrowToAtLeast(_) | EntryChange::ShrinkTo(_) | EntryChange::EndOfBatch { .. } => return Ok(None),
    };
    let expected = elements.saturating_mul(anchor.spec.datatype.size().into());
    match head.filter_id == 0 && head.data_len != expected {
        true => Err(LogFault::DataBytes { at, found: head.data_len, expected }.into()),
        false => Ok(Some(expected)),
    }
}

/// Checks the numbers of anchors. Returns which one has which.
fn check_anchors<'a>(
    anchors: &'a [FoundAnchor],
    count: u64,
    report: &mut StoreCheckReport,
) -> FxHashMap<u64, &'a FoundAnchor> {
    let mut by_number = FxHashMap::<u64, &FoundAnchor>::default();
    for found in anchors {
        let number = found.anchor.number;
        let known = by_number.insert(number, found);
        let fault = match known {
            Some(known) => LogFault::SharedNumber { number, other: known.path.clone() },
            None if number >= count => LogFault::AnchorNumber { number, count },
            None => continue,
        };
        report.findings.push(finding_of(Some(found), "anchor", fault.into()));
    }
    by_number
}

/// All anchors of a file to which a path leads. What cannot be read is a finding.
fn find_anchors(store: &dyn Store, layout: LogLayout, report: &mut StoreCheckReport) -> Vec<FoundAnchor> {
    let mut anchors = Vec::new();
    let root = store.session().root;
    let (mut seen, mut found) = (FxHashSet::from_iter([root]), vec![(root, "/".to_owned())]);
    while let Some((id, path)) = found.pop() {
        if report.has_max_findings() {
            break;
        }
        report.object_count += 1;
        let mut below = Vec::new();
        if let Err(error) = look_at(store, layout, (id, &path), &mut below, &mut anchors) {
            let path = Some(path);
            report.findings.push(StoreFinding { object: Some(id), path, ..log_finding("object", error) });
        }
        found.extend(below.into_iter().filter(|(id, _)| seen.insert(*id)));
    }
    anchors
}

/// Looks at one object: it is a group, from which hard links lead to those `below`, or maybe an anchor.
fn look_at(
    store: &dyn Store,
    layout: LogLayout,
    (id, path): (ObjectId, &str),
    below: &mut Vec<(ObjectId, String)>,
    anchors: &mut Vec<FoundAnchor>,
) -> Result<()> {
    let root = store.session().root;
    match store.kind(id)? {
        ObjectKind::Group => store.for_each_link(id, &mut |link| {
            let is_renamed = id == root || layout.reserves_all_underscore_names();
            let name: Option<Name> = if is_renamed { layout.user_name(&link.name) } else { Some(link.name) };
            if let (Some(name), LinkTarget::Hard(target)) = (name, link.target) {
                below.push((target, format!("{}/{name}", path.trim_end_matches('/'))));
            }
            true
        }),
        ObjectKind::Dataset => {
            let anchor = layout.read_anchor_dataset(store, id)?;
            anchors.extend(anchor.map(|anchor| FoundAnchor { path: path.to_owned(), id, anchor }));
            Ok(())
        }
        _ => Ok(()),
    }
}

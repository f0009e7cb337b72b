//! The state of a walk over a file: findings, used bytes, and structures that are not visited yet.

use std::collections::HashMap;
use std::rc::Rc;

use h5live_cache::Storage;
use h5live_format::messages::BtreeK;
use h5live_format::{
    Addr, Btree1ChunkKey, Btree1Node, DriverInfoBlock, GlobalHeapCollection, LocalHeapData, LocalHeapPrefix, Record,
    Superblock, SymbolTableNode, Widths, decode_prefix_with,
};
use h5live_model::{Datatype, is_unfilter_limitation};

use super::cause::{FileRange, FindingCause};
use super::file_bytes::FileBytes;
use super::object_table::ObjectTable;
use super::options::CheckOptions;
use super::report::{FileCheckReport, Finding};
use super::shared_index::SharedIndex;
use super::space_map::{ObjectIndex, SpaceMap, SpaceUse};
use super::visited_collections::VisitedCollections;

/// The largest structure that is read as a whole (bytes).
pub(super) const MAX_STRUCTURE_BYTES: u64 = 1 << 28;

/// Structures that have no checksum in any version. Of others, some versions have one.
const WITHOUT_CHECKSUMS: [&str; 6] = [
    Btree1Node::<Btree1ChunkKey>::NAME,
    SymbolTableNode::NAME,
    LocalHeapPrefix::NAME,
    LocalHeapData::NAME,
    GlobalHeapCollection::NAME,
    DriverInfoBlock::NAME,
];

/// Why filters were not undone.
type FilterError = Box<dyn std::error::Error + Send + Sync>;

/// A walk over a file.
pub(super) struct FileWalk<'a> {
    pub source: FileBytes<'a>,
    pub options: CheckOptions<'a>,
    pub superblock: Superblock,
    pub widths: Widths,
    pub k: BtreeK,
    /// The end of the space in use, from the base address.
    pub end: u64,
    /// Whether a writer may move the end during the check.
    pub end_may_grow: bool,
    pub space: SpaceMap,
    pub report: FileCheckReport,
    pub objects: ObjectTable,
    /// The present object.
    pub owner: ObjectIndex,
    pub shared: Vec<SharedIndex>,
    /// Attributes that are shared messages. Their own shared parts must still be counted.
    pub shared_attributes: Vec<Vec<u8>>,
    pub collections: VisitedCollections,
    pub committed: HashMap<u64, Option<Rc<Datatype>>>,
    /// Bytes of values that may still be read.
    pub values_left: u64,
    /// Whether there are values that lead elsewhere and were not looked at.
    pub unseen_values: bool,
    /// Whether something could not be followed, so that counts of references may be too low.
    pub incomplete: bool,
}

impl<'a> FileWalk<'a> {
    /// A walk over a file of which nothing is known.
    pub fn new(storage: &'a dyn Storage, options: CheckOptions<'a>) -> Self {
        FileWalk {
            source: FileBytes::new(storage, 0, 0),
            options,
            superblock: Superblock::default(),
            widths: Widths::default(),
            k: BtreeK::default(),
            end: 0,
            end_may_grow: false,
            space: SpaceMap::default(),
            report: FileCheckReport::default(),
            objects: ObjectTable::default(),
            owner: ObjectIndex::FILE,
            shared: Vec::new(),
            shared_attributes: Vec::new(),
            collections: VisitedCollections::default(),
            committed: HashMap::new(),
            values_left: options.max_total_value_bytes,
            unseen_values: false,
            incomplete: false,
        }
    }

    /// Bytes from the start of the file to an address.
    pub fn file_offset(&self, addr: Addr) -> u64 {
        self.source.base.saturating_add(addr.get().unwrap_or(0))
    }

    fn new_finding(&self, owner: ObjectIndex, structure: &'static str, offset: u64, cause: FindingCause) -> Finding {
        Finding { object_path: self.objects.path(owner), structure, offset, cause }
    }

    /// Reports a fault of a structure of the present object.
    pub fn report(&mut self, structure: &'static str, addr: Addr, cause: FindingCause) {
        self.report_for(self.owner, structure, addr, cause);
    }

    /// Reports a fault of a structure of an object.
    pub fn report_for(&mut self, owner: ObjectIndex, structure: &'static str, addr: Addr, cause: FindingCause) {
        if !self.report.has_max_findings() {
            let finding = self.new_finding(owner, structure, self.file_offset(addr), cause);
            self.report.findings.push(finding);
        }
    }

    /// Notes something unusual but allowed.
    pub fn add_note(&mut self, structure: &'static str, addr: Addr, cause: FindingCause) {
        self.add_note_for(self.owner, structure, addr, cause);
    }

    /// As [`FileWalk::add_note`], of another object.
    pub fn add_note_for(&mut self, owner: ObjectIndex, structure: &'static str, addr: Addr, cause: FindingCause) {
        if self.report.notes.len() < FileCheckReport::MAX_FINDINGS {
            let note = self.new_finding(owner, structure, self.file_offset(addr), cause);
            self.report.notes.push(note);
        }
    }

    /// Notes that something could not be verified.
    pub fn add_unverified_part(&mut self, structure: &'static str, addr: Addr, cause: FindingCause) {
        self.report.unverified_part_count += 1;
        if self.report.unverified_parts.len() < FileCheckReport::MAX_FINDINGS {
            let finding = self.new_finding(self.owner, structure, self.file_offset(addr), cause);
            self.report.unverified_parts.push(finding);
        }
    }

    /// Reports that filters cannot be undone, or notes that this is not known.
    pub fn report_or_add_unverified_part(&mut self, structure: &'static str, addr: Addr, error: &FilterError) {
        match is_unfilter_limitation(&**error) {
            true => self.add_unverified_part(structure, addr, FindingCause::CannotVerify(error.to_string())),
            false => self.report(structure, addr, FindingCause::UnfilterFailed(error.to_string())),
        }
    }

    /// Reports if two statements about a number differ.
    pub fn check_equal(&mut self, structure: &'static str, addr: Addr, what: &'static str, stated: u64, found: u64) {
        if stated != found {
            self.report(structure, addr, FindingCause::NumberMismatch { what, stated, found });
        }
    }

    /// Reports what a writer brings into order only with its last write: a note if one may be at work.
    pub fn report_or_note_if_live(
        &mut self,
        owner: ObjectIndex,
        structure: &'static str,
        addr: Addr,
        cause: FindingCause,
    ) {
        if !self.options.may_be_live {
            self.report_for(owner, structure, addr, cause);
        } else {
            self.add_note_for(owner, structure, addr, cause);
        }
    }

    /// Reports if what a structure states in sum is not what there is, unless a writer may be at work.
    pub fn check_equal_or_note_if_live(
        &mut self,
        structure: &'static str,
        addr: Addr,
        what: &'static str,
        stated: u64,
        found: u64,
    ) {
        if stated != found {
            self.report_or_note_if_live(
                self.owner,
                structure,
                addr,
                FindingCause::NumberMismatch { what, stated, found },
            );
        }
    }

    /// A range of bytes as users see it.
    pub fn to_file_range(&self, used: &SpaceUse) -> FileRange {
        FileRange {
            object_path: self.objects.path(used.owner),
            structure: self.space.structure_name(used),
            offset: self.source.base.saturating_add(used.start),
            len: used.len,
        }
    }

    /// Whether `len` bytes from `start` on reach over the end of the used space, as far as it is now.
    pub fn exceeds_refreshed_end(&mut self, start: u64, len: u64) -> bool {
        let is_beyond = |limit: u64| start.checked_add(len).is_none_or(|end| end > limit);
        if is_beyond(self.end) && self.end_may_grow {
            self.end = self.end.max(self.source.refresh_len());
        }
        is_beyond(self.end)
    }

    /// Checks that `len` bytes from an address on are inside the used space, and returns the address. Reports a fault
    /// otherwise.
    pub fn check_and_report_range(&mut self, structure: &'static str, addr: Addr, len: u64) -> Option<u64> {
        let Some(start) = addr.get() else {
            self.report(structure, addr, FindingCause::UndefinedAddr(structure));
            return None;
        };
        if self.exceeds_refreshed_end(start, len) {
            let end = self.source.base.saturating_add(self.end);
            self.report(structure, addr, FindingCause::BeyondEnd { len, end });
            return None;
        }
        Some(start)
    }

    /// Claims bytes for a structure of the present object, or reports which structure uses them.
    pub fn claim_metadata(&mut self, structure: &'static str, addr: Addr, len: u64) -> Option<u64> {
        let start = self.check_and_report_range(structure, addr, len)?;
        match self.space.claim_metadata(start, len, self.owner, structure) {
            Ok(()) => {
                if WITHOUT_CHECKSUMS.contains(&structure) {
                    self.add_unchecksummed_bytes(len);
                }
                Some(start)
            }
            Err(taken) => {
                let with = self.to_file_range(&taken);
                self.report(structure, addr, FindingCause::Overlap { len, with });
                None
            }
        }
    }

    /// Counts bytes that no checksum covers.
    pub fn add_unchecksummed_bytes(&mut self, len: u64) {
        self.report.unchecksummed_bytes = self.report.unchecksummed_bytes.saturating_add(len);
    }

    /// Claims bytes for raw data of the present object that no checksum covers.
    pub fn add_unchecksummed_raw_data(&mut self, what: &'static str, addr: Addr, len: u64) {
        self.add_unchecksummed_bytes(len);
        self.add_checksummed_raw_data(what, addr, len);
    }

    /// Claims bytes for raw data of the present object that went through a filter with a checksum.
    pub fn add_checksummed_raw_data(&mut self, what: &'static str, addr: Addr, len: u64) {
        if let Some(start) = self.check_and_report_range(what, addr, len).filter(|_| len > 0) {
            self.space.add_raw_data(start, len, self.owner, what);
        }
    }

    /// The bytes from an address on, at most `max_len`; reports if there are none.
    pub fn read_up_to(&mut self, structure: &'static str, addr: Addr, max_len: u64) -> Option<Vec<u8>> {
        let start = self.check_and_report_range(structure, addr, 1)?;
        self.read_if_within_limit(structure, addr, max_len.min(self.end.saturating_sub(start)))
    }

    /// Bytes at an address; reports if they cannot be read.
    pub fn read_if_within_limit(&mut self, structure: &'static str, addr: Addr, len: u64) -> Option<Vec<u8>> {
        if len > MAX_STRUCTURE_BYTES {
            self.report(
                structure,
                addr,
                FindingCause::ExceedsLimit {
                    what: "bytes that are read at once",
                    found: len,
                    limit: MAX_STRUCTURE_BYTES,
                },
            );
            return None;
        }
        self.read_unlimited(structure, addr, len)
    }

    /// As [`FileWalk::read_if_within_limit`], of as many bytes as the caller allows. Nothing is reported of an undefined address.
    pub fn read_unlimited(&mut self, structure: &'static str, addr: Addr, len: u64) -> Option<Vec<u8>> {
        match self.source.read(addr.get()?, len) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                self.report(structure, addr, FindingCause::Io(error.kind()));
                None
            }
        }
    }

    /// Decodes a structure from the beginning of `bytes`; reports if it is none.
    pub fn decode<R: Record>(&mut self, context: R, addr: Addr, bytes: &[u8]) -> Option<R> {
        match decode_prefix_with(context, bytes, self.widths) {
            Ok((record, _)) => Some(record),
            Err(error) => {
                self.report(R::NAME, addr, error.into());
                None
            }
        }
    }

    /// Takes the bytes of a structure, and decodes it.
    pub fn claim_and_decode<R: Record>(&mut self, context: R, addr: Addr, len: u64) -> Option<R> {
        self.claim_metadata(R::NAME, addr, len)?;
        let bytes = self.read_if_within_limit(R::NAME, addr, len)?;
        self.decode(context, addr, &bytes)
    }
}

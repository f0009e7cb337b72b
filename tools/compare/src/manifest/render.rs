//! The lines of the manifest: the listing with its values hashed.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::ops::Bound;
use std::time::SystemTime;

use h5live::model::{
    AllocationLimit, DatasetSpec, Dataspace, Datatype, FillValue, Layout, MapKeyBuf, MapScan, MapSpec, Name, ObjectId,
    ReferenceKind, Referent, ReferentPart, Selection, Store, VlenAndReferenceSizes, read_blob,
};
use h5live::{File, Object};
use h5live_text::error_with_causes;
use h5live_text::value::hex;
use sha2::{Digest, Sha256};

use crate::block::{DatasetBlock, split_into_blocks};

use super::canonical::{CanonicalError, CanonicalPlan, VlenAndReferenceResolver};
use super::columns::{space_text, storage_text};
use super::listing::{Listing, ListingEntry};

/// Elements of a region whose runs are listed.
const MAX_REGION_ELEMENTS: u64 = 1 << 20;
/// Values are read in blocks of about this many bytes.
const BLOCK_BYTES: u64 = 64 << 20;

/// Elements whose variable-length data is read at a time.
const HEAP_ELEMENTS: usize = 4 << 10;
/// The most variable-length data that is read at a time (bytes): a damaged file may have the same sequence in each
/// element, at all depths.
const HEAP_BYTES: u64 = 512 << 20;

/// Reads the stored elements of a dataset under a selection.
pub type ReadRawElements<'a> = Box<dyn Fn(ObjectId, &Selection) -> Result<Vec<u8>, UnreadCause> + 'a>;

/// Why something was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnreadCause {
    /// It is larger than what is read.
    TooLarge {
        /// Its bytes; the largest number if they do not fit.
        bytes: u64,
        /// Most bytes.
        limit: u64,
    },
    /// It cannot be read.
    Unreadable(String),
}

impl UnreadCause {
    fn of(error: &dyn std::error::Error) -> Self {
        UnreadCause::Unreadable(error_with_causes(error))
    }

    /// The last column: a word, and a number that no other run prints, so that two files that were not read never have the
    /// same line.
    fn column(&self) -> String {
        let word = match self {
            UnreadCause::TooLarge { .. } => "skipped",
            UnreadCause::Unreadable(_) => "unreadable",
        };
        format!("{word}:{}", unique_text())
    }
}

impl fmt::Display for UnreadCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnreadCause::TooLarge { bytes, limit } => {
                write!(f, "not read: {bytes} bytes are more than {limit}")
            }
            UnreadCause::Unreadable(why) => f.write_str(why),
        }
    }
}

/// A text that comes only once.
fn unique_text() -> String {
    let half = || RandomState::new().hash_one(SystemTime::now());
    format!("{:016x}{:016x}", half(), half())
}

/// Turns a listing into lines.
pub struct ManifestRenderer<'a> {
    store: &'a dyn Store,
    listing: &'a Listing,
    read: ReadRawElements<'a>,
    /// Most bytes of a dataset or attribute that are read.
    limit: u64,
    /// What may be allocated at once.
    allocation: AllocationLimit,
    /// Bytes of variable-length data that may still be read.
    left: Cell<u64>,
    /// What was not read, by its path, and why.
    unread: RefCell<Vec<(String, UnreadCause)>>,
}

impl<'a> ManifestRenderer<'a> {
    /// A renderer of a listing of `store`. It reads datasets of at most `max_dataset_bytes` bytes, with `read`.
    pub fn new(store: &'a dyn Store, listing: &'a Listing, max_dataset_bytes: u64, read: ReadRawElements<'a>) -> Self {
        let (allocation, left) = (AllocationLimit::default(), Cell::new(0));
        ManifestRenderer {
            store,
            listing,
            read,
            limit: max_dataset_bytes,
            allocation,
            left,
            unread: RefCell::default(),
        }
    }

    /// As [`ManifestRenderer::new`], of a listing of a file, which reads its datasets.
    pub fn of_file(file: &'a File, listing: &'a Listing, max_dataset_bytes: u64) -> Self {
        let path_of = |id| listing.first_paths.get(&id).map(|path| String::from_utf8_lossy(path)).unwrap_or_default();
        let read = move |id: ObjectId, selection: &Selection| match file.root().object_by_id(id, &path_of(id)) {
            Ok(Object::Dataset(dataset)) => dataset.read_raw(selection).map_err(|error| UnreadCause::of(&error)),
            Ok(_) => Err(UnreadCause::Unreadable("this is no dataset any more".to_owned())),
            Err(error) => Err(UnreadCause::of(&error)),
        };
        ManifestRenderer::new(file.store(), listing, max_dataset_bytes, Box::new(read))
    }

    /// Sets what may be allocated at once for a length that the file states.
    pub fn max_allocation(mut self, limit: AllocationLimit) -> Self {
        self.allocation = limit;
        self
    }

    /// What was not read in the lines so far, by its path, and why.
    pub fn take_unread(&self) -> Vec<(String, UnreadCause)> {
        self.unread.take()
    }

    /// The text of a type: in all stores that of an HDF5 file, whatever size elements have that lead elsewhere.
    fn type_text(&self, datatype: &Datatype) -> String {
        datatype
            .with_vlen_and_reference_sizes(
                self.store.session().vlen_and_reference_sizes,
                VlenAndReferenceSizes::default(),
            )
            .to_string()
    }

    /// The last column: a hash, or the word for why there is none.
    fn column(&self, path: &str, hash: Result<String, UnreadCause>) -> String {
        hash.unwrap_or_else(|cause| {
            let column = cause.column();
            self.unread.borrow_mut().push((path.to_owned(), cause));
            column
        })
    }

    /// The lines in order, without their ends.
    pub fn render_lines(&self) -> impl Iterator<Item = String> + '_ {
        self.listing.lines.iter().map(|line| {
            let path = &line.escaped_path;
            match &line.entry {
                ListingEntry::GroupLinkOrDatatype(kind, text) => format!("{path}\t{kind}\t{text}\t-\t-\t-"),
                ListingEntry::Unreadable(why) => {
                    let column = self.column(path, Err(UnreadCause::Unreadable(why.clone())));
                    format!("{path}\terror\t-\t-\t-\t{column}")
                }
                ListingEntry::Dataset(id, spec) => {
                    let fill = self.fill_text(path, spec);
                    let (datatype, space) = (self.type_text(&spec.datatype), space_text(&spec.dataspace));
                    let columns = [datatype, space, storage_text(spec) + &fill];
                    let hash = self.column(path, self.hash_dataset(*id, spec));
                    format!("{path}\tdataset\t{}\t{hash}", columns.join("\t"))
                }
                ListingEntry::Map(id, spec) => {
                    let pairs = self.store.maps().and_then(|maps| maps.len(*id).ok());
                    let pairs = pairs.map_or("-".to_owned(), |pairs| pairs.to_string());
                    let (key, value) = (self.type_text(&spec.key_type), self.type_text(&spec.value_type));
                    let hash = self.column(path, self.hash_map(*id, spec));
                    format!("{path}\tmap\t{key} -> {value}\t{pairs}\t-\t{hash}")
                }
                ListingEntry::Attribute(attribute) => {
                    let (datatype, space) = (&attribute.datatype, &attribute.dataspace);
                    let hash =
                        self.hash(datatype, space, |plan, sha| self.update(datatype, plan, &attribute.value, sha));
                    let (datatype, hash) = (self.type_text(datatype), self.column(path, hash));
                    format!("{path}\tattribute\t{datatype}\t{}\t-\t{hash}", space_text(space))
                }
            }
        })
    }

    fn fill_text(&self, path: &str, spec: &DatasetSpec) -> String {
        let FillValue::Value(bytes) = &spec.fill.value else {
            return String::new();
        };
        let text = match spec.datatype.has_vlen_or_references() {
            true => {
                self.left.set(HEAP_BYTES);
                let plan = CanonicalPlan::for_datatype(&spec.datatype);
                let stream = plan.canonical_bytes(bytes, self).map_err(|error| UnreadCause::of(&error));
                self.column(path, stream.map(|stream| hex(&stream)))
            }
            false => hex(bytes),
        };
        format!(" fill={text}")
    }

    fn hash_dataset(&self, id: ObjectId, spec: &DatasetSpec) -> Result<String, UnreadCause> {
        self.hash(&spec.datatype, &spec.dataspace, |plan, sha| {
            let chunk = match &spec.layout {
                Layout::Chunked(dims) => dims.as_slice(),
                _ => &[],
            };
            let element = u64::from(spec.datatype.size());
            let blocks = split_into_blocks(spec.dataspace.dims(), chunk, element, BLOCK_BYTES);
            if blocks.len() <= 1 {
                return self.update(&spec.datatype, plan, &(self.read)(id, &Selection::All)?, sha);
            }
            let written = self.written_blocks(id, spec);
            for block in blocks {
                let stored = match written.iter().any(|one| one.shared_element_count(&block) > 0) {
                    true => (self.read)(id, &block.selection())?,
                    // Nothing is looked up chunk by chunk where no chunk is.
                    false => {
                        let bytes = block.element_count().saturating_mul(element);
                        let checked = self.allocation.check(bytes);
                        spec.repeated_fill_value(checked.map_err(|error| UnreadCause::of(&error))?)
                    }
                };
                self.update(&spec.datatype, plan, &stored, sha)?;
            }
            Ok(())
        })
    }

    /// The hash of the pairs of a map, in the order of the keys: each key and each value with its length before it. A
    /// null key has the largest length.
    fn hash_map(&self, id: ObjectId, spec: &MapSpec) -> Result<String, UnreadCause> {
        let base = |datatype: &Datatype| match datatype {
            Datatype::VarLen(of) => CanonicalPlan::for_datatype(&of.base),
            other => CanonicalPlan::for_datatype(other),
        };
        let (key_plan, value_plan) = (base(&spec.key_type), base(&spec.value_type));
        let Some(maps) = self.store.maps() else {
            return Err(UnreadCause::Unreadable("the store holds no maps".to_owned()));
        };
        let (mut sha, mut last) = (Sha256::new(), None);
        loop {
            let mut page = Vec::new();
            let start = last.as_ref().map_or(Bound::Unbounded, |last: &MapKeyBuf| Bound::Excluded(last.as_key()));
            let scan = MapScan { start, ..MapScan::default() };
            let (mut bytes, limit) = (0, scan.prefetch);
            let listed = maps.for_each(id, &scan, &mut |key, value| {
                bytes += key.bytes_or_empty().len() + value.len();
                page.push((key.to_buf(), value.to_vec()));
                page.len() < limit.keys && bytes < limit.bytes
            });
            listed.map_err(|error| UnreadCause::of(&error))?;
            let Some((key, _)) = page.last() else { return Ok(hex(&sha.finalize())) };
            last = Some(key.clone());
            let mut feed = |bytes: Option<&[u8]>, plan: &CanonicalPlan| {
                self.left.set(HEAP_BYTES);
                let stream =
                    plan.canonical_bytes(bytes.unwrap_or_default(), self).map_err(|error| UnreadCause::of(&error))?;
                sha.update(bytes.map_or(u64::MAX, |_| stream.len() as u64).to_le_bytes());
                sha.update(&stream);
                Ok(())
            };
            for (key, value) in &page {
                let key = match key {
                    MapKeyBuf::Null => None,
                    MapKeyBuf::Bytes(bytes) => Some(&bytes[..]),
                };
                feed(key, &key_plan)?;
                feed(Some(value), &value_plan)?;
            }
        }
    }

    /// The blocks of a dataset that were written, as far as that is known.
    fn written_blocks(&self, id: ObjectId, spec: &DatasetSpec) -> Vec<DatasetBlock> {
        let dataset = self.store.dataset(id);
        let written = dataset.and_then(|dataset| DatasetBlock::list_written(spec, |each| dataset.for_each_chunk(each)));
        written.unwrap_or_else(|_| vec![DatasetBlock::all(spec.dataspace.dims())])
    }

    fn update(
        &self,
        datatype: &Datatype,
        plan: &CanonicalPlan,
        stored: &[u8],
        sha: &mut Sha256,
    ) -> Result<(), UnreadCause> {
        let size = (datatype.size() as usize).max(1);
        let piece =
            if datatype.has_vlen_or_references() { size.saturating_mul(HEAP_ELEMENTS) } else { stored.len().max(1) };
        for stored in stored.chunks(piece) {
            self.left.set(HEAP_BYTES);
            sha.update(&plan.canonical_bytes(stored, self).map_err(|error| UnreadCause::of(&error))?);
        }
        Ok(())
    }

    /// The hash of what `feed` feeds.
    fn hash(
        &self,
        datatype: &Datatype,
        space: &Dataspace,
        feed: impl FnOnce(&CanonicalPlan, &mut Sha256) -> Result<(), UnreadCause>,
    ) -> Result<String, UnreadCause> {
        let mut sha = Sha256::new();
        let elements = space.element_count();
        if elements != Some(0) {
            let bytes = elements.and_then(|n| n.checked_mul(u64::from(datatype.size()))).unwrap_or(u64::MAX);
            if bytes > self.limit {
                return Err(UnreadCause::TooLarge { bytes, limit: self.limit });
            }
            feed(&CanonicalPlan::for_datatype(datatype), &mut sha)?;
        }
        Ok(hex(&sha.finalize()))
    }

    /// The elements of a region as runs of elements of its dataset, so that one region has one text in every store.
    fn region_text(&self, dataset: ObjectId, region: &Selection) -> String {
        let spec = self.store.dataset(dataset).and_then(|chunks| chunks.spec());
        let bound = spec.ok().and_then(|spec| region.bind(spec.dataspace.dims()).ok());
        let Some(bound) = bound.filter(|bound| bound.element_count() <= MAX_REGION_ELEMENTS) else {
            return format!("{region:?}");
        };
        let mut runs: Vec<(u64, u64)> = Vec::new();
        bound.for_each_run(|run| match runs.last_mut() {
            Some((at, len)) if *at + *len == run.offset_in_chunk => *len += run.len,
            _ => runs.push((run.offset_in_chunk, run.len)),
        });
        format!("{runs:?}")
    }
}

impl VlenAndReferenceResolver for ManifestRenderer<'_> {
    fn vlen_bytes(&self, element: &[u8]) -> Result<Vec<u8>, CanonicalError> {
        let bytes = read_blob(self.store, element).map_err(|error| CanonicalError::Heap(Box::new(error)))?;
        let left = self.left.get().checked_sub(bytes.len() as u64).ok_or(CanonicalError::TooMuchVlenData)?;
        self.left.set(left);
        Ok(bytes)
    }

    fn referent_text(&self, kind: ReferenceKind, reference: &[u8]) -> Result<Vec<u8>, CanonicalError> {
        let referent = self.store.referent(kind, reference);
        if kind == ReferenceKind::Object1 {
            let object = referent.ok().flatten().filter(|to| to.file.is_none() && self.store.kind(to.object).is_ok());
            let path = object.map(|to| to.object).and_then(|id| self.listing.first_paths.get(&id));
            return Ok(path.cloned().unwrap_or_default());
        }
        let referent = referent.map_err(|error| CanonicalError::Reference(Box::new(error)))?;
        let Some(Referent { file, object, part }) = referent else { return Ok(Vec::new()) };
        let path = match &file {
            // Nobody has listed the other file.
            Some(_) => object.to_string().into_bytes(),
            None => self.listing.first_paths.get(&object).cloned().unwrap_or_default(),
        };
        let part = match &part {
            ReferentPart::Whole => String::new(),
            ReferentPart::Region(region) if file.is_none() => format!("region {}", self.region_text(object, region)),
            ReferentPart::Region(region) => format!("region {region:?}"),
            ReferentPart::Attribute(name) => format!("attribute {name}"),
        };
        let file = file.as_ref().map(Name::as_bytes).unwrap_or_default();
        Ok([file, &path, part.as_bytes()].join(&0))
    }
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;

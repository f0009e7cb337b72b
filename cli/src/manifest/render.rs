//! The lines of the manifest: the listing with its values hashed.

use std::cell::Cell;
use std::ops::Bound;

use sha2::{Digest, Sha256};

use crate::block::Block;
use crate::model::{
    DatasetSpec, Dataspace, Datatype, FillValue, Layout, MapKeyBuf, MapScan, MapSpec, ObjectId, ReferenceKind,
    Selection, Store, read_blob,
};
use crate::open;
use crate::value::hex;

use super::canonical::{CanonicalError, CanonicalPlan, HeapResolver};
use super::columns::{space_text, storage_text};
use super::listing::{Listing, ListingEntry};

/// Values above this many bytes are not hashed.
const SKIP_BYTES: u64 = 4 << 30;
/// Values are read in blocks of about this many bytes.
const BLOCK_BYTES: u64 = 64 << 20;

/// Elements whose variable-length data is read at a time.
const HEAP_ELEMENTS: usize = 4 << 10;
/// The most variable-length data that is read at a time (bytes): a damaged file may have the same sequence in each
/// element, at all depths.
const HEAP_BYTES: u64 = 512 << 20;

/// Reads the stored elements of a dataset under a selection; `None` if they cannot be read.
pub type ReadValues<'a> = &'a dyn Fn(ObjectId, &Selection) -> Option<Vec<u8>>;

/// Turns a listing into lines.
pub struct Renderer<'a> {
    store: &'a dyn Store,
    listing: &'a Listing,
    read: ReadValues<'a>,
    /// Bytes of variable-length data that may still be read.
    left: Cell<u64>,
}

impl<'a> Renderer<'a> {
    /// A renderer of a listing of `store`. It reads datasets with `read`.
    pub fn new(store: &'a dyn Store, listing: &'a Listing, read: ReadValues<'a>) -> Self {
        Renderer { store, listing, read, left: Cell::new(0) }
    }

    /// The lines in order, without their ends.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.listing.lines.iter().map(|line| {
            let path = &line.path;
            match &line.entry {
                ListingEntry::Plain(kind, text) => format!("{path}\t{kind}\t{text}\t-\t-\t-"),
                ListingEntry::Unreadable(_) => format!("{path}\terror\t-\t-\t-\t-"),
                ListingEntry::Dataset(id, spec) => {
                    let fill = self.fill_text(spec);
                    let columns = [spec.datatype.to_string(), space_text(&spec.dataspace), storage_text(spec) + &fill];
                    format!("{path}\tdataset\t{}\t{}", columns.join("\t"), self.hash_dataset(*id, spec))
                }
                ListingEntry::Map(id, spec) => {
                    let pairs = self.store.maps().and_then(|maps| maps.len(*id).ok());
                    let pairs = pairs.map_or("-".to_owned(), |pairs| pairs.to_string());
                    format!("{path}\tmap\t{} -> {}\t{pairs}\t-\t{}", spec.key, spec.value, self.hash_map(*id, spec))
                }
                ListingEntry::Attribute(attribute) => {
                    let (datatype, space) = (&attribute.datatype, &attribute.dataspace);
                    let hash = hash(datatype, space, |plan, sha| self.update(datatype, plan, &attribute.value, sha));
                    format!("{path}\tattribute\t{}\t{}\t-\t{hash}", datatype, space_text(space))
                }
            }
        })
    }

    fn fill_text(&self, spec: &DatasetSpec) -> String {
        let FillValue::Value(bytes) = &spec.fill.value else {
            return String::new();
        };
        let text = match CanonicalPlan::for_datatype(&spec.datatype) {
            None => "unsupported".to_owned(),
            Some(plan) if spec.datatype.is_indirect() => {
                self.left.set(HEAP_BYTES);
                plan.stream(bytes, self).map_or("unreadable".to_owned(), |stream| hex(&stream))
            }
            Some(_) => hex(bytes),
        };
        format!(" fill={text}")
    }

    fn hash_dataset(&self, id: ObjectId, spec: &DatasetSpec) -> String {
        hash(&spec.datatype, &spec.dataspace, |plan, sha| {
            let chunk = match &spec.layout {
                Layout::Chunked(dims) => dims.as_slice(),
                _ => &[],
            };
            let element = u64::from(spec.datatype.size());
            let blocks = blocks(spec.dataspace.dims(), chunk, element, BLOCK_BYTES);
            if blocks.len() <= 1 {
                return self.update(&spec.datatype, plan, &(self.read)(id, &Selection::All)?, sha);
            }
            let written = self.written_blocks(id, spec);
            for block in blocks {
                let stored = match written.iter().any(|one| one.shared(&block) > 0) {
                    true => (self.read)(id, &block.selection())?,
                    // Nothing is looked up chunk by chunk where no chunk is.
                    false => {
                        let bytes = block.elements().checked_mul(element)?;
                        spec.fill_bytes(open::allocation_limit().check(bytes).ok()?)
                    }
                };
                self.update(&spec.datatype, plan, &stored, sha)?;
            }
            Some(())
        })
    }

    /// The hash of the pairs of a map, in the order of the keys: each key and each value with its length before it. A
    /// null key has the largest length.
    fn hash_map(&self, id: ObjectId, spec: &MapSpec) -> String {
        let base = |datatype: &Datatype| match datatype {
            Datatype::VarLen(of) => CanonicalPlan::for_datatype(&of.base),
            other => CanonicalPlan::for_datatype(other),
        };
        let (Some(key_plan), Some(value_plan)) = (base(&spec.key), base(&spec.value)) else {
            return "unsupported".to_owned();
        };
        let (mut sha, mut last, mut is_read) = (Sha256::new(), None, true);
        while is_read {
            let mut page = Vec::new();
            let start = last.as_ref().map_or(Bound::Unbounded, |last: &MapKeyBuf| Bound::Excluded(last.as_key()));
            let scan = MapScan { start, ..MapScan::default() };
            let (mut bytes, limit) = (0, scan.prefetch);
            let listed = self.store.maps().map(|maps| {
                maps.for_each(id, &scan, &mut |key, value| {
                    bytes += key.bytes().len() + value.len();
                    page.push((key.to_buf(), value.to_vec()));
                    page.len() < limit.keys && bytes < limit.bytes
                })
            });
            is_read = matches!(listed, Some(Ok(())));
            let Some((key, _)) = page.last().filter(|_| is_read) else { break };
            last = Some(key.clone());
            let mut feed = |bytes: Option<&[u8]>, plan: &CanonicalPlan| {
                self.left.set(HEAP_BYTES);
                let stream = plan.stream(bytes.unwrap_or_default(), self).ok()?;
                sha.update(bytes.map_or(u64::MAX, |_| stream.len() as u64).to_le_bytes());
                sha.update(&stream);
                Some(())
            };
            is_read = page.iter().all(|(key, value)| {
                let key = match key {
                    MapKeyBuf::Null => None,
                    MapKeyBuf::Bytes(bytes) => Some(&bytes[..]),
                };
                feed(key, &key_plan).and_then(|()| feed(Some(value), &value_plan)).is_some()
            });
        }
        if is_read { hex(&sha.finalize()) } else { "unreadable".to_owned() }
    }

    /// The blocks of a dataset that were written, as far as that is known.
    fn written_blocks(&self, id: ObjectId, spec: &DatasetSpec) -> Vec<Block> {
        let dataset = self.store.dataset(id);
        let written = dataset.and_then(|dataset| Block::list_written(spec, |each| dataset.for_each_chunk(each)));
        written.unwrap_or_else(|_| vec![Block::all(spec.dataspace.dims())])
    }

    fn update(&self, datatype: &Datatype, plan: &CanonicalPlan, stored: &[u8], sha: &mut Sha256) -> Option<()> {
        let size = (datatype.size() as usize).max(1);
        let piece = if datatype.is_indirect() { size.saturating_mul(HEAP_ELEMENTS) } else { stored.len().max(1) };
        for stored in stored.chunks(piece) {
            self.left.set(HEAP_BYTES);
            sha.update(&plan.stream(stored, self).ok()?);
        }
        Some(())
    }
}

impl HeapResolver for Renderer<'_> {
    fn heap(&self, element: &[u8]) -> Result<Vec<u8>, CanonicalError> {
        let bytes = read_blob(self.store, element).map_err(|error| CanonicalError::Heap(Box::new(error)))?;
        let left = self.left.get().checked_sub(bytes.len() as u64).ok_or(CanonicalError::TooMuchData)?;
        self.left.set(left);
        Ok(bytes)
    }

    fn path(&self, reference: &[u8]) -> Vec<u8> {
        let referent = self.store.referent(ReferenceKind::Object1, reference).ok().flatten();
        let object = referent.filter(|to| to.file.is_none() && self.store.kind(to.object).is_ok());
        object.map(|to| to.object).and_then(|id| self.listing.paths.get(&id)).cloned().unwrap_or_default()
    }
}

/// The last column: the hash of what `feed` feeds, or the word for why there is none.
fn hash(
    datatype: &Datatype,
    space: &Dataspace,
    feed: impl FnOnce(&CanonicalPlan, &mut Sha256) -> Option<()>,
) -> String {
    let Some(plan) = CanonicalPlan::for_datatype(datatype) else {
        return "unsupported".to_owned();
    };
    let mut sha = Sha256::new();
    let elements = space.elements();
    if elements != Some(0) {
        let bytes = elements.and_then(|n| n.checked_mul(u64::from(datatype.size())));
        if bytes.is_none_or(|bytes| bytes > SKIP_BYTES) {
            return "skipped".to_owned();
        }
        if feed(&plan, &mut sha).is_none() {
            return "unreadable".to_owned();
        }
    }
    hex(&sha.finalize())
}

/// Blocks that cover `dims` (`[rank]`, elements) in row-major order, each of about `block` bytes, and of whole
/// chunks of the dimensions `chunk` where that is possible.
fn blocks(dims: &[u64], chunk: &[u64], element: u64, block: u64) -> Vec<Block> {
    // The dimension to cut: what lies behind it is small enough to be taken whole.
    let mut inner = element.max(1);
    let mut cut = dims.len().saturating_sub(1);
    while let Some(bytes) =
        dims.get(cut).and_then(|dim| inner.checked_mul(*dim)).filter(|bytes| cut > 0 && *bytes <= block)
    {
        inner = bytes;
        cut -= 1;
    }
    let Some((outer, [length, rest @ ..])) = dims.split_at_checked(cut) else {
        return vec![Block::all(dims)];
    };
    let step = (block / inner).max(1).min(*length);
    let step = match chunk.get(cut) {
        Some(rows) if *rows > 0 && step > *rows && step < *length => step - step % rows,
        _ => step,
    };
    if outer.is_empty() && step == *length {
        return vec![Block::all(dims)];
    }
    let mut at = vec![0; outer.len()];
    let mut blocks = Vec::new();
    loop {
        for first in (0..*length).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            let start: Vec<_> = at.iter().copied().chain([first]).chain(rest.iter().map(|_| 0)).collect();
            let count: Vec<_> =
                at.iter().map(|_| 1).chain([step.min(length - first)]).chain(rest.iter().copied()).collect();
            blocks.push(Block { start, count });
        }
        // The next index of the outer dimensions, the last one first.
        let Some(next) =
            (0..outer.len()).rev().find(|d| at.get(*d).zip(outer.get(*d)).is_some_and(|(a, o)| a + 1 < *o))
        else {
            return blocks;
        };
        at.iter_mut().skip(next + 1).for_each(|a| *a = 0);
        if let Some(a) = at.get_mut(next) {
            *a += 1;
        }
    }
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;

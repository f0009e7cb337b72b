//! Global heaps: collections of objects to which values lead.

use h5live_format::{Addr, GlobalHeapCollection, GlobalHeapId, Record};

use super::cause::FindingCause;
use super::visited_collections::CollectionObjectUse;
use super::walk::FileWalk;

const NAME: &str = GlobalHeapCollection::NAME;

impl FileWalk<'_> {
    /// A collection, on the first visit.
    fn check_collection(&mut self, addr: Addr) {
        let Some(at) = addr.get().filter(|at| !self.collections.known.contains_key(at)) else { return };
        self.collections.known.insert(at, None);
        let Some(bytes) = self.read_up_to(NAME, addr, GlobalHeapCollection::PREFIX_BYTES as u64) else { return };
        let size = match GlobalHeapCollection::stated_size(&bytes, self.widths) {
            Ok(size) => size,
            Err(error) => {
                self.report(NAME, addr, error.into());
                return;
            }
        };
        let Some(heap) = self.claim_and_decode(GlobalHeapCollection::default(), addr, size) else { return };
        let object = |object: h5live_format::GlobalHeapObject<'_>| CollectionObjectUse {
            index: object.index,
            len: object.data.len() as u64,
            used: false,
        };
        let mut list: Vec<CollectionObjectUse> = heap.objects().map(object).collect();
        list.sort_by_key(|entry| entry.index);
        if list.windows(2).any(|pair| matches!(pair, [a, b] if a.index == b.index)) {
            self.report(NAME, addr, FindingCause::Repeated("object of one index"));
        }
        self.collections.known.insert(at, Some(list));
        self.collections.last = Some((at, heap));
    }

    /// Notes that an object is used. Returns its length, and whether it was used before; reports if it is not there.
    pub fn mark_global_object_used(&mut self, place: GlobalHeapId, from: Addr) -> Option<(u64, bool)> {
        self.check_collection(place.collection);
        let known = matches!(self.collections.known.get(&place.collection.get()?), Some(Some(_)));
        if let Some(entry) = self.collections.object_use_mut(place) {
            let before = std::mem::replace(&mut entry.used, true);
            return Some((entry.len, before));
        }
        if known {
            let at = self.file_offset(place.collection);
            let cause =
                FindingCause::MissingHeapObject { heap: "global heap collection", at, object: place.index.into() };
            self.report("global heap ID", from, cause);
        }
        None
    }

    /// The bytes of an object, and whether it was used before.
    pub fn mark_and_read_global_object(&mut self, place: GlobalHeapId, from: Addr) -> Option<(Vec<u8>, bool)> {
        let (_, before) = self.mark_global_object_used(place, from)?;
        let at = place.collection.get()?;
        if self.collections.last.as_ref().is_none_or(|(last, _)| *last != at) {
            let prefix = self.source.read(at, GlobalHeapCollection::PREFIX_BYTES as u64).ok()?;
            let size = GlobalHeapCollection::stated_size(&prefix, self.widths).ok()?;
            let bytes = self.read_if_within_limit(NAME, place.collection, size)?;
            let heap = self.decode(GlobalHeapCollection::default(), place.collection, &bytes)?;
            self.collections.last = Some((at, heap));
        }
        let (_, heap) = self.collections.last.as_ref()?;
        heap.object_bytes(place.index).map(|bytes| (bytes.to_vec(), before))
    }

    /// Notes which objects nothing leads to, if that was asked for and all values were looked at.
    pub fn note_unused_global_objects(&mut self) {
        if !self.options.reports_leaks || self.incomplete || self.unseen_values {
            return;
        }
        let known = std::mem::take(&mut self.collections.known);
        for (at, list) in &known {
            let unused = list.iter().flatten().filter(|entry| !entry.used).count() as u64;
            if unused > 0 {
                let total = list.iter().flatten().count() as u64;
                self.add_note(
                    NAME,
                    Addr::new(*at),
                    FindingCause::NumberMismatch { what: "objects in use", stated: total, found: total - unused },
                );
            }
        }
    }
}

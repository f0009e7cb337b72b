//! Removing links, and deleting the objects that have no link left. Their space is freed.
//!
//! Everything to be deleted is found before anything changes. So a damaged structure is an error that leaves the file
//! unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use h5live_format::messages::{AttributeInfo, ExternalFiles, LinkInfo, SymbolTableMessage};
use h5live_format::{Addr, AttributeNameRecord, AttributeOrderRecord, LinkNameRecord, LinkOrderRecord, LocalHeap};
use h5live_indexes::Btree2;
use h5live_model::{LinkTarget, ObjectId, ObjectKind};

use crate::Result;
use crate::attributes::AttributeStorage;
use crate::dataset::NativeDataset;
use crate::header::CachedHeader;
use crate::links::LinkStorage;
use crate::object_kind::{committed, kind_of};
use crate::session::NativeSession;

/// The objects to be deleted, and those that stay with fewer links.
#[derive(Debug, Default)]
struct DeletePlan {
    /// Links and other uses that each object loses.
    uses: BTreeMap<Addr, u32>,
    /// Objects that lose all of theirs.
    gone: BTreeSet<Addr>,
    /// Raw data that goes: first byte and length (bytes).
    raw: Vec<(Addr, u64)>,
    /// The datasets among the objects.
    datasets: Vec<Arc<NativeDataset>>,
}

/// Objects that lost their last link while others follow. The file still leads to them. After the flush that writes
/// what no longer leads there, their space is freed. Their headers then say that they are deleted, for readers that
/// have them open.
#[derive(Debug)]
pub(crate) struct PendingDelete(DeletePlan);

impl DeletePlan {
    /// Plans what is deleted when each object at `first` loses one use.
    fn build(session: &Arc<NativeSession>, first: impl IntoIterator<Item = Addr>) -> Result<Self> {
        let mut plan = DeletePlan::default();
        let mut waiting: Vec<_> = first.into_iter().collect();
        while let Some(addr) = waiting.pop() {
            let lost = plan.uses.entry(addr).or_default();
            *lost += 1;
            let header = session.header(addr)?;
            if *lost >= header.info()?.links && plan.gone.insert(addr) {
                plan.add_object(session, &header, &mut waiting)?;
            }
        }
        Ok(plan)
    }

    /// Adds an object and everything that it holds. The objects that it uses lose one use.
    fn add_object(&mut self, session: &Arc<NativeSession>, header: &CachedHeader, uses: &mut Vec<Addr>) -> Result<()> {
        let addr = |id| session.object(id);
        AttributeStorage::load(session, header)?.for_each(session, header, &mut |stored| {
            uses.extend(committed(stored.message.datatype.shared()).map(addr).transpose()?);
            Ok(true)
        })?;
        match kind_of(header)? {
            ObjectKind::Group => LinkStorage::load(session, header)?.for_each(header, &mut |link| {
                if let LinkTarget::Hard(id) = link.target {
                    uses.extend(addr(id).ok());
                }
                true
            }),
            ObjectKind::Dataset => {
                let dataset = NativeDataset::open(session, header.addr())?;
                uses.extend(dataset.committed().map(addr).transpose()?);
                dataset.for_each_raw_range(&mut |addr, len| self.raw.push((addr, len)))?;
                self.datasets.push(dataset);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Counts the uses of what stays.
    fn apply_use_counts(&self, session: &NativeSession) -> Result<()> {
        for (addr, lost) in &self.uses {
            if !self.gone.contains(addr) {
                let _lock = session.header_lock(*addr);
                session.header(*addr)?.count_link(-i32::try_from(*lost).unwrap_or(i32::MAX))?;
            }
        }
        Ok(())
    }

    /// Gives back the space of what goes.
    fn free_space(self, session: &NativeSession) -> Result<()> {
        for dataset in &self.datasets {
            dataset.delete_index()?;
        }
        let (cache, space) = (&session.cache, session.cache.space());
        for (addr, len) in &self.raw {
            cache.discard_raw(*addr);
            space.free_raw(*addr, *len);
        }
        for addr in &self.gone {
            let header = CachedHeader::load(&session.metadata(*addr), true)?;
            session.delete_storage(&header)?;
            space.release_owner(header.metadata().owner());
            if session.has_followers() {
                header.replace_with_tombstone()
            } else {
                header.delete()
            }
            session.datasets.lock().remove(addr);
            session.heap_reuse.forget_owner(*addr);
        }
        Ok(())
    }
}

impl NativeSession {
    /// The object at `addr` has lost a link or another use. If it was the last one, deletes the object, with everything
    /// to which nothing else leads. Call it before the structure that led to the object is changed.
    ///
    /// # Errors
    /// If a structure to be deleted cannot be read. Nothing has changed then.
    pub fn release_object(self: &Arc<Self>, addr: Addr) -> Result<()> {
        // Another object may come to be where this one was.
        *self.new_dataset.lock() = None;
        let plan = DeletePlan::build(self, [addr])?;
        plan.apply_use_counts(self)?;
        if plan.gone.is_empty() || !self.has_followers() {
            return plan.free_space(self);
        }
        plan.datasets.iter().for_each(|dataset| dataset.mark_deleted());
        self.pending_deletes.lock().push(PendingDelete(plan));
        Ok(())
    }

    /// Whether the object at `addr` goes with the next flush.
    pub fn is_pending_delete(&self, addr: Addr) -> bool {
        self.pending_deletes.lock().iter().any(|PendingDelete(plan)| plan.gone.contains(&addr))
    }

    /// Gives back what deleted objects had, when the file no longer leads to them.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn finalize_deletes(&self, pending: Vec<PendingDelete>) -> Result<()> {
        let _operation = self.cache.begin_operation();
        pending.into_iter().try_for_each(|PendingDelete(plan)| plan.free_space(self))
    }

    /// A committed datatype, if it was one, has lost a use.
    ///
    /// # Errors
    /// As [`NativeSession::release_object`].
    pub fn release_type(self: &Arc<Self>, committed: Option<ObjectId>) -> Result<()> {
        committed.map_or(Ok(()), |id| self.release_object(self.object(id)?))
    }

    /// Gives back what holds the dense links and attributes of an object, or the names of its raw files.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn delete_storage(&self, header: &CachedHeader) -> Result<()> {
        let metadata = header.metadata();
        if let Some(info) = header.get::<AttributeInfo>()?.filter(AttributeInfo::is_dense) {
            self.fractal_heap_for_writing(metadata, info.heap).delete()?;
            Btree2::new(metadata.clone(), info.names, AttributeNameRecord::default()).delete()?;
            if let Some(order) = info.order.filter(|order| order.is_defined()) {
                Btree2::new(metadata.clone(), order, AttributeOrderRecord::default()).delete()?;
            }
        }
        if let Some(info) = header.get::<LinkInfo>()?.filter(LinkInfo::is_dense) {
            self.fractal_heap_for_writing(metadata, info.heap).delete()?;
            Btree2::new(metadata.clone(), info.names, LinkNameRecord::default()).delete()?;
            if let Some(order) = info.order.filter(|order| order.is_defined()) {
                Btree2::new(metadata.clone(), order, LinkOrderRecord::default()).delete()?;
            }
        }
        if let Some(message) = header.get::<SymbolTableMessage>()? {
            self.delete_symbol_table(metadata, &message)?;
        }
        if let Some(files) = header.get::<ExternalFiles>()? {
            let len = LocalHeap::prefix_size(header.widths()) as u64;
            let heap = metadata.load(files.heap, len, LocalHeap::default)?.read().clone();
            for (addr, len) in [(files.heap, len), (heap.data, heap.size)] {
                self.cache.remove(addr);
                self.cache.space().free(addr, len);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use h5live_cache::MemoryStorage;
    use h5live_model::{DatasetSpec, Name, NewObject, ObjectSpec, Publish, Scope, Store, StoreWriter};

    use super::*;
    use crate::{LibVer, Mode, NativeFile, OpenOptions};

    #[test]
    fn a_deleted_object_gives_back_what_it_took_and_no_more() {
        for profile in [LibVer::V18, LibVer::V110, LibVer::V200] {
            let options = OpenOptions { mode: Mode::Create, profile, ..OpenOptions::default() };
            let file = NativeFile::open_storage(Arc::new(MemoryStorage::new()), &options).unwrap();
            let name = Name::from("object");
            for spec in [ObjectSpec::group(), DatasetSpec::default().into()] {
                file.commit(Scope::All, Publish::Visible).unwrap();
                let space = file.native_session().cache.space();
                let before = (space.end(), space.free_bytes());
                file.create(&NewObject::linked(file.session().root, &name, &spec)).unwrap();
                file.commit(Scope::All, Publish::Visible).unwrap();
                file.remove_link(file.session().root, &name).unwrap();
                file.commit(Scope::All, Publish::Visible).unwrap();
                assert_eq!(space.free_bytes() - before.1, space.end() - before.0, "{profile:?} {spec:?}");
            }
        }
    }
}

//! Links that go, and the objects that go with the last of them: their space is given back.
//!
//! All that is to go is found before anything changes, so that a damaged structure is an error that leaves the file as
//! it was.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use h5live_format::messages::{AttributeInfo, ExternalFiles, LinkInfo, SymbolTable};
use h5live_format::{Addr, AttributeNameRecord, AttributeOrderRecord, LinkNameRecord, LinkOrderRecord, LocalHeap};
use h5live_indexes::Btree2;
use h5live_model::{LinkTarget, ObjectId, ObjectKind};

use crate::Result;
use crate::attributes::Attributes;
use crate::creation::committed;
use crate::dataset::NativeDataset;
use crate::file::kind_of;
use crate::header::Header;
use crate::links::Links;
use crate::session::Session;

/// What goes, and what stays with fewer links.
#[derive(Debug, Default)]
struct Toll {
    /// Links and other uses that each object loses.
    uses: BTreeMap<Addr, u32>,
    /// Objects that lose all of theirs.
    gone: BTreeSet<Addr>,
    /// Raw data that goes: first byte and length (bytes).
    raw: Vec<(Addr, u64)>,
    /// The datasets among the objects.
    datasets: Vec<Arc<NativeDataset>>,
}

/// Objects that lost their last link while others follow. What leads to them is still in the file: their space is given
/// back after the flush that writes what no longer does, and what is left of their headers then says that they are no
/// more, for those who have them open.
#[derive(Debug)]
pub(crate) struct Doomed(Toll);

impl Toll {
    /// What goes when the objects at `first` lose a use each.
    fn of(session: &Arc<Session>, first: impl IntoIterator<Item = Addr>) -> Result<Self> {
        let mut toll = Toll::default();
        let mut waiting: Vec<_> = first.into_iter().collect();
        while let Some(addr) = waiting.pop() {
            let lost = toll.uses.entry(addr).or_default();
            *lost += 1;
            let header = session.header(addr)?;
            if *lost >= header.info()?.links && toll.gone.insert(addr) {
                toll.add(session, &header, &mut waiting)?;
            }
        }
        Ok(toll)
    }

    /// Adds what an object holds; what it uses loses a use.
    fn add(&mut self, session: &Arc<Session>, header: &Header, uses: &mut Vec<Addr>) -> Result<()> {
        let addr = |id| session.object(id);
        Attributes::of(session, header)?.for_each(session, header, &mut |stored| {
            uses.extend(committed(stored.message.datatype.shared()).map(addr).transpose()?);
            Ok(true)
        })?;
        match kind_of(header)? {
            ObjectKind::Group => Links::of(session, header)?.for_each(header, &mut |link| {
                if let LinkTarget::Hard(id) = link.target {
                    uses.extend(addr(id).ok());
                }
                true
            }),
            ObjectKind::Dataset => {
                let dataset = NativeDataset::open(session, header.addr())?;
                uses.extend(dataset.committed().map(addr).transpose()?);
                dataset.for_each_run(&mut |addr, len| self.raw.push((addr, len)))?;
                self.datasets.push(dataset);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Counts the uses of what stays.
    fn count(&self, session: &Session) -> Result<()> {
        for (addr, lost) in &self.uses {
            if !self.gone.contains(addr) {
                let _lock = session.header_lock(*addr);
                session.header(*addr)?.count_link(-i32::try_from(*lost).unwrap_or(i32::MAX))?;
            }
        }
        Ok(())
    }

    /// Gives back the space of what goes.
    fn take(self, session: &Session) -> Result<()> {
        for dataset in &self.datasets {
            dataset.delete_index()?;
        }
        let (cache, space) = (&session.cache, session.cache.space());
        for (addr, len) in &self.raw {
            cache.discard_raw(*addr);
            space.free_raw(*addr, *len);
        }
        for addr in &self.gone {
            let header = Header::load(&session.metadata(*addr), true)?;
            session.delete_storage(&header)?;
            space.disown(header.metadata().owner());
            if session.is_followed() {
                header.bury()
            } else {
                header.delete()
            }
            session.datasets.lock().remove(addr);
            session.forget_owner(*addr);
        }
        Ok(())
    }
}

impl Session {
    /// The object at `addr` has lost a link or another use: if that was the last, it goes, with everything to which
    /// nothing else leads. Call it before what led to the object is changed.
    ///
    /// # Errors
    /// If a structure of what goes cannot be read; nothing has changed then.
    pub fn release(self: &Arc<Self>, addr: Addr) -> Result<()> {
        // Another object may come to be where this one was.
        *self.made.lock() = None;
        let toll = Toll::of(self, [addr])?;
        toll.count(self)?;
        if toll.gone.is_empty() || !self.is_followed() {
            return toll.take(self);
        }
        toll.datasets.iter().for_each(|dataset| dataset.doom());
        self.doomed.lock().push(Doomed(toll));
        Ok(())
    }

    /// Whether the object at `addr` goes with the next flush.
    pub fn is_doomed(&self, addr: Addr) -> bool {
        self.doomed.lock().iter().any(|Doomed(toll)| toll.gone.contains(&addr))
    }

    /// Gives back what doomed objects had, when the file no longer leads to them.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn bury(&self, doomed: Vec<Doomed>) -> Result<()> {
        let _operation = self.cache.operation();
        doomed.into_iter().try_for_each(|Doomed(toll)| toll.take(self))
    }

    /// A committed datatype, if it was one, has lost a use.
    ///
    /// # Errors
    /// As [`Session::release`].
    pub fn release_type(self: &Arc<Self>, committed: Option<ObjectId>) -> Result<()> {
        committed.map_or(Ok(()), |id| self.release(self.object(id)?))
    }

    /// Gives back what holds the dense links and attributes of an object, or the names of its raw files.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn delete_storage(&self, header: &Header) -> Result<()> {
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
        if let Some(message) = header.get::<SymbolTable>()? {
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
    use h5live_model::{DatasetSpec, Name, ObjectSpec, Objects};

    use super::*;
    use crate::{Mode, NativeFile, OpenOptions, Profile};

    #[test]
    fn a_deleted_object_gives_back_what_it_took_and_no_more() {
        for profile in [Profile::V18, Profile::V110, Profile::V200] {
            let options = OpenOptions { mode: Mode::Create, profile, ..OpenOptions::default() };
            let file = NativeFile::on(Arc::new(MemoryStorage::new()), &options).unwrap();
            let name = Name::from("object");
            for spec in [ObjectSpec::group(), DatasetSpec::default().into()] {
                file.flush().unwrap();
                let space = file.session().cache.space();
                let before = (space.end(), space.reusable());
                file.create(file.root(), &name, &spec).unwrap();
                file.flush().unwrap();
                file.remove_link(file.root(), &name).unwrap();
                file.flush().unwrap();
                assert_eq!(space.reusable() - before.1, space.end() - before.0, "{profile:?} {spec:?}");
            }
        }
    }
}

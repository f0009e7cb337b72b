//! Removing links, and deleting the objects that have no link left. Their space is freed.
//!
//! Everything to be deleted is found before anything changes. So a damaged structure is an error that leaves the file
//! unchanged.

use std::sync::Arc;

use h5live_format::Addr;
use h5live_model::{LinkTarget, ObjectId, ObjectKind};

use crate::Result;
use crate::attributes::AttributeStorage;
use crate::dataset::NativeDataset;
use crate::header::CachedHeader;
use crate::links::LinkStorage;
use crate::object_kind::{committed_datatype, kind_of};
use crate::session::NativeSession;
use crate::unlinked_objects::DeletePlan;

/// Plans what is deleted when each object at `first` loses one use.
fn build_delete_plan(session: &Arc<NativeSession>, first: impl IntoIterator<Item = Addr>) -> Result<DeletePlan> {
    let mut plan = DeletePlan::default();
    let mut waiting: Vec<_> = first.into_iter().collect();
    while let Some(addr) = waiting.pop() {
        let lost = plan.lost_uses.entry(addr).or_default();
        *lost += 1;
        let header = session.load_header(addr)?;
        if *lost >= header.object_info()?.hard_link_count && plan.deleted_objects.insert(addr) {
            add_object_to_plan(&mut plan, session, &header, &mut waiting)?;
        }
    }
    Ok(plan)
}

/// Adds an object and everything that it holds. The objects that it uses lose one use.
pub(crate) fn add_object_to_plan(
    plan: &mut DeletePlan,
    session: &Arc<NativeSession>,
    header: &CachedHeader,
    uses: &mut Vec<Addr>,
) -> Result<()> {
    let addr = |id| session.header_addr_of(id);
    AttributeStorage::load(session, header)?.for_each_attribute(session, header, &mut |stored| {
        uses.extend(committed_datatype(stored.message.datatype.shared()).map(addr).transpose()?);
        Ok(true)
    })?;
    plan.shared_uses.extend(session.shared_uses_of_object(header)?);
    match kind_of(header)? {
        ObjectKind::Group => LinkStorage::load(session, header)?.for_each_link(header, &mut |link| {
            if let LinkTarget::Hard(id) = link.target {
                uses.extend(addr(id).ok());
            }
            true
        }),
        ObjectKind::Dataset => {
            let dataset = NativeDataset::open(session, header.addr())?;
            uses.extend(dataset.committed_datatype().map(addr).transpose()?);
            dataset.for_each_raw_range(&mut |addr, len| plan.raw_ranges.push((addr, len)))?;
            plan.datasets.push(dataset.into_shared());
            Ok(())
        }
        _ => Ok(()),
    }
}

impl NativeSession {
    /// The object at `addr` has lost a link or another use. If it was the last one, deletes the object, with everything
    /// to which nothing else leads. Call it before the structure that led to the object is changed.
    ///
    /// # Errors
    /// If a structure to be deleted cannot be read. Nothing has changed then.
    pub fn drop_use_or_delete_object(self: &Arc<Self>, addr: Addr) -> Result<()> {
        self.datasets.drop_cached_new_dataset();
        let plan = build_delete_plan(self, [addr])?;
        self.subtract_lost_uses(&plan)?;
        if plan.deleted_objects.is_empty() || !self.may_be_followed() {
            return self.free_and_mark_deleted(plan);
        }
        plan.datasets.iter().for_each(|dataset| dataset.mark_deleted());
        self.unlinked.delete_later([plan]);
        Ok(())
    }

    /// A committed datatype, if it was one, has lost a use.
    ///
    /// # Errors
    /// As [`NativeSession::drop_use_or_delete_object`].
    pub fn drop_committed_type_use(self: &Arc<Self>, committed: Option<ObjectId>) -> Result<()> {
        committed.map_or(Ok(()), |id| self.drop_use_or_delete_object(self.header_addr_of(id)?))
    }
}

#[cfg(test)]
mod tests {
    use h5live_cache::MemoryStorage;
    use h5live_model::{DatasetSpec, Name, NewObject, ObjectScope, ObjectSpec, PublishLevel, Store, StoreWriter};

    use super::*;
    use crate::{LibVer, Mode, NativeFile, OpenOptions};

    #[test]
    fn a_deleted_object_gives_back_what_it_took_and_no_more() {
        for profile in [LibVer::V18, LibVer::V110, LibVer::V200] {
            let options = OpenOptions { mode: Mode::Create, profile, ..OpenOptions::default() };
            let file = NativeFile::open_storage(Arc::new(MemoryStorage::new()), &options).unwrap();
            let name = Name::from("object");
            for spec in [ObjectSpec::group(), DatasetSpec::default().into()] {
                file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
                let space = file.native_session().cache.space();
                let before = (space.allocated_end(), space.free_bytes());
                file.create(&NewObject::linked(file.session().root, &name, &spec)).unwrap();
                file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
                file.remove_link(file.session().root, &name).unwrap();
                file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
                assert_eq!(space.free_bytes() - before.1, space.allocated_end() - before.0, "{profile:?} {spec:?}");
            }
        }
    }

    #[test]
    fn a_session_ends_though_a_deleted_dataset_waits_for_a_flush() {
        let options = OpenOptions { mode: Mode::Create, ..OpenOptions::default() };
        let file = NativeFile::open_storage(Arc::new(MemoryStorage::new()), &options).unwrap();
        let (name, spec) = (Name::from("data"), DatasetSpec::default().into());
        let id = file.create(&NewObject::linked(file.session().root, &name, &spec)).unwrap();
        file.start_swmr().unwrap();
        file.remove_link(file.session().root, &name).unwrap();
        let addr = file.0.header_addr_of(id).unwrap();
        assert!(file.0.unlinked.is_pending_delete(addr));
        let session = Arc::downgrade(&file.0);
        drop(file);
        assert!(session.upgrade().is_none(), "what waits to be deleted keeps no session");
    }
}

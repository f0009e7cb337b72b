//! The log store as the seam has it: changes of objects.

use std::sync::Arc;

use h5live_model::{
    AttributeData, DatasetSpec, Error, FillValue, Layout, LinkTarget, Name, NewObject, ObjectId, ObjectInfoChange,
    ObjectKindSpec, ObjectScope, ObjectSpec, PublishLevel, Result, Store, StoreWriter,
};

use crate::anchor::{AnchorDataset, is_logged};
use crate::encode::UnstagedEntry;
use crate::entry::{DimVec, EntryChange};
use crate::leased_main_file::MainFileChangeContext;
use crate::session::LogSession;

/// The writing half of a session.
#[derive(Debug)]
pub struct LogWriter(Arc<LogSession>);

impl LogWriter {
    /// That of this session.
    pub fn new(session: Arc<LogSession>) -> Self {
        LogWriter(session)
    }

    /// The name of a link as it is stored.
    fn link_name(&self, group: ObjectId, name: &Name) -> Name {
        self.0.stored_link_name(group, name)
    }

    /// Makes a dataset whose elements go into the log. The anchor is whole before the link is there.
    fn create_logged(&self, new: &NewObject<'_>, spec: &DatasetSpec) -> Result<ObjectId> {
        self.0.check_open()?;
        spec.check()?;
        if let Some(elements) = new.compact_elements
            && (spec.layout != Layout::Compact || spec.chunk_bytes_or_total() != Some(elements.len() as u64))
        {
            return Err(Error::Invalid(
                "only a compact dataset is made with its elements, with all of them".to_owned(),
            ));
        }
        if let Some((_, name)) = new.link {
            name.check_as_link_name()?;
        }
        let mut spec = spec.clone();
        self.change(|on| {
            let main = on.main;
            if let Some((group, name)) = new.link
                && main.link(group, &self.link_name(group, name))?.is_some()
            {
                return Err(Error::Exists(name.clone()));
            }
            self.move_fill_value(main, &mut spec)?;
            let id = self.create_anchor(main, new, &spec)?;
            if new.link.is_none() {
                on.track_unlinked_object(id);
            }
            Ok(id)
        })
    }

    /// Makes an anchor with its link. Its elements are staged.
    fn create_anchor(&self, main: &dyn Store, new: &NewObject<'_>, spec: &DatasetSpec) -> Result<ObjectId> {
        let writer = main.writer()?;
        let anchor = AnchorDataset { number: self.0.take_next_dataset_number(main)?, spec: spec.clone() };
        let body = ObjectKindSpec::Dataset(Box::new(self.0.layout.placeholder_spec(&anchor)));
        let id = writer.create(&NewObject::unlinked(&ObjectSpec { body, ..new.spec.clone() }))?;
        let finish = || {
            self.0
                .layout
                .anchor_attributes(&anchor)
                .iter()
                .try_for_each(|attribute| writer.set_attribute(id, attribute))?;
            self.0.track_new_anchor(anchor.number, id);
            if let Some(elements) = new.compact_elements {
                let count = DimVec::from_slice(spec.dataspace.dims());
                let change = EntryChange::Block { start: DimVec::from_elem(0, count.len()), count };
                let entry = UnstagedEntry::plain(change, elements);
                self.0.change_state(|state| state.stage_entry(anchor.number, spec.dataspace.rank(), entry))?;
            }
            match new.link {
                Some((group, name)) => writer.add_link(group, &self.link_name(group, name), &LinkTarget::Hard(id)),
                None => Ok(()),
            }
        };
        finish().inspect_err(|_| {
            let _removing = self.0.lock_removals();
            // The first error says more.
            let _ = writer.discard(id);
        })?;
        Ok(id)
    }

    /// Changes the main file.
    fn change<T>(&self, change: impl FnOnce(&mut MainFileChangeContext<'_>) -> Result<T>) -> Result<T> {
        self.0.change_main_file(change)
    }

    /// Moves what a fill value leads to from the own subfile to the main file, where its description will be.
    fn move_fill_value(&self, main: &dyn Store, spec: &mut DatasetSpec) -> Result<()> {
        if let FillValue::Value(value) = &mut spec.fill.value {
            self.0.copy_blobs_to_main(main, &spec.datatype, value)?;
        }
        Ok(())
    }
}

impl StoreWriter for LogWriter {
    fn create(&self, new: &NewObject<'_>) -> Result<ObjectId> {
        if let ObjectKindSpec::Dataset(spec) = &new.spec.body {
            self.0.layout.check_dataset(spec)?;
            if is_logged(spec) {
                return self.create_logged(new, spec);
            }
        }
        let stored = new.link.map(|(group, name)| (group, self.link_name(group, name)));
        let link = stored.as_ref().map(|(group, name)| (*group, name));
        self.change(|on| {
            let id = on.main.writer()?.create(&NewObject { link, ..*new })?;
            if link.is_none() {
                on.track_unlinked_object(id);
            }
            Ok(id)
        })
    }

    fn discard(&self, id: ObjectId) -> Result<()> {
        self.change(|on| {
            on.mark_possible_removal();
            let _removing = self.0.lock_removals();
            on.main.writer()?.discard(id)?;
            on.untrack_unlinked_object(id);
            Ok(())
        })
    }

    fn add_link(&self, group: ObjectId, name: &Name, target: &LinkTarget) -> Result<()> {
        let name = self.link_name(group, name);
        self.change(|on| {
            on.main.writer()?.add_link(group, &name, target)?;
            if let LinkTarget::Hard(id) = target {
                on.untrack_unlinked_object(*id);
                on.add_changed_object(*id);
            }
            Ok(())
        })
    }

    fn remove_link(&self, group: ObjectId, name: &Name) -> Result<()> {
        let name = self.link_name(group, name);
        self.change(|on| {
            on.mark_possible_removal();
            let _removing = self.0.lock_removals();
            on.main.writer()?.remove_link(group, &name)
        })
    }

    fn rename_link(&self, from: (ObjectId, &Name), to: (ObjectId, &Name)) -> Result<()> {
        let (old, new) = (self.link_name(from.0, from.1), self.link_name(to.0, to.1));
        self.change(|on| on.main.writer()?.rename_link((from.0, &old), (to.0, &new)))
    }

    fn set_attribute(&self, id: ObjectId, attribute: &AttributeData) -> Result<()> {
        attribute.check()?;
        let name = self.0.layout.stored_name(&attribute.name);
        let mut stored = AttributeData { name, ..attribute.clone() };
        self.change(|on| {
            self.0.copy_blobs_to_main(on.main, &attribute.datatype, &mut stored.value)?;
            on.add_changed_object(id);
            on.main.writer()?.set_attribute(id, &stored)
        })
    }

    fn remove_attribute(&self, id: ObjectId, name: &Name) -> Result<()> {
        let name = self.0.layout.stored_name(name);
        self.change(|on| {
            on.add_changed_object(id);
            on.main.writer()?.remove_attribute(id, &name)
        })
    }

    fn set_info(&self, id: ObjectId, change: &ObjectInfoChange<'_>) -> Result<()> {
        self.change(|on| {
            on.add_changed_object(id);
            on.main.writer()?.set_info(id, change)
        })
    }

    fn put_blob(&self, bytes: &[u8], count: u32) -> Result<Vec<u8>> {
        self.0.put_blobs(&[(bytes, count)])
    }

    fn put_blobs(&self, blobs: &[(&[u8], u32)]) -> Result<Vec<u8>> {
        self.0.put_blobs(blobs)
    }

    /// Earlier entries of the log still lead to the bytes.
    fn remove_blobs(&self, _elements: &[&[u8]]) -> Result<()> {
        self.0.check_open()
    }

    fn start_swmr(&self) -> Result<()> {
        self.0.layout.check_swmr_write()?;
        self.0.commit(PublishLevel::Visible)?;
        match self.0.is_joined_writer() {
            true => Ok(()),
            false => self.0.inner.writer()?.start_swmr(),
        }
    }

    fn is_dirty(&self) -> bool {
        self.0.is_dirty()
    }

    fn commit(&self, _: ObjectScope<'_>, publish: PublishLevel) -> Result<()> {
        self.0.commit(publish)
    }
}

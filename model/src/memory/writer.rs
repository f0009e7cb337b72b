//! Changes of a file in memory.

use super::MemoryStore;
use super::dataset::MemoryDataset;
use super::state::MemoryBody;
use crate::{
    AttributeData, ChunkCoord, ChunkWrite, Error, Layout, LinkTarget, Name, NewObject, ObjectId, ObjectInfoChange,
    ObjectKindSpec, ObjectScope, PublishLevel, Result, StoreWriter,
};

impl StoreWriter for MemoryStore {
    fn create(&self, new: &NewObject<'_>) -> Result<ObjectId> {
        let mut state = self.lock_to_write()?;
        if let Some((group, name)) = new.link {
            state.check_new_link(group, name)?;
        }
        let elements = new.compact_elements.map(|elements| match &new.spec.body {
            ObjectKindSpec::Dataset(spec) if spec.layout == Layout::Compact => Ok((elements, spec.dataspace.rank())),
            _ => Err(Error::Invalid("only a compact dataset is made with its elements".into())),
        });
        let elements = elements.transpose()?;
        let id = state.create(new.spec)?;
        if let Some((bytes, rank)) = elements {
            let write = ChunkWrite::Whole { coord: &ChunkCoord::origin(rank), filter_mask: 0, bytes };
            let file = &self.session.access.file;
            let fill = |stored: &mut MemoryDataset| {
                stored.write(&write, file.behavior, file.max_allocation)?;
                // The elements are there when the link is.
                stored.publish();
                Ok(())
            };
            state.dataset_mut(id).and_then(fill).inspect_err(|_| state.discard(id))?;
        }
        state.changed.insert(id);
        if let Some((group, name)) = new.link {
            state.insert_link(group, name, LinkTarget::Hard(id))?;
            state.add_hard_link(Some(id))?;
        }
        Ok(id)
    }

    fn discard(&self, id: ObjectId) -> Result<()> {
        let mut state = self.lock_to_write()?;
        if state.object(id)?.hard_links == 0 {
            state.discard(id);
        }
        Ok(())
    }

    fn set_info(&self, id: ObjectId, change: &ObjectInfoChange<'_>) -> Result<()> {
        let mut state = self.lock_to_write()?;
        match change {
            ObjectInfoChange::Comment(comment) => state.object_mut(id)?.comment = comment.cloned(),
            ObjectInfoChange::Times(_) => return Err(Error::Unsupported("keeping when an object was touched")),
        }
        state.changed.insert(id);
        Ok(())
    }

    fn add_link(&self, group: ObjectId, name: &Name, target: &LinkTarget) -> Result<()> {
        let mut state = self.lock_to_write()?;
        let object = match target {
            LinkTarget::Hard(id) => Some(*id),
            _ => None,
        };
        object.map(|id| state.object(id).map(drop)).transpose()?;
        state.insert_link(group, name, target.clone())?;
        state.add_hard_link(object)
    }

    fn remove_link(&self, group: ObjectId, name: &Name) -> Result<()> {
        let mut state = self.lock_to_write()?;
        let link = state.links_mut(group)?.by_name.remove(name).ok_or_else(|| Error::NotFound(name.clone()))?;
        state.changed.insert(group);
        if let LinkTarget::Hard(id) = link.target {
            state.remove_hard_links(vec![id]);
        }
        Ok(())
    }

    fn rename_link(&self, from: (ObjectId, &Name), to: (ObjectId, &Name)) -> Result<()> {
        self.lock_to_write()?.rename_link(from, to)
    }

    fn set_attribute(&self, id: ObjectId, attribute: &AttributeData) -> Result<()> {
        self.lock_to_write()?.set_attribute(id, attribute)
    }

    fn remove_attribute(&self, id: ObjectId, name: &Name) -> Result<()> {
        self.lock_to_write()?.remove_attribute(id, name)
    }

    fn put_blob(&self, bytes: &[u8], count: u32) -> Result<Vec<u8>> {
        self.put_blobs(&[(bytes, count)])
    }

    fn put_blobs(&self, blobs: &[(&[u8], u32)]) -> Result<Vec<u8>> {
        let mut state = self.lock_to_write()?;
        let mut elements = Vec::new();
        for (bytes, count) in blobs {
            state.heap.push((*bytes).into());
            elements.extend(count.to_le_bytes());
            elements.extend((state.heap.len() as u64).to_le_bytes());
            elements.extend([0; 4]);
        }
        Ok(elements)
    }

    /// Readers may be open, and the elements that they see may lead to the bytes.
    fn remove_blobs(&self, _elements: &[&[u8]]) -> Result<()> {
        self.lock_to_write().map(drop)
    }

    fn start_swmr(&self) -> Result<()> {
        self.commit(ObjectScope::All, PublishLevel::Visible)
    }

    fn is_dirty(&self) -> bool {
        self.lock_to_write().is_ok_and(|state| !state.changed.is_empty())
    }

    fn commit(&self, scope: ObjectScope<'_>, publish: PublishLevel) -> Result<()> {
        let mut state = self.lock_to_write()?;
        if publish == PublishLevel::Durable {
            return Err(Error::Unsupported("outlasting a power failure in memory"));
        }
        let has_no_links = |id: &ObjectId| {
            matches!(state.object(*id).map(|object| &object.body), Ok(MemoryBody::Dataset(_) | MemoryBody::Map(_)))
        };
        match scope {
            // Whatever a link leads to is seen before the link.
            ObjectScope::Objects(objects) if objects.iter().all(has_no_links) => {
                objects.iter().try_for_each(|id| state.publish(*id))?;
            }
            ObjectScope::Objects(_) | ObjectScope::All => state.publish_all(),
        }
        state.generation += 1;
        self.session.access.file.flushed.notify_all();
        Ok(())
    }
}

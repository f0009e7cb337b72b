//! The log store as the seam has it: changes of objects.

use std::sync::Arc;

use h5live_model::{
    AttributeData, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Error, InfoChange, Layout, LinkTarget,
    Name, NewObject, ObjectBody, ObjectId, ObjectSpec, Publish, ReferenceType, Referent, Result, Scope, StoreWriter,
};

use crate::anchor::{Anchor, is_logged};
use crate::chunks::LogChunks;
use crate::session::LogSession;

/// The writing half of a session.
#[derive(Debug)]
pub struct LogWriter(Arc<LogSession>);

impl LogWriter {
    /// That of this session.
    pub fn new(session: Arc<LogSession>) -> Self {
        LogWriter(session)
    }

    fn inner(&self) -> Result<&dyn StoreWriter> {
        self.0.check_open()?;
        self.0.inner.writer()
    }

    /// The name of a link as it is stored.
    fn link_name(&self, group: ObjectId, name: &Name) -> Name {
        self.0.stored_link_name(group, name)
    }

    /// Makes a dataset whose elements go into the log. The anchor is whole before the link is there.
    fn create_logged(&self, new: &NewObject<'_>, spec: &DatasetSpec) -> Result<ObjectId> {
        let inner = self.inner()?;
        spec.check()?;
        if let Some(elements) = new.elements
            && (spec.layout != Layout::Compact || spec.chunk_bytes() != Some(elements.len() as u64))
        {
            return Err(Error::Invalid(
                "only a compact dataset is made with its elements, with all of them".to_owned(),
            ));
        }
        if let Some((group, name)) = new.link {
            name.check_as_link()?;
            if self.0.inner.link(group, &self.link_name(group, name))?.is_some() {
                return Err(Error::Exists(name.clone()));
            }
        }
        let anchor = Anchor { id: self.0.new_dataset_number(inner)?, spec: spec.clone() };
        let body = ObjectBody::Dataset(Box::new(anchor.stored_spec()));
        let id = inner.create(&NewObject::unlinked(&ObjectSpec { body, ..new.spec.clone() }))?;
        let finish = || {
            anchor.attributes().iter().try_for_each(|attribute| inner.set_attribute(id, attribute))?;
            self.0.note_anchor(id);
            if let Some(elements) = new.elements {
                let data = LogChunks::new(&self.0, self.0.inner.dataset(id)?, anchor.clone())?;
                let coord = ChunkCoord::origin(spec.dataspace.rank());
                let writes = [ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: elements }];
                data.write(&ChunkBatch { writes: &writes, ..ChunkBatch::default() })?;
            }
            match new.link {
                Some((group, name)) => inner.add_link(group, &self.link_name(group, name), &LinkTarget::Hard(id)),
                None => Ok(()),
            }
        };
        finish().inspect_err(|_| {
            // The first error says more.
            let _ = inner.discard(id);
        })?;
        Ok(id)
    }
}

impl StoreWriter for LogWriter {
    fn create(&self, new: &NewObject<'_>) -> Result<ObjectId> {
        if let ObjectBody::Dataset(spec) = &new.spec.body
            && is_logged(spec)
        {
            return self.create_logged(new, spec);
        }
        let stored = new.link.map(|(group, name)| (group, self.link_name(group, name)));
        let link = stored.as_ref().map(|(group, name)| (*group, name));
        self.inner()?.create(&NewObject { link, ..*new })
    }

    fn discard(&self, id: ObjectId) -> Result<()> {
        self.inner()?.discard(id)
    }

    fn add_link(&self, group: ObjectId, name: &Name, target: &LinkTarget) -> Result<()> {
        self.inner()?.add_link(group, &self.link_name(group, name), target)
    }

    fn remove_link(&self, group: ObjectId, name: &Name) -> Result<()> {
        self.inner()?.remove_link(group, &self.link_name(group, name))
    }

    fn rename_link(&self, from: (ObjectId, &Name), to: (ObjectId, &Name)) -> Result<()> {
        let (old, new) = (self.link_name(from.0, from.1), self.link_name(to.0, to.1));
        self.inner()?.rename_link((from.0, &old), (to.0, &new))
    }

    fn set_attribute(&self, id: ObjectId, attribute: &AttributeData) -> Result<()> {
        let name = self.0.naming.stored_name(&attribute.name);
        self.inner()?.set_attribute(id, &AttributeData { name, ..attribute.clone() })
    }

    fn remove_attribute(&self, id: ObjectId, name: &Name) -> Result<()> {
        self.inner()?.remove_attribute(id, &self.0.naming.stored_name(name))
    }

    fn set_info(&self, id: ObjectId, change: &InfoChange<'_>) -> Result<()> {
        self.inner()?.set_info(id, change)
    }

    fn put_blob(&self, bytes: &[u8], count: u32) -> Result<Vec<u8>> {
        self.inner()?.put_blob(bytes, count)
    }

    /// Earlier entries of the log still lead to the bytes.
    fn remove_blobs(&self, _elements: &[&[u8]]) -> Result<()> {
        self.inner().map(drop)
    }

    fn reference(&self, form: &ReferenceType, to: &Referent) -> Result<Vec<u8>> {
        self.inner()?.reference(form, to)
    }

    fn start_swmr(&self) -> Result<()> {
        self.0.commit(Publish::Visible)?;
        self.inner()?.start_swmr()
    }

    fn is_dirty(&self) -> bool {
        self.0.is_dirty()
    }

    fn commit(&self, _: Scope<'_>, publish: Publish) -> Result<()> {
        self.0.commit(publish)
    }
}

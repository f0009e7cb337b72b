//! Changes of objects: made, linked, described anew, deleted.

use std::sync::Arc;

use h5live_model::{
    AttributeData, ChunkCoord, DatasetSpec, Datatype, Error as ModelError, FillValue, Layout, LinkTarget, Name,
    NewObject, ObjectId, ObjectInfoChange, ObjectKind, ObjectKindSpec, Result,
};

use crate::engine::ObjectPut;
use crate::error::{damaged_object_error, invalid_or_unsupported_error};
use crate::layout::{
    AclRight, AttributeContent, DatatypeAndCommittedId, ElementCodec, EntryQuery, LayoutError, LinksOrAttributes,
    ObjectDocument,
};
use crate::session::{HsdsSession, unix_seconds_now};

fn kind_of(body: &ObjectKindSpec) -> ObjectKind {
    match body {
        ObjectKindSpec::Group(_) => ObjectKind::Group,
        ObjectKindSpec::Dataset(_) => ObjectKind::Dataset,
        ObjectKindSpec::Datatype(_) => ObjectKind::Datatype,
        ObjectKindSpec::Map(_) => ObjectKind::Map,
    }
}

impl HsdsSession {
    /// Makes an object, and links it if it has a link.
    ///
    /// # Errors
    /// As [`StoreWriter::create`](h5live_model::StoreWriter::create).
    pub fn create_object(&self, new: &NewObject<'_>) -> Result<ObjectId> {
        self.check_writable()?;
        match new.link {
            Some((group, name)) => {
                self.check_new_link(group, name)?;
                self.check_right(Some(&*self.group(group)?), AclRight::Create)?;
            }
            None => self.check_right(None, AclRight::Create)?,
        }
        self.check_spec(new)?;
        let kind = kind_of(&new.spec.body);
        let id = self.new_id(kind)?;
        let fill = match &new.spec.body {
            ObjectKindSpec::Dataset(dataset) => self.stored_fill(dataset)?,
            _ => None,
        };
        let document = ObjectDocument::new(self.domain, id, new.spec, fill.as_deref(), unix_seconds_now())
            .map_err(invalid_or_unsupported_error)?;
        if let (ObjectKindSpec::Dataset(dataset), Some(elements)) = (&new.spec.body, new.compact_elements) {
            self.put_first_elements(&document, dataset, elements)?;
        }
        let mut state = self.state_mut()?;
        state.insert_new(document);
        if let ObjectKindSpec::Dataset(dataset) = &new.spec.body
            && let Some(committed) = dataset.committed_datatype
        {
            state.add_references(committed, 1);
        }
        drop(state);
        match new.link {
            Some((group, name)) => self.add_link_to(group, name, &LinkTarget::Hard(id)).map(|()| id),
            None => Ok(id),
        }
    }

    fn check_spec(&self, new: &NewObject<'_>) -> Result<()> {
        let refused =
            || Err(ModelError::Invalid("only a compact dataset is made with its elements, all of them".into()));
        match &new.spec.body {
            ObjectKindSpec::Dataset(dataset) => {
                dataset.check()?;
                self.check_committed(dataset.committed_datatype, &dataset.datatype)?;
                let is_whole = |elements: &[u8]| {
                    dataset.layout == Layout::Compact && dataset.chunk_bytes_or_total() == Some(elements.len() as u64)
                };
                if new.compact_elements.is_some_and(|elements| !is_whole(elements)) { refused() } else { Ok(()) }
            }
            ObjectKindSpec::Map(_) => Err(ModelError::Unsupported("a map in an object store")),
            _ if new.compact_elements.is_some() => refused(),
            _ => Ok(()),
        }
    }

    fn check_committed(&self, committed: Option<ObjectId>, datatype: &Datatype) -> Result<()> {
        let Some(id) = committed else { return Ok(()) };
        let document = self.document(id)?;
        if document.kind() != ObjectKind::Datatype {
            return Err(ModelError::WrongKind { expected: "committed datatype" });
        }
        let key = self.domain.document_key(id);
        match document.datatype().map_err(damaged_object_error(&key))? == *datatype {
            true => Ok(()),
            false => Err(ModelError::Invalid("the committed datatype is another type".into())),
        }
    }

    fn stored_fill(&self, dataset: &DatasetSpec) -> Result<Option<Vec<u8>>> {
        match &dataset.fill.value {
            FillValue::Value(element) => {
                let codec = ElementCodec::new(&dataset.datatype);
                Ok(Some(self.pack(&codec, element)?.0))
            }
            _ => Ok(None),
        }
    }

    /// Writes the elements of a compact dataset, which are there when its link is.
    fn put_first_elements(&self, document: &ObjectDocument, dataset: &DatasetSpec, elements: &[u8]) -> Result<()> {
        let form = self.chunk_codec(document, dataset);
        let (stored, _) = self.pack(&form.element_codec, elements)?;
        let origin = ChunkCoord::origin(dataset.dataspace.rank());
        let key = self.domain.chunk_key(document.id(), &origin, document.chunk_partition_count());
        self.put_or_queue_chunks(vec![ObjectPut { key, bytes: form.compress(stored)? }])
    }

    /// A group.
    ///
    /// # Errors
    /// [`ModelError::WrongKind`], [`ModelError::NoObject`].
    pub fn group(&self, id: ObjectId) -> Result<Arc<ObjectDocument>> {
        let document = self.document(id)?;
        if document.kind() == ObjectKind::Group {
            Ok(document)
        } else {
            Err(ModelError::WrongKind { expected: "group" })
        }
    }

    fn check_new_link(&self, group: ObjectId, name: &Name) -> Result<()> {
        name.check_as_link_name()?;
        if name.as_str().is_none() {
            return Err(invalid_or_unsupported_error(LayoutError::Unsupported("a name that is no UTF-8")));
        }
        let key = self.domain.document_key(group);
        let query = EntryQuery::One(LinksOrAttributes::Links, name);
        match self.group_with_entries(group, query)?.link(name).map_err(damaged_object_error(&key))? {
            Some(_) => Err(ModelError::Exists(name.clone())),
            None => Ok(()),
        }
    }

    /// Changes a document, which is read if it is not known. Links and attributes stay as they are.
    ///
    /// # Errors
    /// [`ModelError::NoObject`], and those of `change`: then nothing has changed.
    pub fn change_document<T>(&self, id: ObjectId, change: impl Fn(&mut ObjectDocument) -> Result<T>) -> Result<T> {
        self.check_writable()?;
        loop {
            self.document(id)?;
            let mut state = self.state_mut()?;
            if state.cached_tagged_document(id).is_some() {
                return state.change(id, change);
            }
        }
    }

    /// Changes a link or an attribute in a document, which is read if it is not known, with its shard.
    fn change_entry<T>(
        &self,
        id: ObjectId,
        (class, name): (LinksOrAttributes, &Name),
        change: impl Fn(&mut ObjectDocument) -> Result<T>,
    ) -> Result<T> {
        self.check_writable()?;
        let query = EntryQuery::One(class, name);
        loop {
            self.document_with_entries(id, query)?;
            let mut state = self.state_mut()?;
            if state.cached_tagged_document(id).is_some_and(|stored| stored.document.unloaded_shards(query).is_empty())
            {
                return state.change(id, change);
            }
        }
    }

    /// Adds a link.
    ///
    /// # Errors
    /// As [`StoreWriter::add_link`](h5live_model::StoreWriter::add_link).
    pub fn add_link_to(&self, group: ObjectId, name: &Name, target: &LinkTarget) -> Result<()> {
        self.check_writable()?;
        self.check_new_link(group, name)?;
        self.check_right(Some(&*self.group(group)?), AclRight::Create)?;
        match target {
            LinkTarget::Hard(id) => drop(self.document(*id)?),
            LinkTarget::UserDefined { .. } => {
                return Err(ModelError::Unsupported("a user-defined link in an object store"));
            }
            _ => {}
        }
        let entry = (LinksOrAttributes::Links, name);
        self.change_entry(group, entry, |document| {
            document.put_link(name, target, unix_seconds_now()).map_err(invalid_or_unsupported_error)
        })?;
        if let LinkTarget::Hard(id) = target {
            self.state_mut()?.add_references(*id, 1);
        }
        Ok(())
    }

    fn take_link(&self, group: ObjectId, name: &Name) -> Result<LinkTarget> {
        let key = self.domain.document_key(group);
        let found = self.group_with_entries(group, EntryQuery::One(LinksOrAttributes::Links, name))?.link(name);
        let link = found.map_err(damaged_object_error(&key))?.ok_or_else(|| ModelError::NotFound(name.clone()))?;
        self.check_right(Some(&*self.group(group)?), AclRight::Delete)?;
        self.change_entry(group, (LinksOrAttributes::Links, name), |document| {
            document.remove_link(name).map_err(invalid_or_unsupported_error)
        })?;
        Ok(link.target)
    }

    /// Removes a link, and its object if no other one leads there.
    ///
    /// # Errors
    /// As [`StoreWriter::remove_link`](h5live_model::StoreWriter::remove_link).
    pub fn remove_link_from(&self, group: ObjectId, name: &Name) -> Result<()> {
        self.check_writable()?;
        self.ensure_references_counted()?;
        match self.take_link(group, name)? {
            LinkTarget::Hard(id) => self.release(vec![id]),
            _ => Ok(()),
        }
    }

    /// Gives a link another name.
    ///
    /// # Errors
    /// As [`StoreWriter::rename_link`](h5live_model::StoreWriter::rename_link).
    pub fn rename_link_from(&self, from: (ObjectId, &Name), to: (ObjectId, &Name)) -> Result<()> {
        self.check_writable()?;
        let key = self.domain.document_key(from.0);
        let found = self.group_with_entries(from.0, EntryQuery::One(LinksOrAttributes::Links, from.1))?.link(from.1);
        let link = found.map_err(damaged_object_error(&key))?.ok_or_else(|| ModelError::NotFound(from.1.clone()))?;
        if from == to {
            return Ok(());
        }
        self.check_new_link(to.0, to.1)?;
        self.change_entry(to.0, (LinksOrAttributes::Links, to.1), |document| {
            document.put_link(to.1, &link.target, unix_seconds_now()).map_err(invalid_or_unsupported_error)
        })?;
        self.take_link(from.0, from.1).map(drop)
    }

    /// Takes one use from each object, and deletes each that has none left, with what only it leads to.
    fn release(&self, mut ids: Vec<ObjectId>) -> Result<()> {
        while let Some(id) = ids.pop() {
            let left = self.state_mut()?.drop_reference(id);
            if left > 0 || id == self.domain.root() {
                continue;
            }
            match self.document_with_entries(id, EntryQuery::All) {
                Ok(document) => {
                    self.state_mut()?.delete(id);
                    ids.extend(document.known_used_objects());
                }
                // It was deleted already, or was never there.
                Err(ModelError::NoObject(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Deletes an object to which no link leads.
    ///
    /// # Errors
    /// [`ModelError::NoObject`].
    pub fn delete_if_unlinked(&self, id: ObjectId) -> Result<()> {
        self.check_writable()?;
        let document = self.document_with_entries(id, EntryQuery::All)?;
        self.check_right(Some(&document), AclRight::Delete)?;
        self.ensure_references_counted()?;
        let mut state = self.state_mut()?;
        if id == self.domain.root()
            || state.reference_counts.as_ref().and_then(|uses| uses.get(&id)).is_some_and(|uses| *uses > 0)
        {
            return Ok(());
        }
        state.delete(id);
        drop(state);
        self.release(document.known_used_objects())
    }

    /// Sets an attribute.
    ///
    /// # Errors
    /// As [`StoreWriter::set_attribute`](h5live_model::StoreWriter::set_attribute).
    pub fn set_attribute_of(&self, id: ObjectId, new: &AttributeData) -> Result<()> {
        self.check_writable()?;
        new.check()?;
        let key = self.domain.document_key(id);
        let document = self.document_with_entries(id, EntryQuery::One(LinksOrAttributes::Attributes, &new.name))?;
        self.check_committed(new.committed_datatype, &new.datatype)?;
        let old = document.attribute(&new.name).map_err(damaged_object_error(&key))?;
        self.check_right(Some(&document), if old.is_some() { AclRight::Update } else { AclRight::Create })?;
        let old = old.and_then(|old| old.datatype.committed_datatype);
        if old.is_some() {
            self.ensure_references_counted()?;
        }
        let codec = ElementCodec::new(&new.datatype);
        let (stored, _) = self.pack(&codec, &new.value)?;
        let used =
            DatatypeAndCommittedId { datatype: new.datatype.clone(), committed_datatype: new.committed_datatype };
        let record = AttributeContent {
            datatype: used,
            dataspace: new.dataspace.clone(),
            stored_elements: stored,
            creation_order: None,
        };
        let entry = (LinksOrAttributes::Attributes, &new.name);
        self.change_entry(id, entry, |document| {
            document.set_attribute(&new.name, &record, unix_seconds_now()).map_err(invalid_or_unsupported_error)
        })?;
        if let Some(committed) = new.committed_datatype {
            self.state.write().add_references(committed, 1);
        }
        self.release(old.into_iter().collect())
    }

    /// Removes an attribute.
    ///
    /// # Errors
    /// [`ModelError::NotFound`].
    pub fn remove_attribute_of(&self, id: ObjectId, name: &Name) -> Result<()> {
        self.check_writable()?;
        let key = self.domain.document_key(id);
        let document = self.document_with_entries(id, EntryQuery::One(LinksOrAttributes::Attributes, name))?;
        self.check_right(Some(&document), AclRight::Delete)?;
        let old = document.attribute(name).map_err(damaged_object_error(&key))?;
        let old = old.ok_or_else(|| ModelError::NotFound(name.clone()))?.datatype.committed_datatype;
        if old.is_some() {
            self.ensure_references_counted()?;
        }
        self.change_entry(id, (LinksOrAttributes::Attributes, name), |document| {
            document.remove_attribute(name).map_err(invalid_or_unsupported_error)
        })?;
        self.release(old.into_iter().collect())
    }

    /// Changes what is known of an object.
    ///
    /// # Errors
    /// [`ModelError::NoObject`].
    pub fn set_comment_or_times(&self, id: ObjectId, change: &ObjectInfoChange<'_>) -> Result<()> {
        self.check_writable()?;
        self.check_right(Some(&*self.document(id)?), AclRight::Update)?;
        self.change_document(id, |document| match change {
            ObjectInfoChange::Comment(comment) => document.set_comment(*comment).map_err(invalid_or_unsupported_error),
            ObjectInfoChange::Times(times) => {
                if document.times().is_some() {
                    document.set_times(times);
                }
                Ok(())
            }
        })
    }
}

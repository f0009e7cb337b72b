//! The contents of a file in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::{
    AttributeData, CreationOrder, Datatype, Error, GroupSpec, Link, LinkOrAttributeStorageSpec, LinkTarget, Name,
    ObjectId, ObjectKindSpec, ObjectSpec, ReferenceKind, ReferenceType, Referent, ReferentPart, Result,
};

use super::dataset::MemoryDataset;
use super::map::MemoryMap;

pub(super) const ROOT: ObjectId = ObjectId(1);

#[derive(Debug)]
pub(super) struct MemoryState {
    pub(super) objects: BTreeMap<ObjectId, MemoryObject>,
    pub(super) heap: Vec<Arc<[u8]>>,
    /// Targets of references that are no plain addresses. An element holds the number of its target, counted from 1.
    referents: Vec<Referent>,
    next_id: u128,
    /// Number of flushes so far: what a waiting reader looks at.
    pub(super) generation: u64,
    pub(super) has_writer: bool,
    /// Objects that were changed since they were last committed.
    pub(super) changed: BTreeSet<ObjectId>,
}

impl Default for MemoryState {
    fn default() -> Self {
        MemoryState::new(&ObjectSpec::group())
    }
}

#[derive(Debug)]
pub(super) struct MemoryObject {
    pub(super) attributes: BTreeMap<Name, AttributeData>,
    pub(super) attribute_storage: LinkOrAttributeStorageSpec,
    next_attribute: u16,
    pub(super) comment: Option<Name>,
    /// Hard links, and uses of a committed datatype.
    pub(super) hard_links: u32,
    pub(super) body: MemoryBody,
}

#[derive(Debug)]
pub(super) enum MemoryBody {
    Group(MemoryLinks),
    Dataset(Box<MemoryDataset>),
    Datatype(Datatype),
    Map(Box<MemoryMap>),
}

#[derive(Debug, Default)]
pub(super) struct MemoryLinks {
    pub(super) spec: GroupSpec,
    pub(super) by_name: BTreeMap<Name, Link>,
    next_creation_order: i64,
}

impl MemoryObject {
    fn new(spec: &ObjectSpec, body: MemoryBody) -> Self {
        MemoryObject {
            attributes: BTreeMap::new(),
            attribute_storage: spec.attribute_storage,
            next_attribute: 0,
            comment: None,
            hard_links: 0,
            body,
        }
    }

    /// Other objects that live as long as this one does.
    fn owned_objects(self) -> Vec<ObjectId> {
        let mut held: Vec<_> =
            self.attributes.into_values().filter_map(|attribute| attribute.committed_datatype).collect();
        match self.body {
            MemoryBody::Group(links) => held.extend(links.by_name.into_values().filter_map(|link| match link.target {
                LinkTarget::Hard(id) => Some(id),
                _ => None,
            })),
            MemoryBody::Dataset(stored) => held.extend(stored.spec.committed_datatype),
            MemoryBody::Datatype(_) | MemoryBody::Map(_) => {}
        }
        held
    }
}

impl MemoryState {
    /// A new file that somebody writes, with a root group like this.
    pub(super) fn new(root: &ObjectSpec) -> Self {
        let spec = if let ObjectKindSpec::Group(spec) = root.body { spec } else { GroupSpec::default() };
        let body = MemoryBody::Group(MemoryLinks { spec, ..MemoryLinks::default() });
        let objects = [(ROOT, MemoryObject { hard_links: 1, ..MemoryObject::new(root, body) })].into();
        MemoryState {
            objects,
            heap: Vec::new(),
            referents: Vec::new(),
            next_id: 2,
            generation: 0,
            has_writer: true,
            changed: BTreeSet::new(),
        }
    }

    pub(super) fn object(&self, id: ObjectId) -> Result<&MemoryObject> {
        self.objects.get(&id).ok_or(Error::NoObject(id))
    }

    pub(super) fn object_mut(&mut self, id: ObjectId) -> Result<&mut MemoryObject> {
        self.objects.get_mut(&id).ok_or(Error::NoObject(id))
    }

    pub(super) fn links(&self, id: ObjectId) -> Result<&MemoryLinks> {
        match &self.object(id)?.body {
            MemoryBody::Group(links) => Ok(links),
            _ => Err(Error::WrongKind { expected: "group" }),
        }
    }

    pub(super) fn links_mut(&mut self, id: ObjectId) -> Result<&mut MemoryLinks> {
        match &mut self.object_mut(id)?.body {
            MemoryBody::Group(links) => Ok(links),
            _ => Err(Error::WrongKind { expected: "group" }),
        }
    }

    pub(super) fn dataset(&self, id: ObjectId) -> Result<&MemoryDataset> {
        match &self.object(id)?.body {
            MemoryBody::Dataset(stored) => Ok(stored),
            _ => Err(Error::WrongKind { expected: "dataset" }),
        }
    }

    pub(super) fn dataset_mut(&mut self, id: ObjectId) -> Result<&mut MemoryDataset> {
        match &mut self.object_mut(id)?.body {
            MemoryBody::Dataset(stored) => Ok(stored),
            _ => Err(Error::WrongKind { expected: "dataset" }),
        }
    }

    pub(super) fn map(&self, id: ObjectId) -> Result<&MemoryMap> {
        match &self.object(id)?.body {
            MemoryBody::Map(stored) => Ok(stored),
            _ => Err(Error::WrongKind { expected: "map" }),
        }
    }

    pub(super) fn map_mut(&mut self, id: ObjectId) -> Result<&mut MemoryMap> {
        match &mut self.object_mut(id)?.body {
            MemoryBody::Map(stored) => Ok(stored),
            _ => Err(Error::WrongKind { expected: "map" }),
        }
    }

    /// Makes an object without links.
    pub(super) fn create(&mut self, spec: &ObjectSpec) -> Result<ObjectId> {
        let body = match &spec.body {
            ObjectKindSpec::Group(group) => MemoryBody::Group(MemoryLinks { spec: *group, ..MemoryLinks::default() }),
            ObjectKindSpec::Datatype(datatype) => MemoryBody::Datatype(datatype.clone()),
            ObjectKindSpec::Map(spec) => {
                spec.check()?;
                MemoryBody::Map(Box::new(MemoryMap::new((**spec).clone())))
            }
            ObjectKindSpec::Dataset(spec) => {
                spec.check()?;
                self.check_committed(spec.committed_datatype, &spec.datatype)?;
                MemoryBody::Dataset(Box::new(MemoryDataset::new((**spec).clone())))
            }
        };
        let id = ObjectId(self.next_id);
        self.next_id += 1;
        if let ObjectKindSpec::Dataset(spec) = &spec.body {
            self.add_hard_link(spec.committed_datatype)?;
        }
        self.objects.insert(id, MemoryObject::new(spec, body));
        Ok(id)
    }

    /// Refuses a link that cannot be added.
    pub(super) fn check_new_link(&self, group: ObjectId, name: &Name) -> Result<()> {
        name.check_as_link_name()?;
        let taken = self.links(group)?.by_name.contains_key(name);
        if taken { Err(Error::Exists(name.clone())) } else { Ok(()) }
    }

    pub(super) fn insert_link(&mut self, group: ObjectId, name: &Name, target: LinkTarget) -> Result<()> {
        self.check_new_link(group, name)?;
        let links = self.links_mut(group)?;
        let tracked = links.spec.link_storage.order != CreationOrder::Untracked;
        let creation_order = tracked.then_some(links.next_creation_order);
        links.next_creation_order += 1;
        links.by_name.insert(name.clone(), Link { name: name.clone(), target, creation_order });
        self.changed.insert(group);
        Ok(())
    }

    pub(super) fn rename_link(&mut self, from: (ObjectId, &Name), to: (ObjectId, &Name)) -> Result<()> {
        let link = self.links(from.0)?.by_name.get(from.1).ok_or_else(|| Error::NotFound(from.1.clone()))?;
        if from != to {
            let target = link.target.clone();
            self.insert_link(to.0, to.1, target)?;
            self.links_mut(from.0)?.by_name.remove(from.1);
            self.changed.insert(from.0);
        }
        Ok(())
    }

    /// Sets an attribute, and returns its previous contents.
    pub(super) fn set_attribute(&mut self, id: ObjectId, attribute: &AttributeData) -> Result<()> {
        attribute.check()?;
        self.check_committed(attribute.committed_datatype, &attribute.datatype)?;
        let object = self.object_mut(id)?;
        let creation_order = match object.attributes.get(&attribute.name) {
            Some(old) => old.creation_order,
            None => {
                let order = object.next_attribute;
                object.next_attribute = order.wrapping_add(1);
                (object.attribute_storage.order != CreationOrder::Untracked).then_some(order)
            }
        };
        let new = AttributeData { creation_order, ..attribute.clone() };
        let old = object.attributes.insert(attribute.name.clone(), new);
        self.changed.insert(id);
        self.add_hard_link(attribute.committed_datatype)?;
        self.remove_hard_links(old.and_then(|old| old.committed_datatype).into_iter().collect());
        Ok(())
    }

    pub(super) fn remove_attribute(&mut self, id: ObjectId, name: &Name) -> Result<()> {
        let removed = self.object_mut(id)?.attributes.remove(name).ok_or_else(|| Error::NotFound(name.clone()))?;
        self.remove_hard_links(removed.committed_datatype.into_iter().collect());
        self.changed.insert(id);
        Ok(())
    }

    fn check_committed(&self, committed: Option<ObjectId>, datatype: &Datatype) -> Result<()> {
        let Some(id) = committed else { return Ok(()) };
        match &self.object(id)?.body {
            MemoryBody::Datatype(held) if held == datatype => Ok(()),
            MemoryBody::Datatype(_) => Err(Error::Invalid("the committed datatype is another type".into())),
            _ => Err(Error::WrongKind { expected: "committed datatype" }),
        }
    }

    /// Adds a hard link to an object.
    pub(super) fn add_hard_link(&mut self, id: Option<ObjectId>) -> Result<()> {
        if let Some(id) = id {
            self.object_mut(id)?.hard_links += 1;
        }
        Ok(())
    }

    /// Removes one hard link from each of `ids`. Deletes each object that has no link left, with everything below it.
    pub(super) fn remove_hard_links(&mut self, mut ids: Vec<ObjectId>) {
        while let Some(id) = ids.pop() {
            let Some(object) = self.objects.get_mut(&id) else { continue };
            object.hard_links = object.hard_links.saturating_sub(1);
            if object.hard_links == 0 {
                self.changed.remove(&id);
                ids.extend(self.objects.remove(&id).map(MemoryObject::owned_objects).unwrap_or_default());
            }
        }
    }

    /// Deletes an object, with all to which only it leads.
    pub(super) fn discard(&mut self, id: ObjectId) {
        self.changed.remove(&id);
        let owned = self.objects.remove(&id).map(MemoryObject::owned_objects).unwrap_or_default();
        self.remove_hard_links(owned);
    }

    /// Shows readers what a map or a dataset holds, and what the datasets hold that come before it.
    pub(super) fn publish(&mut self, id: ObjectId) -> Result<()> {
        if let MemoryBody::Map(stored) = &mut self.object_mut(id)?.body {
            stored.publish();
            self.changed.remove(&id);
            return Ok(());
        }
        let mut waiting = self.dataset_mut(id)?.publish();
        self.changed.remove(&id);
        while let Some(id) = waiting.pop() {
            // One that was deleted meanwhile shows nothing.
            if let Ok(stored) = self.dataset_mut(id) {
                waiting.extend(stored.publish());
                self.changed.remove(&id);
            }
        }
        Ok(())
    }

    /// Drops what was changed of datasets and maps and not published.
    pub(super) fn forget_unpublished(&mut self) {
        for object in self.objects.values_mut() {
            match &mut object.body {
                MemoryBody::Dataset(stored) => stored.forget_unpublished(),
                MemoryBody::Map(stored) => stored.forget_unpublished(),
                _ => {}
            }
        }
        self.changed.clear();
    }

    /// Shows readers what all datasets and maps hold.
    pub(super) fn publish_all(&mut self) {
        for object in self.objects.values_mut() {
            match &mut object.body {
                MemoryBody::Dataset(stored) => drop(stored.publish()),
                MemoryBody::Map(stored) => stored.publish(),
                _ => {}
            }
        }
        self.changed.clear();
    }

    /// The bytes of a variable-length element.
    pub(super) fn blob(&self, element: &[u8]) -> Result<Arc<[u8]>> {
        let place: [u8; 8] = element
            .get(4..12)
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| Error::Invalid("a variable-length element has 16 bytes".into()))?;
        let Some(place) = u64::from_le_bytes(place).checked_sub(1) else { return Ok(Arc::default()) };
        let bytes = usize::try_from(place).ok().and_then(|place| self.heap.get(place));
        bytes.cloned().ok_or_else(|| Error::Invalid("the heap has nothing in this place".into()))
    }

    pub(super) fn encode_reference(&mut self, form: &ReferenceType, to: &Referent) -> Result<Vec<u8>> {
        let fits = match form.kind {
            ReferenceKind::Object1 => to.part == ReferentPart::Whole && to.file.is_none() && form.size == 8,
            ReferenceKind::Region1 => matches!(to.part, ReferentPart::Region(_)) && to.file.is_none() && form.size >= 8,
            // The kinds of HDF5 1.12 differ by element.
            _ => form.size >= 8,
        };
        if !fits {
            return Err(Error::Invalid("such elements do not refer to such things".into()));
        }
        if to.file.is_none() {
            self.object(to.object)?;
        }
        let number = match form.kind {
            ReferenceKind::Object1 => u64::try_from(to.object.0).map_err(|_| Error::NoObject(to.object))?,
            _ => {
                self.referents.push(to.clone());
                self.referents.len() as u64
            }
        };
        let mut element = number.to_le_bytes().to_vec();
        element.resize(form.size as usize, 0);
        Ok(element)
    }

    pub(super) fn referent(&self, kind: ReferenceKind, element: &[u8]) -> Result<Option<Referent>> {
        let number: [u8; 8] = element
            .get(..8)
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| Error::Invalid("a reference has at least 8 bytes".into()))?;
        let number = u64::from_le_bytes(number);
        match (number.checked_sub(1), kind) {
            (None, _) => Ok(None),
            (_, ReferenceKind::Object1) => {
                Ok(Some(Referent { file: None, object: ObjectId(number.into()), part: ReferentPart::Whole }))
            }
            (Some(index), _) => {
                let found = usize::try_from(index).ok().and_then(|index| self.referents.get(index));
                found.cloned().map(Some).ok_or_else(|| Error::Invalid("nothing is behind this reference".into()))
            }
        }
    }
}

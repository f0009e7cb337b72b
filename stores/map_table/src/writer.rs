//! The layer as the seam has it: changes of objects.

use h5live_model::{
    AttributeData, Error, GroupSpec, LinkTarget, MapSpec, Name, NewObject, ObjectId, ObjectInfoChange, ObjectKindSpec,
    ObjectScope, ObjectSpec, PublishLevel, Result, StoreFeatures, StoreWriter,
};

use crate::layer::MapTableStore;
use crate::layout;
use crate::table::scope_with_tables;

impl MapTableStore {
    /// Makes a map. It is whole before the link is there.
    fn create_map(&self, new: &NewObject<'_>, map: &MapSpec) -> Result<ObjectId> {
        map.check()?;
        if new.compact_elements.is_some() {
            return Err(Error::Invalid("only a compact dataset is made with its elements".to_owned()));
        }
        if !self.inner().session().capabilities.features.has(StoreFeatures::UNLINKED) {
            return Err(Error::Unsupported("a map in a store without objects that no link leads to"));
        }
        if let Some((group, name)) = new.link {
            name.check_as_link_name()?;
            if self.inner().link(group, name)?.is_some() {
                return Err(Error::Exists(name.clone()));
            }
        }
        let writer = self.inner().writer()?;
        let table = ObjectSpec::from(layout::table_spec(map)?);
        let group = ObjectSpec { body: ObjectKindSpec::Group(GroupSpec::default()), ..new.spec.clone() };
        let id = writer.create(&NewObject::unlinked(&group))?;
        let finish = || {
            writer.set_attribute(id, &layout::map_mark_attribute())?;
            writer.create(&NewObject::linked(id, &layout::TABLE_LINK.into(), &table))?;
            match new.link {
                Some((group, name)) => writer.add_link(group, name, &LinkTarget::Hard(id)),
                None => Ok(()),
            }
        };
        finish().inspect_err(|_| {
            // The first error says more.
            let _ = writer.discard(id);
        })?;
        Ok(id)
    }

    /// Gives the store what it does not have of the tables that a scope names.
    pub(crate) fn write_out(&self, scope: ObjectScope<'_>) -> Result<()> {
        for table in self.open_tables(scope) {
            match table.write_out(None) {
                // It was deleted meanwhile.
                Err(Error::NoObject(_)) => {}
                done => done?,
            }
        }
        Ok(())
    }
}

impl StoreWriter for MapTableStore {
    fn create(&self, new: &NewObject<'_>) -> Result<ObjectId> {
        if let Some((group, _)) = new.link {
            self.check_not_map(group)?;
        }
        if !self.has_tables() && !matches!(new.spec.body, ObjectKindSpec::Map(_)) {
            return self.inner().writer()?.create(new);
        }
        let id = match &new.spec.body {
            ObjectKindSpec::Map(map) => self.create_map(new, map)?,
            _ => self.inner().writer()?.create(new)?,
        };
        self.forget(id);
        Ok(id)
    }

    fn discard(&self, id: ObjectId) -> Result<()> {
        self.inner().writer()?.discard(id)?;
        self.drop_deleted_indexes();
        Ok(())
    }

    fn add_link(&self, group: ObjectId, name: &Name, target: &LinkTarget) -> Result<()> {
        self.check_not_map(group)?;
        self.inner().writer()?.add_link(group, name, target)
    }

    fn remove_link(&self, group: ObjectId, name: &Name) -> Result<()> {
        self.check_not_map(group)?;
        self.inner().writer()?.remove_link(group, name)?;
        self.drop_deleted_indexes();
        Ok(())
    }

    fn rename_link(&self, from: (ObjectId, &Name), to: (ObjectId, &Name)) -> Result<()> {
        self.check_not_map(from.0)?;
        self.check_not_map(to.0)?;
        self.inner().writer()?.rename_link(from, to)
    }

    fn set_attribute(&self, id: ObjectId, attribute: &AttributeData) -> Result<()> {
        if self.is_mark(id, &attribute.name)? {
            return Err(Error::Invalid(format!("the attribute {:?} is the mark of a map", attribute.name)));
        }
        self.inner().writer()?.set_attribute(id, attribute)
    }

    fn remove_attribute(&self, id: ObjectId, name: &Name) -> Result<()> {
        if self.is_mark(id, name)? {
            return Err(Error::NotFound(name.clone()));
        }
        self.inner().writer()?.remove_attribute(id, name)
    }

    fn set_info(&self, id: ObjectId, change: &ObjectInfoChange<'_>) -> Result<()> {
        self.inner().writer()?.set_info(id, change)
    }

    fn put_blob(&self, bytes: &[u8], count: u32) -> Result<Vec<u8>> {
        self.inner().writer()?.put_blob(bytes, count)
    }

    fn put_blobs(&self, blobs: &[(&[u8], u32)]) -> Result<Vec<u8>> {
        self.inner().writer()?.put_blobs(blobs)
    }

    fn remove_blobs(&self, elements: &[&[u8]]) -> Result<()> {
        self.inner().writer()?.remove_blobs(elements)
    }

    fn start_swmr(&self) -> Result<()> {
        self.write_out(ObjectScope::All)?;
        self.inner().writer()?.start_swmr()
    }

    fn is_dirty(&self) -> bool {
        self.has_pending() || self.inner().writer().is_ok_and(|writer| writer.is_dirty())
    }

    fn commit(&self, scope: ObjectScope<'_>, publish: PublishLevel) -> Result<()> {
        let writer = self.inner().writer()?;
        let tables = self.open_tables(scope);
        if let (ObjectScope::Objects([_]), [table], PublishLevel::Visible) = (scope, &tables[..], publish) {
            // One batch with its publication is the shortest way that a store has.
            table.write_out(Some(PublishLevel::Visible))?;
            return match writer.is_dirty() {
                true => writer.commit(ObjectScope::Objects(&table.map_and_table_ids()), publish),
                false => Ok(()),
            };
        }
        self.write_out(scope)?;
        writer.commit(scope_with_tables(scope, &tables, &mut Vec::new()), publish)
    }
}

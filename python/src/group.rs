//! Groups.

use h5live::model::{MapSpec, NewObject, ObjectSpec};
use h5live::{Group, Object};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::datatype::DatatypeHandle;
use crate::errors::{raise, raise_model};
use crate::file::entry_storage;
use crate::links::{link_object, name_object};
use crate::object_handle::object_handle;
use crate::process::run;
use crate::session::{unwrap, wrap};
use crate::wait::MAX_WAIT_BETWEEN_SIGNALS;

object_handle! {
    /// A group.
    GroupHandle, "Group", Group, Group, group
}

#[pymethods]
impl GroupHandle {
    /// The object at a path.
    fn open(&self, py: Python<'_>, path: &str) -> PyResult<Py<PyAny>> {
        let group = self.group()?;
        let object = run(py, || group.object(path))?.map_err(raise)?;
        wrap(py, &self.session, object)
    }

    /// Whether an object is at a path.
    fn leads_to(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        let group = self.group()?;
        Ok(run(py, || group.object(path))?.is_ok())
    }

    /// The object of an identity.
    fn open_id(&self, py: Python<'_>, id: u128, name: &str) -> PyResult<Py<PyAny>> {
        let group = self.group()?;
        let object = run(py, || group.object_by_id(h5live::model::ObjectId(id), name))?.map_err(raise)?;
        wrap(py, &self.session, object)
    }

    /// The names of the links, in the order of the names or of their creation.
    fn names(&self, py: Python<'_>, by_creation: bool) -> PyResult<Vec<Py<PyAny>>> {
        let group = self.group()?;
        let mut links = run(py, || group.links())?.map_err(raise)?;
        if by_creation {
            links.sort_by_key(|link| link.creation_order);
        }
        Ok(links.iter().map(|link| name_object(py, &link.name)).collect())
    }

    /// Whether the order of creation is kept, of links and of attributes.
    fn tracks_order(&self, py: Python<'_>) -> PyResult<(bool, bool)> {
        let group = self.group()?;
        let untracked = h5live::model::CreationOrder::Untracked;
        let spec = run(py, || group.spec())?.map_err(raise)?;
        let info = run(py, || group.info())?.map_err(raise)?;
        Ok((spec.link_storage.order != untracked, info.attribute_storage.order != untracked))
    }

    /// The number of links.
    fn len(&self, py: Python<'_>) -> PyResult<usize> {
        let group = self.group()?;
        Ok(run(py, || group.links())?.map_err(raise)?.len())
    }

    /// A link, not followed.
    fn link(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        let group = self.group()?;
        match run(py, || group.link(name))?.map_err(raise)? {
            Some(link) => link_object(py, &link),
            None => Ok(py.None()),
        }
    }

    fn create_group(&self, py: Python<'_>, path: &str, track_order: bool) -> PyResult<Py<PyAny>> {
        let group = self.group()?;
        let storage = entry_storage(track_order);
        let make = || group.new_group().link_order(storage.order).attribute_storage(storage).create(path);
        let made = run(py, make)?.map_err(raise)?;
        wrap(py, &self.session, Object::Group(made))
    }

    /// Makes a group to which no link leads.
    fn create_unlinked_group(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let group = self.group()?;
        let file = group.file().clone();
        let made =
            run(py, || file.writer()?.create(&NewObject::unlinked(&ObjectSpec::group())))?.map_err(raise_model)?;
        let object = run(py, || group.object_by_id(made, &made.to_string()))?.map_err(raise)?;
        wrap(py, &self.session, object)
    }

    fn link_soft(&self, py: Python<'_>, name: &str, target: &str) -> PyResult<()> {
        let group = self.group()?;
        run(py, || group.link_soft(name, target))?.map_err(raise)
    }

    fn link_external(&self, py: Python<'_>, name: &str, file: &str, path: &str) -> PyResult<()> {
        let group = self.group()?;
        run(py, || group.link_external(name, file, path))?.map_err(raise)
    }

    fn link_hard(&self, py: Python<'_>, name: &str, target: &Bound<'_, PyAny>) -> PyResult<()> {
        let group = self.group()?;
        let target = unwrap(target)?.id();
        run(py, || group.link_hard(name, target))?.map_err(raise)
    }

    fn unlink(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        let group = self.group()?;
        run(py, || group.unlink(path))?.map_err(raise)
    }

    fn rename(&self, py: Python<'_>, source: &str, target: &str) -> PyResult<()> {
        let group = self.group()?;
        run(py, || group.rename(source, target))?.map_err(raise)
    }

    fn commit(&self, py: Python<'_>, path: &str, datatype: &DatatypeHandle) -> PyResult<Py<PyAny>> {
        let group = self.group()?;
        let named = run(py, || group.commit_datatype(path, &datatype.0))?.map_err(raise)?;
        wrap(py, &self.session, Object::Datatype(named))
    }

    /// Makes a dataset; without a path, one to which no link leads.
    #[pyo3(signature = (path, datatype, options))]
    fn create_dataset(
        &self,
        py: Python<'_>,
        path: Option<&str>,
        datatype: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Py<PyAny>> {
        let builder = crate::create::builder(&self.group()?, datatype, options)?;
        let make = || path.map_or_else(|| builder.clone().create_unlinked(), |path| builder.clone().create(path));
        let dataset = run(py, make)?.map_err(raise)?;
        wrap(py, &self.session, Object::Dataset(dataset))
    }

    /// Makes a map of keys and values of these types.
    fn create_map(
        &self,
        py: Python<'_>,
        path: &str,
        keys: &DatatypeHandle,
        values: &DatatypeHandle,
    ) -> PyResult<Py<PyAny>> {
        let group = self.group()?;
        let spec = MapSpec { key_type: keys.0.clone(), value_type: values.0.clone() };
        let map = run(py, || group.create_untyped_map(path, &spec))?.map_err(raise)?;
        wrap(py, &self.session, Object::Map(map))
    }

    /// Copies an object of this or another file to a path below this group. `progress` is called with the bytes of elements
    /// that were copied since its last call.
    fn copy_from(
        &self,
        py: Python<'_>,
        object: &Bound<'_, PyAny>,
        path: &str,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let group = self.group()?;
        let object = unwrap(object)?;
        match progress {
            None => run(py, || object.copy_to(&group, path))?.map_err(raise).map(drop),
            Some(progress) => crate::progress::copy(py, &object, &group, path, &progress),
        }
    }

    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        let group = self.group()?;
        run(py, || group.refresh())?.map_err(raise)
    }

    /// A follower of links that are added.
    fn follow(&self, py: Python<'_>, skip_existing: bool) -> PyResult<crate::follow::GroupFollowerHandle> {
        let group = self.group()?;
        let follow = || {
            let follower = group.follow().timeout(MAX_WAIT_BETWEEN_SIGNALS);
            if skip_existing { follower.skip_existing() } else { Ok(follower) }
        };
        let follower = run(py, follow)?.map_err(raise)?;
        Ok(crate::follow::GroupFollowerHandle::new(&self.session, follower))
    }
}

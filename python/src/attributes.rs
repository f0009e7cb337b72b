//! Attributes of objects.

use std::sync::Arc;

use h5live::model::{Dataspace, Shape};
use h5live::{Attribute, AttributeBuilder, ConversionPolicy, ErrorKind, Object};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::datatype::DatatypeHandle;
use crate::errors::raise;
use crate::links::{NameArgument, name_object};
use crate::memory::Memory;
use crate::named_type::NamedTypeHandle;
use crate::process::run;
use crate::session::{Session, Slot, object_in_child};

/// An object that has attributes.
#[derive(Clone)]
enum Attributed {
    Group(h5live::Group),
    Dataset(h5live::Dataset),
    Datatype(h5live::NamedType),
    Map(h5live::UntypedMap),
}

impl Attributed {
    fn new(object: Object) -> PyResult<Self> {
        Ok(match object {
            Object::Group(group) => Attributed::Group(group),
            Object::Dataset(dataset) => Attributed::Dataset(dataset),
            Object::Datatype(named) => Attributed::Datatype(named),
            Object::Map(map) => Attributed::Map(map),
            _ => return Err(PyNotImplementedError::new_err("attributes of such an object")),
        })
    }
}

/// The attributes of an object.
#[pyclass(frozen, name = "Attributes", module = "h5live._h5live")]
pub(crate) struct AttributesHandle {
    session: Arc<Session>,
    slot: Arc<Slot<Attributed>>,
}

macro_rules! on_object {
    ($object:expr, $of:ident => $call:expr) => {
        match &$object {
            Attributed::Group($of) => $call,
            Attributed::Dataset($of) => $call,
            Attributed::Datatype($of) => $call,
            Attributed::Map($of) => $call,
        }
    };
}

impl AttributesHandle {
    pub(crate) fn new(session: &Arc<Session>, object: Object) -> PyResult<Self> {
        Ok(AttributesHandle { session: session.clone(), slot: session.slot(Attributed::new(object)?) })
    }

    /// The object; in a child of the process that opened it, the one that the child has opened.
    fn object(&self) -> PyResult<Attributed> {
        let object = self.slot.get()?;
        if !self.slot.is_of_parent() {
            return Ok(object);
        }
        let object = match object {
            Attributed::Group(group) => Object::Group(group),
            Attributed::Dataset(dataset) => Object::Dataset(dataset),
            Attributed::Datatype(named) => Object::Datatype(named),
            Attributed::Map(map) => Object::Map(map),
        };
        Attributed::new(object_in_child(&self.session, object)?)
    }
}

#[pymethods]
impl AttributesHandle {
    #[getter]
    fn is_open(&self) -> bool {
        self.slot.is_open() && self.session.is_open()
    }

    /// The names, in their order or in that of creation.
    fn names(&self, py: Python<'_>, by_creation: bool) -> PyResult<Vec<Py<PyAny>>> {
        let object = self.object()?;
        if by_creation {
            let mut all = run(py, || on_object!(object, of => of.attributes()))?.map_err(raise)?;
            all.sort_by_key(Attribute::creation_order);
            return Ok(all.iter().map(|attribute| name_object(py, attribute.name())).collect());
        }
        let names = run(py, || on_object!(object, of => of.attribute_names()))?.map_err(raise)?;
        Ok(names.iter().map(|name| name_object(py, name)).collect())
    }

    /// Whether there is an attribute of this name.
    fn contains(&self, py: Python<'_>, name: NameArgument) -> PyResult<bool> {
        let object = self.object()?;
        match run(py, || on_object!(object, of => of.attribute(&name)))? {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::Store(h5live::model::Error::NotFound(_))) => Ok(false),
            Err(error) => Err(raise(error)),
        }
    }

    /// Whether the order of creation is kept.
    fn tracks_order(&self, py: Python<'_>) -> PyResult<bool> {
        let object = self.object()?;
        let info = run(py, || on_object!(object, of => of.info()))?.map_err(raise)?;
        Ok(info.attribute_storage.order != h5live::model::CreationOrder::Untracked)
    }

    /// The type, the shape (`None` without elements), and the elements as the file has them.
    fn get(&self, py: Python<'_>, name: NameArgument) -> PyResult<Py<PyAny>> {
        let object = self.object()?;
        let attribute = run(py, || on_object!(object, of => of.attribute(&name)))?.map_err(raise)?;
        let shape = match attribute.dataspace() {
            Dataspace::Null => None,
            space => Some(space.dims().to_vec()),
        };
        let datatype = Py::new(py, DatatypeHandle(attribute.datatype().clone()))?;
        (datatype, shape, PyBytes::new(py, attribute.raw()), attribute.committed_datatype_id().map(|id| id.0))
            .into_py_any(py)
    }

    /// The elements as those of another type.
    fn get_as<'py>(
        &self,
        py: Python<'py>,
        name: NameArgument,
        datatype: &DatatypeHandle,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let object = self.object()?;
        let read =
            || on_object!(object, of => of.attribute(&name)).and_then(|attribute| attribute.read_as(&datatype.0));
        Ok(PyBytes::new(py, &run(py, read)?.map_err(raise)?))
    }

    /// Sets an attribute, of a type in the file, to elements of a type in memory.
    #[pyo3(signature = (name, datatype, shape, memory_type, data))]
    fn set(
        &self,
        py: Python<'_>,
        name: NameArgument,
        datatype: &Bound<'_, PyAny>,
        shape: Option<Vec<u64>>,
        memory_type: &DatatypeHandle,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let object = self.object()?;
        let builder = on_object!(object, of => of.new_attribute(&name));
        let space = match shape {
            None => Dataspace::Null,
            Some(dims) if dims.is_empty() => Dataspace::Scalar,
            Some(dims) => Dataspace::Simple(Shape::fixed(&dims)),
        };
        let builder: AttributeBuilder = match datatype.cast::<NamedTypeHandle>() {
            Ok(named) => builder.committed_datatype(&named.get().named()?),
            Err(_) => builder.datatype(datatype.cast::<DatatypeHandle>()?.get().0.clone()),
        };
        let memory = Memory::readable(data)?;
        let builder = builder.dataspace(space);
        run(py, || builder.write_as(&memory_type.0, memory.bytes(), ConversionPolicy::Lossy))?.map_err(raise)
    }

    fn remove(&self, py: Python<'_>, name: NameArgument) -> PyResult<()> {
        let object = self.object()?;
        run(py, || on_object!(object, of => of.remove_attribute(&name)))?.map_err(raise)
    }
}

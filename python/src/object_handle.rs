//! What the handles of all kinds of objects have.

use h5live::Object;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::errors::raise;
use crate::process::run;

/// The class `$handle`, which Python calls `$name`, of handles on objects of the kind `$kind`. `$get` returns the object,
/// which is `$held`. The methods of one kind only stand in a block of their own.
macro_rules! object_handle {
    ($(#[$doc:meta])* $handle:ident, $name:tt, $held:ty, $kind:ident, $get:ident) => {
        $(#[$doc])*
        #[pyclass(frozen, name = $name, module = "h5live._h5live")]
        pub(crate) struct $handle {
            session: ::std::sync::Arc<$crate::session::Session>,
            slot: ::std::sync::Arc<$crate::session::Slot<$held>>,
            id: u128,
        }

        impl $handle {
            pub(crate) fn new(session: &::std::sync::Arc<$crate::session::Session>, object: $held) -> Self {
                let id = object.id().0;
                $handle { session: session.clone(), slot: session.slot(object), id }
            }

            /// What is held; in a child of the process that opened it, what the child has opened.
            pub(crate) fn $get(&self) -> PyResult<$held> {
                let held = self.slot.get()?;
                if !self.slot.is_of_parent() {
                    return Ok(held);
                }
                match $crate::session::object_in_child(&self.session, ::h5live::Object::$kind(held))? {
                    ::h5live::Object::$kind(held) => Ok(held),
                    _ => Err($crate::errors::closed()),
                }
            }
        }

        #[pymethods]
        impl $handle {
            #[getter]
            fn id(&self) -> u128 {
                self.id
            }

            #[getter]
            fn is_open(&self) -> bool {
                self.slot.is_open() && self.session.is_open()
            }

            #[getter]
            fn path(&self) -> PyResult<String> {
                Ok(self.$get()?.path().to_owned())
            }

            #[getter]
            fn file(&self) -> $crate::file::FileHandle {
                $crate::file::FileHandle { session: self.session.clone() }
            }

            #[getter]
            fn attributes(&self) -> PyResult<$crate::attributes::AttributesHandle> {
                $crate::attributes::AttributesHandle::new(&self.session, ::h5live::Object::$kind(self.$get()?))
            }

            /// The reference to the object.
            fn reference(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
                $crate::object_handle::reference(py, ::h5live::Object::$kind(self.$get()?))
            }

            /// Number of hard links, times, comment.
            fn info(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                $crate::object_handle::info(py, ::h5live::Object::$kind(self.$get()?))
            }
        }
    };
}
pub(crate) use object_handle;

pub(crate) fn reference(py: Python<'_>, object: Object) -> PyResult<Vec<u8>> {
    Ok(run(py, || object.reference())?.map_err(raise)?.as_bytes().to_vec())
}

pub(crate) fn info(py: Python<'_>, object: Object) -> PyResult<Py<PyAny>> {
    let info = run(py, || match &object {
        Object::Group(group) => group.info(),
        Object::Dataset(dataset) => dataset.info(),
        Object::Datatype(named) => named.info(),
        Object::Map(map) => map.info(),
        _ => Ok(Default::default()),
    })?;
    let info = info.map_err(raise)?;
    let times = info.times.map(|times| (times.access, times.modification, times.change, times.birth));
    (info.hard_link_count, times).into_py_any(py)
}

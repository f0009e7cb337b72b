//! An open file and all handles that Python has on it. Closing the file takes what the handles hold.

use std::sync::{Arc, Weak};

use h5live::{Dataset, File, Group, Object};
use parking_lot::{Mutex, RwLock};
use pyo3::prelude::*;

use crate::errors::closed;

/// What a handle holds until its file is closed.
pub(crate) struct Slot<T>(RwLock<Option<T>>);

impl<T: Clone> Slot<T> {
    /// A clone of what is held.
    pub(crate) fn get(&self) -> PyResult<T> {
        self.0.read().clone().ok_or_else(closed)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.read().is_some()
    }
}

trait Clear: Send + Sync {
    fn clear(&self);
}

impl<T: Send + Sync> Clear for Slot<T> {
    fn clear(&self) {
        drop(self.0.write().take());
    }
}

/// Handles that were dropped are forgotten when there are so many.
const MIN_HANDLES_TO_SWEEP: usize = 64;

/// An open file.
pub(crate) struct Session {
    file: Slot<File>,
    handles: Mutex<(Vec<Weak<dyn Clear>>, usize)>,
}

impl Session {
    pub(crate) fn new(file: File) -> Arc<Self> {
        Arc::new(Session {
            file: Slot(RwLock::new(Some(file))),
            handles: Mutex::new((Vec::new(), MIN_HANDLES_TO_SWEEP)),
        })
    }

    pub(crate) fn file(&self) -> PyResult<File> {
        self.file.get()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.file.is_open()
    }

    /// A handle that the session takes away when it is closed.
    pub(crate) fn slot<T: Send + Sync + 'static>(&self, held: T) -> Arc<Slot<T>> {
        let slot = Arc::new(Slot(RwLock::new(Some(held))));
        let mut handles = self.handles.lock();
        if handles.0.len() >= handles.1 {
            handles.0.retain(|handle| handle.strong_count() > 0);
            handles.1 = MIN_HANDLES_TO_SWEEP.max(2 * handles.0.len());
        }
        let weak: Weak<Slot<T>> = Arc::downgrade(&slot);
        handles.0.push(weak);
        if !self.is_open() {
            slot.clear();
        }
        slot
    }

    /// Takes the file and what its handles hold. The file is closed when no call uses it any more.
    pub(crate) fn close(&self) -> Option<File> {
        let file = self.file.0.write().take();
        let handles = std::mem::take(&mut self.handles.lock().0);
        handles.iter().filter_map(Weak::upgrade).for_each(|handle| handle.clear());
        file
    }
}

/// The session of an object that was found from another one: links lead to other files, too.
pub(crate) fn session_of(from: &Arc<Session>, file: &File) -> PyResult<Arc<Session>> {
    match std::ptr::addr_eq(from.file()?.store(), file.store()) {
        true => Ok(from.clone()),
        false => Ok(Session::new(file.clone())),
    }
}

/// A handle of any kind for Python.
pub(crate) fn wrap(py: Python<'_>, from: &Arc<Session>, object: Object) -> PyResult<Py<PyAny>> {
    let session = session_of(from, object.file())?;
    Ok(match object {
        Object::Group(group) => Py::new(py, crate::group::GroupHandle::new(&session, group))?.into_any(),
        Object::Dataset(dataset) => Py::new(py, crate::dataset::DatasetHandle::new(&session, dataset))?.into_any(),
        Object::Datatype(datatype) => {
            Py::new(py, crate::named_type::NamedTypeHandle::new(&session, datatype))?.into_any()
        }
        Object::Map(map) => Py::new(py, crate::maps::MapHandle::new(&session, map))?.into_any(),
        _ => return Err(pyo3::exceptions::PyNotImplementedError::new_err("objects of this kind")),
    })
}

/// An object of any kind from its handle.
pub(crate) fn unwrap(handle: &Bound<'_, PyAny>) -> PyResult<Object> {
    if let Ok(group) = handle.cast::<crate::group::GroupHandle>() {
        return Ok(Object::Group(group.get().group()?));
    }
    if let Ok(dataset) = handle.cast::<crate::dataset::DatasetHandle>() {
        return Ok(Object::Dataset(dataset.get().dataset()?));
    }
    if let Ok(datatype) = handle.cast::<crate::named_type::NamedTypeHandle>() {
        return Ok(Object::Datatype(datatype.get().named()?));
    }
    Ok(Object::Map(handle.cast::<crate::maps::MapHandle>()?.get().map()?))
}

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Slot<Group>>();
    is_shared::<Slot<Dataset>>();
};

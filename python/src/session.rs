//! An open file and all handles that Python has on it. Closing the file takes what the handles hold.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use h5live::{Dataset, File, Group, Object, Options};
use parking_lot::{Mutex, RwLock};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::{closed, raise};
use crate::process::{self, lock_after_fork};

/// What a handle holds until its file is closed.
pub(crate) struct Slot<T> {
    held: RwLock<Option<T>>,
    /// The process that made it.
    forks: u32,
}

impl<T> Slot<T> {
    fn new(held: T) -> Self {
        Slot { held: RwLock::new(Some(held)), forks: process::forks() }
    }

    /// Whether a parent of this process made it.
    pub(crate) fn is_of_parent(&self) -> bool {
        self.forks != process::forks()
    }
}

impl<T: Clone> Slot<T> {
    /// A clone of what is held.
    pub(crate) fn get(&self) -> PyResult<T> {
        if self.is_of_parent() {
            let held = self
                .held
                .try_read()
                .ok_or_else(|| PyRuntimeError::new_err("the process was forked while another thread used this"))?;
            return held.clone().ok_or_else(closed);
        }
        self.held.read().clone().ok_or_else(closed)
    }

    /// As [`Slot::get`], of what cannot be used by a child of the process that made it.
    pub(crate) fn get_of_process(&self) -> PyResult<T> {
        if self.is_of_parent() {
            return Err(PyRuntimeError::new_err("this was made before the process was forked: make another one"));
        }
        self.get()
    }

    pub(crate) fn is_open(&self) -> bool {
        match self.is_of_parent() {
            true => self.held.try_read().is_some_and(|held| held.is_some()),
            false => self.held.read().is_some(),
        }
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        if self.is_of_parent() {
            // It is the parent's: a child that dropped it might write to the file, or wait for a thread that is not there.
            mem::forget(self.held.get_mut().take());
        }
    }
}

trait Clear: Send + Sync {
    fn clear(&self);
}

impl<T: Send + Sync> Clear for Slot<T> {
    fn clear(&self) {
        drop(self.held.write().take());
    }
}

/// Handles that were dropped are forgotten when there are so many.
const MIN_HANDLES_TO_SWEEP: usize = 64;

static NEXT_KEY: AtomicU64 = AtomicU64::new(1);

/// Sessions on files to which links led.
static LINKED: Mutex<Vec<Weak<Session>>> = Mutex::new(Vec::new());

/// A file of the engine that sessions share, and how many of them are open.
struct Opened {
    file: Slot<File>,
    sessions: Mutex<usize>,
    key: u64,
    /// How a child opens it; `None` for what is in memory only.
    reopen: Option<(Options, String)>,
}

/// An open file, as one user has it.
pub(crate) struct Session {
    opened: Arc<Opened>,
    file: Slot<File>,
    handles: Mutex<(Vec<Weak<dyn Clear>>, usize)>,
    /// The session of a child process that stands for this one, and the number of its forks.
    in_child: Mutex<Option<(u32, Arc<Session>)>>,
}

impl Session {
    /// The first session on a file, which a child process may open with these options.
    pub(crate) fn new(file: File, options: Option<Options>) -> Arc<Self> {
        let key = NEXT_KEY.fetch_add(1, Ordering::Relaxed);
        Session::with_key(file, options, key)
    }

    fn with_key(file: File, options: Option<Options>, key: u64) -> Arc<Self> {
        let reopen = options.map(|options| (options, file.name().to_owned()));
        let opened = Opened { file: Slot::new(file.clone()), sessions: Mutex::new(0), key, reopen };
        Session::on(Arc::new(opened), file)
    }

    fn on(opened: Arc<Opened>, file: File) -> Arc<Self> {
        *opened.sessions.lock() += 1;
        Arc::new(Session {
            opened,
            file: Slot::new(file),
            handles: Mutex::new((Vec::new(), MIN_HANDLES_TO_SWEEP)),
            in_child: Mutex::new(None),
        })
    }

    /// Another session on the same file, with handles of its own; `None` if nobody has it open.
    pub(crate) fn share(&self) -> Option<Arc<Self>> {
        let file = self.opened.file.get().ok()?;
        Some(Session::on(self.opened.clone(), file))
    }

    /// The same for all sessions on one open file.
    pub(crate) fn key(&self) -> u64 {
        self.opened.key
    }

    /// The session itself; in a child process, one that the child has opened.
    ///
    /// # Errors
    /// In a child, if the parent has opened the file for writing, or nobody else can open it.
    pub(crate) fn current(self: &Arc<Self>) -> PyResult<Arc<Self>> {
        if !self.file.is_of_parent() {
            return Ok(self.clone());
        }
        let file = self.file.get()?;
        let refuse = |reason: &str| Err(PyRuntimeError::new_err(format!("{}: {reason}", file.name())));
        if file.session().mode.writes() {
            return refuse("a process that was forked cannot use what its parent has opened for writing");
        }
        let Some((options, name)) = &self.opened.reopen else {
            return refuse("a process that was forked cannot use what its parent has in memory only");
        };
        let mut in_child = lock_after_fork(&self.in_child)?;
        if let Some((_, session)) = in_child.as_ref().filter(|(forks, _)| *forks == process::forks()) {
            return Ok(session.clone());
        }
        let session = Session::with_key(options.open(name.as_str()).map_err(raise)?, Some(options.clone()), self.key());
        mem::forget(in_child.replace((process::forks(), session.clone())));
        mem::forget(file);
        Ok(session)
    }

    pub(crate) fn file(self: &Arc<Self>) -> PyResult<File> {
        match self.file.is_of_parent() {
            true => self.current()?.file.get(),
            false => self.file.get(),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.file.is_open()
    }

    /// A handle that the session takes away when it is closed.
    pub(crate) fn slot<T: Send + Sync + 'static>(&self, held: T) -> Arc<Slot<T>> {
        let slot = Arc::new(Slot::new(held));
        if self.file.is_of_parent() {
            // Nobody closes what the parent has; the lock of its handles may be one that nobody gives back.
            return slot;
        }
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

    /// Takes the file and what its handles hold, and says whether no other session has the file open. The file is closed
    /// when no call uses it any more.
    pub(crate) fn close(&self) -> Option<(File, bool)> {
        if self.file.is_of_parent() {
            return self.close_in_child();
        }
        let file = self.file.held.write().take()?;
        let handles = mem::take(&mut self.handles.lock().0);
        handles.iter().filter_map(Weak::upgrade).for_each(|handle| handle.clear());
        Some((file, self.opened.release()))
    }

    /// Closes what the child has opened. What the parent has stays as it is.
    fn close_in_child(&self) -> Option<(File, bool)> {
        mem::forget(self.file.held.try_write()?.take());
        let in_child = lock_after_fork(&self.in_child).ok()?.take();
        in_child.filter(|(forks, _)| *forks == process::forks())?.1.close()
    }
}

impl Opened {
    /// One session less. Whether it was the last one.
    fn release(&self) -> bool {
        let mut sessions = self.sessions.lock();
        *sessions = sessions.saturating_sub(1);
        let is_last = *sessions == 0;
        if is_last {
            self.file.clear();
        }
        is_last
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.file.is_of_parent() {
            mem::forget(mem::take(&mut self.handles.get_mut().0));
        } else if self.file.is_open() {
            self.opened.release();
        }
    }
}

/// The session of an object that was found from another one: links lead to other files, too.
pub(crate) fn session_of(from: &Arc<Session>, file: &File) -> PyResult<Arc<Session>> {
    let is_of =
        |session: &Arc<Session>| session.file.get().is_ok_and(|known| std::ptr::addr_eq(known.store(), file.store()));
    let current = from.current()?;
    if is_of(&current) {
        return Ok(current);
    }
    let mut linked = lock_after_fork(&LINKED)?;
    linked.retain(|session| session.strong_count() > 0);
    if let Some(known) =
        linked.iter().filter_map(Weak::upgrade).find(|session| !session.file.is_of_parent() && is_of(session))
    {
        return Ok(known);
    }
    let made = Session::new(file.clone(), from.opened.reopen.as_ref().map(|(options, _)| options.clone()));
    linked.push(Arc::downgrade(&made));
    Ok(made)
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

/// What stands for an object that a parent of this process has: the object of the same identity, in the child's session.
pub(crate) fn object_in_child(session: &Arc<Session>, of_parent: Object) -> PyResult<Object> {
    let (id, path) = (of_parent.id(), of_parent.path().to_owned());
    mem::forget(of_parent);
    session.current()?.file()?.root().object_by_id(id, &path).map_err(raise)
}

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Session>();
    is_shared::<Group>();
    is_shared::<Dataset>();
};

//! Followers, which wait in short turns so that Ctrl-C interrupts them.

use std::sync::Arc;
use std::time::Instant;

use h5live::{Dataset, DatasetFollower, GroupFollower};
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::raise;
use crate::process::run;
use crate::session::{Session, Slot};
use crate::wait::{check_signals, deadline, next_turn};

struct Rows(DatasetFollower<u8>);

/// A follower of a dataset's rows.
#[pyclass(frozen, name = "Rows", module = "h5live._h5live")]
pub(crate) struct RowsHandle {
    slot: Arc<Slot<Arc<Mutex<Rows>>>>,
}

impl RowsHandle {
    pub(crate) fn new(session: &Session, follower: DatasetFollower<u8>) -> Self {
        RowsHandle { slot: session.slot(Arc::new(Mutex::new(Rows(follower)))) }
    }
}

#[pymethods]
impl RowsHandle {
    /// The next rows, first and end; `None` after the timeout (seconds), and if there are no more.
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<(u64, u64)>> {
        let rows = self.slot.get_of_process()?;
        let until = deadline(timeout);
        loop {
            let turn = next_turn(until);
            let found = run(py, || {
                let Some(mut rows) = rows.try_lock() else { return Ok(Err(())) };
                rows.0.poll_rows(turn).map(|found| Ok((found, rows.0.is_over())))
            })?;
            let (found, is_over) = found
                .map_err(raise)?
                .map_err(|()| PyRuntimeError::new_err("another thread waits with this follower"))?;
            if let Some(range) = found {
                return Ok(Some((range.start, range.end)));
            }
            check_signals(py)?;
            if is_over || until.is_some_and(|until| Instant::now() >= until) {
                return Ok(None);
            }
        }
    }

    /// Whether the writer is gone and all its rows have been returned.
    #[getter]
    fn is_over(&self) -> PyResult<bool> {
        Ok(self.slot.get_of_process()?.lock().0.is_over())
    }

    /// The dimension along which rows are added.
    #[getter]
    fn axis(&self) -> PyResult<usize> {
        Ok(self.slot.get_of_process()?.lock().0.axis())
    }
}

/// A follower of links.
#[pyclass(frozen, name = "GroupFollower", module = "h5live._h5live")]
pub(crate) struct GroupFollowerHandle {
    slot: Arc<Slot<Arc<Mutex<GroupFollower>>>>,
}

impl GroupFollowerHandle {
    pub(crate) fn new(session: &Session, follower: GroupFollower) -> Self {
        GroupFollowerHandle { slot: session.slot(Arc::new(Mutex::new(follower))) }
    }
}

#[pymethods]
impl GroupFollowerHandle {
    /// The path of the next new link; `None` after the timeout (seconds), and if there are no more.
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<String>> {
        let follower = self.slot.get_of_process()?;
        let until = deadline(timeout);
        loop {
            let found = run(py, || {
                let mut follower = follower.lock();
                follower.next()
            })?;
            if let Some(item) = found {
                return Ok(Some(item.map_err(raise)?.path().to_owned()));
            }
            check_signals(py)?;
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(None);
            }
        }
    }
}

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Dataset>();
};

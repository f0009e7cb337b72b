//! Copies that tell how far they are.

use std::cell::RefCell;

use h5live::{Copier, Group, Object};
use pyo3::prelude::*;

use crate::errors::raise;
use crate::process::run;

/// Copies an object, and calls `progress` with the bytes of elements that were copied since its last call. An exception
/// of it, and a signal such as Ctrl-C, ends the copy at the next dataset, and nothing leads to what was copied.
pub(crate) fn copy(py: Python<'_>, object: &Object, group: &Group, path: &str, progress: &Py<PyAny>) -> PyResult<()> {
    let copied = run(py, || {
        let raised = RefCell::new(None);
        let tell = |bytes: u64| {
            let told = Python::attach(|py| progress.call1(py, (bytes,)).and_then(|_| py.check_signals()));
            if let Err(error) = told {
                raised.borrow_mut().get_or_insert(error);
            }
        };
        let stops = || match raised.borrow().is_some() {
            true => Err(h5live::model::Error::Invalid("the callback raised an exception".into())),
            false => Ok(false),
        };
        let copy = || -> h5live::Result<()> {
            let mut copier = Copier::new(object.file(), group.file()).progress(tell).elements_by(|_| stops());
            copier.object(object, group, path)?;
            copier.copy_data_and_finish().map(drop)
        };
        let copied = copy();
        (copied, raised.take())
    });
    match copied? {
        (_, Some(error)) => Err(error),
        (copied, None) => copied.map_err(raise),
    }
}

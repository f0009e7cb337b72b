//! Names and links as Python has them.

use h5live::model::{Link, LinkTarget, Name};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// A name: a string, or bytes if it is no UTF-8.
pub(crate) fn name_object(py: Python<'_>, name: &Name) -> Py<PyAny> {
    match name.as_str() {
        Some(text) => PyString::new(py, text).into_any().unbind(),
        None => PyBytes::new(py, name.as_bytes()).into_any().unbind(),
    }
}

/// A name that Python gives: a string, or bytes, which need not be UTF-8. A string with surrogates is a
/// `UnicodeEncodeError`, as in h5py.
pub(crate) struct NameArgument(Vec<u8>);

impl AsRef<[u8]> for NameArgument {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for NameArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyBytes>() {
            Ok(bytes) => Ok(NameArgument(bytes.as_bytes().to_vec())),
            Err(_) => Ok(NameArgument(object.cast::<PyString>()?.to_str()?.as_bytes().to_vec())),
        }
    }
}

/// A link: its kind, and what it leads to.
pub(crate) fn link_object(py: Python<'_>, link: &Link) -> PyResult<Py<PyAny>> {
    match &link.target {
        LinkTarget::Hard(id) => ("hard", id.0, link.name.is_ascii()).into_py_any(py),
        LinkTarget::Soft(path) => ("soft", name_object(py, path), link.name.is_ascii()).into_py_any(py),
        LinkTarget::External { file, path } => {
            ("external", name_object(py, file), name_object(py, path), link.name.is_ascii()).into_py_any(py)
        }
        LinkTarget::UserDefined { class, data } => ("user", *class, PyBytes::new(py, data)).into_py_any(py),
    }
}

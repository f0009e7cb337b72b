//! Errors of the engine as exceptions of Python, of the types that h5py's users catch.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use h5live::model::{Error as ModelError, SelectionError};
use h5live::{ConvertError, Error, ErrorKind, OpenError, StoreErrorKind};
use pyo3::exceptions::{
    PyBlockingIOError, PyFileExistsError, PyFileNotFoundError, PyIndexError, PyKeyError, PyMemoryError,
    PyNotImplementedError, PyOSError, PyPermissionError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;

/// What a handle of a closed file says.
pub(crate) fn closed() -> PyErr {
    PyValueError::new_err("the file is closed")
}

/// Whether errors of the engine are printed, too, when they become exceptions.
static ARE_PRINTED: AtomicBool = AtomicBool::new(false);

/// From now on, errors of the engine are printed on the standard error stream, or no longer.
#[pyfunction(name = "print_errors")]
pub(crate) fn set_error_printing(yes: bool) {
    ARE_PRINTED.store(yes, Ordering::Relaxed);
}

fn print_if_asked(text: &str) {
    if ARE_PRINTED.load(Ordering::Relaxed) {
        // If nobody can read it, there is nobody to be told.
        let _ = writeln!(io::stderr(), "h5live: {text}");
    }
}

/// The exception for an error of the engine.
pub(crate) fn raise(error: Error) -> PyErr {
    let text = format!("{error:#}");
    print_if_asked(&text);
    raise_kind(error.kind(), text)
}

/// The exception for an error of a store.
pub(crate) fn raise_model(error: ModelError) -> PyErr {
    let text = error.to_string();
    print_if_asked(&text);
    of_model(&error, text)
}

/// The exception for an error of a source of a virtual dataset, from that for the error itself.
pub(crate) fn raise_source(raised: PyErr) -> PyErr {
    Python::attach(|py| {
        let of_source = raised.is_instance_of::<PyKeyError>(py)
            || raised.is_instance_of::<PyTypeError>(py)
            || raised.is_instance_of::<PyValueError>(py);
        let text = raised.value(py).getattr("args").and_then(|args| args.get_item(0)?.extract::<String>());
        match text {
            Ok(text) if of_source => PyOSError::new_err(text),
            _ => raised,
        }
    })
}

fn raise_kind(kind: &ErrorKind, text: String) -> PyErr {
    match kind {
        ErrorKind::Store(error) => of_model(error, text),
        ErrorKind::Open(error) => of_open(error, text),
        ErrorKind::Selection(SelectionError::IndexOutOfBounds { .. }) => PyIndexError::new_err(text),
        ErrorKind::Selection(_) | ErrorKind::InvalidExtent { .. } | ErrorKind::InvalidSpec(_) => {
            PyValueError::new_err(text)
        }
        ErrorKind::Convert(error) => of_convert(error, text),
        ErrorKind::OtherFile(error) => raise_kind(error.kind(), text),
        ErrorKind::TooManySymbolicLinksInPath | ErrorKind::UserDefinedLink(_) | ErrorKind::MissingLinkedFile(_) => {
            PyKeyError::new_err(text)
        }
        ErrorKind::CannotGrow | ErrorKind::ElementCount { .. } | ErrorKind::NotWholeRows { .. } => {
            PyTypeError::new_err(text)
        }
        ErrorKind::OutOfMemory(_) | ErrorKind::Allocation(_) => PyMemoryError::new_err(text),
        ErrorKind::Unsupported(_) | ErrorKind::MapsUnsupported { .. } => PyNotImplementedError::new_err(text),
        _ => PyOSError::new_err(text),
    }
}

fn of_convert(error: &ConvertError, text: String) -> PyErr {
    match error {
        ConvertError::Class { .. } | ConvertError::NoEnumName(_) | ConvertError::ArrayLength { .. } => {
            PyTypeError::new_err(text)
        }
        ConvertError::Member { source, .. } | ConvertError::Element { source, .. } => of_convert(source, text),
        ConvertError::Heap(_) => PyOSError::new_err(text),
        ConvertError::Allocation(_) => PyMemoryError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

fn of_open(error: &OpenError, text: String) -> PyErr {
    match error {
        OpenError::Store(error) => of_model(error, text),
        _ => PyValueError::new_err(text),
    }
}

fn of_model(error: &ModelError, text: String) -> PyErr {
    match error {
        ModelError::NotFound(_) | ModelError::NoObject(_) | ModelError::WrongKind { .. } => PyKeyError::new_err(text),
        ModelError::Exists(_) | ModelError::ReadOnly | ModelError::Closed | ModelError::Invalid(_) => {
            PyValueError::new_err(text)
        }
        ModelError::Allocation(_) => PyMemoryError::new_err(text),
        ModelError::Unsupported(_) => PyNotImplementedError::new_err(text),
        _ => of_store(error.store_error_kind(), text),
    }
}

fn of_store(kind: Option<&StoreErrorKind>, text: String) -> PyErr {
    match kind {
        Some(StoreErrorKind::NotFound) => PyFileNotFoundError::new_err(text),
        Some(StoreErrorKind::AlreadyExists) => PyFileExistsError::new_err(text),
        Some(StoreErrorKind::PermissionDenied) => PyPermissionError::new_err(text),
        Some(StoreErrorKind::InUse(_)) => PyBlockingIOError::new_err(text),
        _ => PyOSError::new_err(text),
    }
}

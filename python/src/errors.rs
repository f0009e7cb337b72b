//! Errors of the engine as exceptions of Python, of the types that h5py's users catch.

use h5live::model::{Error as ModelError, SelectionError};
use h5live::{ConvertError, Error, ErrorKind, OpenError, StoreErrorKind};
use pyo3::PyErr;
use pyo3::exceptions::{
    PyBlockingIOError, PyFileExistsError, PyFileNotFoundError, PyIndexError, PyKeyError, PyMemoryError,
    PyNotImplementedError, PyOSError, PyPermissionError, PyTypeError, PyValueError,
};

/// What a handle of a closed file says.
pub(crate) fn closed() -> PyErr {
    PyValueError::new_err("the file is closed")
}

/// The exception for an error of the engine.
pub(crate) fn raise(error: Error) -> PyErr {
    raise_kind(error.kind(), format!("{error:#}"))
}

/// The exception for an error of a store.
pub(crate) fn raise_model(error: ModelError) -> PyErr {
    let text = error.to_string();
    of_model(&error, text)
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
        ErrorKind::TooManyLinks | ErrorKind::UserDefinedLink(_) | ErrorKind::NoExternalFile(_) => {
            PyKeyError::new_err(text)
        }
        ErrorKind::CannotGrow | ErrorKind::Length { .. } | ErrorKind::Rows { .. } => PyTypeError::new_err(text),
        ErrorKind::TooLarge(_) | ErrorKind::Allocation(_) => PyMemoryError::new_err(text),
        ErrorKind::Unsupported(_) | ErrorKind::NoMaps { .. } => PyNotImplementedError::new_err(text),
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
        _ => of_store(error.store_kind(), text),
    }
}

fn of_store(kind: Option<&StoreErrorKind>, text: String) -> PyErr {
    match kind {
        Some(StoreErrorKind::NotThere) => PyFileNotFoundError::new_err(text),
        Some(StoreErrorKind::Occupied) => PyFileExistsError::new_err(text),
        Some(StoreErrorKind::Denied) => PyPermissionError::new_err(text),
        Some(StoreErrorKind::InUse(_)) => PyBlockingIOError::new_err(text),
        _ => PyOSError::new_err(text),
    }
}

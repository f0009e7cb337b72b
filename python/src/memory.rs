//! The memory of Python's buffers (numpy arrays, bytes) as slices.
#![allow(unsafe_code)]

use std::slice;

#[cfg(feature = "abi3")]
use pyo3::Borrowed;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

/// A buffer whose elements are one run of bytes.
pub(crate) struct Memory(PyUntypedBuffer);

impl Memory {
    /// The memory of an object that is read from.
    pub(crate) fn readable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object).or_else(|error| match flat_view(object) {
            Ok(Some(flat)) => PyUntypedBuffer::get(&flat),
            Ok(None) | Err(_) => Err(error),
        })?;
        if !buffer.is_c_contiguous() {
            return Err(PyBufferError::new_err("the array is not contiguous in memory"));
        }
        Ok(Memory(buffer))
    }

    /// The memory of an object that is written to.
    pub(crate) fn writable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let memory = Memory::readable(object)?;
        match memory.0.readonly() {
            true => Err(PyValueError::new_err("the destination is read-only")),
            false => Ok(memory),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self.0.len_bytes() {
            0 => &[],
            // SAFETY: the exporter keeps this run of bytes alive and in place while the buffer is held. That nobody changes
            // the array during the call is the caller's duty, as with every function of numpy that releases the GIL.
            len => unsafe { slice::from_raw_parts(self.0.buf_ptr().cast::<u8>(), len) },
        }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self.0.len_bytes() {
            0 => &mut [],
            // SAFETY: as in `bytes`; `writable` has found that the exporter lets it be written.
            len => unsafe { slice::from_raw_parts_mut(self.0.buf_ptr().cast::<u8>(), len) },
        }
    }
}

/// The memory of an array that has no buffer by itself, as an array that has one. Arrays without dimensions have none for PyO3, for
/// they have no shape; long doubles whose byte order is named have none for numpy.
fn flat_view<'py>(array: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !array.getattr("flags")?.get_item("C_CONTIGUOUS")?.is_truthy()? {
        return Ok(None);
    }
    let flat = array.call_method1("reshape", (-1,))?;
    match array.getattr("dtype")?.getattr("hasobject")?.is_truthy()? {
        true => Ok(Some(flat)),
        false => flat.call_method1("view", ("u1",)).map(Some),
    }
}

/// The elements of an array of objects.
pub(crate) struct Objects(PyUntypedBuffer);

impl Objects {
    /// Those of an array that nobody else uses yet.
    pub(crate) fn writable(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        Objects::of(Memory::writable(array)?)
    }

    pub(crate) fn readable(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        Objects::of(Memory::readable(array)?)
    }

    fn of(Memory(buffer): Memory) -> PyResult<Self> {
        let is_pointer = buffer.item_size() == size_of::<*mut ffi::PyObject>();
        match buffer.format().to_bytes() == b"O" && is_pointer {
            true => Ok(Objects(buffer)),
            false => Err(PyTypeError::new_err("the array is not one of objects")),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.item_count()
    }

    /// An element; `None` for Python's null pointer, which numpy shows as None.
    pub(crate) fn get<'py>(&self, py: Python<'py>, at: usize) -> Option<Bound<'py, PyAny>> {
        assert!(at < self.len(), "an array has only its elements");
        // SAFETY: `of` has found that the memory holds so many pointers, each to an object that the array owns, or null.
        let object = unsafe { self.0.buf_ptr().cast::<*mut ffi::PyObject>().add(at).read() };
        // SAFETY: as above. The interpreter is attached, so that the array keeps the object until there is a new reference.
        unsafe { Bound::from_borrowed_ptr_or_opt(py, object) }
    }

    /// Shows an element to `look`, which runs no Python code: another thread could replace the element meanwhile.
    pub(crate) fn with<'py, T>(&self, py: Python<'py>, at: usize, look: impl FnOnce(&Bound<'py, PyAny>) -> T) -> T {
        assert!(at < self.len(), "an array has only its elements");
        // A new reference costs as much as what most want of an element. Without the stable ABI, threads may run at once.
        #[cfg(feature = "abi3")]
        {
            // SAFETY: as in `get`.
            let object = unsafe { self.0.buf_ptr().cast::<*mut ffi::PyObject>().add(at).read() };
            // SAFETY: as in `get`. No other thread runs until `look` returns, so that the array keeps the object.
            if let Some(object) = unsafe { Borrowed::from_ptr_or_opt(py, object) } {
                return look(&object);
            }
        }
        look(&self.get(py, at).unwrap_or_else(|| py.None().into_bound(py)))
    }

    /// Replaces an element.
    pub(crate) fn put(&mut self, at: usize, object: Bound<'_, PyAny>) {
        assert!(at < self.len(), "an array has only its elements");
        let py = object.py();
        // SAFETY: `of` has found that the memory holds so many pointers, each to an object that the array owns, or null.
        let place = unsafe { self.0.buf_ptr().cast::<*mut ffi::PyObject>().add(at) };
        // SAFETY: as above; the array owns what is put there, and no longer what was there.
        let old = unsafe { place.replace(object.into_ptr()) };
        // SAFETY: it was the array's own reference.
        drop(unsafe { Bound::from_owned_ptr_or_opt(py, old) });
    }
}

//! Variable-length data: what the file has for it, and Python's objects.

use h5live::File;
use h5live::model::Result as ModelResult;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use rayon::prelude::*;

use crate::errors::raise_model;
use crate::file::FileHandle;
use crate::memory::{Memory, Objects};
use crate::process::run;

/// Elements that one thread reads at once.
const ELEMENTS_PER_PART: usize = 1 << 13;

/// The data of several elements, one behind the other in the order in which they were found.
struct Blobs {
    bytes: Vec<u8>,
    /// Where that of each element begins and ends.
    ranges: Vec<(usize, usize)>,
}

impl Blobs {
    fn read(file: &File, elements: &[&[u8]], is_text: bool) -> ModelResult<Self> {
        let mut blobs = Blobs { bytes: Vec::new(), ranges: vec![(0, 0); elements.len()] };
        file.store().blobs(elements, &mut |at, bytes| {
            let begin = blobs.bytes.len();
            let end = bytes.iter().position(|byte| is_text && *byte == 0).unwrap_or(bytes.len());
            blobs.bytes.extend_from_slice(&bytes[..end]);
            blobs.ranges[at] = (begin, begin + end);
        })?;
        Ok(blobs)
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ranges.iter().map(|(begin, end)| &self.bytes[*begin..*end])
    }

    /// Adds data for the next element.
    fn push(&mut self, bytes: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.ranges.push((begin, self.bytes.len()));
    }
}

/// Stores data, each of so many elements, and returns the elements that lead to it, each of `size` bytes.
fn store<'a>(file: &File, data: impl Iterator<Item = (&'a [u8], u32)>, size: usize) -> ModelResult<Vec<u8>> {
    let writer = file.writer()?;
    let mut stored = Vec::new();
    for (bytes, count) in data {
        match count {
            0 => stored.resize(stored.len() + size, 0),
            _ => stored.extend(writer.put_blob(bytes, count)?),
        }
    }
    Ok(stored)
}

/// Adds the bytes of a text: of a string in an encoding, of bytes as they are.
fn push_text(item: &Bound<'_, PyAny>, encoding: &str, texts: &mut Blobs) -> PyResult<()> {
    if let Ok(bytes) = item.cast::<PyBytes>() {
        texts.push(bytes.as_bytes());
        return Ok(());
    }
    let Ok(text) = item.cast::<PyString>() else {
        return Err(PyTypeError::new_err("Can't implicitly convert non-string objects to strings"));
    };
    match text.to_str() {
        Ok(text) if encoding == "utf-8" || text.is_ascii() => texts.push(text.as_bytes()),
        _ => {
            let encoded = text.call_method1("encode", (encoding, "surrogateescape"))?;
            texts.push(encoded.cast::<PyBytes>()?.as_bytes());
        }
    }
    Ok(())
}

#[pymethods]
impl FileHandle {
    /// Fills an array of objects with the bytes of variable-length elements, each of `size` bytes in the file. Texts end at
    /// a NUL.
    fn read_blobs(
        &self,
        py: Python<'_>,
        elements: &Bound<'_, PyAny>,
        size: usize,
        is_text: bool,
        into: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let file = self.session.file()?;
        let memory = Memory::readable(elements)?;
        let stored: Vec<&[u8]> = memory.bytes().chunks_exact(size.max(1)).collect();
        let mut objects = Objects::writable(into)?;
        if objects.len() != stored.len() {
            return Err(PyValueError::new_err("there are not as many objects as elements"));
        }
        let read = || stored.par_chunks(ELEMENTS_PER_PART).map(|part| Blobs::read(&file, part, is_text)).collect();
        let parts: Vec<Blobs> = run(py, || -> ModelResult<_> { read() })?.map_err(raise_model)?;
        for (at, bytes) in parts.iter().flat_map(Blobs::iter).enumerate() {
            objects.put(at, PyBytes::new(py, bytes).into_any());
        }
        Ok(())
    }

    /// Stores variable-length data, each of so many elements, and returns the elements that lead to it.
    fn write_blobs<'py>(
        &self,
        py: Python<'py>,
        data: Vec<(Bound<'py, PyBytes>, u32)>,
        size: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let file = self.session.file()?;
        let data: Vec<(&[u8], u32)> = data.iter().map(|(bytes, count)| (bytes.as_bytes(), *count)).collect();
        let stored = run(py, || store(&file, data.into_iter(), size))?;
        Ok(PyBytes::new(py, &stored.map_err(raise_model)?))
    }

    /// Stores texts, and returns the elements that lead to them.
    fn write_texts<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
        size: usize,
        encoding: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let file = self.session.file()?;
        let mut blobs = Blobs { bytes: Vec::new(), ranges: Vec::with_capacity(texts.len()) };
        for item in texts.iter() {
            push_text(&item, encoding, &mut blobs)?;
        }
        let counts: Result<Vec<u32>, _> = blobs.iter().map(|bytes| u32::try_from(bytes.len())).collect();
        let counts = counts.map_err(|_| PyOverflowError::new_err("a text has more than 4 GiB"))?;
        if blobs.bytes.contains(&0) {
            return Err(PyValueError::new_err("VLEN strings do not support embedded NULLs"));
        }
        let stored = run(py, || store(&file, blobs.iter().zip(counts), size))?;
        Ok(PyBytes::new(py, &stored.map_err(raise_model)?))
    }
}

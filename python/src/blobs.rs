//! Variable-length data: what the file has for it, and Python's objects.

use std::ops::Range;
use std::sync::mpsc;

use h5live::File;
use h5live::model::Result as ModelResult;
use pyo3::exceptions::{PyMemoryError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyType};

use crate::errors::raise_model;
use crate::file::FileHandle;
use crate::memory::{Memory, Objects};
use crate::process::run;

/// Elements that one thread reads at once.
const ELEMENTS_PER_PART: usize = 1 << 13;
/// Parts that are read while Python's objects of another one are made.
const PARTS_AHEAD: usize = 4;

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
fn store(file: &File, data: &[(&[u8], u32)], size: usize) -> ModelResult<Vec<u8>> {
    let mut stored = file.writer()?.put_blobs(data)?;
    for (element, (_, count)) in stored.chunks_exact_mut(size.max(1)).zip(data) {
        // What is empty is as if nobody had written it.
        if *count == 0 {
            element.fill(0);
        }
    }
    Ok(stored)
}

/// Reads what each part of the elements leads to, and gives it to `each` with the number of its first element, in any order.
fn read_parts(
    file: &File,
    elements: &[u8],
    size: usize,
    is_text: bool,
    mut each: impl FnMut(usize, Blobs),
) -> ModelResult<()> {
    let read = |part: &[u8]| Blobs::read(file, &part.chunks_exact(size).collect::<Vec<_>>(), is_text);
    let mut parts = elements.chunks(size * ELEMENTS_PER_PART).enumerate();
    // A thread of the pool does not wait for others of it.
    if elements.len() <= size * ELEMENTS_PER_PART || rayon::current_thread_index().is_some() {
        return parts.try_for_each(|(n, part)| {
            each(n * ELEMENTS_PER_PART, read(part)?);
            Ok(())
        });
    }
    let (sender, receiver) = mpsc::channel();
    rayon::in_place_scope(|scope| {
        let mut start_next = || {
            let Some((n, part)) = parts.next() else { return false };
            let (sender, read) = (sender.clone(), &read);
            // Nobody receives it after an error.
            scope.spawn(move |_| drop(sender.send((n * ELEMENTS_PER_PART, read(part)))));
            true
        };
        let mut pending = (0..PARTS_AHEAD).filter(|_| start_next()).count();
        while pending > 0 {
            let Ok((first, blobs)) = receiver.recv() else { break };
            let blobs = blobs?;
            pending -= usize::from(!start_next());
            each(first, blobs);
        }
        Ok(())
    })
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

/// Texts that Python has.
enum Texts {
    List(Py<PyList>),
    Array(Objects),
}

impl Texts {
    fn new(texts: &Bound<'_, PyAny>) -> PyResult<Self> {
        match texts.cast::<PyList>() {
            Ok(list) => Ok(Texts::List(list.clone().unbind())),
            Err(_) => Objects::readable(texts).map(Texts::Array),
        }
    }

    fn len(&self, py: Python<'_>) -> usize {
        match self {
            Texts::List(list) => list.bind(py).len(),
            Texts::Array(objects) => objects.len(),
        }
    }

    fn get<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Texts::List(list) => list.bind(py).get_item(at),
            Texts::Array(objects) => Ok(objects.get(py, at).unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    /// The bytes of some of them.
    fn read(&self, py: Python<'_>, range: Range<usize>, encoding: &str) -> PyResult<Blobs> {
        let mut blobs = Blobs { bytes: Vec::new(), ranges: Vec::with_capacity(range.len()) };
        for at in range {
            push_text(&self.get(py, at)?, encoding, &mut blobs)?;
        }
        match blobs.bytes.contains(&0) {
            true => Err(PyValueError::new_err("VLEN strings do not support embedded NULLs")),
            false => Ok(blobs),
        }
    }
}

/// Stores texts, and returns the elements that lead to them.
fn store_part(file: &File, texts: &Blobs, size: usize) -> PyResult<Vec<u8>> {
    let data = texts.iter().map(|bytes| u32::try_from(bytes.len()).map(|count| (bytes, count)));
    let data: Result<Vec<(&[u8], u32)>, _> = data.collect();
    let data = data.map_err(|_| PyOverflowError::new_err("a text has more than 4 GiB"))?;
    let stored = store(file, &data, size).map_err(raise_model)?;
    match stored.len() == data.len() * size {
        true => Ok(stored),
        false => Err(PyValueError::new_err(format!("elements have {size} bytes; the store's have others"))),
    }
}

/// Stores texts part by part, and fills the memory of their elements, each of `size` bytes. Counts the bytes that it has
/// filled. While a thread of the pool stores a part, this one takes the next from Python.
fn store_texts(
    file: &File,
    texts: &Texts,
    encoding: &str,
    (elements, size): (&mut [u8], usize),
    written: &mut usize,
) -> PyResult<()> {
    let count = elements.len() / size;
    let read = |begin: usize| {
        let range = begin..(begin + ELEMENTS_PER_PART).min(count);
        if range.is_empty() { Ok(None) } else { Python::attach(|py| texts.read(py, range, encoding).map(Some)) }
    };
    // A thread of the pool does not wait for others of it.
    let is_alone = count <= ELEMENTS_PER_PART || rayon::current_thread_index().is_some();
    let mut part = read(0)?;
    while let Some(texts) = part {
        let begin = *written / size;
        let next = || read(begin + ELEMENTS_PER_PART);
        let (stored, next) = match is_alone {
            true => (store_part(file, &texts, size), next()),
            false => {
                let (mut stored, mut found) = (Ok(Vec::new()), Ok(None));
                rayon::in_place_scope(|scope| {
                    scope.spawn(|_| stored = store_part(file, &texts, size));
                    found = next();
                });
                (stored, found)
            }
        };
        let stored = stored?;
        elements[*written..*written + stored.len()].copy_from_slice(&stored);
        *written += stored.len();
        part = next?;
    }
    Ok(())
}

/// The type of all elements of an array of objects; `None` if they are of several, or if there are none.
#[pyfunction]
pub(crate) fn common_type<'py>(array: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyType>>> {
    let (py, objects) = (array.py(), Objects::readable(array)?);
    let type_of = |at| objects.get(py, at).unwrap_or_else(|| py.None().into_bound(py)).get_type();
    if objects.len() == 0 {
        return Ok(None);
    }
    let first = type_of(0);
    Ok((1..objects.len()).all(|at| type_of(at).is(&first)).then_some(first))
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
        let (elements, size) = (memory.bytes(), size.max(1));
        let mut objects = Objects::writable(into)?;
        if objects.len() != elements.len() / size || !elements.len().is_multiple_of(size) {
            return Err(PyValueError::new_err("there are not as many objects as elements"));
        }
        let mut put = |first: usize, blobs: Blobs| {
            Python::attach(|py| {
                let texts = blobs.iter().enumerate();
                texts.for_each(|(n, bytes)| objects.put(first + n, PyBytes::new(py, bytes).into_any()));
            });
        };
        run(py, || read_parts(&file, elements, size, is_text, &mut put))?.map_err(raise_model)?;
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
        let stored = run(py, || store(&file, &data, size))?;
        Ok(PyBytes::new(py, &stored.map_err(raise_model)?))
    }

    /// Stores texts, those of a list or of an array of objects, and returns the elements that lead to them.
    fn write_texts<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        size: usize,
        encoding: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let file = self.session.file()?;
        let texts = Texts::new(texts)?;
        let bytes = texts.len(py).checked_mul(size.max(1)).ok_or_else(|| PyMemoryError::new_err("too many texts"))?;
        PyBytes::new_with(py, bytes, |elements| {
            let mut written = 0;
            let part = (&mut *elements, size.max(1));
            let done = run(py, || store_texts(&file, &texts, encoding, part, &mut written)).and_then(|done| done);
            if done.is_err() {
                // Nothing leads to what is stored already. What the error was about is what counts.
                let stored: Vec<&[u8]> = elements[..written].chunks_exact(size.max(1)).collect();
                let _ = file.writer().and_then(|writer| writer.remove_blobs(&stored));
            }
            done
        })
    }
}

//! Variable-length data: what the file has for it, and Python's objects.

use std::mem;
use std::ops::Range;
use std::sync::mpsc;

use h5live::File;
use h5live::model::Result as ModelResult;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
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
#[derive(Default)]
struct Blobs {
    bytes: Vec<u8>,
    /// Where that of each element begins and ends.
    ranges: Vec<(usize, usize)>,
}

impl Blobs {
    fn read(&mut self, file: &File, elements: &[&[u8]], is_text: bool) -> ModelResult<()> {
        let Blobs { bytes, ranges } = self;
        bytes.clear();
        ranges.clear();
        ranges.resize(elements.len(), (0, 0));
        file.store().read_blobs(elements, &mut |at, found| {
            let begin = bytes.len();
            bytes.extend_from_slice(found);
            ranges[at] = (begin, bytes.len());
        })?;
        // Few texts have what ends them.
        if is_text && bytes.contains(&0) {
            for (begin, end) in ranges {
                let nul = bytes[*begin..*end].iter().position(|byte| *byte == 0);
                *end = nul.map_or(*end, |nul| *begin + nul);
            }
        }
        Ok(())
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

    fn clear(&mut self) {
        self.bytes.clear();
        self.ranges.clear();
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

/// Memory for a part of the elements.
#[derive(Default)]
struct Part<'a> {
    /// The number of the first element.
    first: usize,
    elements: Vec<&'a [u8]>,
    blobs: Blobs,
}

impl<'a> Part<'a> {
    /// Reads what `elements` lead to, each of `size` bytes.
    fn read(
        &mut self,
        file: &File,
        first: usize,
        (elements, size): (&'a [u8], usize),
        is_text: bool,
    ) -> ModelResult<()> {
        self.first = first;
        self.elements.clear();
        self.elements.extend(elements.chunks_exact(size));
        self.blobs.read(file, &self.elements, is_text)
    }
}

/// Reads what each part of the elements leads to, and gives it to `each` with the number of its first element, in any order.
fn read_parts<'a>(
    file: &File,
    elements: &'a [u8],
    size: usize,
    is_text: bool,
    mut each: impl FnMut(usize, &Blobs),
) -> ModelResult<()> {
    let mut parts = elements.chunks(size * ELEMENTS_PER_PART).enumerate();
    // A thread of the pool does not wait for others of it.
    if elements.len() <= size * ELEMENTS_PER_PART || rayon::current_thread_index().is_some() {
        let mut memory = Part::default();
        return parts.try_for_each(|(n, part)| {
            memory.read(file, n * ELEMENTS_PER_PART, (part, size), is_text)?;
            each(memory.first, &memory.blobs);
            Ok(())
        });
    }
    let (sender, receiver) = mpsc::channel();
    rayon::in_place_scope(|scope| {
        let mut start_next = |mut memory: Part<'a>| {
            let Some((n, part)) = parts.next() else { return false };
            let sender = sender.clone();
            scope.spawn(move |_| {
                let read = memory.read(file, n * ELEMENTS_PER_PART, (part, size), is_text);
                // Nobody receives it after an error.
                drop(sender.send(read.map(|()| memory)));
            });
            true
        };
        let mut pending = (0..PARTS_AHEAD).filter(|_| start_next(Part::default())).count();
        while pending > 0 {
            let Ok(part) = receiver.recv() else { break };
            let part = part?;
            each(part.first, &part.blobs);
            pending -= usize::from(!start_next(part));
        }
        Ok(())
    })
}

/// Adds the bytes of a text if Python has them: those of bytes, and of a string in UTF-8. Runs no Python code.
fn push_known_bytes(item: &Bound<'_, PyAny>, encoding: &str, texts: &mut Blobs) -> bool {
    if let Ok(text) = item.cast::<PyString>() {
        let text = text.to_str().ok().filter(|text| encoding == "utf-8" || text.is_ascii());
        return text.map(|text| texts.push(text.as_bytes())).is_some();
    }
    item.cast::<PyBytes>().map(|bytes| texts.push(bytes.as_bytes())).is_ok()
}

/// Adds the bytes of a text: of a string in an encoding, of bytes as they are.
fn push_text(item: &Bound<'_, PyAny>, encoding: &str, texts: &mut Blobs) -> PyResult<()> {
    if push_known_bytes(item, encoding, texts) {
        return Ok(());
    }
    let Ok(text) = item.cast::<PyString>() else {
        return Err(PyTypeError::new_err("Can't implicitly convert non-string objects to strings"));
    };
    let encoded = text.call_method1("encode", (encoding, "surrogateescape"))?;
    texts.push(encoded.cast::<PyBytes>()?.as_bytes());
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
    fn read(&self, py: Python<'_>, range: Range<usize>, encoding: &str, into: &mut Blobs) -> PyResult<()> {
        into.clear();
        into.ranges.reserve(range.len());
        for at in range {
            let is_pushed = match self {
                Texts::Array(objects) => objects.with(py, at, |item| push_known_bytes(item, encoding, into)),
                Texts::List(_) => false,
            };
            if !is_pushed {
                push_text(&self.get(py, at)?, encoding, into)?;
            }
        }
        match into.bytes.contains(&0) {
            true => Err(PyValueError::new_err("VLEN strings do not support embedded NULLs")),
            false => Ok(()),
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
    let read = |begin: usize, into: &mut Blobs| {
        let range = begin..(begin + ELEMENTS_PER_PART).min(count);
        Python::attach(|py| texts.read(py, range, encoding, into))
    };
    // A thread of the pool does not wait for others of it.
    let is_alone = count <= ELEMENTS_PER_PART || rayon::current_thread_index().is_some();
    let (mut part, mut following) = (Blobs::default(), Blobs::default());
    read(0, &mut part)?;
    while !part.ranges.is_empty() {
        let begin = *written / size;
        let mut next = || read((begin + ELEMENTS_PER_PART).min(count), &mut following);
        let (stored, next) = match is_alone {
            true => (store_part(file, &part, size), next()),
            false => {
                let (mut stored, mut found) = (Ok(Vec::new()), Ok(()));
                rayon::in_place_scope(|scope| {
                    scope.spawn(|_| stored = store_part(file, &part, size));
                    found = next();
                });
                (stored, found)
            }
        };
        let stored = stored?;
        elements[*written..*written + stored.len()].copy_from_slice(&stored);
        *written += stored.len();
        next?;
        mem::swap(&mut part, &mut following);
    }
    Ok(())
}

/// The type of all elements of an array of objects; `None` if they are of several, or if there are none.
#[pyfunction]
pub(crate) fn common_type<'py>(array: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyType>>> {
    let (py, objects) = (array.py(), Objects::readable(array)?);
    if objects.len() == 0 {
        return Ok(None);
    }
    let first = objects.with(py, 0, |object| object.get_type());
    let is_of_it = |object: &Bound<'_, PyAny>| object.get_type_ptr() == first.as_type_ptr();
    Ok((1..objects.len()).all(|at| objects.with(py, at, is_of_it)).then_some(first))
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
        let mut put = |first: usize, blobs: &Blobs| {
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

    /// Stores texts, those of a list or of an array of objects, and fills memory with the elements that lead to them, each
    /// of `size` bytes.
    fn write_texts(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        size: usize,
        encoding: &str,
        into: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let file = self.session.file()?;
        let (texts, mut memory, size) = (Texts::new(texts)?, Memory::writable(into)?, size.max(1));
        let elements = memory.bytes_mut();
        if Some(elements.len()) != texts.len(py).checked_mul(size) {
            return Err(PyValueError::new_err("there are not as many elements as texts"));
        }
        let mut written = 0;
        let part = (&mut *elements, size);
        let done = run(py, || store_texts(&file, &texts, encoding, part, &mut written)).and_then(|done| done);
        if done.is_err() {
            // Nothing leads to what is stored already. What the error was about is what counts.
            let stored: Vec<&[u8]> = elements[..written].chunks_exact(size).collect();
            let _ = file.writer().and_then(|writer| writer.remove_blobs(&stored));
        }
        done
    }
}

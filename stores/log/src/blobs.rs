//! Variable-length elements of files with subfiles: the file that has the bytes of an element.
//!
//! A variable-length element is the one of the file beneath: a count (4 bytes), the address of a heap (8 bytes), and a
//! number in it. A writer that has joined others puts the bytes into the heap of its own subfile, and the number of the
//! subfile into the upper two bytes of the address.

use std::sync::Arc;

use h5live_model::{Datatype, Result, Store, read_blob};

use crate::session::LogSession;

/// Bytes of such an element: count, address, number.
const ELEMENT_BYTES: usize = 16;
/// Where the number of the file is in it.
const FILE_AT: usize = 10;

/// The number of the file that has the bytes of an element.
fn file_of(element: &[u8]) -> u32 {
    match element.len() {
        ELEMENT_BYTES => u16::from_le_bytes([element[FILE_AT], element[FILE_AT + 1]]).into(),
        _ => 0,
    }
}

/// The element as the file with its bytes has it.
fn without_file(element: &[u8]) -> Vec<u8> {
    let mut bare = element.to_vec();
    if bare.len() == ELEMENT_BYTES {
        bare[FILE_AT..FILE_AT + 2].fill(0);
    }
    bare
}

/// Calls `each` with every variable-length element in a value of this type, the outer ones of nested ones only.
///
/// # Errors
/// Those of `each`.
fn for_each_element(
    datatype: &Datatype,
    value: &mut [u8],
    each: &mut dyn FnMut(&Datatype, &mut [u8]) -> Result<()>,
) -> Result<()> {
    let size = datatype.size().max(1) as usize;
    match datatype {
        Datatype::VarLen(of) => value.chunks_exact_mut(size).try_for_each(|element| each(&of.base, element)),
        Datatype::Array(of) => for_each_element(&of.base, value, each),
        Datatype::Compound(of) => value.chunks_exact_mut(size).try_for_each(|whole| {
            of.members.iter().filter(|member| member.datatype.is_indirect()).try_for_each(|member| {
                let begin = member.offset as usize;
                let end = begin + member.datatype.size() as usize;
                whole.get_mut(begin..end).map_or(Ok(()), |part| for_each_element(&member.datatype, part, each))
            })
        }),
        _ => Ok(()),
    }
}

impl LogSession {
    /// Keeps the bytes of variable-length elements, and returns the elements.
    ///
    /// # Errors
    /// As [`h5live_model::StoreWriter::put_blobs`].
    pub fn put_blobs(&self, blobs: &[(&[u8], u32)]) -> Result<Vec<u8>> {
        self.check_open()?;
        let (number, own) = self.own_file();
        let mut elements = own.writer()?.put_blobs(blobs)?;
        if number == 0 {
            return Ok(elements);
        }
        let has_room = |element: &[u8]| element.len() == ELEMENT_BYTES && file_of(element) == 0;
        if elements.len() != blobs.len() * ELEMENT_BYTES || !elements.chunks(ELEMENT_BYTES).all(has_room) {
            // An address leaves no room for the number of the file.
            return self.change_main(|on| on.main.writer()?.put_blobs(blobs));
        }
        for element in elements.chunks_mut(ELEMENT_BYTES) {
            element[FILE_AT..FILE_AT + 2].copy_from_slice(&(number as u16).to_le_bytes());
        }
        Ok(elements)
    }

    /// Reads the bytes of variable-length elements, as [`Store::blobs`].
    ///
    /// # Errors
    /// As [`Store::blobs`].
    pub fn blobs(&self, elements: &[&[u8]], each: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        let stores: Vec<Arc<dyn Store>> = self.stores();
        if stores.len() == 1 {
            return self.inner.blobs(elements, each);
        }
        for (file, store) in (0u32..).zip(&stores) {
            let numbers: Vec<usize> = (0..elements.len()).filter(|number| file_of(elements[*number]) == file).collect();
            let bare: Vec<Vec<u8>> = numbers.iter().map(|number| without_file(elements[*number])).collect();
            let bare: Vec<&[u8]> = bare.iter().map(Vec::as_slice).collect();
            store.blobs(&bare, &mut |number, bytes| each(numbers[number], bytes))?;
        }
        // Those of files that are not there are damaged, as the main file says.
        let others: Vec<&[u8]> =
            elements.iter().copied().filter(|element| file_of(element) as usize >= stores.len()).collect();
        if others.is_empty() { Ok(()) } else { self.inner.blobs(&others, &mut |_, _| {}) }
    }

    /// Moves the bytes of variable-length elements in a value to the main file, which other programs read by itself.
    ///
    /// # Errors
    /// If they cannot be read; as [`h5live_model::StoreWriter::put_blob`].
    pub fn move_blobs(&self, main: &dyn Store, datatype: &Datatype, value: &mut [u8]) -> Result<()> {
        if !self.has_joined() || !datatype.is_indirect() {
            return Ok(());
        }
        let stores = self.stores();
        for_each_element(datatype, value, &mut |base, element| {
            let Some(store) = stores.get(file_of(element) as usize).filter(|_| file_of(element) > 0) else {
                return Ok(());
            };
            let mut bytes = read_blob(&**store, &without_file(element))?;
            self.move_blobs(main, base, &mut bytes)?;
            let count = element.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
            element.copy_from_slice(&main.writer()?.put_blob(&bytes, count)?);
            Ok(())
        })
    }
}

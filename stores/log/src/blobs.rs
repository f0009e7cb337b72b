//! Variable-length elements of a log: the file that has the bytes of an element, and their checksum.
//!
//! Such an element is the one of the file beneath: a count (4 bytes), the address of a heap (8 bytes), and a number in it
//! (4 bytes, of which heaps have 2). Entries have the number of the file in the upper two bytes of the address: a writer
//! that has joined others puts the bytes into the heap of its own subfile. They have a checksum of the bytes in the upper
//! two bytes of the number (`docs/log-format.md`). Attributes and fill values have neither: other programs read them.

use std::sync::Arc;

use crc::{CRC_16_IBM_SDLC, Crc, Table};
use h5live_model::{Datatype, Result, Store, read_blob};

use crate::error::LogError;
use crate::session::LogSession;

/// Bytes of such an element: count, address, number.
const ELEMENT_BYTES: usize = 16;
/// Where the number of the file is in it.
const FILE_AT: usize = 10;
/// Where the checksum is in it.
const CHECKSUM_AT: usize = 14;

/// The checksum of the bytes of an element. It finds every change of one bit, and of neighbours within two bytes.
fn checksum_of(bytes: &[u8]) -> u16 {
    static CHECKSUM: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&CRC_16_IBM_SDLC);
    // 0 stands for none.
    CHECKSUM.checksum(bytes).max(1)
}

/// Two bytes of an element; 0 if it is none of the file beneath.
fn field(element: &[u8], at: usize) -> u16 {
    match element.len() {
        ELEMENT_BYTES => u16::from_le_bytes([element[at], element[at + 1]]),
        _ => 0,
    }
}

/// Puts a number into two bytes of each of so many elements, if they are free in all of them. Says whether they were.
fn set_fields(elements: &mut [u8], count: usize, at: usize, number: impl Fn(usize) -> u16) -> bool {
    let is_free =
        elements.len() == count * ELEMENT_BYTES && elements.chunks(ELEMENT_BYTES).all(|one| field(one, at) == 0);
    if is_free {
        for (index, element) in elements.chunks_mut(ELEMENT_BYTES).enumerate() {
            element[at..at + 2].copy_from_slice(&number(index).to_le_bytes());
        }
    }
    is_free
}

/// The number of the file that has the bytes of an element.
fn file_of(element: &[u8]) -> u32 {
    field(element, FILE_AT).into()
}

/// The element as the file with its bytes has it.
fn bare(element: &[u8]) -> Vec<u8> {
    let mut bare = element.to_vec();
    if bare.len() == ELEMENT_BYTES {
        bare[FILE_AT..FILE_AT + 2].fill(0);
        bare[CHECKSUM_AT..].fill(0);
    }
    bare
}

/// Compares the bytes of an element with the checksum in it, if it has one.
fn compare(element: &[u8], bytes: &[u8]) -> Result<()> {
    match field(element, CHECKSUM_AT) {
        0 => Ok(()),
        known if known == checksum_of(bytes) => Ok(()),
        _ => Err(LogError::BlobChecksum.into()),
    }
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
            of.members.iter().filter(|member| member.datatype.has_vlen_or_references()).try_for_each(|member| {
                let begin = member.offset as usize;
                let end = begin + member.datatype.size() as usize;
                whole.get_mut(begin..end).map_or(Ok(()), |part| for_each_element(&member.datatype, part, each))
            })
        }),
        _ => Ok(()),
    }
}

/// Compares the bytes of all variable-length elements in a value of this type with their checksums. `store_of` gives the
/// file of a number.
///
/// # Errors
/// If they cannot be read, or differ.
pub(crate) fn check_blobs<'a>(
    store_of: &dyn Fn(u32) -> Option<&'a dyn Store>,
    datatype: &Datatype,
    value: &mut [u8],
) -> Result<()> {
    for_each_element(datatype, value, &mut |base, element| {
        let store = store_of(file_of(element)).ok_or(LogError::BlobChecksum)?;
        let mut bytes = read_blob(store, &bare(element))?;
        compare(element, &bytes)?;
        if base.has_vlen() { check_blobs(store_of, base, &mut bytes) } else { Ok(()) }
    })
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
        if number > 0 && !set_fields(&mut elements, blobs.len(), FILE_AT, |_| number as u16) {
            // An address leaves no room for the number of the file.
            elements = self.change_main_file(|on| on.main.writer()?.put_blobs(blobs))?;
        }
        // Where there is no room, they have none.
        set_fields(&mut elements, blobs.len(), CHECKSUM_AT, |number| match blobs[number].0 {
            [] => 0,
            bytes => checksum_of(bytes),
        });
        Ok(elements)
    }

    /// Reads the bytes of variable-length elements, as [`Store::read_blobs`], and compares them with their checksums.
    ///
    /// # Errors
    /// As [`Store::read_blobs`]; if the bytes of one are not those that were stored.
    pub fn read_blobs(&self, elements: &[&[u8]], each: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        let stores: Vec<Arc<dyn Store>> = self.stores();
        let mut compared = Ok(());
        for (file, store) in (0u32..).zip(&stores) {
            let numbers: Vec<usize> = (0..elements.len()).filter(|number| file_of(elements[*number]) == file).collect();
            let bare: Vec<Vec<u8>> = numbers.iter().map(|number| bare(elements[*number])).collect();
            let bare: Vec<&[u8]> = bare.iter().map(Vec::as_slice).collect();
            store.read_blobs(&bare, &mut |number, bytes| {
                let number = numbers[number];
                match compare(elements[number], bytes) {
                    Ok(()) => each(number, bytes),
                    Err(error) if compared.is_ok() => compared = Err(error),
                    Err(_) => {}
                }
            })?;
        }
        compared?;
        // Those of files that are not there are damaged, as the main file says.
        let others: Vec<&[u8]> =
            elements.iter().copied().filter(|element| file_of(element) as usize >= stores.len()).collect();
        if others.is_empty() { Ok(()) } else { self.inner.read_blobs(&others, &mut |_, _| {}) }
    }

    /// Makes the variable-length elements in a value those of the main file alone, which other programs read by itself:
    /// bytes that are elsewhere are moved there.
    ///
    /// # Errors
    /// If they cannot be read; as [`h5live_model::StoreWriter::put_blob`].
    pub fn copy_blobs_to_main(&self, main: &dyn Store, datatype: &Datatype, value: &mut [u8]) -> Result<()> {
        if !datatype.has_vlen() {
            return Ok(());
        }
        let stores = self.stores();
        for_each_element(datatype, value, &mut |base, element| {
            let Some(store) = stores.get(file_of(element) as usize) else { return Ok(()) };
            let mut at_home = bare(element);
            if file_of(element) > 0 || base.has_vlen() {
                let mut bytes = read_blob(&**store, &at_home)?;
                compare(element, &bytes)?;
                self.copy_blobs_to_main(main, base, &mut bytes)?;
                let count = element.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
                at_home = main.writer()?.put_blob(&bytes, count)?;
            }
            element.copy_from_slice(&at_home);
            Ok(())
        })
    }
}

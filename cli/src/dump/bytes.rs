//! `h5live dump --bytes OFFSET`: the structure at an offset, field by field.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use h5live_format::messages::{self, Message, MessageType};
use h5live_format::{
    Addr, Bitmap, DecodeError, ElementTable, ExtensibleArrayHeader, Field, FixedArrayDataBlock, FixedArrayHeader,
    ObjectHeader, RawMessage, Record, Superblock, Widths, decode_prefix, describe,
};

use crate::error::{Error, Problem, Result};

/// Bytes that are read from an offset on: more than any structure that is decoded here has.
const WINDOW: usize = 1 << 20;

/// A structure in a file.
#[derive(Debug)]
pub struct Structure {
    /// Its name in the format specification.
    pub name: &'static str,
    /// Its fields; places are bytes from the start of the structure.
    pub fields: Vec<Field>,
    /// What is wrong with it.
    pub fault: Option<DecodeError>,
}

/// A file whose bytes are looked at.
#[derive(Debug)]
pub struct Bytes {
    file: File,
    path: PathBuf,
    len: u64,
    /// Where addresses count from (bytes).
    base: u64,
    widths: Widths,
}

impl Bytes {
    /// Opens a file and finds its superblock.
    ///
    /// # Errors
    /// [`Error::Path`], [`Error::Unfit`] if there is no superblock.
    pub fn open(path: &Path) -> Result<Self> {
        let io = |source| Error::Path { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        let mut bytes = Bytes { file, path: path.to_owned(), len, base: 0, widths: Widths::default() };
        for at in Superblock::locations(len) {
            let window = bytes.read(at, Superblock::MAX_SIZE)?;
            if window.starts_with(&Superblock::SIGNATURE) {
                let superblock = Superblock::decode(&window).map_err(|e| bytes.unfit(Problem::Superblock(e)))?;
                bytes.base = superblock.base.get().unwrap_or(at);
                bytes.widths = superblock.widths;
                return Ok(bytes);
            }
        }
        Err(bytes.unfit(Problem::NoSignature))
    }

    fn unfit(&self, problem: Problem) -> Error {
        Error::Unfit { path: self.path.clone(), problem }
    }

    /// At most `len` bytes from `at` (bytes from the start of the file) on.
    fn read(&self, at: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, at.saturating_add(filled as u64)) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Path { path: self.path.clone(), source }),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// The structure that begins at `offset` (bytes from the start of the file).
    ///
    /// # Errors
    /// [`Error::Unfit`] beyond the end of the file, or if nothing known begins there.
    pub fn structure_at(&self, offset: u64) -> Result<Structure> {
        if offset >= self.len {
            return Err(self.unfit(Problem::BeyondEnd { offset, len: self.len }));
        }
        let window = self.read(offset, WINDOW)?;
        match window.first_chunk() {
            Some(b"\x89HDF") => Ok(self.describe(Superblock::default(), &window)),
            Some(b"OHDR") => Ok(self.object_header(&window)),
            Some(b"EAHD") => Ok(self.describe(ExtensibleArrayHeader::default(), &window)),
            Some(b"FAHD") => Ok(self.describe(FixedArrayHeader::default(), &window)),
            Some(b"FADB") => self.fixed_array_block(offset, &window),
            // Version 1 object headers have no signature.
            Some([1, 0, _, _]) if decode_prefix::<ObjectHeader>(&window, self.widths).is_ok() => {
                Ok(self.object_header(&window))
            }
            _ => Err(self.unfit(Problem::NoStructure(offset))),
        }
    }

    fn describe<R: Record>(&self, record: R, window: &[u8]) -> Structure {
        let (fields, described) = describe(record, window, self.widths);
        Structure { name: R::NAME, fields, fault: described.err() }
    }

    /// An object header, each message's body described by its type.
    fn object_header(&self, window: &[u8]) -> Structure {
        let mut structure = self.describe(ObjectHeader::default(), window);
        let header: ObjectHeader = match decode_prefix(window, self.widths) {
            Ok((header, _)) => header,
            Err(_) => return structure,
        };
        let mut messages = header.messages.iter();
        let fields = std::mem::take(&mut structure.fields);
        for field in fields {
            let body = field.record == "message" && field.field == "body";
            match messages.next_if(body).and_then(|message| describe_message(message, self.widths)) {
                Some(inner) => {
                    let moved = inner.into_iter().map(|f| Field { at: f.at + field.at, ..f });
                    structure.fields.extend(moved);
                }
                None => structure.fields.push(field),
            }
        }
        structure
    }

    /// The header of the array that a block belongs to: its address follows signature, version and client.
    fn array_header(&self, offset: u64, window: &[u8]) -> Result<FixedArrayHeader> {
        let width = usize::from(self.widths.offset.bytes());
        let address = window.get(6..6 + width).unwrap_or_default();
        let address = address.iter().rev().fold(0u64, |a, b| a << 8 | u64::from(*b));
        let header = self.read(self.base.saturating_add(address), 256)?;
        decode_prefix(&header, self.widths).map(|(h, _)| h).map_err(|_| self.unfit(Problem::NoStructure(offset)))
    }

    fn fixed_array_block(&self, offset: u64, window: &[u8]) -> Result<Structure> {
        let header = self.array_header(offset, window)?;
        let page = 1u64 << header.page_bits;
        // The rest of the window bounds what a header that lies may ask for.
        let bounded = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(window.len());
        let (pages, elements) = if header.elements > page {
            (bounded(header.elements.div_ceil(page).div_ceil(8)), 0)
        } else {
            (0, bounded(header.elements))
        };
        let block = FixedArrayDataBlock {
            header: Addr::UNDEFINED,
            pages: Bitmap::clear(pages),
            elements: ElementTable::missing(elements, header.format, self.widths.offset),
        };
        Ok(self.describe(block, window))
    }
}

/// Iterators that are advanced under a condition.
trait NextIf: Iterator {
    fn next_if(&mut self, condition: bool) -> Option<Self::Item> {
        if condition { self.next() } else { None }
    }
}

impl<I: Iterator> NextIf for I {}

/// The fields of a message's body; `None` if its type is unknown, or it lies elsewhere.
fn describe_message(message: &RawMessage, widths: Widths) -> Option<Vec<Field>> {
    fn fields<M: Message + Default>(body: &[u8], widths: Widths) -> Option<Vec<Field>> {
        let (fields, described) = describe(M::default(), body, widths);
        described.is_ok().then_some(fields)
    }
    macro_rules! by_type {
        ($($message:ty),* $(,)?) => {
            $(if message.kind == <$message>::TYPE { return fields::<$message>(&message.body, widths); })*
        };
    }
    if message.flags.is_shared() || message.kind == MessageType::NIL {
        return None;
    }
    by_type!(
        messages::DataspaceMessage,
        messages::LinkInfo,
        messages::DatatypeMessage,
        messages::OldFillValueMessage,
        messages::FillValueMessage,
        messages::LinkMessage,
        messages::ExternalFiles,
        messages::LayoutMessage,
        messages::GroupInfo,
        messages::FilterPipelineMessage,
        messages::AttributeMessage,
        messages::Comment,
        messages::OldModificationTime,
        messages::SharedMessageTableInfo,
        messages::Continuation,
        messages::SymbolTable,
        messages::ModificationTime,
        messages::BtreeK,
        messages::DriverInfo,
        messages::AttributeInfo,
        messages::ReferenceCount,
        messages::FileSpaceInfo,
        messages::CacheImageInfo,
    );
    None
}

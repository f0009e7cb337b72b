//! The entries of a tar archive, one after another, and every byte that is not contents of a file.
//!
//! All that is not contents (headers, extended headers, maps of sparse files, padding, the end of the archive) is handed to
//! a [`NonContentSink`] in the order of the archive. So contents and records together are the archive, byte for byte.

use std::io::{self, Read};

use crate::entry::{ExtendedHeaders, PaxGlobalRecords, TarEntry};
use crate::error::{Error, Result, TarFault};
use crate::header::{BLOCK_BYTES, TarBlock, check_checksum, unsigned};
use crate::sparse::{self, SparseMapInContentsParser};

/// The most bytes of extended headers and of a map, for one entry. They are in memory at once.
pub const MAX_ENTRY_HEADER_BYTES: u64 = 16 << 20;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 1 << 20;

/// Bytes that are handed on at once.
const PASSED_BYTES: usize = 16 << 10;

/// Takes the bytes of an archive that are not contents of files.
pub trait NonContentSink {
    /// Takes the next of them.
    ///
    /// # Errors
    /// If they cannot be kept.
    fn push_non_content(&mut self, bytes: &[u8]) -> Result<()>;
}

/// Drops them.
impl NonContentSink for () {
    fn push_non_content(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// Keeps them in memory.
impl NonContentSink for Vec<u8> {
    fn push_non_content(&mut self, bytes: &[u8]) -> Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// What a header is followed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// A header.
    Header,
    /// So many bytes of contents, and then padding.
    Contents { left: u64, padding: u64 },
    /// Nothing more.
    End,
}

/// Reads an archive from its start to its end.
#[derive(Debug)]
pub struct TarScanner<R> {
    input: io::BufReader<R>,
    name: String,
    at: u64,
    /// A block that was read to see what it is, and how much of it was taken since.
    kept: Option<(TarBlock, usize)>,
    position: Position,
    globals: PaxGlobalRecords,
    last_path: Option<String>,
    /// Whether blocks of zeros are passed over, and do not end the archive.
    ignores_zeros: bool,
    /// Where another archive begins behind the end.
    next_archive: Option<u64>,
}

impl<R: Read> TarScanner<R> {
    /// Reads `input`, an archive that errors call `name`.
    pub fn new(input: R, name: &str) -> Self {
        TarScanner {
            input: io::BufReader::with_capacity(BUFFER_BYTES, input),
            name: name.to_owned(),
            at: 0,
            kept: None,
            position: Position::Header,
            globals: PaxGlobalRecords::default(),
            last_path: None,
            ignores_zeros: false,
            next_archive: None,
        }
    }

    /// Passes over blocks of zeros, which end an archive: behind them there may be another one.
    pub fn ignore_zeros(self, ignores_zeros: bool) -> Self {
        TarScanner { ignores_zeros, ..self }
    }

    /// The byte at which another archive begins behind the end of this one, if there is one. Its entries were not read.
    pub fn unread_archive_offset(&self) -> Option<u64> {
        self.next_archive
    }

    /// Bytes that were read of the archive.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// An error at this place of the archive.
    pub fn error(&self, fault: TarFault) -> Error {
        Error::Archive { archive: self.name.clone(), at: self.at, entry: self.last_path.clone(), fault }
    }

    /// The next bytes of the input, at most as many as fit; 0 at its end.
    fn read_some(&mut self, into: &mut [u8]) -> Result<usize> {
        if let Some((block, used)) = &mut self.kept {
            let rest = &block[*used..];
            let part = rest.len().min(into.len());
            into[..part].copy_from_slice(&rest[..part]);
            *used += part;
            if *used == BLOCK_BYTES {
                self.kept = None;
            }
            self.at += part as u64;
            return Ok(part);
        }
        loop {
            match self.input.read(into) {
                Ok(read) => {
                    self.at += read as u64;
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(TarFault::Read(error))),
            }
        }
    }

    /// Reads until `into` is full or the input ends. Returns how much there is.
    fn read_up_to(&mut self, into: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < into.len() {
            match self.read_some(&mut into[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(filled)
    }

    fn fill(&mut self, into: &mut [u8]) -> Result<()> {
        match into.len() - self.read_up_to(into)? {
            0 => Ok(()),
            missing => Err(self.error(TarFault::Truncated { missing: missing as u64 })),
        }
    }

    /// The next block; `None` at the end of the input.
    fn block(&mut self) -> Result<Option<TarBlock>> {
        let mut block = [0; BLOCK_BYTES];
        match self.read_up_to(&mut block)? {
            0 => Ok(None),
            BLOCK_BYTES => Ok(Some(block)),
            filled if self.at == filled as u64 && other_format(&block).is_some() => Err(self.format_error(&block)),
            filled => Err(self.error(TarFault::Truncated { missing: (BLOCK_BYTES - filled) as u64 })),
        }
    }

    /// A block that must be there.
    fn next_block(&mut self) -> Result<TarBlock> {
        let block = self.block()?;
        block.ok_or_else(|| self.error(TarFault::Truncated { missing: BLOCK_BYTES as u64 }))
    }

    /// Hands `left` bytes to the sink.
    fn pass_on(&mut self, left: u64, records: &mut dyn NonContentSink) -> Result<()> {
        // Padding is short.
        match left <= BLOCK_BYTES as u64 {
            true => self.pass_on_by(&mut [0; BLOCK_BYTES], left, records),
            false => self.pass_on_by(&mut [0; PASSED_BYTES], left, records),
        }
    }

    fn pass_on_by(&mut self, buffer: &mut [u8], mut left: u64, records: &mut dyn NonContentSink) -> Result<()> {
        while left > 0 {
            let len = left.min(buffer.len() as u64) as usize;
            let part = &mut buffer[..len];
            self.fill(part)?;
            records.push_non_content(part)?;
            left -= part.len() as u64;
        }
        Ok(())
    }

    /// Fills `into` with the next bytes of the contents of the last entry, as the archive has them.
    ///
    /// # Errors
    /// [`TarFault::Truncated`], or if `into` is longer than the contents that are left.
    pub fn read_stored_contents(&mut self, into: &mut [u8]) -> Result<()> {
        let Position::Contents { left, padding } = self.position else {
            return if into.is_empty() {
                Ok(())
            } else {
                Err(self.error(TarFault::Truncated { missing: into.len() as u64 }))
            };
        };
        let wanted = into.len() as u64;
        let Some(rest) = left.checked_sub(wanted) else {
            return Err(self.error(TarFault::Truncated { missing: wanted - left }));
        };
        self.fill(into).map_err(|error| with_missing(error, rest))?;
        self.position = Position::Contents { left: rest, padding };
        Ok(())
    }

    /// The next entry; `None` at the end of the archive. Contents that were not read are skipped.
    ///
    /// # Errors
    /// [`Error::Archive`], and those of the sink.
    pub fn next_entry(&mut self, records: &mut dyn NonContentSink) -> Result<Option<TarEntry>> {
        match self.position {
            Position::End => return Ok(None),
            Position::Contents { left, padding } => {
                self.pass_on(left, &mut ())?;
                self.position = Position::Header;
                self.pass_on(padding, records)?;
            }
            Position::Header => {}
        }
        let mut attributes = ExtendedHeaders::new(&self.globals);
        let mut record_bytes = 0u64;
        loop {
            let Some(block) = self.block()? else {
                if record_bytes > 0 {
                    return Err(self.error(TarFault::Truncated { missing: BLOCK_BYTES as u64 }));
                }
                self.position = Position::End;
                return Ok(None);
            };
            if block == [0; BLOCK_BYTES] {
                records.push_non_content(&block)?;
                if self.ignores_zeros {
                    continue;
                }
                self.pass_end(records)?;
                return Ok(None);
            }
            if let Err(fault) = check_checksum(&block) {
                let is_first = self.at == BLOCK_BYTES as u64 && other_format(&block).is_some();
                return Err(if is_first { self.format_error(&block) } else { self.header_error(fault) });
            }
            records.push_non_content(&block)?;
            let kind = block[156];
            if !matches!(kind, b'x' | b'X' | b'g' | b'L' | b'K') {
                return self.finish_entry(&block, attributes, records).map(Some);
            }
            let size = unsigned(&block[124..136], "size").map_err(|fault| self.header_error(fault))?;
            record_bytes = record_bytes.saturating_add(size).saturating_add(BLOCK_BYTES as u64);
            if record_bytes > MAX_ENTRY_HEADER_BYTES {
                return Err(
                    self.header_error(TarFault::ExtendedHeadersTooLong { bytes: size, limit: MAX_ENTRY_HEADER_BYTES })
                );
            }
            let mut bytes = vec![0; size as usize];
            self.fill(&mut bytes)?;
            records.push_non_content(&bytes)?;
            self.pass_on(padding_after(size), records)?;
            let taken = match kind {
                b'g' => self.globals.append_header(&bytes).map(|()| attributes.set_globals(&self.globals)),
                _ => attributes.add_header(kind, bytes),
            };
            taken.map_err(|fault| self.header_error(fault))?;
        }
    }

    /// An error in the block that was just read.
    fn header_error(&self, fault: TarFault) -> Error {
        let at = self.at.saturating_sub(BLOCK_BYTES as u64);
        Error::Archive { archive: self.name.clone(), at, entry: self.last_path.clone(), fault }
    }

    /// That the archive is of another kind.
    fn format_error(&self, block: &TarBlock) -> Error {
        let fault = TarFault::OtherFormat(other_format(block).unwrap_or_default());
        Error::Archive { archive: self.name.clone(), at: 0, entry: None, fault }
    }

    /// Hands on what follows the end of the archive.
    fn pass_end(&mut self, records: &mut dyn NonContentSink) -> Result<()> {
        self.position = Position::End;
        let mut buffer = [0; PASSED_BYTES];
        let mut is_blank = true;
        loop {
            let at = self.at;
            let read = self.read_up_to(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            let mut blocks = buffer[..read].as_chunks::<BLOCK_BYTES>().0.iter().zip(0u64..);
            if let Some((block, number)) = blocks.find(|(block, _)| **block != [0; BLOCK_BYTES]).filter(|_| is_blank) {
                is_blank = false;
                self.next_archive = check_checksum(block).is_ok().then_some(at + number * BLOCK_BYTES as u64);
            }
            records.push_non_content(&buffer[..read])?;
        }
    }

    /// An entry from its last header, with what follows it up to its contents.
    fn finish_entry(
        &mut self,
        block: &TarBlock,
        attributes: ExtendedHeaders,
        records: &mut dyn NonContentSink,
    ) -> Result<TarEntry> {
        let (mut entry, data_size) =
            attributes.parse_entry_and_data_size(block).map_err(|fault| self.header_error(fault))?;
        self.last_path = Some(String::from_utf8_lossy(&entry.path).into_owned());
        let mut left = data_size;
        let map = self.sparse_map(block, &mut entry, &mut left, records)?;
        if let Some((segments, size)) = map {
            let segments = sparse::drop_empty_and_validate_segments(segments, size, left);
            entry.segments = Some(segments.map_err(|fault| self.header_error(fault))?);
            entry.size = size;
        } else {
            entry.size = left;
        }
        if entry.kind == b'1' && left > 0 && !self.has_contents()? {
            (left, entry.size) = (0, 0);
        }
        entry.stored_size = left;
        if entry.has_file_contents() {
            self.position = Position::Contents { left, padding: padding_after(data_size) };
        } else {
            // A file without contents, or an entry whose contents are no file's: a part of the records.
            self.pass_on(left, records)?;
            self.pass_on(padding_after(left), records)?;
            entry.stored_size = 0;
            self.position = Position::Header;
        }
        Ok(entry)
    }

    /// The map of a sparse file, and the size of the file. Takes what the map has of the contents off `left`.
    fn sparse_map(
        &mut self,
        block: &TarBlock,
        entry: &mut TarEntry,
        left: &mut u64,
        records: &mut dyn NonContentSink,
    ) -> Result<Option<(Vec<sparse::SparseSegment>, u64)>> {
        let mut segments = Vec::new();
        let mut bytes = 0;
        if entry.kind == b'S' {
            let (mut is_extended, size) =
                sparse::parse_old_gnu_map(block, &mut segments).map_err(|fault| self.header_error(fault))?;
            while is_extended {
                let more = self.record_block(&mut bytes, records)?;
                is_extended =
                    sparse::parse_old_gnu_extension(&more, &mut segments).map_err(|fault| self.header_error(fault))?;
            }
            return Ok(Some((segments, size)));
        }
        let Some(mut sparse) = entry.sparse.take() else { return Ok(None) };
        let size = sparse.real_size.unwrap_or(*left);
        if sparse.is_map_in_contents() {
            let mut map = SparseMapInContentsParser::default();
            loop {
                let more = self.record_block(&mut bytes, records)?;
                *left = left
                    .checked_sub(BLOCK_BYTES as u64)
                    .ok_or_else(|| self.header_error(TarFault::InvalidSparseMap("it is longer than the contents")))?;
                if map.push(&more).map_err(|fault| self.header_error(fault))? {
                    break;
                }
            }
            return Ok(Some((map.into_segments(), size)));
        }
        Ok(sparse.map.take().map(|segments| (segments, size)))
    }

    /// A block of records.
    fn record_block(&mut self, bytes: &mut u64, records: &mut dyn NonContentSink) -> Result<TarBlock> {
        *bytes += BLOCK_BYTES as u64;
        if *bytes > MAX_ENTRY_HEADER_BYTES {
            return Err(self.error(TarFault::ExtendedHeadersTooLong { bytes: *bytes, limit: MAX_ENTRY_HEADER_BYTES }));
        }
        let block = self.next_block()?;
        records.push_non_content(&block)?;
        Ok(block)
    }

    /// Whether contents follow the header of a hard link: some programs state a size and write none.
    fn has_contents(&mut self) -> Result<bool> {
        let Some(block) = self.block()? else { return Ok(false) };
        self.at -= BLOCK_BYTES as u64;
        self.kept = Some((block, 0));
        Ok(block != [0; BLOCK_BYTES] && check_checksum(&block).is_err())
    }
}

/// Adds what is missing behind the bytes that could not be read.
fn with_missing(error: Error, more: u64) -> Error {
    match error {
        Error::Archive { archive, at, entry, fault: TarFault::Truncated { missing } } => {
            let fault = TarFault::Truncated { missing: missing.saturating_add(more) };
            Error::Archive { archive, at, entry, fault }
        }
        error => error,
    }
}

/// What else a file is that begins so; `None` if that is not known.
fn other_format(block: &TarBlock) -> Option<&'static str> {
    let magic: [(&[u8], &str); 10] = [
        (b"PK\x03\x04", "a zip archive"),
        (b"PK\x05\x06", "a zip archive"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
        (b"070701", "a cpio archive"),
        (b"070702", "a cpio archive"),
        (b"070707", "a cpio archive"),
        (b"\xc7\x71", "a cpio archive"),
        (b"Rar!\x1a\x07", "a RAR archive"),
        (b"!<arch>\n", "an archive of ar"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    ];
    magic.iter().find(|(magic, _)| block.starts_with(magic)).map(|(_, name)| *name)
}

fn padding_after(size: u64) -> u64 {
    size.wrapping_neg() % BLOCK_BYTES as u64
}

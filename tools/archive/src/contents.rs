//! The contents of the entry that was just read: data and holes, one after another.

use std::io::Read;

use crate::digest::ContentHasher;
use crate::entry::TarEntry;
use crate::error::Result;
use crate::scanner::TarScanner;
use crate::sparse::SparseSegment;

/// Zeros that are hashed at once.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// The next bytes of contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataOrHole {
    /// Data follow: at most so many bytes.
    Data(u64),
    /// So many zeros, which the archive does not have.
    Hole(u64),
    /// The contents have ended.
    End,
}

/// Contents that are read to their end.
#[derive(Debug)]
pub struct EntryContents<'a, R> {
    scanner: &'a mut TarScanner<R>,
    segments: &'a [SparseSegment],
    /// The file as one segment, if it has no map.
    whole: [SparseSegment; 1],
    is_sparse: bool,
    /// The segment that is being read.
    number: usize,
    at: u64,
    size: u64,
    hasher: ContentHasher,
}

impl<'a, R: Read> EntryContents<'a, R> {
    /// The contents of an entry, of which a digest is made.
    pub fn new(scanner: &'a mut TarScanner<R>, entry: &'a TarEntry, hasher: ContentHasher) -> Self {
        EntryContents {
            scanner,
            segments: entry.segments.as_deref().unwrap_or_default(),
            whole: [SparseSegment { offset: 0, length: entry.size }],
            is_sparse: entry.segments.is_some(),
            number: 0,
            at: 0,
            size: entry.size,
            hasher,
        }
    }

    /// All bytes of the contents.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether there are holes.
    pub fn has_holes(&self) -> bool {
        self.is_sparse && self.segments.iter().map(|segment| segment.length).sum::<u64>() < self.size
    }

    /// What comes next.
    pub fn peek(&self) -> DataOrHole {
        let segments = if self.is_sparse { self.segments } else { &self.whole };
        match segments.get(self.number) {
            Some(segment) if self.at >= segment.offset => DataOrHole::Data(segment.offset + segment.length - self.at),
            Some(segment) => DataOrHole::Hole(segment.offset - self.at),
            None if self.at < self.size => DataOrHole::Hole(self.size - self.at),
            None => DataOrHole::End,
        }
    }

    /// Reads data, which must follow, and not more than follow.
    ///
    /// # Errors
    /// [`crate::Error::Archive`].
    pub fn read_data(&mut self, into: &mut [u8]) -> Result<()> {
        self.scanner.read_stored_contents(into)?;
        self.hasher.update(into);
        self.advance(into.len() as u64);
        Ok(())
    }

    /// As [`EntryContents::read_data`], without a digest.
    ///
    /// # Errors
    /// [`crate::Error::Archive`].
    pub fn read_data_unhashed(&mut self, into: &mut [u8]) -> Result<()> {
        self.scanner.read_stored_contents(into)?;
        self.advance(into.len() as u64);
        Ok(())
    }

    /// As [`EntryContents::skip_hole`], without a digest: a hole of any length takes no time.
    pub fn skip_hole_unhashed(&mut self) {
        if let DataOrHole::Hole(bytes) = self.peek() {
            self.at += bytes;
        }
    }

    fn advance(&mut self, bytes: u64) {
        self.at += bytes;
        let segments = if self.is_sparse { self.segments } else { &self.whole };
        if segments.get(self.number).is_some_and(|segment| self.at >= segment.offset + segment.length) {
            self.number += 1;
        }
    }

    /// Passes over a hole, which must follow.
    pub fn skip_hole(&mut self) {
        let DataOrHole::Hole(bytes) = self.peek() else { return };
        let mut left = bytes;
        while left > 0 {
            let part = left.min(ZEROS.len() as u64);
            self.hasher.update(&ZEROS[..part as usize]);
            left -= part;
        }
        self.at += bytes;
    }

    /// Reads all contents into `into`, which has their size.
    ///
    /// # Errors
    /// [`crate::Error::Archive`].
    pub fn read_all(&mut self, into: &mut [u8]) -> Result<()> {
        loop {
            let start = self.at as usize;
            match self.peek() {
                DataOrHole::Data(bytes) => self.read_data(&mut into[start..start + bytes as usize])?,
                DataOrHole::Hole(bytes) => {
                    into[start..start + bytes as usize].fill(0);
                    self.skip_hole();
                }
                DataOrHole::End => return Ok(()),
            }
        }
    }

    /// The digest of what was read.
    pub fn into_digest_of_read(self) -> Vec<u8> {
        self.hasher.finish()
    }
}

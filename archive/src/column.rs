//! Datasets that grow at their end, and what is to be appended to them.

use h5live::{Dataset, H5Write};

use crate::error::Result;

/// Bytes that are gathered before they are appended.
const PENDING_BYTES: usize = 256 << 10;

/// A dataset with one dimension, and the elements that are not in it yet.
#[derive(Debug)]
pub struct Column<T> {
    dataset: Dataset,
    pending: Vec<T>,
    /// All elements, with the pending ones.
    len: u64,
}

impl<T: H5Write> Column<T> {
    /// The elements of a dataset.
    ///
    /// # Errors
    /// If the shape cannot be read.
    pub fn new(dataset: Dataset) -> Result<Self> {
        let len = dataset.shape()?.first().copied().unwrap_or(0);
        Ok(Column { dataset, pending: Vec::new(), len })
    }

    /// How many elements there are, with those that are not written yet.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The dataset.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// Adds elements at the end.
    ///
    /// # Errors
    /// As [`Dataset::append`].
    pub fn push(&mut self, elements: &[T]) -> Result<()>
    where
        T: Clone,
    {
        self.pending.extend_from_slice(elements);
        self.len += elements.len() as u64;
        if self.pending.len() * size_of::<T>() >= PENDING_BYTES { self.append() } else { Ok(()) }
    }

    fn append(&mut self) -> Result<()> {
        if !self.pending.is_empty() {
            self.dataset.append(&self.pending)?;
            self.pending.clear();
        }
        Ok(())
    }

    /// Publishes all elements.
    ///
    /// # Errors
    /// As [`Dataset::flush`].
    pub fn commit(&mut self) -> Result<()> {
        self.append()?;
        Ok(self.dataset.flush()?)
    }

    /// Drops elements at the end.
    ///
    /// # Errors
    /// As [`Dataset::resize`].
    pub fn truncate(&mut self, len: u64) -> Result<()> {
        let rest = self.dataset.shape()?.get(1..).unwrap_or_default().to_vec();
        self.pending.clear();
        self.dataset.resize(&[&[len], &*rest].concat())?;
        self.len = len;
        Ok(())
    }
}

/// The largest chunk that is gathered (bytes).
const MAX_BUFFERED_CHUNK_BYTES: u64 = 16 << 20;

/// Whole chunks are appended, so many at a time.
const CHUNKS_AT_ONCE: usize = 4;

/// A dataset of bytes in chunks. Chunks of zeros are left out, so that the file has holes there.
#[derive(Debug)]
pub struct ByteImage {
    dataset: Dataset,
    chunk: usize,
    /// Begins where the dataset ends, and ends with a chunk.
    buffer: Vec<u8>,
    filled: usize,
    /// Bytes in the dataset.
    written: u64,
}

impl ByteImage {
    /// The bytes of a dataset.
    ///
    /// # Errors
    /// If its description cannot be read.
    pub fn new(dataset: Dataset) -> Result<Self> {
        let spec = dataset.spec()?;
        let written = spec.dataspace.dims().first().copied().unwrap_or(0);
        let chunk = spec.chunk_dims().and_then(|dims| dims.first().copied()).unwrap_or(1);
        // A file of others may have chunks of any size.
        let chunk = chunk.clamp(1, MAX_BUFFERED_CHUNK_BYTES) as usize;
        let mut image = ByteImage { dataset, chunk, buffer: Vec::new(), filled: 0, written };
        image.restart();
        Ok(image)
    }

    fn restart(&mut self) {
        let over = (self.written % self.chunk as u64) as usize;
        self.filled = 0;
        self.buffer.resize(CHUNKS_AT_ONCE * self.chunk - over, 0);
    }

    /// How many bytes there are, with those that are not written yet.
    pub fn len(&self) -> u64 {
        self.written + self.filled as u64
    }

    /// Room for the next bytes, at least one and at most `limit`. [`ByteImage::advance`] says how many there are.
    ///
    /// # Errors
    /// As [`Dataset::append`].
    pub fn space(&mut self, limit: u64) -> Result<&mut [u8]> {
        if self.filled == self.buffer.len() {
            self.write_out()?;
        }
        let end = self.buffer.len().min(self.filled.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX)));
        Ok(&mut self.buffer[self.filled..end])
    }

    /// Takes so many bytes of the room as the next ones.
    pub fn advance(&mut self, bytes: usize) {
        self.filled = (self.filled + bytes).min(self.buffer.len());
    }

    /// Adds zeros.
    ///
    /// # Errors
    /// As [`Dataset::append`].
    pub fn push_zeros(&mut self, mut count: u64) -> Result<()> {
        while count > 0 {
            if self.filled == 0 && self.written.is_multiple_of(self.chunk as u64) && count >= self.chunk as u64 {
                let whole = count - count % self.chunk as u64;
                self.grow(whole)?;
                count -= whole;
                continue;
            }
            let rest = self.chunk - ((self.written + self.filled as u64) % self.chunk as u64) as usize;
            let space = self.space(count.min(rest as u64))?;
            space.fill(0);
            let len = space.len();
            self.advance(len);
            count -= len as u64;
            if count >= self.chunk as u64 && self.len().is_multiple_of(self.chunk as u64) {
                self.write_out()?;
            }
        }
        Ok(())
    }

    /// Makes the dataset longer by zeros.
    fn grow(&mut self, bytes: u64) -> Result<()> {
        self.dataset.resize(&[self.written + bytes])?;
        self.written += bytes;
        Ok(())
    }

    /// Appends what the buffer has, without whole chunks of zeros.
    fn write_out(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let first = self.chunk - (self.written % self.chunk as u64) as usize;
        let (mut start, mut end) = (0, 0);
        while end < self.filled {
            let next = (if end == 0 { first } else { end + self.chunk }).min(self.filled);
            let piece = &buffer[end..next];
            if piece.len() == self.chunk && is_zero(piece) {
                self.append(&buffer[start..end])?;
                self.grow(piece.len() as u64)?;
                start = next;
            }
            end = next;
        }
        self.append(&buffer[start..self.filled])?;
        self.buffer = buffer;
        self.restart();
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if !bytes.is_empty() {
            self.dataset.append(bytes)?;
            self.written += bytes.len() as u64;
        }
        Ok(())
    }

    /// Publishes all bytes.
    ///
    /// # Errors
    /// As [`Dataset::flush`].
    pub fn commit(&mut self) -> Result<()> {
        self.write_out()?;
        Ok(self.dataset.flush()?)
    }

    /// Drops bytes at the end.
    ///
    /// # Errors
    /// As [`Dataset::resize`].
    pub fn truncate(&mut self, len: u64) -> Result<()> {
        self.dataset.resize(&[len])?;
        self.written = len;
        self.restart();
        Ok(())
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    // Contents rarely begin with many zeros.
    let (head, rest) = bytes.split_at(bytes.len().min(64));
    head.iter().all(|byte| *byte == 0) && rest.chunks(4096).all(|part| part.iter().fold(0, |all, byte| all | byte) == 0)
}

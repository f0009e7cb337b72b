//! A file in memory.

use std::{io, sync::Arc};

use h5live_model::AllocationLimit;

use super::Storage;
use crate::primitive::RwLock;

/// Bytes in memory, shared by all clones. Each read and write is atomic.
#[derive(Debug, Clone, Default)]
pub struct MemoryStorage {
    bytes: Arc<RwLock<Vec<u8>>>,
}

impl MemoryStorage {
    /// An empty file.
    pub fn new() -> Self {
        MemoryStorage::default()
    }

    /// A copy of all bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        self.bytes.read().clone()
    }
}

impl From<Vec<u8>> for MemoryStorage {
    fn from(bytes: Vec<u8>) -> Self {
        MemoryStorage { bytes: Arc::new(RwLock::new(bytes)) }
    }
}

impl Storage for MemoryStorage {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let bytes = self.bytes.read();
        let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
        let n = rest.len().min(into.len());
        into[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        write(&mut self.bytes.write(), bytes, at)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.read().len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        resize(&mut self.bytes.write(), len, 0)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn write(image: &mut Vec<u8>, bytes: &[u8], at: u64) -> io::Result<()> {
    let too_far = || io::Error::from(io::ErrorKind::FileTooLarge);
    let start = usize::try_from(at).map_err(|_| too_far())?;
    let end = start.checked_add(bytes.len()).filter(|end| *end <= isize::MAX as usize).ok_or_else(too_far)?;
    if !bytes.is_empty() && image.len() < end {
        resize(image, end as u64, bytes.len() as u64)?;
    }
    if !bytes.is_empty() {
        image[start..end].copy_from_slice(bytes);
    }
    Ok(())
}

/// Makes an image so long, of which `held` bytes are the caller's; all others are zeros that somebody describes.
pub(super) fn resize(image: &mut Vec<u8>, len: u64, held: u64) -> io::Result<()> {
    let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    let more = len.saturating_sub(image.len());
    let limit = AllocationLimit::default();
    limit
        .check((more as u64).saturating_sub(held))
        .map_err(|error| io::Error::new(io::ErrorKind::OutOfMemory, error))?;
    image.try_reserve(more).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    image.resize(len, 0);
    Ok(())
}

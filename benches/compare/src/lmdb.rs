//! LMDB by itself, as the key-value store uses it: commits do not wait for the disk.

use std::io::Write;
use std::path::Path;

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, RoTxn, RwTxn, WithoutTls};

use crate::{Error, Result};

fn failed(error: heed::Error) -> Error {
    Error::Other(format!("LMDB: {error}"))
}

/// Bytes of the checksum at the end of a value.
const CHECKSUM_BYTES: usize = 4;

/// The CRC-32C of a key and a value.
fn checksum(key: &[u8], value: &[u8]) -> [u8; CHECKSUM_BYTES] {
    crc32c::crc32c_append(crc32c::crc32c(key), value).to_le_bytes()
}

pub struct Lmdb {
    env: Env<WithoutTls>,
    pairs: Database<Bytes, Bytes>,
    /// Whether values end with checksums, which are verified when they are read, as in the key-value store.
    has_checksums: bool,
}

impl Lmdb {
    /// Opens the database in a folder, or makes it.
    pub fn open(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(1 << 40);
        // SAFETY: nobody needs what a power failure would take.
        unsafe { options.flags(EnvFlags::NO_SYNC | EnvFlags::NO_READ_AHEAD) };
        // SAFETY: the folder is this process's own, and it is opened once.
        let env = unsafe { options.open(folder) }.map_err(failed)?;
        let mut txn = env.write_txn().map_err(failed)?;
        let pairs = env.create_database(&mut txn, None).map_err(failed)?;
        txn.commit().map_err(failed)?;
        Ok(Lmdb { env, pairs, has_checksums: false })
    }

    /// As [`Lmdb::open`], with values that end with checksums.
    pub fn with_checksums(folder: &Path) -> Result<Self> {
        Ok(Lmdb { has_checksums: true, ..Lmdb::open(folder)? })
    }

    /// Calls `put` with what takes pairs, and commits them.
    pub fn write(&self, put: impl FnOnce(&mut Batch<'_>) -> Result<()>) -> Result<()> {
        let txn = self.env.write_txn().map_err(failed)?;
        let mut batch = Batch { pairs: self.pairs, has_checksums: self.has_checksums, txn };
        put(&mut batch)?;
        batch.txn.commit().map_err(failed)
    }

    /// A state of the database.
    pub fn read(&self) -> Result<Snapshot<'_>> {
        let txn = self.env.read_txn().map_err(failed)?;
        Ok(Snapshot { pairs: self.pairs, has_checksums: self.has_checksums, txn })
    }
}

pub struct Batch<'a> {
    pairs: Database<Bytes, Bytes>,
    has_checksums: bool,
    txn: RwTxn<'a>,
}

impl Batch<'_> {
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if !self.has_checksums {
            return self.pairs.put(&mut self.txn, key, value).map_err(failed);
        }
        let stored = self.pairs.put_reserved(&mut self.txn, key, value.len() + CHECKSUM_BYTES, |space| {
            space.write_all(value)?;
            space.write_all(&checksum(key, value))
        });
        stored.map_err(failed)
    }
}

pub struct Snapshot<'a> {
    pairs: Database<Bytes, Bytes>,
    has_checksums: bool,
    txn: RoTxn<'a, WithoutTls>,
}

impl Snapshot<'_> {
    fn value<'v>(&self, key: &[u8], stored: &'v [u8]) -> Result<&'v [u8]> {
        if !self.has_checksums {
            return Ok(stored);
        }
        let parts = stored.split_last_chunk().filter(|(value, found)| checksum(key, value) == **found);
        parts.map(|(value, _)| value).ok_or_else(|| Error::Other("LMDB: a value is damaged".to_owned()))
    }

    pub fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.pairs.get(&self.txn, key).map_err(failed)?.map(|stored| self.value(key, stored)).transpose()
    }

    /// Calls `each` with all pairs, in order.
    pub fn for_each(&self, mut each: impl FnMut(&[u8], &[u8])) -> Result<()> {
        for pair in self.pairs.iter(&self.txn).map_err(failed)? {
            let (key, value) = pair.map_err(failed)?;
            each(key, self.value(key, value)?);
        }
        Ok(())
    }
}

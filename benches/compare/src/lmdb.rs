//! LMDB by itself, as the key-value store uses it: commits do not wait for the disk.

use std::path::Path;

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, RoTxn, RwTxn, WithoutTls};

use crate::{Error, Result};

fn failed(error: heed::Error) -> Error {
    Error::Other(format!("LMDB: {error}"))
}

pub struct Lmdb {
    env: Env<WithoutTls>,
    pairs: Database<Bytes, Bytes>,
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
        Ok(Lmdb { env, pairs })
    }

    /// Calls `put` with what takes pairs, and commits them.
    pub fn write(&self, put: impl FnOnce(&mut Batch<'_>) -> Result<()>) -> Result<()> {
        let mut batch = Batch { pairs: self.pairs, txn: self.env.write_txn().map_err(failed)? };
        put(&mut batch)?;
        batch.txn.commit().map_err(failed)
    }

    /// A state of the database.
    pub fn read(&self) -> Result<Snapshot<'_>> {
        Ok(Snapshot { pairs: self.pairs, txn: self.env.read_txn().map_err(failed)? })
    }
}

pub struct Batch<'a> {
    pairs: Database<Bytes, Bytes>,
    txn: RwTxn<'a>,
}

impl Batch<'_> {
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.pairs.put(&mut self.txn, key, value).map_err(failed)
    }
}

pub struct Snapshot<'a> {
    pairs: Database<Bytes, Bytes>,
    txn: RoTxn<'a, WithoutTls>,
}

impl Snapshot<'_> {
    pub fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.pairs.get(&self.txn, key).map_err(failed)
    }

    /// Calls `each` with all pairs, in order.
    pub fn for_each(&self, mut each: impl FnMut(&[u8], &[u8])) -> Result<()> {
        for pair in self.pairs.iter(&self.txn).map_err(failed)? {
            let (key, value) = pair.map_err(failed)?;
            each(key, value);
        }
        Ok(())
    }
}

//! The superblock extension: what versions 2 and 3 of the superblock say elsewhere.

use std::sync::Arc;

use h5live_cache::{Cache, Owner};
use h5live_format::messages::{BtreeK, SharedMessageTableInfo};
use h5live_format::{SharedMessageTable, Superblock, Widths};
use h5live_indexes::ObjectMetadata;

use crate::Result;
use crate::header::Header;

/// What the superblock extension says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extension {
    /// The sizes of version 1 B-tree nodes.
    pub btree_k: BtreeK,
    /// Where messages are that object headers share.
    pub shared: Option<SharedMessageTable>,
}

impl Extension {
    /// Reads the extension to which the superblock leads.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load(cache: &Arc<Cache>, superblock: &Superblock) -> Result<Self> {
        let none = Extension { btree_k: superblock.btree_k, shared: None };
        if superblock.version < 2 || !superblock.extension.is_defined() {
            return Ok(none);
        }
        let header = Header::load(&ObjectMetadata::new(cache.clone(), Owner::new(superblock.extension)), false)?;
        let btree_k = header.get::<BtreeK>()?.unwrap_or(none.btree_k);
        let shared = match header.get::<SharedMessageTableInfo>()? {
            Some(info) if info.table.is_defined() => {
                let metadata = ObjectMetadata::new(cache.clone(), Owner::FILE);
                let table = || SharedMessageTable::blank(info.indexes);
                let table = metadata.load(info.table, table_len(info.indexes, cache.widths()), table)?;
                let table = table.read().clone();
                Some(table)
            }
            _ => None,
        };
        Ok(Extension { btree_k, shared })
    }
}

/// Bytes of the table of shared messages: signature, indexes, checksum.
fn table_len(indexes: u8, widths: Widths) -> u64 {
    let index = 14 + 2 * widths.offset.bytes() as u64;
    8 + u64::from(indexes) * index
}

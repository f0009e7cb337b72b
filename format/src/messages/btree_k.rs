//! The sizes of version 1 B-tree nodes (format specification 4.0, IV.A.2.t).

use super::{Message, MessageType};
use crate::{Record, Result, Wire};

/// The B-tree "K" values message, in the superblock extension. A node has at most 2K children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BtreeK {
    /// K of B-trees of chunks.
    pub chunk: u16,
    /// K of B-trees of groups.
    pub group_internal: u16,
    /// K of symbol table nodes. They hold at most 2K entries.
    pub group_leaf: u16,
}

impl Default for BtreeK {
    fn default() -> Self {
        BtreeK { chunk: 32, group_internal: 16, group_leaf: 4 }
    }
}

impl Record for BtreeK {
    const NAME: &'static str = "B-tree K values";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(0..=0, &mut 0)?;
        for (field, k) in [
            ("chunk B-tree K", &mut self.chunk),
            ("group internal node K", &mut self.group_internal),
            ("group leaf node K", &mut self.group_leaf),
        ] {
            w.u16(field, k)?;
            w.require(field, *k != 0, 0, "must not be 0")?;
        }
        Ok(())
    }
}

impl Message for BtreeK {
    const TYPE: MessageType = MessageType::BTREE_K;
}

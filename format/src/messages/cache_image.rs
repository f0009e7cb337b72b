//! The place of a metadata cache image (message type 0x18; not in the format specification 4.0).

use super::{Message, MessageType};
use crate::{Addr, Record, Result, Wire};

/// The metadata cache image message, in the superblock extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheImageInfo {
    /// The image.
    pub addr: Addr,
    /// Bytes of the image.
    pub size: u64,
}

impl Record for CacheImageInfo {
    const NAME: &'static str = "metadata cache image info";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(0..=0, &mut 0)?;
        w.addr("address", &mut self.addr)?;
        w.length("size", &mut self.size)
    }
}

impl Message for CacheImageInfo {
    const TYPE: MessageType = MessageType::CACHE_IMAGE;
}

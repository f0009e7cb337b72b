//! The metadata cache image: metadata that a program left in one block when it closed the file (not in the format
//! specification 4.0). Dirty entries replace the bytes at their addresses.

use crate::{Addr, Fault, Record, Result, Wire};

/// A structure in the image.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CacheImageEntry {
    /// The type of structure, as libhdf5's cache numbers them.
    pub kind: u8,
    /// Whether the bytes at the address are older.
    pub dirty: bool,
    /// Whether the entry was on the list by which the cache evicts.
    pub in_lru: bool,
    /// The ring, which says when it is flushed.
    pub ring: u8,
    /// How often the file was opened since the structure was last used.
    pub age_in_opens: u8,
    /// Structures that depend on this one.
    pub child_count: u16,
    /// Those of them that are dirty.
    pub dirty_child_count: u16,
    /// The place on the list by which the cache evicts, from 0; -1 for none.
    pub lru_rank: i32,
    /// Where the structure is in the file.
    pub addr: Addr,
    /// The structures that it depends on.
    pub parents: Vec<Addr>,
    /// The bytes of the structure.
    pub image: Vec<u8>,
}

const DIRTY: u8 = 0x01;
const IN_LRU: u8 = 0x02;
const PARENT: u8 = 0x04;
const CHILD: u8 = 0x08;

impl Record for CacheImageEntry {
    const NAME: &'static str = "metadata cache entry";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.u8("type", &mut self.kind)?;
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = flag(self.dirty, DIRTY)
            | flag(self.in_lru, IN_LRU)
            | flag(self.child_count > 0, PARENT)
            | flag(!self.parents.is_empty(), CHILD);
        let flags = w.derived_u8("flags", flags)?;
        self.dirty = flags & DIRTY != 0;
        self.in_lru = flags & IN_LRU != 0;
        w.u8("ring", &mut self.ring)?;
        w.u8("age", &mut self.age_in_opens)?;
        w.u16("children", &mut self.child_count)?;
        let agrees = (flags & PARENT != 0) == (self.child_count > 0);
        w.require("children", agrees, self.child_count.into(), "some if the flags say so, otherwise none")?;
        w.u16("dirty children", &mut self.dirty_child_count)?;
        let parents = crate::messages::count_u16(w, "parents", self.parents.len())?;
        let parents = w.derived_u16("parents", parents)?;
        let mut rank = self.lru_rank.cast_unsigned();
        w.u32("rank", &mut rank)?;
        self.lru_rank = rank.cast_signed();
        w.addr("address", &mut self.addr)?;
        let size = w.derived_uint("size", w.widths().length, self.image.len() as u64)?;
        w.require("size", size > 0, 0, "at least one byte")?;
        if w.is_decoding() {
            let parents = w.bounded_count("parents", parents.into(), w.widths().offset.bytes())?;
            self.parents.resize(parents, Addr::UNDEFINED);
        }
        self.parents.iter_mut().try_for_each(|parent| w.addr("parent", parent))?;
        let size = w.bounded_count("image", size, 1)?;
        w.bytes("image", size, &mut self.image)
    }
}

/// The image.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CacheImage {
    /// Bytes of the whole image, as the message in the superblock extension states them. Context for decoding.
    pub size: u64,
    /// The structures.
    pub entries: Vec<CacheImageEntry>,
}

impl Record for CacheImage {
    const NAME: &'static str = "metadata cache image";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.magic("MDCI")?;
        w.version(0..=0, &mut 0)?;
        let flags = w.derived_u8("flags", 0)?;
        w.require("flags", flags == 0, flags.into(), "no flag is known")?;
        w.length("size", &mut self.size)?;
        let count = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let count = w.derived_uint("entries", crate::Width::FOUR, count.into())?;
        let each = w.widths().offset.bytes().saturating_add(w.widths().length.bytes()).saturating_add(15);
        w.list("entries", count, each, &mut self.entries)?;
        let used = w.position().saturating_add(4) as u64;
        let fault = Fault::InvalidValue { found: self.size, rule: "the size is that of the image" };
        if used != self.size {
            return Err(w.fault("size", fault));
        }
        w.checksum()
    }
}

impl CacheImage {
    /// An image of these structures.
    pub fn new(entries: Vec<CacheImageEntry>, widths: crate::Widths) -> Self {
        let (offset, length) = (widths.offset.bytes(), widths.length.bytes());
        let entry = |entry: &CacheImageEntry| {
            let parents = entry.parents.len().saturating_mul(offset);
            parents.saturating_add(entry.image.len()).saturating_add(offset).saturating_add(length).saturating_add(14)
        };
        let fixed = length.saturating_add(14);
        let size = entries.iter().map(entry).fold(fixed, usize::saturating_add) as u64;
        CacheImage { size, entries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Widths, decode, encode};

    #[test]
    fn comes_back_from_bytes() {
        let root = CacheImageEntry {
            kind: 4,
            dirty: true,
            child_count: 1,
            lru_rank: -1,
            addr: Addr::new(800),
            image: vec![1, 2, 3],
            ..Default::default()
        };
        let child = CacheImageEntry { child_count: 0, in_lru: true, parents: vec![Addr::new(800)], ..root.clone() };
        let image = CacheImage::new(vec![root, child], Widths::default());
        let bytes = encode(&image, Widths::default()).unwrap();
        assert_eq!(bytes.len() as u64, image.size);
        assert_eq!(decode::<CacheImage>(&bytes, Widths::default()).unwrap(), image);
        let other = CacheImage { size: image.size + 1, ..image };
        assert!(encode(&other, Widths::default()).is_err());
    }
}

//! The superblock: where everything begins (format specification 4.0, II.A).

use std::ops::BitOr;

use crate::messages::BtreeK;
use crate::symbol_table_entry::{SymbolTableEntry, SymbolTableScratchPad};
use crate::{Addr, Fault, Record, Result, Width, Widths, Wire, decode_prefix};

/// The status flags of the superblock ("file consistency flags"): whether the file is open for writing, and whether for
/// SWMR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StatusFlags(u8);

impl StatusFlags {
    /// Nobody writes.
    pub const CLEAR: StatusFlags = StatusFlags(0);
    /// Somebody has the file open for writing.
    pub const WRITE: StatusFlags = StatusFlags(0x01);
    /// The file was checked. No program sets it alone.
    pub const OK: StatusFlags = StatusFlags(0x02);
    /// The file is open for SWMR: the writer lets readers follow.
    pub const SWMR: StatusFlags = StatusFlags(0x04);
    /// h5live's own: the writer lets readers of h5live follow, and no others. Other programs refuse the file as one that
    /// somebody writes.
    pub const LIVE_FOR_H5LIVE: StatusFlags = StatusFlags(0x03);

    const ALL: u8 = 0x07;

    /// The flags as a number.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether all flags of `other` are set.
    pub const fn contains(self, other: StatusFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the writer lets readers follow, of whatever kind.
    pub const fn allows_concurrent_readers(self) -> bool {
        self.contains(StatusFlags::SWMR) || self.contains(StatusFlags::LIVE_FOR_H5LIVE)
    }

    /// These flags without those of `other`.
    pub const fn without(self, other: StatusFlags) -> StatusFlags {
        StatusFlags(self.0 & !other.0)
    }
}

impl BitOr for StatusFlags {
    type Output = StatusFlags;

    fn bitor(self, other: StatusFlags) -> StatusFlags {
        StatusFlags(self.0 | other.0)
    }
}

/// The way to the root group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootGroupLocation {
    /// The object header (versions 2 and 3).
    Header(Addr),
    /// A symbol table entry (versions 0 and 1).
    Entry(SymbolTableEntry),
}

impl RootGroupLocation {
    /// The object header of the root group.
    pub fn header(&self) -> Addr {
        match self {
            RootGroupLocation::Header(header) => *header,
            RootGroupLocation::Entry(entry) => entry.header,
        }
    }

    /// The B-tree and local heap of the root group, where the superblock says them.
    pub fn cached_symbol_table(&self) -> Option<(Addr, Addr)> {
        match self {
            RootGroupLocation::Entry(SymbolTableEntry {
                cache: SymbolTableScratchPad::Group { btree, heap }, ..
            }) => Some((*btree, *heap)),
            _ => None,
        }
    }
}

/// The superblock, of any version. All addresses but `base` and `end_of_file` are relative to `base`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// 0 to 3.
    pub version: u8,
    /// The widths of all addresses and lengths of the file.
    pub widths: Widths,
    /// The status flags.
    pub status: StatusFlags,
    /// The sizes of version 1 B-tree nodes; what versions 2 and 3 do not state has its default.
    pub btree_k: BtreeK,
    /// Where the superblock is, in bytes from the start of the file.
    pub base: Addr,
    /// The object header of the superblock extension (versions 2 and 3), or the free space (versions 0 and 1).
    pub extension_or_free_space: Addr,
    /// The end of the space that the file uses, in bytes from the start of the file.
    pub end_of_file: Addr,
    /// The driver information block (versions 0 and 1).
    pub driver_info: Addr,
    /// The way to the root group.
    pub root: RootGroupLocation,
}

impl Default for Superblock {
    fn default() -> Self {
        Superblock {
            version: 3,
            widths: Widths::default(),
            status: StatusFlags::CLEAR,
            btree_k: BtreeK::default(),
            base: Addr::new(0),
            extension_or_free_space: Addr::UNDEFINED,
            end_of_file: Addr::UNDEFINED,
            driver_info: Addr::UNDEFINED,
            root: RootGroupLocation::Header(Addr::UNDEFINED),
        }
    }
}

impl Superblock {
    /// The eight bytes with which a superblock begins.
    pub const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

    /// Bytes that are enough for a superblock of any version.
    pub const MAX_SIZE: usize = 192;

    /// The places where a superblock may begin in a file of `file_len` bytes: 0, 512, and on by doubling.
    pub fn possible_offsets(file_len: u64) -> impl Iterator<Item = u64> {
        std::iter::once(0)
            .chain(std::iter::successors(Some(512u64), |at| at.checked_mul(2)))
            .take_while(move |at| *at < file_len)
    }

    /// Decodes a superblock from bytes that begin with its signature. The widths are found in it.
    ///
    /// # Errors
    /// A [`crate::DecodeError`] if there is no superblock, or one that contradicts itself.
    pub fn decode(bytes: &[u8]) -> Result<Superblock> {
        decode_prefix(bytes, Widths::default()).map(|(superblock, _)| superblock)
    }

    fn wire_width(w: &mut impl Wire, field: &'static str, width: Width) -> Result<Width> {
        let bytes = u8::try_from(width.bytes()).unwrap_or(u8::MAX);
        let read = w.derived_u8(field, bytes)?;
        let fault = w.fault(field, Fault::InvalidValue { found: read.into(), rule: "a width is 2, 4 or 8 bytes" });
        Width::new(read).filter(|_| matches!(read, 2 | 4 | 8)).ok_or(fault)
    }

    fn wire_widths(&mut self, w: &mut impl Wire) -> Result<()> {
        let offset = Self::wire_width(w, "size of offsets", self.widths.offset)?;
        let length = Self::wire_width(w, "size of lengths", self.widths.length)?;
        self.widths = Widths { offset, length };
        w.set_widths(self.widths);
        Ok(())
    }

    fn wire_status(&mut self, w: &mut impl Wire, width: Width) -> Result<()> {
        let bits = w.derived_uint("status flags", width, self.status.0.into())?;
        w.require("status flags", bits <= StatusFlags::ALL.into(), bits, "only the flags 1, 2 and 4 exist")?;
        self.status = StatusFlags(u8::try_from(bits).unwrap_or(0));
        Ok(())
    }

    fn wire_version_0_or_1(&mut self, w: &mut impl Wire) -> Result<()> {
        w.derived_u8("free space version", 0)
            .and_then(|found| w.require("free space version", found == 0, found.into(), "must be 0"))?;
        w.derived_u8("root group version", 0)
            .and_then(|found| w.require("root group version", found == 0, found.into(), "must be 0"))?;
        w.reserved(1)?;
        w.derived_u8("shared header version", 0)
            .and_then(|found| w.require("shared header version", found == 0, found.into(), "must be 0"))?;
        self.wire_widths(w)?;
        w.reserved(1)?;
        w.u16("group leaf node K", &mut self.btree_k.group_leaf)?;
        w.require("group leaf node K", self.btree_k.group_leaf != 0, 0, "must not be 0")?;
        w.u16("group internal node K", &mut self.btree_k.group_internal)?;
        w.require("group internal node K", self.btree_k.group_internal != 0, 0, "must not be 0")?;
        self.wire_status(w, Width::FOUR)?;
        if self.version == 1 {
            w.u16("chunk B-tree K", &mut self.btree_k.chunk)?;
            w.require("chunk B-tree K", self.btree_k.chunk != 0, 0, "must not be 0")?;
            w.reserved(2)?;
        }
        w.addr("base address", &mut self.base)?;
        w.addr("free space", &mut self.extension_or_free_space)?;
        w.addr("end of file", &mut self.end_of_file)?;
        w.addr("driver info", &mut self.driver_info)?;
        let mut entry = match &self.root {
            RootGroupLocation::Entry(entry) => entry.clone(),
            RootGroupLocation::Header(header) => SymbolTableEntry { header: *header, ..Default::default() },
        };
        w.record(&mut entry)?;
        self.root = RootGroupLocation::Entry(entry);
        Ok(())
    }

    fn wire_version_2_or_3(&mut self, w: &mut impl Wire) -> Result<()> {
        self.wire_widths(w)?;
        self.wire_status(w, Width::ONE)?;
        w.addr("base address", &mut self.base)?;
        w.addr("extension", &mut self.extension_or_free_space)?;
        w.addr("end of file", &mut self.end_of_file)?;
        let mut root = self.root.header();
        w.addr("root group", &mut root)?;
        self.root = RootGroupLocation::Header(root);
        w.checksum()
    }
}

impl Record for Superblock {
    const NAME: &'static str = "superblock";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let mut signature = Self::SIGNATURE;
        w.byte_array("signature", &mut signature)?;
        if signature != Self::SIGNATURE {
            let fault = Fault::Signature { expected: "\\x89HDF\\r\\n\\x1a\\n", found: signature.to_vec() };
            return Err(w.fault("signature", fault));
        }
        w.version(0..=3, &mut self.version)?;
        if self.version < 2 {
            self.wire_version_0_or_1(w)?
        } else {
            self.wire_version_2_or_3(w)?
        }
        let end = self.end_of_file.get().unwrap_or(0);
        w.require("end of file", end != 0, end, "must be defined, and not 0")?;
        let base = self.base.get().unwrap_or(u64::MAX);
        w.require("base address", base < end, base, "must be below the end of the file")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode;

    fn minimal(version: u8) -> Superblock {
        let root = if version < 2 {
            RootGroupLocation::Entry(SymbolTableEntry {
                header: Addr::new(96),
                cache: SymbolTableScratchPad::Group { btree: Addr::new(136), heap: Addr::new(680) },
                ..Default::default()
            })
        } else {
            RootGroupLocation::Header(Addr::new(48))
        };
        Superblock { version, root, end_of_file: Addr::new(2048), ..Default::default() }
    }

    #[test]
    fn comes_back_from_bytes_in_every_version_and_width() {
        for version in 0..=3 {
            for offset in [Width::TWO, Width::FOUR, Width::EIGHT] {
                for length in [Width::TWO, Width::FOUR, Width::EIGHT] {
                    let widths = Widths { offset, length };
                    let superblock = Superblock { widths, ..minimal(version) };
                    let bytes = encode(&superblock, Widths::default()).unwrap();
                    assert!(bytes.len() <= Superblock::MAX_SIZE);
                    assert_eq!(Superblock::decode(&bytes).unwrap(), superblock);
                }
            }
        }
    }

    #[test]
    fn takes_48_bytes_in_version_3() {
        assert_eq!(encode(&minimal(3), Widths::default()).unwrap().len(), 48);
        assert_eq!(encode(&minimal(0), Widths::default()).unwrap().len(), 96);
    }

    #[test]
    fn refuses_unknown_status_flags() {
        let superblock = Superblock { status: StatusFlags(0x08), ..minimal(3) };
        let mut bytes = encode(&Superblock { status: StatusFlags::CLEAR, ..superblock }, Widths::default()).unwrap();
        *bytes.get_mut(11).unwrap() = 0x08;
        assert!(matches!(Superblock::decode(&bytes).unwrap_err().fault, Fault::InvalidValue { found: 8, .. }));
    }

    #[test]
    fn is_looked_for_at_0_and_at_powers_of_two_from_512() {
        assert_eq!(Superblock::possible_offsets(2049).collect::<Vec<_>>(), [0, 512, 1024, 2048]);
        assert_eq!(Superblock::possible_offsets(1).collect::<Vec<_>>(), [0]);
        assert_eq!(Superblock::possible_offsets(0).count(), 0);
        assert_eq!(Superblock::possible_offsets(u64::MAX).count(), 56);
    }
}

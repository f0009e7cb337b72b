//! Addresses in a file, and the widths in which a file stores addresses and lengths.

use std::fmt;

/// A place in the file, in bytes from the base address; or undefined, which files store as all ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Addr(u64);

impl Addr {
    /// The address that leads nowhere.
    pub const UNDEFINED: Addr = Addr(u64::MAX);

    /// The address `at` bytes from the base address; [`Addr::UNDEFINED`] for `u64::MAX`.
    #[inline]
    pub const fn new(at: u64) -> Self {
        Addr(at)
    }

    /// Bytes from the base address, or `None` if undefined.
    #[inline]
    pub const fn get(self) -> Option<u64> {
        if self.is_defined() { Some(self.0) } else { None }
    }

    /// Whether the address leads anywhere.
    #[inline]
    pub const fn is_defined(self) -> bool {
        self.0 != u64::MAX
    }

    /// The address `bytes` further on, or `None` if that does not fit or this one is undefined.
    #[inline]
    pub const fn checked_add(self, bytes: u64) -> Option<Addr> {
        match self.0.checked_add(bytes) {
            Some(at) if at != u64::MAX => Some(Addr(at)),
            _ => None,
        }
    }
}

impl Default for Addr {
    fn default() -> Self {
        Addr::UNDEFINED
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(at) => write!(f, "{at:#x}"),
            None => f.write_str("undefined"),
        }
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The number of bytes, 1 to 8, in which an integer is stored.
///
/// Superblocks may state 16 or 32 for offsets and lengths; no file uses them, and they are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Width(u8);

impl Width {
    /// One byte.
    pub const ONE: Width = Width(1);
    /// Two bytes.
    pub const TWO: Width = Width(2);
    /// Three bytes.
    pub const THREE: Width = Width(3);
    /// Four bytes.
    pub const FOUR: Width = Width(4);
    /// Eight bytes.
    pub const EIGHT: Width = Width(8);

    /// A width of `bytes`, if that is 1 to 8.
    #[inline]
    pub const fn new(bytes: u8) -> Option<Self> {
        if bytes >= 1 && bytes <= 8 { Some(Width(bytes)) } else { None }
    }

    /// The fewest bytes that can hold `value` (`H5VM_limit_enc_size` of libhdf5).
    #[inline]
    pub const fn for_value(value: u64) -> Self {
        let bits = u64::BITS.saturating_sub(value.leading_zeros());
        match bits.div_ceil(8) {
            0 | 1 => Width(1),
            2 => Width(2),
            3 => Width(3),
            4 => Width(4),
            5 => Width(5),
            6 => Width(6),
            7 => Width(7),
            _ => Width(8),
        }
    }

    /// The number of bytes.
    #[inline]
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }

    /// The largest value: all ones.
    #[inline]
    pub const fn max_value(self) -> u64 {
        match self.0 {
            1 => 0xff,
            2 => 0xffff,
            3 => 0xff_ffff,
            4 => 0xffff_ffff,
            5 => 0xff_ffff_ffff,
            6 => 0xffff_ffff_ffff,
            7 => 0xff_ffff_ffff_ffff,
            _ => u64::MAX,
        }
    }
}

/// The widths that a file's superblock states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Widths {
    /// The width of addresses ("size of offsets").
    pub offset: Width,
    /// The width of lengths ("size of lengths").
    pub length: Width,
}

impl Default for Widths {
    fn default() -> Self {
        Widths { offset: Width::EIGHT, length: Width::EIGHT }
    }
}

//! Positions in the logs of a file.

use std::fmt;
use std::ops::Add;

/// Bits of a position that say how many bytes of its log are before it. The bits above have the number of the file.
const OFFSET_BITS: u32 = 48;

/// A place in the logs of a file: which file, and how many bytes of entries are before it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition(u64);

impl LogPosition {
    /// The most bytes that a log has.
    pub const MAX_LOG_BYTES: u64 = 1 << OFFSET_BITS;
    /// The largest number of a file.
    pub const MAX_FILE_NUMBER: u32 = u16::MAX as u32;

    /// Behind `offset` bytes of the log of a file: 0 is the main file. Both are within their bounds.
    pub fn new(file: u32, offset: u64) -> Self {
        debug_assert!(file <= Self::MAX_FILE_NUMBER && offset <= Self::MAX_LOG_BYTES);
        LogPosition((u64::from(file) << OFFSET_BITS).saturating_add(offset))
    }

    /// The number of the file.
    pub fn file(self) -> u32 {
        (self.0 >> OFFSET_BITS) as u32
    }

    /// Bytes of entries in that file's log before it.
    pub fn offset(self) -> u64 {
        self.0 & (Self::MAX_LOG_BYTES - 1)
    }

    /// A number that tells positions of all files apart, and grows by one for each byte of a log.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The position with this number.
    pub fn from_bits(number: u64) -> Self {
        LogPosition(number)
    }

    /// Whether a log can have so many bytes from here on.
    pub fn has_room_for(self, bytes: u64) -> bool {
        self.offset().checked_add(bytes).is_some_and(|end| end <= Self::MAX_LOG_BYTES)
    }

    /// So many bytes before; `None` if the log has not so many.
    pub fn checked_sub(self, bytes: u64) -> Option<Self> {
        Some(LogPosition::new(self.file(), self.offset().checked_sub(bytes)?))
    }
}

impl Add<u64> for LogPosition {
    type Output = Self;

    /// So many bytes behind. Beyond the end of what a log can have, the position is the largest of all, where nothing is.
    fn add(self, bytes: u64) -> Self {
        match self.offset().checked_add(bytes) {
            Some(offset) if offset < Self::MAX_LOG_BYTES => LogPosition::new(self.file(), offset),
            _ => LogPosition(u64::MAX),
        }
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file() {
            0 => write!(f, "{}", self.offset()),
            file => write!(f, "{} of subfile {file}", self.offset()),
        }
    }
}

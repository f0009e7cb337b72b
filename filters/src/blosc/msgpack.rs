//! The numbers of MessagePack that frames and grids have.

use crate::FilterFault;
use crate::byte_reader::ByteReader;
use crate::params::param_to_usize;

pub(super) const INT64: u8 = 0xd3;
pub(super) const INT32: u8 = 0xd2;

/// A size that is to fit into memory.
pub(super) fn checked_size(value: u64) -> Result<usize, FilterFault> {
    usize::try_from(value).map_err(|_| FilterFault::Corrupt("frame header"))
}

/// A MessagePack integer of 4 bytes that is a size.
pub(super) fn read_int32(reader: &mut ByteReader<'_>) -> Result<usize, FilterFault> {
    match reader.byte()? {
        INT32 => reader.be32().map(param_to_usize),
        _ => Err(FilterFault::Corrupt("frame header")),
    }
}

/// A MessagePack integer of 8 bytes that is a size.
pub(super) fn read_int64(reader: &mut ByteReader<'_>) -> Result<usize, FilterFault> {
    match reader.byte()? {
        INT64 => checked_size(reader.be64()?),
        _ => Err(FilterFault::Corrupt("frame header")),
    }
}

//! What a structure is, and what passes over its fields.

use std::ops::RangeInclusive;

use h5live_model::Name;

use crate::{Addr, DecodeError, Fault, Width, Widths};

/// Bytes that most structures do not exceed.
const INITIAL_ENCODE_BYTES: usize = 1 << 10;

/// A result of decoding.
pub type Result<T> = std::result::Result<T, DecodeError>;

/// A structure of the format.
///
/// [`Record::wire`] names its fields in the order of the file. Fields that follow from others (a rank, flags) are
/// computed there and not kept. Context that the bytes do not carry (record sizes of a node, the element size of a
/// table) is put into the structure before decoding, by [`decode_with`](super::decode_with).
pub trait Record {
    /// The name of the structure, as in the format specification.
    const NAME: &'static str;

    /// Reads the fields from, or writes them to, `w`.
    ///
    /// # Errors
    /// A [`DecodeError`] when the bytes are not such a structure. Encoders fail only at the end, in [`encode`](super::encode).
    fn wire(&mut self, w: &mut impl Wire) -> Result<()>;

    /// An estimate of the encoded size (bytes).
    fn size_hint(&self) -> usize {
        INITIAL_ENCODE_BYTES
    }

    /// The memory that the decoded structure takes, tables included, in bytes; an estimate.
    fn memory_bytes(&self) -> usize {
        size_of_val(self)
    }
}

/// Something that passes over the fields of a structure: it fills them in, writes them down, or lists them.
///
/// On decoding, each method replaces the value; on encoding it leaves it alone.
pub trait Wire {
    /// The widths of addresses and lengths.
    fn widths(&self) -> Widths;

    /// From here on, addresses and lengths have these widths: for the structure that states them.
    fn set_widths(&mut self, widths: Widths);

    /// Whether fields are being filled in from bytes (as opposed to written).
    fn is_decoding(&self) -> bool;

    /// Bytes passed since the start of the structure.
    fn position(&self) -> usize;

    /// Bytes that are left to decode; `usize::MAX` on encoding.
    fn remaining(&self) -> usize;

    /// Whether the bytes to decode go on with `bytes`; `false` on encoding.
    fn remaining_starts_with(&self, bytes: &[u8]) -> bool;

    /// An error about `field` at this place, of the present structure.
    fn fault(&self, field: &'static str, fault: Fault) -> DecodeError;

    /// Exactly `bytes.len()` bytes.
    fn byte_array(&mut self, field: &'static str, bytes: &mut [u8]) -> Result<()>;

    /// `len` bytes.
    fn bytes(&mut self, field: &'static str, len: usize, bytes: &mut Vec<u8>) -> Result<()>;

    /// A name that a NUL ends; the NUL is not part of `name`.
    fn nul_terminated_name(&mut self, field: &'static str, name: &mut Name) -> Result<()>;

    /// An unsigned little-endian integer of `width`.
    fn uint(&mut self, field: &'static str, width: Width, value: &mut u64) -> Result<()>;

    /// The four bytes that begin the structure.
    fn magic(&mut self, expected: &'static str) -> Result<()>;

    /// The lookup3 checksum over everything since the start of the structure.
    fn checksum(&mut self) -> Result<()>;

    /// The lookup3 checksum over the `covered_len` bytes since the start of the structure, for structures that hold it before
    /// their end. Its own four bytes count as zeros.
    fn embedded_checksum(&mut self, covered_len: usize) -> Result<()>;

    /// `len` bytes that mean nothing: written as zeros, skipped on decoding.
    fn reserved(&mut self, len: usize) -> Result<()>;

    /// The next `len` bytes, or none if there are not as many; none on encoding.
    fn peek(&self, len: usize) -> &[u8];

    /// Passes over `len` bytes, which [`Wire::peek`] has given. Not for encoding.
    fn skip(&mut self, field: &'static str, len: usize) -> Result<()>;

    /// Opens a nested structure. Errors have its name until [`Wire::leave`].
    fn enter(&mut self, record: &'static str) -> &'static str;

    /// Closes a nested structure; `outer` is what [`Wire::enter`] returned.
    fn leave(&mut self, outer: &'static str);

    /// One byte.
    #[inline]
    fn u8(&mut self, field: &'static str, value: &mut u8) -> Result<()> {
        let mut wide = u64::from(*value);
        self.uint(field, Width::ONE, &mut wide)?;
        *value = u8::try_from(wide).unwrap_or(u8::MAX);
        Ok(())
    }

    /// Two bytes.
    #[inline]
    fn u16(&mut self, field: &'static str, value: &mut u16) -> Result<()> {
        let mut wide = u64::from(*value);
        self.uint(field, Width::TWO, &mut wide)?;
        *value = u16::try_from(wide).unwrap_or(u16::MAX);
        Ok(())
    }

    /// Four bytes.
    #[inline]
    fn u32(&mut self, field: &'static str, value: &mut u32) -> Result<()> {
        let mut wide = u64::from(*value);
        self.uint(field, Width::FOUR, &mut wide)?;
        *value = u32::try_from(wide).unwrap_or(u32::MAX);
        Ok(())
    }

    /// Eight bytes.
    fn u64(&mut self, field: &'static str, value: &mut u64) -> Result<()> {
        self.uint(field, Width::EIGHT, value)
    }

    /// Eight bytes, two's complement.
    fn i64(&mut self, field: &'static str, value: &mut i64) -> Result<()> {
        let mut wide = value.cast_unsigned();
        self.uint(field, Width::EIGHT, &mut wide)?;
        *value = wide.cast_signed();
        Ok(())
    }

    /// A length in the file's width of lengths.
    #[inline]
    fn length(&mut self, field: &'static str, value: &mut u64) -> Result<()> {
        self.uint(field, self.widths().length, value)
    }

    /// An address in the file's width of offsets.
    #[inline]
    fn addr(&mut self, field: &'static str, value: &mut Addr) -> Result<()> {
        let width = self.widths().offset;
        let mut wide = value.get().unwrap_or(width.max_value());
        self.uint(field, width, &mut wide)?;
        *value = if wide == width.max_value() { Addr::UNDEFINED } else { Addr::new(wide) };
        Ok(())
    }

    /// A version number, which must be one of `allowed`.
    fn version(&mut self, allowed: RangeInclusive<u8>, value: &mut u8) -> Result<()> {
        let at = self.position();
        self.u8("version", value)?;
        if allowed.contains(value) {
            Ok(())
        } else {
            Err(DecodeError {
                offset_in_structure: at,
                ..self.fault("version", Fault::UnsupportedVersion { allowed, found: *value })
            })
        }
    }

    /// One byte that is fixed or follows from other fields. Writes `value`, or returns the byte that was read.
    #[inline]
    fn derived_u8(&mut self, field: &'static str, value: u8) -> Result<u8> {
        let mut read = value;
        self.u8(field, &mut read)?;
        Ok(read)
    }

    /// Two bytes that follow from other fields. Writes `value`, or returns the number that was read.
    #[inline]
    fn derived_u16(&mut self, field: &'static str, value: u16) -> Result<u16> {
        let mut read = value;
        self.u16(field, &mut read)?;
        Ok(read)
    }

    /// An integer that follows from other fields. Writes `value`, or returns the number that was read.
    #[inline]
    fn derived_uint(&mut self, field: &'static str, width: Width, value: u64) -> Result<u64> {
        let mut read = value;
        self.uint(field, width, &mut read)?;
        Ok(read)
    }

    /// A name of `len` bytes, without a terminator.
    fn name(&mut self, field: &'static str, len: usize, name: &mut Name) -> Result<()> {
        let mut bytes = name.as_bytes().to_vec();
        self.bytes(field, len, &mut bytes)?;
        if self.is_decoding() {
            *name = Name::from(bytes);
        }
        Ok(())
    }

    /// Refuses a value that breaks a rule of the format.
    fn require(&self, field: &'static str, holds: bool, found: u64, rule: &'static str) -> Result<()> {
        if holds { Ok(()) } else { Err(self.fault(field, Fault::InvalidValue { found, rule })) }
    }

    /// A count of things of at least `each` bytes, as a `usize` that the remaining bytes can hold.
    fn bounded_count(&self, field: &'static str, count: u64, each: usize) -> Result<usize> {
        let limit = self.remaining().checked_div(each).unwrap_or(usize::MAX);
        usize::try_from(count)
            .ok()
            .filter(|count| *count <= limit)
            .ok_or_else(|| self.fault(field, Fault::TooLarge { found: count, limit: limit as u64 }))
    }

    /// A nested structure.
    fn record<R: Record>(&mut self, record: &mut R) -> Result<()>
    where
        Self: Sized,
    {
        let outer = self.enter(R::NAME);
        let done = record.wire(self);
        self.leave(outer);
        done
    }

    /// `count` nested structures of at least `min_item_size` bytes. On encoding, `count` is the length of `list`.
    fn list<R: Record + Default>(
        &mut self,
        field: &'static str,
        count: u64,
        min_item_size: usize,
        list: &mut Vec<R>,
    ) -> Result<()>
    where
        Self: Sized,
    {
        if self.is_decoding() {
            let count = self.bounded_count(field, count, min_item_size)?;
            list.clear();
            list.resize_with(count, R::default);
        }
        list.iter_mut().try_for_each(|record| self.record(record))
    }
}

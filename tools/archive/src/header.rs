//! Fields of headers: numbers, checksums, records of extended headers (POSIX.1-2017, `pax`, "ustar Interchange Format" and
//! "pax Header Block").

use crate::error::TarFault;

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 512;

/// A block of an archive.
pub type TarBlock = [u8; BLOCK_BYTES];

/// The field of the checksum in a header (bytes).
const CHECKSUM: std::ops::Range<usize> = 148..156;

/// A number: octal digits, or, if the first bit is set, two's complement in base 256 as GNU tar has it. `None` if it is
/// neither, or does not fit.
pub fn number(field: &[u8]) -> Option<i64> {
    let (first, rest) = field.split_first()?;
    if first & 0x80 != 0 {
        let is_negative = first & 0x40 != 0;
        let high = if is_negative { i64::from(*first as i8) } else { i64::from(first & 0x7f) };
        return rest.iter().try_fold(high, |value, byte| value.checked_mul(256)?.checked_add(i64::from(*byte)));
    }
    let digits = field.trim_ascii_start();
    let digits = &digits[..digits.iter().position(|byte| matches!(byte, 0 | b' ')).unwrap_or(digits.len())];
    digits.iter().try_fold(0i64, |value, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 8)?;
        value.checked_mul(8)?.checked_add(i64::from(digit))
    })
}

/// A number that is not negative.
///
/// # Errors
/// [`TarFault::InvalidNumber`] with the name of the field.
pub fn unsigned(field: &[u8], name: &'static str) -> Result<u64, TarFault> {
    number(field).and_then(|value| u64::try_from(value).ok()).ok_or(TarFault::InvalidNumber(name))
}

/// Checks the checksum of a header: the sum of its bytes, with or without sign, where the field counts as spaces.
///
/// # Errors
/// [`TarFault::Checksum`].
pub fn check_checksum(block: &TarBlock) -> Result<(), TarFault> {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>();
    let negative = |bytes: &[u8]| bytes.iter().map(|byte| u32::from(byte >> 7)).sum::<u32>();
    let unsigned = sum(block) - sum(&block[CHECKSUM]) + CHECKSUM.len() as u32 * u32::from(b' ');
    let signed = i64::from(unsigned) - 256 * i64::from(negative(block) - negative(&block[CHECKSUM]));
    let found = number(&block[CHECKSUM]);
    match found == Some(i64::from(unsigned)) || found == Some(signed) {
        true => Ok(()),
        false => Err(TarFault::Checksum { expected: unsigned }),
    }
}

/// A text that ends with a NUL or with its field.
pub fn until_nul(field: &[u8]) -> &[u8] {
    &field[..field.iter().position(|byte| *byte == 0).unwrap_or(field.len())]
}

/// Calls `each` for the records of an extended header: keyword and value.
///
/// # Errors
/// [`TarFault::InvalidExtendedHeader`] if the bytes are no records; those of `each`.
pub fn for_each_pax_record<'a>(
    mut bytes: &'a [u8],
    mut each: impl FnMut(&'a [u8], &'a [u8]) -> Result<(), TarFault>,
) -> Result<(), TarFault> {
    // Some programs pad the last record.
    while bytes.iter().any(|byte| *byte != 0) {
        let parse = || -> Option<(&'a [u8], &'a [u8], &'a [u8])> {
            let space = bytes.iter().take(20).position(|byte| *byte == b' ')?;
            let length: usize = std::str::from_utf8(&bytes[..space]).ok()?.parse().ok()?;
            let record = bytes.get(space + 1..length)?.strip_suffix(b"\n")?;
            let equals = record.iter().position(|byte| *byte == b'=')?;
            Some((&record[..equals], &record[equals + 1..], &bytes[length..]))
        };
        let (keyword, value, rest) = parse().ok_or(TarFault::InvalidExtendedHeader)?;
        each(keyword, value)?;
        bytes = rest;
    }
    Ok(())
}

/// A decimal number.
pub fn decimal<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A time of an extended header: seconds since 1970, with a fraction. Returns seconds and nanoseconds.
pub fn time(text: &[u8]) -> Option<(i64, u32)> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds: i64 = whole.parse().ok()?;
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let nanos: u32 = digits.parse().ok()?;
    match whole.starts_with('-') && nanos > 0 {
        true => Some((seconds.checked_sub(1)?, 1_000_000_000 - nanos)),
        false => Some((seconds, nanos)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_base_256() {
        assert_eq!(number(b"0000644\0"), Some(0o644));
        assert_eq!(number(b"   644 \0"), Some(0o644));
        assert_eq!(number(b"77777777777"), Some(0o77_777_777_777));
        assert_eq!(number(b"\0\0\0"), Some(0));
        assert_eq!(number(&[0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]), Some(1 << 33));
        assert_eq!(number(&[0xff; 12]), Some(-1));
        assert_eq!(number(&[0xbf; 12]), None);
        assert_eq!(number(b"0000A\0"), None);
        assert_eq!(number(b"-1"), None);
    }

    #[test]
    fn records_may_have_newlines_in_their_values() {
        let mut found = Vec::new();
        let each = |keyword: &[u8], value: &[u8]| {
            found.push((keyword.to_vec(), value.to_vec()));
            Ok(())
        };
        for_each_pax_record(b"9 a=1\n23\n10 path=x\n\0\0", each).unwrap();
        assert_eq!(found, [(b"a".to_vec(), b"1\n23".to_vec()), (b"path".to_vec(), b"x".to_vec())]);
        for wrong in [&b"9 a=1\n2"[..], b"x a=1\n", b"99999999999999999999 a=1\n", b"6 a1\n\n", b"0 a=1\n", b"2 "] {
            assert!(for_each_pax_record(wrong, |_, _| Ok(())).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn times_have_fractions() {
        assert_eq!(time(b"1350244992.023960108"), Some((1_350_244_992, 23_960_108)));
        assert_eq!(time(b"5"), Some((5, 0)));
        assert_eq!(time(b"-1.5"), Some((-2, 500_000_000)));
        assert_eq!(time(b"1.x"), None);
    }
}

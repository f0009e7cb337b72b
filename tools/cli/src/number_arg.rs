//! Numbers on the command line, and what is said of texts that are none.

use std::str::FromStr;

/// The reason why a text is not a number that an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NumberArgError {
    /// Not a whole number, or too small.
    #[error("this is not a whole number of {low} or more")]
    NotIntegerAtLeast {
        /// The smallest number.
        low: u64,
    },
    /// Not a whole number, or too small or large.
    #[error("this is not a whole number from {low} to {high}")]
    NotIntegerWithin {
        /// The smallest number.
        low: u64,
        /// The largest number.
        high: u64,
    },
    /// Not a whole number.
    #[error("this is not a whole number")]
    NotInteger,
    /// Not a number, or not above 0.
    #[error("this is not a number above 0")]
    NotPositive,
    /// Not a number, or below 0.
    #[error("this is not a number of 0 or more")]
    NotZeroOrMore,
    /// Not a number of bytes.
    #[error("this is not a number of bytes, such as 4096, 64KiB, 512MiB or 2GB")]
    NotByteCount,
    /// Not an offset.
    #[error("this is not an offset: a number of bytes, in hexadecimal digits behind 0x")]
    NotOffset,
}

/// A whole number of `LOW` or more.
///
/// # Errors
/// [`NumberArgError::NotIntegerAtLeast`].
pub fn at_least<const LOW: u64, T: FromStr>(text: &str) -> Result<T, NumberArgError> {
    in_range(text, LOW, u64::MAX).ok_or(NumberArgError::NotIntegerAtLeast { low: LOW })
}

/// A whole number from `LOW` to `HIGH`.
///
/// # Errors
/// [`NumberArgError::NotIntegerWithin`].
pub fn within<const LOW: u64, const HIGH: u64, T: FromStr>(text: &str) -> Result<T, NumberArgError> {
    in_range(text, LOW, HIGH).ok_or(NumberArgError::NotIntegerWithin { low: LOW, high: HIGH })
}

fn in_range<T: FromStr>(text: &str, low: u64, high: u64) -> Option<T> {
    let is_in_range = text.parse().is_ok_and(|number: u64| (low..=high).contains(&number));
    if is_in_range { text.parse().ok() } else { None }
}

/// A whole number, which may be negative.
///
/// # Errors
/// [`NumberArgError::NotInteger`].
pub fn integer(text: &str) -> Result<i128, NumberArgError> {
    text.parse().map_err(|_| NumberArgError::NotInteger)
}

/// A number above 0.
///
/// # Errors
/// [`NumberArgError::NotPositive`].
pub fn positive(text: &str) -> Result<f64, NumberArgError> {
    let number = text.parse().ok().filter(|number: &f64| *number > 0.0 && number.is_finite());
    number.ok_or(NumberArgError::NotPositive)
}

/// A number of 0 or more.
///
/// # Errors
/// [`NumberArgError::NotZeroOrMore`].
pub fn not_negative(text: &str) -> Result<f64, NumberArgError> {
    text.parse().ok().filter(|number: &f64| *number >= 0.0).ok_or(NumberArgError::NotZeroOrMore)
}

/// An offset in a file (bytes), decimal or hexadecimal.
///
/// # Errors
/// [`NumberArgError::NotOffset`].
pub fn offset(text: &str) -> Result<u64, NumberArgError> {
    let parsed = text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16));
    parsed.map_err(|_| NumberArgError::NotOffset)
}

/// The units of bytes, each with its size.
const BYTE_UNITS: [(&str, u64); 13] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("b", 1),
];

/// A number of bytes, with or without a unit: `4096`, `64KiB`, `1.5GiB`, `2GB`. `64K` is `64KiB`.
///
/// # Errors
/// [`NumberArgError::NotByteCount`].
pub fn byte_count(text: &str) -> Result<u64, NumberArgError> {
    let lower = text.trim().to_ascii_lowercase();
    let unit = BYTE_UNITS.iter().find_map(|(unit, size)| Some((lower.strip_suffix(unit)?, *size)));
    let (number, size) = unit.unwrap_or((&lower, 1));
    let number = number.trim_end();
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(size).ok_or(NumberArgError::NotByteCount);
    }
    let digits = number.split_once('.').filter(|(whole, part)| {
        let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        is_number(whole) && is_number(part) && size > 1
    });
    let fraction = digits.and_then(|_| number.parse::<f64>().ok()).map(|number| number * size as f64);
    fraction.filter(|bytes| *bytes < u64::MAX as f64).map(|bytes| bytes as u64).ok_or(NumberArgError::NotByteCount)
}

/// As [`byte_count`], from `LOW` to `HIGH`.
///
/// # Errors
/// [`NumberArgError::NotByteCount`], [`NumberArgError::NotIntegerWithin`].
pub fn byte_count_within<const LOW: u64, const HIGH: u64>(text: &str) -> Result<u64, NumberArgError> {
    let found = byte_count(text)?;
    (LOW..=HIGH).contains(&found).then_some(found).ok_or(NumberArgError::NotIntegerWithin { low: LOW, high: HIGH })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        let all = [("4096", 4096), ("64KiB", 64 << 10), ("1.5 GiB", 3 << 29), ("2GB", 2_000_000_000), ("1k", 1024)];
        all.into_iter().for_each(|(text, size)| assert_eq!(byte_count(text), Ok(size), "{text}"));
        assert_eq!(byte_count_within::<512, 4096>("4KiB"), Ok(4096));
        assert_eq!(byte_count_within::<512, 4096>("4kb"), Ok(4000));
        assert_eq!(
            byte_count_within::<512, 4096>("5KiB"),
            Err(NumberArgError::NotIntegerWithin { low: 512, high: 4096 })
        );
        for text in ["", "x", "1.5", "-1", "GiB", "1e9", "20000000T", "1..5M", ".5M", "inf", "nanM"] {
            assert_eq!(byte_count(text), Err(NumberArgError::NotByteCount), "{text}");
        }
    }

    #[test]
    fn numbers_are_within_their_limits() {
        assert_eq!(at_least::<1, u64>("1"), Ok(1));
        assert_eq!(at_least::<1, u64>("0").unwrap_err().to_string(), "this is not a whole number of 1 or more");
        assert_eq!(within::<0, 9, u32>("9"), Ok(9));
        assert_eq!(within::<0, 9, u32>("x").unwrap_err().to_string(), "this is not a whole number from 0 to 9");
        assert_eq!(within::<1, 65535, u16>("65536"), Err(NumberArgError::NotIntegerWithin { low: 1, high: 65535 }));
        assert_eq!(integer("-5"), Ok(-5));
        assert_eq!(positive("0.5"), Ok(0.5));
        assert!(["0", "-1", "nan", "inf", ""].into_iter().all(|text| positive(text).is_err()));
        assert_eq!(not_negative("0"), Ok(0.0));
        assert!(["-1", "nan", "x"].into_iter().all(|text| not_negative(text).is_err()));
        assert_eq!((offset("0x10"), offset("16")), (Ok(16), Ok(16)));
        assert!(offset("0xg").is_err());
    }
}

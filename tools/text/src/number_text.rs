//! Numbers from texts, and whether they are exactly what the text says.

use half::f16;

/// The digits that an `f64` keeps for sure.
const EXACT_DOUBLE_DIGITS: usize = 15;
/// The digits that an `f16` keeps for sure.
const EXACT_HALF_DIGITS: usize = 3;
/// The digits that an `f32` keeps for sure.
const EXACT_SINGLE_DIGITS: usize = 6;

/// The nearest number of a type to the one that a text stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParsedNumber<T> {
    /// The number.
    pub value: T,
    /// Whether it is the number that the text stands for. Floats may be rounded from decimal fractions.
    pub is_exact_or_rounded_fraction: bool,
}

/// An integer from `low` to `high`. Fractions are cut towards zero.
pub fn parse_number_as_clamped_integer(text: &str, low: i128, high: i128) -> Option<ParsedNumber<i128>> {
    if let Ok(value) = text.parse::<i128>() {
        return Some(ParsedNumber {
            value: value.clamp(low, high),
            is_exact_or_rounded_fraction: (low..=high).contains(&value),
        });
    }
    let float: f64 = text.parse().ok().filter(|float: &f64| !float.is_nan())?;
    let value = (float as i128).clamp(low, high);
    // A text of so few digits is told apart from all others by its nearest float, if that is not zero instead of it.
    let is_told_apart = digits(text) <= EXACT_DOUBLE_DIGITS && (float != 0.0 || is_zero(text));
    let is_exact = is_told_apart && float.abs() < 2f64.powi(53) && value as f64 == float;
    Some(ParsedNumber { value, is_exact_or_rounded_fraction: is_exact })
}

/// An `f64`.
pub fn parse_f64(text: &str) -> Option<ParsedNumber<f64>> {
    let value: f64 = text.parse().ok()?;
    Some(ParsedNumber { value, is_exact_or_rounded_fraction: is_exact_float(text, value, EXACT_DOUBLE_DIGITS) })
}

/// An `f32`.
pub fn parse_f32(text: &str) -> Option<ParsedNumber<f32>> {
    let value: f32 = text.parse().ok()?;
    Some(ParsedNumber { value, is_exact_or_rounded_fraction: is_exact_float(text, value.into(), EXACT_SINGLE_DIGITS) })
}

/// An `f16`, as the `f32` that it is. A tie between two of them is rounded to the even one, as everywhere.
pub fn parse_f16_as_f32(text: &str) -> Option<ParsedNumber<f32>> {
    let value = f16::from_f64(text.parse().ok()?).to_f32();
    Some(ParsedNumber { value, is_exact_or_rounded_fraction: is_exact_float(text, value.into(), EXACT_HALF_DIGITS) })
}

/// Whether a float is what its text says: an integer that it is, or a fraction that may be rounded, but not to zero.
fn is_exact_float(text: &str, value: f64, exact_digits: usize) -> bool {
    if value.is_infinite() {
        return !text.contains(|c: char| c.is_ascii_digit());
    }
    if value == 0.0 {
        return is_zero(text);
    }
    let unsigned = text.trim_start_matches(['+', '-']);
    // An integer may be written with zeros behind a point.
    let unsigned = match unsigned.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|byte| byte == b'0') => whole,
        _ => unsigned,
    };
    if unsigned.len() <= exact_digits || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return true;
    }
    format!("{:.0}", value.abs()) == unsigned.trim_start_matches('0')
}

/// Digits of a number, without those of its exponent.
fn digits(text: &str) -> usize {
    mantissa(text).bytes().filter(u8::is_ascii_digit).count()
}

fn is_zero(text: &str) -> bool {
    !mantissa(text).contains(|c: char| matches!(c, '1'..='9'))
}

/// A number without its exponent.
fn mantissa(text: &str) -> &str {
    text.split(['e', 'E']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_exact_if_they_are_in_range_and_have_no_fraction() {
        let parsed = |text| {
            parse_number_as_clamped_integer(text, -128, 127)
                .map(|found| (found.value, found.is_exact_or_rounded_fraction))
        };
        assert_eq!(parsed("127"), Some((127, true)));
        assert_eq!(parsed("128"), Some((127, false)));
        assert_eq!(parsed("1e2"), Some((100, true)));
        assert_eq!(parsed("-5.0"), Some((-5, true)));
        assert_eq!(parsed("-5.5"), Some((-5, false)));
        assert_eq!(parsed("inf"), Some((127, false)));
        assert_eq!(parsed("0e-400"), Some((0, true)));
        assert_eq!(parsed("1e-400"), Some((0, false)));
        assert_eq!(parsed("x"), None);
        assert_eq!(parsed("nan"), None);
        let wide = parse_number_as_clamped_integer("4503599627370497.2", 0, i128::MAX).unwrap();
        assert!(!wide.is_exact_or_rounded_fraction);
    }

    #[test]
    fn floats_are_exact_unless_an_integer_is_rounded_or_they_become_infinite() {
        let exact = |text| parse_f64(text).unwrap().is_exact_or_rounded_fraction;
        for text in [
            "0.1",
            "inf",
            "-infinity",
            "nan",
            "9007199254740992",
            "18446744073709551616",
            "0000000000000000001",
            "1e308",
            "0e-400",
            "-0.0",
            "5e-324",
            "9007199254740992.0",
            "0.10000000000000000001",
        ] {
            assert!(exact(text), "{text}");
        }
        for text in
            ["9007199254740993", "-18446744073709551615", "1e309", "9007199254740993.0", "9007199254740993.", "-1e-400"]
        {
            assert!(!exact(text), "{text}");
        }
        assert!(
            parse_f32("16777216").unwrap().is_exact_or_rounded_fraction
                && !parse_f32("16777217").unwrap().is_exact_or_rounded_fraction
        );
        assert!(
            parse_f32("1e-45").unwrap().is_exact_or_rounded_fraction
                && !parse_f32("1e-60").unwrap().is_exact_or_rounded_fraction
        );
    }
}

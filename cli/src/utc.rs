//! Times as ISO 8601, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

const DAY_SECONDS: i64 = 86_400;

/// A time to the second, as `2026-11-24T19:40:02Z`.
pub fn text(at: SystemTime) -> String {
    let seconds = match at.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_secs()).map_or(i64::MIN, |seconds| -seconds),
    };
    let (year, month, day) = civil(seconds.div_euclid(DAY_SECONDS));
    let second = seconds.rem_euclid(DAY_SECONDS);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// The year, month and day of a day, counted from 1970-01-01 (proleptic Gregorian calendar).
fn civil(day: i64) -> (i64, i64, i64) {
    // Eras of 400 years that begin on the first of March, so that the leap day is the last of a year.
    let day = day.saturating_add(719_468);
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The day, counted from 1970-01-01. `None` if there is no such day.
fn day(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let from_march = year - i64::from(month <= 2);
    let era = from_march.div_euclid(400);
    let year_of_era = from_march.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    let number = era * 146_097 + of_era - 719_468;
    (civil(number) == (year, month, day)).then_some(number)
}

/// Nanoseconds since 1970 of a time in ISO 8601: `2026-11-24`, `2026-11-24T19:40`, `2026-11-24 19:40:02.5+01:00`. A time
/// without a zone is in UTC. `None` if the text is no such time, or says more than nanoseconds, or is not within the
/// years 1678 to 2261.
pub fn parse_ns(text: &str) -> Option<i64> {
    let (date, rest) = text.trim().split_at_checked(10)?;
    let date = date.as_bytes();
    if date.get(4) != Some(&b'-') || date.get(7) != Some(&b'-') {
        return None;
    }
    let day = day(digits(date.get(..4)?)?, digits(date.get(5..7)?)?, digits(date.get(8..)?)?)?;
    let (seconds, fraction_ns) = match rest.split_at_checked(1) {
        None if rest.is_empty() => (0, 0),
        Some(("T" | "t" | " ", time)) => clock(time)?,
        _ => return None,
    };
    let ns = i128::from(day * DAY_SECONDS + seconds) * 1_000_000_000 + i128::from(fraction_ns);
    i64::try_from(ns).ok()
}

/// Seconds of the day in UTC, and nanoseconds, of `19:40`, `19:40:02`, `19:40:02.5`, each with `Z`, `+01:00`, `+0100` or
/// `+01` behind it, or nothing.
fn clock(text: &str) -> Option<(i64, i64)> {
    let (time, zone_seconds) = match text.strip_suffix(['Z', 'z']) {
        Some(time) => (time, 0),
        None => match text.rfind(['+', '-']) {
            Some(at) => (text.get(..at)?, zone(text.get(at..)?)?),
            None => (text, 0),
        },
    };
    let (time, fraction) = match time.split_once(['.', ',']) {
        Some((time, fraction)) if !fraction.is_empty() && fraction.len() <= 9 && time.len() == 8 => {
            (time, format!("{fraction:0<9}"))
        }
        Some(_) => return None,
        None => (time, "0".to_owned()),
    };
    let time = time.as_bytes();
    let (hour, minute) = (digits(time.get(..2)?)?, digits(time.get(3..5)?)?);
    let second = match time.len() {
        5 => 0,
        8 if time.get(5) == Some(&b':') => digits(time.get(6..)?)?,
        _ => return None,
    };
    let is_time = time.get(2) == Some(&b':') && hour < 24 && minute < 60 && second < 60;
    is_time.then_some((hour * 3600 + minute * 60 + second - zone_seconds, digits(fraction.as_bytes())?))
}

/// Seconds by which a zone is ahead.
fn zone(text: &str) -> Option<i64> {
    let (sign, text) = text.split_at_checked(1)?;
    let digits_only = match text.len() {
        5 if text.as_bytes().get(2) == Some(&b':') => text.replacen(':', "", 1),
        2 => format!("{text}00"),
        4 => text.to_owned(),
        _ => return None,
    };
    let number = digits(digits_only.as_bytes())?;
    let (hours, minutes) = (number / 100, number % 100);
    let seconds = hours * 3600 + minutes * 60;
    (hours < 24 && minutes < 60).then_some(if sign == "-" { -seconds } else { seconds })
}

fn digits(text: &[u8]) -> Option<i64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_read_as_they_are_shown() {
        for seconds in [0, 1, 951_782_399, 951_868_800, 1_700_000_000, 4_102_444_800, 9_000_000_000] {
            let shown = text(UNIX_EPOCH + Duration::from_secs(seconds));
            assert_eq!(parse_ns(&shown), Some(seconds as i64 * 1_000_000_000), "{shown}");
        }
        assert_eq!(text(UNIX_EPOCH + Duration::from_secs(951_825_600)), "2000-02-29T12:00:00Z");
        assert_eq!(text(UNIX_EPOCH - Duration::from_secs(1)), "1969-12-31T23:59:59Z");
        for day_number in -200_000..200_000 {
            let (year, month, of_month) = civil(day_number);
            assert_eq!(day(year, month, of_month), Some(day_number));
        }
    }

    #[test]
    fn zones_and_fractions_count() {
        let at = |text: &str| parse_ns(text).unwrap();
        let noon = at("2026-11-24T12:00:00Z");
        assert_eq!(noon, 1_795_521_600_000_000_000);
        assert_eq!(at("2026-11-24 12:00"), noon);
        assert_eq!(at("2026-11-24T13:30:00+01:30"), noon);
        assert_eq!(at("2026-11-24T13:00:00+01"), noon);
        assert_eq!(at("2026-11-24T07:00:00-0500"), noon);
        assert_eq!(at("2026-11-24T12:00:00.25Z"), noon + 250_000_000);
        assert_eq!(at("2026-11-24T12:00:00,123456789"), noon + 123_456_789);
        assert_eq!(at("2026-11-24"), noon - 43_200_000_000_000);
        assert_eq!(at("1969-12-31T23:59:59.5"), -500_000_000);
    }

    #[test]
    fn refuses_what_is_no_time() {
        for text in [
            "",
            "2026",
            "2026-11",
            "2026-13-01",
            "2026-02-29",
            "2026-11-31",
            "2026-11-24T",
            "2026-11-24T25:00",
            "2026-11-24T12",
            "2026-11-24T12:00:60",
            "2026-11-24T12:00:00.",
            "2026-11-24T12:00.5",
            "2026-11-24T12:00:00.1234567891",
            "2026-11-24T12:00:00+1",
            "2026-11-24T12:00:00+24:00",
            "2026/11/24",
            "2026-11-24X12:00",
            "1600-01-01",
            "2400-01-01",
            "2026-11-2ü",
            "+026-11-24",
        ] {
            assert_eq!(parse_ns(text), None, "{text}");
        }
    }
}

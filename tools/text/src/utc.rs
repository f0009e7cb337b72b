//! Times as ISO 8601, in UTC.

use std::time::SystemTime;

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;

/// Zones are less than a day ahead or behind.
const DAY_SECONDS: i32 = 86_400;

/// A time to the second, as `2026-11-24T19:40:02Z`. A time outside of the years -9999 to 9999 becomes the nearest one.
pub fn iso8601_seconds(at: SystemTime) -> String {
    let is_past = at < SystemTime::UNIX_EPOCH;
    let at = Timestamp::try_from(at).unwrap_or(if is_past { Timestamp::MIN } else { Timestamp::MAX });
    format!("{at:.0}")
}

/// A time of nanoseconds since 1970, with as many digits of a second as it needs: `2026-11-24T19:40:02.5Z`.
pub fn iso8601_from_ns(nanoseconds: i64) -> String {
    // The years of all such integers are 1677 to 2262, and jiff has them.
    Timestamp::from_nanosecond(nanoseconds.into()).map_or_else(|_| nanoseconds.to_string(), |at| at.to_string())
}

/// Nanoseconds since 1970 of a time in ISO 8601: `2026-11-24`, `2026-11-24T19:40`, `2026-11-24 19:40:02.5+01:00`. A time
/// without a zone is in UTC. `None` if the text is no such time, or says more than nanoseconds, or is not within the
/// years 1678 to 2261. The smallest integer stands for no time, and is none.
pub fn parse_iso8601_ns(text: &str) -> Option<i64> {
    let text = text.trim();
    // The parser takes more: dates and times without separators, and seconds of 60, which it makes 59.
    let is_separator = |at: usize, separator: u8| text.as_bytes().get(at).is_none_or(|byte| *byte == separator);
    let is_extended = text.len() == 10 || text.len() >= 16;
    if !is_extended
        || text.contains(":60")
        || !(is_separator(4, b'-') && is_separator(7, b'-') && is_separator(13, b':'))
    {
        return None;
    }
    let pieces = Pieces::parse(text).ok()?;
    if pieces.time_zone_annotation().is_some() {
        return None;
    }
    let offset = pieces.offset().map_or(Offset::UTC, |offset| offset.to_numeric_offset());
    if offset.seconds().abs() >= DAY_SECONDS {
        return None;
    }
    let at = pieces.date().to_datetime(pieces.time().unwrap_or(Time::midnight()));
    i64::try_from(offset.to_timestamp(at).ok()?.as_nanosecond()).ok().filter(|time| *time != i64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn times_are_read_as_they_are_shown() {
        for seconds in [0, 1, 951_782_399, 951_868_800, 1_700_000_000, 4_102_444_800, 9_000_000_000] {
            let shown = iso8601_seconds(UNIX_EPOCH + Duration::from_secs(seconds));
            assert_eq!(parse_iso8601_ns(&shown), Some(seconds as i64 * 1_000_000_000), "{shown}");
        }
        assert_eq!(iso8601_seconds(UNIX_EPOCH + Duration::from_secs(951_825_600)), "2000-02-29T12:00:00Z");
        assert_eq!(iso8601_seconds(UNIX_EPOCH - Duration::from_secs(1)), "1969-12-31T23:59:59Z");
    }

    #[test]
    fn every_nanosecond_comes_back() {
        for nanoseconds in [i64::MIN + 1, -1, 0, 1, 1_795_521_602_500_000_000, i64::MAX] {
            let shown = iso8601_from_ns(nanoseconds);
            assert_eq!(parse_iso8601_ns(&shown), Some(nanoseconds), "{shown}");
        }
        assert_eq!(iso8601_from_ns(1_795_521_602_500_000_000), "2026-11-24T12:00:02.5Z");
    }

    #[test]
    fn zones_and_fractions_count() {
        let at = |text: &str| parse_iso8601_ns(text).unwrap();
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
            "1677-09-21T00:12:43.145224192Z",
            "2026-11-2ü",
            "+026-11-24",
        ] {
            assert_eq!(parse_iso8601_ns(text), None, "{text}");
        }
    }
}

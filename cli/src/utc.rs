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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_shown_in_utc() {
        let shown = |seconds| text(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(shown(0), "1970-01-01T00:00:00Z");
        assert_eq!(shown(951_825_600), "2000-02-29T12:00:00Z");
        assert_eq!(shown(4_102_444_800), "2100-01-01T00:00:00Z");
        assert_eq!(text(UNIX_EPOCH - Duration::from_secs(1)), "1969-12-31T23:59:59Z");
    }
}

//! When an object was last modified (format specification 4.0, IV.A.2.o and s).

use super::{Message, MessageType};
use crate::{Record, Result, Wire};

/// The object modification time message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModificationTime {
    /// Seconds since 1970-01-01 UTC.
    pub unix_seconds: u32,
}

impl Record for ModificationTime {
    const NAME: &'static str = "modification time";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(1..=1, &mut 1)?;
        w.reserved(3)?;
        w.u32("seconds", &mut self.unix_seconds)
    }
}

impl Message for ModificationTime {
    const TYPE: MessageType = MessageType::MODIFICATION_TIME;
}

/// The old object modification time message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldModificationTime {
    /// `YYYYMMDDhhmmss`, UTC, as ASCII digits.
    pub digits: [u8; 14],
}

impl Default for OldModificationTime {
    fn default() -> Self {
        OldModificationTime { digits: *b"19700101000000" }
    }
}

impl OldModificationTime {
    /// Seconds since 1970-01-01 UTC.
    pub fn unix_seconds(&self) -> i64 {
        let number = |from: usize, to: usize| {
            let digits = self.digits.get(from..to).unwrap_or_default();
            digits
                .iter()
                .fold(0i64, |n, digit| n.saturating_mul(10).saturating_add(i64::from(digit.saturating_sub(b'0'))))
        };
        let (year, month, day) = (number(0, 4), number(4, 6), number(6, 8));
        let clock = number(8, 10)
            .saturating_mul(3600)
            .saturating_add(number(10, 12).saturating_mul(60))
            .saturating_add(number(12, 14));
        days_from_civil(year, month, day).saturating_mul(86_400).saturating_add(clock)
    }
}

/// Days from 1970-01-01 to a day of the Gregorian calendar; years begin in March while it is counted.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year.saturating_sub(1) } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = month.saturating_add(9).rem_euclid(12);
    let day_of_year = month_from_march.saturating_mul(153).saturating_add(2) / 5;
    let leaps = (year_of_era / 4).saturating_sub(year_of_era / 100);
    let days = year_of_era.saturating_mul(365).saturating_add(leaps).saturating_add(day_of_year).saturating_add(day);
    era.saturating_mul(146_097).saturating_add(days).saturating_sub(719_469)
}

impl Record for OldModificationTime {
    const NAME: &'static str = "old modification time";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.byte_array("digits", &mut self.digits)?;
        let odd = self.digits.iter().find(|digit| !digit.is_ascii_digit());
        w.require("digits", odd.is_none(), odd.copied().unwrap_or(0).into(), "fourteen decimal digits")?;
        w.reserved(2)
    }
}

impl Message for OldModificationTime {
    const TYPE: MessageType = MessageType::MODIFICATION_TIME_OLD;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_seconds_across_leap_years() {
        let seconds = |digits: &[u8; 14]| OldModificationTime { digits: *digits }.unix_seconds();
        assert_eq!(seconds(b"19700101000000"), 0);
        assert_eq!(seconds(b"20000229235959"), 951_868_799);
        assert_eq!(seconds(b"20240301000000"), 1_709_251_200);
        assert_eq!(seconds(b"19691231235959"), -1);
    }
}

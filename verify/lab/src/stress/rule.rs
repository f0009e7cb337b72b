//! The rule that says which value every element of a stress file has.

use std::fmt;

use h5live::model::{ByteOrder, CharacterSet, CompoundMember, CompoundType, Datatype, Sign};

/// A dataset of the stress file.
#[derive(Debug, Clone, PartialEq)]
pub struct StressSeries {
    /// The name in the root group.
    pub name: &'static str,
    /// The type of an element.
    pub datatype: Datatype,
    /// The shape of a row (`[rank - 1]`, elements): what one step along the unlimited dimension holds.
    pub row: Vec<u64>,
    /// Rows of a chunk.
    pub chunk_rows: u64,
    /// Whether the chunks are shuffled and deflated.
    pub compressed: bool,
}

/// The datasets of the stress file: scalars of both byte orders, compound rows, and compressed frames. Their chunks
/// are small, so that index blocks of every kind come into being within seconds.
pub fn all_series() -> Vec<StressSeries> {
    let member = |name: &str, offset, datatype| CompoundMember { name: name.into(), offset, datatype };
    let f64_type = Datatype::float(8, ByteOrder::Little).unwrap_or_default();
    let u64_type = Datatype::integer(8, ByteOrder::Little, Sign::Unsigned);
    let compound = Datatype::Compound(CompoundType {
        size: 24,
        members: vec![
            member("index", 0, u64_type.clone()),
            member("value", 8, f64_type),
            member("label", 16, Datatype::fixed_string(8, CharacterSet::Ascii)),
        ],
    });
    let series = |name, datatype, row: &[u64], chunk_rows, compressed| StressSeries {
        name,
        datatype,
        row: row.to_vec(),
        chunk_rows,
        compressed,
    };
    vec![
        series("scalars", u64_type, &[], 8, false),
        series("big_endian", Datatype::integer(4, ByteOrder::Big, Sign::Signed), &[], 64, true),
        series("floats", Datatype::float(4, ByteOrder::Little).unwrap_or_default(), &[3], 16, false),
        series("rows", compound, &[], 10, false),
        series("frames", Datatype::integer(2, ByteOrder::Little, Sign::Unsigned), &[16, 16], 1, true),
    ]
}

impl StressSeries {
    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        self.row.iter().product::<u64>() as usize * self.datatype.size() as usize
    }

    /// Appends the encoded row `index` to `out`. No byte of it is zero, so none can be taken for a fill value.
    pub fn write_row(&self, seed: u64, index: u64, out: &mut Vec<u8>) {
        let end = out.len() + self.row_bytes();
        let mut state = mix(seed ^ mix(index ^ mix(self.name.len() as u64 ^ u64::from(self.datatype.size()) << 8)));
        while out.len() < end {
            state = mix(state);
            let bytes = (state | 0x0101_0101_0101_0101).to_le_bytes();
            // Four times the same, so that compression has something to do.
            out.extend(bytes.iter().cycle().take(32.min(end - out.len())));
        }
    }

    /// The first row from `first` on whose bytes in `stored` differ from the rule.
    pub fn first_difference(&self, seed: u64, first: u64, stored: &[u8]) -> Option<RowMismatch> {
        let mut expected = Vec::with_capacity(self.row_bytes());
        for (row, found) in (first..).zip(stored.chunks(self.row_bytes())) {
            expected.clear();
            self.write_row(seed, row, &mut expected);
            if found != expected {
                let at = expected.iter().zip(found).position(|(e, f)| e != f).unwrap_or(found.len());
                return Some(RowMismatch { row, at, fill: found.contains(&0) });
            }
        }
        None
    }
}

/// The place where stored rows differ from the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowMismatch {
    /// The row.
    pub row: u64,
    /// Bytes from the start of the row.
    pub at: usize,
    /// Whether there are zero bytes, which the rule never has: a fill value, or nothing at all.
    pub fill: bool,
}

impl fmt::Display for RowMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RowMismatch { row, at, fill } = self;
        let what = if *fill { "a fill value or nothing" } else { "another value" };
        write!(f, "row {row} has {what} at byte {at}")
    }
}

/// A permutation of the 64-bit numbers that looks random (the finaliser of SplitMix64).
pub fn mix(number: u64) -> u64 {
    let n = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(series: &StressSeries, seed: u64, rows: std::ops::Range<u64>) -> Vec<u8> {
        let mut out = Vec::new();
        rows.for_each(|row| series.write_row(seed, row, &mut out));
        out
    }

    #[test]
    fn rows_are_whole_and_without_a_zero_byte() {
        for series in all_series() {
            let out = rows(&series, 1, 0..20);
            assert_eq!(out.len(), 20 * series.row_bytes(), "{}", series.name);
            assert!(!out.contains(&0), "{}", series.name);
        }
    }

    #[test]
    fn rows_differ_from_each_other_and_between_seeds_and_series() {
        let all = all_series();
        let mut seen = std::collections::BTreeSet::new();
        for series in &all {
            for seed in 0..2 {
                (0..10).for_each(|row| assert!(seen.insert(rows(series, seed, row..row + 1)), "{}", series.name));
            }
        }
    }

    #[test]
    fn what_follows_the_rule_passes() {
        for series in all_series() {
            assert_eq!(series.first_difference(7, 5, &rows(&series, 7, 5..15)), None);
        }
    }

    #[test]
    fn a_changed_byte_is_found() {
        let series = &all_series()[0];
        let mut stored = rows(series, 7, 5..15);
        stored[8 * 3 + 2] ^= 2;
        let difference = series.first_difference(7, 5, &stored).unwrap();
        assert_eq!((difference.row, difference.at), (8, 2));
    }

    #[test]
    fn a_fill_value_and_a_missing_end_are_found() {
        let series = &all_series()[4];
        let mut stored = rows(series, 7, 0..2);
        stored[512..].fill(0);
        assert_eq!(series.first_difference(7, 0, &stored), Some(RowMismatch { row: 1, at: 0, fill: true }));
        stored.truncate(100);
        assert_eq!(series.first_difference(7, 0, &stored), Some(RowMismatch { row: 0, at: 100, fill: false }));
    }

    #[test]
    fn a_row_in_the_place_of_another_is_found() {
        let series = &all_series()[3];
        assert!(series.first_difference(7, 1, &rows(series, 7, 0..1)).is_some());
    }
}

//! A row of the demo's dataset: a sample of the machine, with what makes each row checkable on its own.

use crate::counted::counted;
use crate::model::{ByteOrder, CompoundMember, CompoundType, Datatype, Sign};

use super::machine::{METRIC_NAMES_AND_UNITS, MachineSample};

/// Bytes of a row: index, time, the metrics, check.
pub const ROW_BYTES: usize = 8 * (METRIC_NAMES_AND_UNITS.len() + 3);

/// The type of a row: unsigned integers of 8 bytes, except for the time (ns since 1970), which is signed.
pub fn row_datatype() -> Datatype {
    let names =
        ["index", "time"].into_iter().chain(METRIC_NAMES_AND_UNITS.iter().map(|(name, _)| *name)).chain(["check"]);
    let member = |(i, name): (usize, &str)| {
        let sign = if name == "time" { Sign::Signed } else { Sign::Unsigned };
        CompoundMember {
            name: name.into(),
            offset: 8 * i as u32,
            datatype: Datatype::integer(8, ByteOrder::Little, sign),
        }
    };
    Datatype::Compound(CompoundType { size: ROW_BYTES as u32, members: names.enumerate().map(member).collect() })
}

/// The stored form of row `index`.
pub fn encode(index: u64, unix_nanos: u64, sample: &MachineSample) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ROW_BYTES);
    for number in [index, unix_nanos].into_iter().chain(sample.values()) {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(check_of(&bytes).to_le_bytes());
    bytes
}

/// The number that stands in row after row at a column.
pub fn column(rows: &[u8], column: usize) -> impl Iterator<Item = u64> + '_ {
    rows.chunks_exact(ROW_BYTES).filter_map(move |row| number(row, column))
}

fn number(row: &[u8], column: usize) -> Option<u64> {
    row.get(8 * column..).and_then(|rest| rest.first_chunk()).map(|bytes| u64::from_le_bytes(*bytes))
}

/// The fault of rows, the first of which is row `first`.
pub fn find_row_fault(first: u64, rows: &[u8]) -> Option<String> {
    let mut time = 0;
    for (index, row) in (first..).zip(rows.chunks(ROW_BYTES)) {
        let Some((body, check)) = row.split_last_chunk().filter(|_| row.len() == ROW_BYTES) else {
            return Some(format!("row {index} has {}", counted(row.len(), "byte")));
        };
        let expected = check_of(body).to_le_bytes();
        if *check != expected {
            return Some(format!("row {index}: its check number is another"));
        }
        if number(row, 0) != Some(index) {
            return Some(format!("row {index} says it is row {:?}", number(row, 0)));
        }
        let now = number(row, 1).unwrap_or(0);
        if now < time {
            return Some(format!("row {index} is older than the one before"));
        }
        time = now;
    }
    None
}

/// A number that depends on every byte (FNV-1a), and is not 0 for zeros.
fn check_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<u8> {
        let sample = |i| MachineSample { context_switches: i * 7, ..Default::default() };
        (5..8).flat_map(|i| encode(i, 100 * i, &sample(i))).collect()
    }

    #[test]
    fn rows_that_were_encoded_are_right() {
        assert_eq!(find_row_fault(5, &rows()), None);
        assert_eq!(row_datatype().size() as usize, ROW_BYTES);
        assert_eq!(column(&rows(), 4).collect::<Vec<_>>(), [35, 42, 49]);
    }

    #[test]
    fn a_changed_a_moved_and_a_missing_row_are_found() {
        let mut changed = rows();
        changed[ROW_BYTES + 40] ^= 1;
        assert_eq!(find_row_fault(5, &changed).unwrap(), "row 6: its check number is another");
        assert_eq!(find_row_fault(4, &rows()).unwrap(), "row 4 says it is row Some(5)");
        assert_eq!(find_row_fault(5, &rows()[..ROW_BYTES + 3]).unwrap(), "row 6 has 3 bytes");
        assert_eq!(find_row_fault(0, &[0; ROW_BYTES]).unwrap(), "row 0: its check number is another");
    }

    #[test]
    fn time_does_not_go_back() {
        let sample = MachineSample::default();
        let rows = [encode(0, 9, &sample), encode(1, 8, &sample)].concat();
        assert_eq!(find_row_fault(0, &rows).unwrap(), "row 1 is older than the one before");
    }
}

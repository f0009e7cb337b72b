//! The live picture of the demo: how fast this machine's counters run, over the last seconds.

use crate::watch::chart::labelled_sparkline;

use super::row::column;

/// Rows that are shown as one character.
pub const ROWS_PER_CHARACTER: usize = 50;

/// The scale of a column in the chart.
#[derive(Debug, Clone, Copy)]
enum ColumnScale {
    /// As it is, in another unit.
    Level(f64),
    /// How much it grows in a second, in another unit.
    Rate(f64),
    /// The part of this column in the growth of this and the next column (percent).
    Share,
}

/// The lines of the chart: label, column of the row, scale.
const LINES: [(&str, usize, ColumnScale); 7] = [
    ("processors, %", 2, ColumnScale::Share),
    ("switches, 1000/s", 4, ColumnScale::Rate(1e-3)),
    ("interrupts, 1000/s", 5, ColumnScale::Rate(1e-3)),
    ("free memory, MiB", 7, ColumnScale::Level(1.0 / 1024.0)),
    ("disk read, MB/s", 8, ColumnScale::Rate(512e-6)),
    ("disk write, MB/s", 9, ColumnScale::Rate(512e-6)),
    ("network in, kB/s", 10, ColumnScale::Rate(1e-3)),
];

/// The lines for the newest `rows`, as stored.
pub fn sparkline_lines(rows: &[u8], width: usize) -> Vec<String> {
    LINES.iter().map(|(label, at, shown)| labelled_sparkline(label, &points(rows, *at, *shown), width)).collect()
}

/// One number for every [`ROWS_PER_CHARACTER`] rows.
fn points(rows: &[u8], at: usize, shown: ColumnScale) -> Vec<f64> {
    let ends = |column_at| -> Vec<f64> {
        column(rows, column_at).step_by(ROWS_PER_CHARACTER).map(|number| number as f64).collect()
    };
    let growth = |column_at| -> Vec<f64> {
        ends(column_at).windows(2).map(|w| w.last().unwrap_or(&0.0) - w.first().unwrap_or(&0.0)).collect()
    };
    match shown {
        ColumnScale::Level(scale) => ends(at).into_iter().map(|n| n * scale).collect(),
        ColumnScale::Rate(scale) => {
            let seconds = growth(1).into_iter().map(|nanos| nanos / 1e9);
            growth(at)
                .into_iter()
                .zip(seconds)
                .map(|(n, s)| if s > 0.0 { (n * scale / s * 10.0).round() / 10.0 } else { 0.0 })
                .collect()
        }
        ColumnScale::Share => {
            let share =
                |(this, next): (f64, f64)| if this + next > 0.0 { (100.0 * this / (this + next)).round() } else { 0.0 };
            growth(at).into_iter().zip(growth(at + 1)).map(share).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::machine::MachineSample;
    use super::super::row::encode;
    use super::*;

    /// Rows a millisecond apart, with counters that grow evenly.
    fn rows() -> Vec<u8> {
        let sample = |i| MachineSample {
            cpu_busy_ticks: i,
            cpu_idle_ticks: 3 * i,
            context_switches: 2 * i,
            memory_available_kib: 2048,
            ..Default::default()
        };
        (0..201).flat_map(|i| encode(i, i * 1_000_000, &sample(i))).collect()
    }

    #[test]
    fn counters_are_shown_as_rates() {
        assert_eq!(points(&rows(), 4, ColumnScale::Rate(1.0)), [2000.0; 4]);
        assert_eq!(points(&rows(), 2, ColumnScale::Share), [25.0; 4]);
        assert_eq!(points(&rows(), 7, ColumnScale::Level(0.5)), [1024.0; 5]);
    }

    #[test]
    fn no_rows_make_empty_lines() {
        assert_eq!(sparkline_lines(&[], 40).len(), LINES.len());
    }
}

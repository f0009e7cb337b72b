//! The time from the writer's flush until a reader has seen, read and checked the flushed rows.

use super::message::TimedExtents;

/// Times from the beginning of a flush to the moment at which a reader had checked its rows (ns).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Latencies(Vec<u64>);

impl Latencies {
    /// The times of all `flushes` whose rows of dataset `dataset_index` a reader has `seen`. Both are in order of time.
    /// Flushes from before the reader's first look are left out, because they say nothing about delay.
    pub fn from_extents(flushes: &[TimedExtents], seen: &[TimedExtents], dataset_index: usize) -> Self {
        let rows = |extents: &TimedExtents| extents.row_counts.get(dataset_index).copied().unwrap_or(0);
        let mut times = Vec::new();
        let Some((first, mut later)) = seen.split_first() else {
            return Latencies::default();
        };
        let mut before = rows(first);
        for flush in flushes.iter().filter(|f| f.unix_nanos > first.unix_nanos) {
            if rows(flush) <= before {
                continue;
            }
            before = rows(flush);
            while later.first().is_some_and(|s| rows(s) < rows(flush)) {
                later = later.get(1..).unwrap_or_default();
            }
            match later.first() {
                Some(seen) => times.push(seen.unix_nanos.saturating_sub(flush.unix_nanos)),
                None => break,
            }
        }
        times.sort_unstable();
        Latencies(times)
    }

    /// Measured times (ns).
    pub fn from_nanos(times: impl IntoIterator<Item = u64>) -> Self {
        let mut times: Vec<_> = times.into_iter().collect();
        times.sort_unstable();
        Latencies(times)
    }

    /// Puts the times of several readers together.
    pub fn merge(all: impl IntoIterator<Item = Latencies>) -> Self {
        Latencies::from_nanos(all.into_iter().flat_map(|l| l.0))
    }

    /// The number of flushes seen.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The time that `fraction` (0 to 1) of all do not exceed (ns).
    pub fn quantile(&self, fraction: f64) -> Option<u64> {
        let last = self.0.len().checked_sub(1)?;
        self.0.get((fraction.clamp(0.0, 1.0) * last as f64).round() as usize).copied()
    }
}

/// Nanoseconds in a unit that suits them.
pub fn duration_text(nanos: u64) -> String {
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{:.1} µs", nanos as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", nanos as f64 / 1e6),
        _ => format!("{:.2} s", nanos as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents(list: &[(u64, u64)]) -> Vec<TimedExtents> {
        list.iter().map(|&(at, rows)| TimedExtents { unix_nanos: at, row_counts: vec![rows] }).collect()
    }

    #[test]
    fn each_flush_is_seen_at_the_first_look_that_has_all_its_rows() {
        let flushes = extents(&[(10, 1), (20, 2), (30, 3), (40, 4)]);
        let seen = extents(&[(5, 0), (13, 1), (36, 3), (90, 3)]);
        assert_eq!(Latencies::from_extents(&flushes, &seen, 0), Latencies(vec![3, 6, 16]));
    }

    #[test]
    fn flushes_before_the_first_look_and_without_new_rows_do_not_count() {
        let flushes = extents(&[(10, 5), (20, 5), (30, 6)]);
        assert_eq!(Latencies::from_extents(&flushes, &extents(&[(15, 5), (31, 6)]), 0), Latencies(vec![1]));
        assert_eq!(Latencies::from_extents(&flushes, &[], 0).count(), 0);
    }

    #[test]
    fn quantiles_are_taken_from_the_sorted_times() {
        let all = Latencies::merge([Latencies(vec![5, 1]), Latencies(vec![3])]);
        assert_eq!((all.quantile(0.0), all.quantile(0.5), all.quantile(1.0)), (Some(1), Some(3), Some(5)));
        assert_eq!(Latencies::default().quantile(0.5), None);
    }

    #[test]
    fn durations_have_a_unit_that_suits_them() {
        let text = [5, 1_500, 2_340_000, 1_005_000_000].map(duration_text);
        assert_eq!(text, ["5 ns", "1.5 µs", "2.3 ms", "1.00 s"]);
    }
}

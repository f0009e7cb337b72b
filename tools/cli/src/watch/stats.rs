//! Statistics of a session, as text.

use h5live::Stats;

use crate::counted::counted;
use crate::live::latency::duration_text;

/// One line for each kind of work; writing only if there was any.
pub fn text(stats: &Stats) -> String {
    let percent = |hits: u64, misses: u64| match hits + misses {
        0 => String::from("none"),
        all => format!("{:.1} % of {all}", hits as f64 * 100.0 / all as f64),
    };
    let mut lines = vec![
        format!("refreshes    {}", stats.refreshes),
        format!("torn         {}, {} more", counted(stats.torn, "operation"), counted(stats.retries, "attempt")),
        format!("bytes read   {}", stats.bytes_read),
        format!("structures   {} found in the cache", percent(stats.hits, stats.misses)),
        format!("chunks       {} found in the cache", percent(stats.chunk_hits, stats.chunk_misses)),
    ];
    if stats.flushes > 0 {
        let mean = stats.flush_time.as_nanos() / u128::from(stats.flushes);
        let [mean, longest] = [mean, stats.longest_flush.as_nanos()].map(|n| duration_text(n as u64));
        lines.push(format!("bytes written {} in {}", stats.bytes_written, counted(stats.writes, "write")));
        lines.push(format!("flushes      {}, {mean} each, {longest} the longest", stats.flushes));
    }
    if stats.resting_bytes > 0 {
        lines.push(format!("freed        {} that somebody may still read", counted(stats.resting_bytes, "byte")));
    }
    if stats.early_stores > 0 {
        let stores = counted(stats.early_stores, "write");
        lines.push(format!(
            "memory       used up at {stores}, {} wait to be stored",
            counted(stats.staged_bytes, "byte")
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_line_for_each_kind_of_work() {
        let mut stats = Stats::default();
        (stats.refreshes, stats.hits, stats.misses) = (3, 1, 3);
        assert_eq!(text(&stats).lines().count(), 5);
        assert!(text(&stats).contains("structures   25.0 % of 4 found"));
        (stats.flushes, stats.writes) = (2, 7);
        assert_eq!(text(&stats).lines().count(), 7);
        (stats.early_stores, stats.staged_bytes) = (1, 5);
        assert!(text(&stats).ends_with("memory       used up at 1 write, 5 bytes wait to be stored"));
    }
}

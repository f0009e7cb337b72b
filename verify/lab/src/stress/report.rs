//! The outcome of a stress run.

use std::fmt;

use serde_json::json;

use h5live_cli::counted::counted;
use h5live_cli::live::latency::{Latencies, duration_text};
use h5live_cli::live::message::{Violation, WorkCounts};

/// The work of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriterCounts {
    /// Rows of all datasets together.
    pub rows: u64,
    /// Bytes of these rows.
    pub bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// How often the writer was killed.
    pub kills: u64,
    /// How often it has ended, and another one has begun.
    pub restarts: u64,
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StressReport {
    /// The seed of the rule.
    pub seed: u64,
    /// How long the run took (s).
    pub seconds: f64,
    /// The work of the writer.
    pub written: WriterCounts,
    /// The work of each reader, and how late it saw each flush.
    pub readers: Vec<(WorkCounts, Latencies)>,
    /// Violations: events that must never happen.
    pub violations: Vec<Violation>,
}

/// Violations that are shown before the rest is only counted.
const MAX_SHOWN_VIOLATIONS: usize = 20;

impl StressReport {
    /// The report for programs.
    pub fn json(&self) -> serde_json::Value {
        let micros = |nanos: Option<u64>| nanos.map(|n| n as f64 / 1e3);
        let readers: Vec<_> = self
            .readers
            .iter()
            .map(|(work, latency)| {
                json!({
                    "rows": work.new_rows,
                    "rereads": work.reread_rows,
                    "refreshes": work.refreshes_or_flushes,
                    "opens": work.opens,
                    "flushes_seen": latency.count(),
                    "latency_us": {
                        "median": micros(latency.quantile(0.5)),
                        "p99": micros(latency.quantile(0.99)),
                        "worst": micros(latency.quantile(1.0)),
                    },
                })
            })
            .collect();
        let violations: Vec<_> =
            self.violations.iter().map(|v| json!({ "invariant": v.invariant.code(), "detail": v.detail })).collect();
        json!({
            "seed": self.seed,
            "seconds": self.seconds,
            "rows": self.written.rows,
            "bytes": self.written.bytes,
            "flushes": self.written.flushes,
            "kills": self.written.kills,
            "restarts": self.written.restarts,
            "readers": readers,
            "violations": violations,
        })
    }
}

impl fmt::Display for StressReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WriterCounts { rows, bytes, flushes, kills, restarts } = self.written;
        let rate = if self.seconds > 0.0 { flushes as f64 / self.seconds } else { 0.0 };
        writeln!(
            f,
            "writer    {}, {:.1} MB, {} ({rate:.0}/s), killed {}, restarted {}",
            counted(rows, "row"),
            bytes as f64 / 1e6,
            counted(flushes, "flush"),
            counted(kills, "time"),
            counted(restarts, "time")
        )?;
        for (i, (work, latency)) in self.readers.iter().enumerate() {
            let WorkCounts { new_rows: rows, reread_rows: rereads, refreshes_or_flushes: refreshes, opens } = work;
            let (rows, refreshes) = (counted(*rows, "row"), counted(*refreshes, "refresh"));
            let opens = counted(*opens, "open");
            write!(f, "reader {i}  {rows} checked, {rereads} again, {refreshes}, {opens}")?;
            match (latency.quantile(0.5), latency.quantile(1.0)) {
                (Some(median), Some(worst)) => {
                    writeln!(
                        f,
                        "; flush to visible: median {}, worst {}",
                        duration_text(median),
                        duration_text(worst)
                    )?;
                }
                _ => writeln!(f)?,
            }
        }
        for violation in self.violations.iter().take(MAX_SHOWN_VIOLATIONS) {
            writeln!(f, "violation of {}: {}", violation.invariant.code(), violation.detail)?;
        }
        if self.violations.len() > MAX_SHOWN_VIOLATIONS {
            writeln!(f, "... and {} more", self.violations.len() - MAX_SHOWN_VIOLATIONS)?;
        }
        let violations = counted(self.violations.len(), "violation");
        write!(f, "{violations} in {:.1} s (seed {})", self.seconds, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5live_cli::live::message::StressInvariant;

    fn sample() -> StressReport {
        StressReport {
            seed: 7,
            seconds: 2.0,
            written: WriterCounts { rows: 10, bytes: 2_500_000, flushes: 100, kills: 1, restarts: 0 },
            readers: vec![(
                WorkCounts { new_rows: 10, reread_rows: 2, refreshes_or_flushes: 30, opens: 1 },
                Latencies::default(),
            )],
            violations: vec![Violation {
                invariant: StressInvariant::MonotonicReads,
                detail: "rows: 5 after 6".into(),
            }],
        }
    }

    #[test]
    fn the_text_ends_with_the_number_of_violations() {
        let text = sample().to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "writer    10 rows, 2.5 MB, 100 flushes (50/s), killed 1 time, restarted 0 times",
                "reader 0  10 rows checked, 2 again, 30 refreshes, 1 open",
                "violation of I3: rows: 5 after 6",
                "1 violation in 2.0 s (seed 7)",
            ]
        );
    }

    #[test]
    fn the_json_has_every_number() {
        let json = sample().json();
        assert_eq!(json["readers"][0]["rereads"], 2);
        assert_eq!(json["violations"][0]["invariant"], "I3");
        assert_eq!(json["readers"][0]["latency_us"]["median"], serde_json::Value::Null);
    }
}

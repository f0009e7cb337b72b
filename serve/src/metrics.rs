//! Numbers for Prometheus: `GET /metrics`.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the classes of times (seconds).
const BOUNDS: [f64; 8] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0];

/// What is counted.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Answers by the first digit of their status, from 1 on.
    pub by_class: [AtomicU64; 5],
    times: [AtomicU64; BOUNDS.len()],
    time_sum_us: AtomicU64,
    pub connections: AtomicU64,
    pub refused_connections: AtomicU64,
    pub event_clients: AtomicU64,
    pub events_sent: AtomicU64,
}

impl Metrics {
    /// Counts an answer.
    pub fn record_answer(&self, status: u16, took: Duration) {
        if let Some(class) = self.by_class.get(usize::from(status / 100).saturating_sub(1)) {
            class.fetch_add(1, Ordering::Relaxed);
        }
        let seconds = took.as_secs_f64();
        for (bound, count) in BOUNDS.iter().zip(&self.times) {
            if seconds <= *bound {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.time_sum_us.fetch_add(took.as_micros() as u64, Ordering::Relaxed);
    }

    /// Writes the histogram of the times of `answer_count` answers.
    pub fn write_latency_histogram(&self, text: &mut String, answer_count: u64) {
        text.push_str("# TYPE h5live_request_seconds histogram\n");
        for (bound, count) in BOUNDS.iter().zip(&self.times) {
            let count = count.load(Ordering::Relaxed);
            let _ = writeln!(text, "h5live_request_seconds_bucket{{le=\"{bound}\"}} {count}");
        }
        let sum = self.time_sum_us.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(text, "h5live_request_seconds_bucket{{le=\"+Inf\"}} {answer_count}");
        let _ = writeln!(text, "h5live_request_seconds_sum {sum}\nh5live_request_seconds_count {answer_count}");
    }
}

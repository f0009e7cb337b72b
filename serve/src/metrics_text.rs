//! Numbers for Prometheus: `GET /metrics`.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::state::AppState;

/// All numbers, as Prometheus reads them.
pub(crate) fn text(state: &AppState) -> String {
    let metrics = &state.metrics;
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let mut text = String::from("# TYPE h5live_requests_total counter\n");
    let mut all = 0;
    for (class, count) in (1..).zip(&metrics.by_class) {
        all += load(count);
        let _ = writeln!(text, "h5live_requests_total{{status=\"{class}xx\"}} {}", load(count));
    }
    metrics.write_latency_histogram(&mut text, all);
    let [kept, live, opened, refreshes] = state.sessions.kept_live_opened_refreshed_counts();
    let gauges = [
        ("connections", load(&metrics.connections)),
        ("sessions", kept),
        ("live_sessions", live),
        ("event_clients", load(&metrics.event_clients)),
        ("watched_files", state.watches.len() as u64),
        ("answer_bytes_in_memory", state.memory.used_bytes()),
    ];
    let counters = [
        ("refused_connections_total", load(&metrics.refused_connections)),
        ("opened_sessions_total", opened),
        ("refreshes_total", refreshes),
        ("events_sent_total", load(&metrics.events_sent)),
    ];
    for (kind, numbers) in [("gauge", &gauges[..]), ("counter", &counters[..])] {
        for (name, number) in numbers {
            let _ = writeln!(text, "# TYPE h5live_{name} {kind}\nh5live_{name} {number}");
        }
    }
    text
}

//! How a SlateDB store is opened.

use std::time::Duration;

use crate::engine::SyncPolicy;

/// How a SlateDB store is opened.
#[derive(Debug, Clone)]
pub struct SlateOptions {
    /// Which commits wait for the object store.
    pub sync: SyncPolicy,
    /// How often a reader looks for commits.
    pub poll_interval: Duration,
    /// How long commits that nobody waits for stay in memory at most.
    pub flush_interval: Duration,
    /// Most bytes of blocks that are kept in memory.
    pub cache_bytes: u64,
    /// How long the states that a killed reader has held keep their space.
    pub checkpoint_lifetime: Duration,
    /// How often a writer says that it is there.
    pub heartbeat_interval: Duration,
}

impl Default for SlateOptions {
    /// Each commit waits; a reader looks every 100 ms.
    fn default() -> Self {
        SlateOptions {
            sync: SyncPolicy::Always,
            poll_interval: Duration::from_millis(100),
            flush_interval: Duration::from_millis(100),
            cache_bytes: 64 << 20,
            checkpoint_lifetime: Duration::from_secs(600),
            heartbeat_interval: Duration::from_secs(5),
        }
    }
}

/// The shortest and the longest time between two polls, flushes or heartbeats.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(3600));
/// The shortest lifetime that SlateDB takes.
const MIN_CHECKPOINT_LIFETIME: Duration = Duration::from_secs(1);

impl SlateOptions {
    /// The same with each time in its bounds.
    #[must_use]
    pub fn with_clamped_times(&self) -> Self {
        let interval = |time: Duration| time.clamp(INTERVALS.0, INTERVALS.1);
        SlateOptions {
            poll_interval: interval(self.poll_interval),
            flush_interval: interval(self.flush_interval),
            heartbeat_interval: interval(self.heartbeat_interval),
            checkpoint_lifetime: self.checkpoint_lifetime.clamp(MIN_CHECKPOINT_LIFETIME, Duration::from_secs(1 << 30)),
            ..self.clone()
        }
    }
}

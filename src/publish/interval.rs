//! When a file publishes by itself.

use std::time::Duration;

/// When a file publishes by itself, for [`Options::publish_every`](crate::Options::publish_every).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PublishInterval {
    /// A dataset is flushed when this many rows were appended since its last flush.
    DatasetRows(u64),
    /// The file is flushed when this time is over, if there is anything to publish.
    Time(Duration),
}

impl From<Duration> for PublishInterval {
    fn from(time: Duration) -> Self {
        PublishInterval::Time(time)
    }
}

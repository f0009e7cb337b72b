//! How readers know that a writer is there: it replaces a small object again and again.
//!
//! A reader compares what it finds with what it found before, by its own clock. So clocks of different machines are never
//! compared.

use std::sync::Weak;
use std::time::{Duration, Instant};

use bytes::Bytes;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStoreExt, PutPayload};
use slatedb::Db;
use tokio::task::AbortHandle;

use super::location::SlateLocation;
use super::runtime::SlateRuntime;

/// After so many intervals without a heartbeat the writer is taken for dead.
const MISSED_HEARTBEATS: u32 = 4;
/// The longest interval that is believed.
const MAX_INTERVAL: Duration = Duration::from_secs(3600);

/// The object that the writer replaces.
fn heartbeat_path(location: &SlateLocation) -> ObjectPath {
    location.prefix.clone().join("h5live").join("writer")
}

/// What the object says: whose it is, its number, and how often it is replaced (milliseconds).
#[derive(Debug, Clone, PartialEq, Eq)]
struct HeartbeatText {
    session: u64,
    number: u64,
    interval: Duration,
}

impl HeartbeatText {
    fn to_text(&self) -> String {
        format!("h5live-writer {:016x} {} {}\n", self.session, self.number, self.interval.as_millis())
    }

    fn from_text(text: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(text).ok()?.strip_prefix("h5live-writer ")?.split_ascii_whitespace();
        let session = u64::from_str_radix(words.next()?, 16).ok()?;
        let number = words.next()?.parse().ok()?;
        let interval = Duration::from_millis(words.next()?.parse().ok()?).min(MAX_INTERVAL);
        Some(HeartbeatText { session, number, interval })
    }
}

/// The heartbeat of a session that writes. It stops when it is dropped, and then looks as that of a killed writer.
#[derive(Debug)]
pub struct Heartbeat {
    session: u64,
    task: Option<AbortHandle>,
}

impl Heartbeat {
    /// Says that a session writes, from now on.
    pub fn start(
        runtime: &SlateRuntime,
        location: &SlateLocation,
        db: Weak<Db>,
        session: u64,
        interval: Duration,
    ) -> Self {
        let location = location.clone();
        let task = runtime.spawn(async move {
            let mut text = HeartbeatText { session, number: 0, interval };
            // A session that was replaced or is gone says nothing.
            while db.upgrade().is_some_and(|db| db.status().close_reason.is_none()) {
                text.number += 1;
                // A heartbeat that fails is missed; the next one makes up for it.
                let _ = write(&location, &text).await;
                tokio::time::sleep(interval).await;
            }
        });
        Heartbeat { session, task }
    }

    /// Writes the first heartbeat, before others may look.
    pub async fn write_first(location: SlateLocation, session: u64, interval: Duration) -> object_store::Result<()> {
        write(&location, &HeartbeatText { session, number: 0, interval }).await
    }

    /// Stops it.
    pub fn stop(&self) {
        self.task.iter().for_each(AbortHandle::abort);
    }

    /// The session whose heartbeat it is.
    pub fn session_id(&self) -> u64 {
        self.session
    }

    /// Says that a session has ended, unless another one writes by now.
    pub async fn retract(location: SlateLocation, session: u64) -> object_store::Result<()> {
        let path = heartbeat_path(&location);
        let found = match location.store.get(&path).await {
            Ok(found) => found.bytes().await?,
            Err(object_store::Error::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        match HeartbeatText::from_text(&found).is_some_and(|found| found.session == session) {
            true => location.store.delete(&path).await,
            false => Ok(()),
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn write(location: &SlateLocation, text: &HeartbeatText) -> object_store::Result<()> {
    let payload = PutPayload::from(text.to_text().into_bytes());
    location.store.put(&heartbeat_path(location), payload).await.map(drop)
}

/// What a session knows of the writer.
#[derive(Debug, Default)]
pub struct WriterProbe {
    /// The last heartbeat that was new, and when it was found.
    last: Option<(Bytes, Instant)>,
}

impl WriterProbe {
    /// Whether a writer is there. One that was killed is there until it has missed some heartbeats.
    pub async fn has_writer(&mut self, location: &SlateLocation) -> object_store::Result<bool> {
        let found = match location.store.get(&heartbeat_path(location)).await {
            Ok(found) => found.bytes().await?,
            Err(object_store::Error::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        Ok(self.is_alive(found, Instant::now()))
    }

    fn is_alive(&mut self, found: Bytes, now: Instant) -> bool {
        let Some(text) = HeartbeatText::from_text(&found) else { return false };
        match &self.last {
            Some((last, since)) if *last == found => {
                now.saturating_duration_since(*since) < text.interval * MISSED_HEARTBEATS
            }
            _ => {
                self.last = Some((found, now));
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_is_dead_after_missed_heartbeats_and_not_before() {
        let (mut probe, start) = (WriterProbe::default(), Instant::now());
        let beat = |number| {
            let text = HeartbeatText { session: 7, number, interval: Duration::from_secs(5) };
            assert_eq!(HeartbeatText::from_text(text.to_text().as_bytes()), Some(text.clone()));
            Bytes::from(text.to_text())
        };
        let mut at = |number, seconds| probe.is_alive(beat(number), start + Duration::from_secs(seconds));
        assert!(at(1, 0) && at(1, 19));
        assert!(!at(1, 20), "it has missed four");
        assert!(at(2, 30), "it was only slow");
        assert!(at(2, 49) && !at(2, 50));
        assert!(!probe.is_alive("anything".into(), start));
    }
}

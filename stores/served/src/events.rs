//! The events of a file, and who waits for them.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use h5live_model::{Result, Watch, WatchEvent};
use parking_lot::{Condvar, Mutex};
use tokio::task::AbortHandle;

use crate::client::ServedClient;
use crate::http::spawn;
use crate::sse::{Event, EventReader};

/// The pauses between two tries to reach the server.
const MIN_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// How often whoever waits looks by itself where the server does not tell of everything.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// What is known by the events.
#[derive(Debug, Default)]
struct EventState {
    /// Counts messages.
    messages: u64,
    /// Counts the messages by which nobody writes any more.
    ends: u64,
    /// Whether the server tells of all changes: whether it is connected, and all objects are watched.
    is_telling: bool,
}

/// What events have changed, which is shared with the task that reads them.
#[derive(Debug, Default)]
pub(crate) struct EventBoard {
    state: Mutex<EventState>,
    changed: Condvar,
}

/// The events of a file. Nobody reads them any more when this is dropped.
pub(crate) struct EventStream {
    board: Arc<EventBoard>,
    task: Option<AbortHandle>,
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EventStream").field(&self.board).finish()
    }
}

impl EventBoard {
    fn take(&self, event: &Event) {
        let json: serde_json::Value = serde_json::from_slice(&event.data).unwrap_or_default();
        let is_written = matches!(json["writer"]["state"].as_str(), Some("writing" | "unknown"));
        let mut state = self.state.lock();
        state.messages += 1;
        state.ends += u64::from(!is_written);
        state.is_telling = json["is_cut"] != true;
        drop(state);
        self.changed.notify_all();
    }

    /// Messages so far.
    pub fn message_count(&self) -> u64 {
        self.state.lock().messages
    }
}

impl EventStream {
    /// Begins to read the events.
    pub fn start(client: Arc<ServedClient>) -> Self {
        let board = Arc::new(EventBoard::default());
        let shared = board.clone();
        let task = spawn(async move { follow(&client, &shared).await }).ok();
        EventStream { board, task }
    }

    pub fn board(&self) -> &EventBoard {
        &self.board
    }

    /// Waits for a message after these. Returns what has come.
    fn wait(&self, seen: (u64, u64), timeout: Duration) -> (WatchEvent, (u64, u64)) {
        let end = Instant::now().checked_add(timeout);
        let mut state = self.board.state.lock();
        loop {
            let now = (state.messages, state.ends);
            if now.1 != seen.1 && now.0 - seen.0 == now.1 - seen.1 {
                // Each of them said that nobody writes. What it changed before is looked at then, too.
                return (WatchEvent::Ended, now);
            }
            if now.0 != seen.0 {
                return (WatchEvent::Changed, now);
            }
            let poll = (!state.is_telling).then(|| Instant::now() + POLL_INTERVAL);
            let until = match (end, poll) {
                (Some(end), Some(poll)) => Some(end.min(poll)),
                (end, poll) => end.or(poll),
            };
            let is_over = match until {
                Some(until) => self.board.changed.wait_until(&mut state, until).timed_out(),
                None => {
                    self.board.changed.wait(&mut state);
                    false
                }
            };
            if is_over && (state.messages, state.ends) == seen {
                let is_timeout = end.is_some_and(|end| Instant::now() >= end);
                return (if is_timeout { WatchEvent::Timeout } else { WatchEvent::Changed }, seen);
            }
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.task.iter().for_each(AbortHandle::abort);
    }
}

/// Reads events for ever, over one connection after the other.
async fn follow(client: &ServedClient, board: &EventBoard) {
    let (path, mut last, mut pause) = (client.events_path(), None, MIN_PAUSE);
    loop {
        let before = board.message_count();
        read_stream(client, board, &path, &mut last).await;
        board.state.lock().is_telling = false;
        board.changed.notify_all();
        pause = if board.message_count() == before { (pause * 2).min(MAX_PAUSE) } else { MIN_PAUSE };
        tokio::time::sleep(pause).await;
    }
}

/// Reads events until the connection ends.
async fn read_stream(client: &ServedClient, board: &EventBoard, path: &str, last: &mut Option<String>) {
    let Ok((_connection, mut response)) = client.http().open_event_stream(path, last.as_deref()).await else { return };
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    if response.status().as_u16() != 200 || kind != Some("text/event-stream") {
        return;
    }
    let mut reader = EventReader::default();
    while let Ok(Some(part)) = client.http().next_body_bytes(&mut response).await {
        let Ok(events) = reader.push(&part) else { return };
        for event in events {
            board.take(&event);
            if event.id.is_some() {
                last.clone_from(&event.id);
            }
        }
    }
}

/// Waits for what the server tells of a file.
#[derive(Debug)]
pub(crate) struct ServedWatch {
    stream: Arc<EventStream>,
    seen: (u64, u64),
}

impl ServedWatch {
    pub fn new(stream: Arc<EventStream>) -> Self {
        let state = stream.board.state.lock();
        let seen = (state.messages, state.ends);
        drop(state);
        ServedWatch { stream, seen }
    }
}

impl Watch for ServedWatch {
    fn wait(&mut self, timeout: Duration) -> Result<WatchEvent> {
        let (event, seen) = self.stream.wait(self.seen, timeout);
        self.seen = seen;
        Ok(event)
    }
}

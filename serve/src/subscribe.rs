//! Events: `GET /events?file=&path=`, as server-sent events.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Response, header};
use bytes::Bytes;
use tokio::sync::mpsc::{self, Sender};
use tokio::sync::watch;

use crate::fault::Fault;
use crate::query::Query;
use crate::state::AppState;
use crate::stream::ReceiverStream;
use crate::watches::Subscription;

/// The shortest time between two messages to a client.
const MIN_INTERVAL: Duration = Duration::from_millis(50);
/// After so long without a message, a client is told that the connection lives.
const IDLE_INTERVAL: Duration = Duration::from_secs(10);
/// What it is told then: a comment.
const ALIVE: &[u8] = b":\n\n";
/// How long a browser waits before it connects again (milliseconds).
const RETRY: &str = "retry: 1000\n\n";

/// Tells a client what happens to a file.
pub(crate) async fn subscribe(State(state): State<Arc<AppState>>, request: Request) -> Response<Body> {
    let query = Query::of(request.uri());
    let header = request.headers().get("last-event-id").and_then(|value| value.to_str().ok());
    let last = header.or_else(|| query.get("last_event_id")).map(str::to_owned);
    let shared = state.clone();
    let subscribed = state.pool.run(move || {
        let client = EventClient::admit(&shared)?;
        let place = shared.catalog.find_store(query.require("file")?)?;
        Ok((client, shared.watches.subscribe(&place, query.get("path").unwrap_or("/"))?))
    });
    let (client, subscription) = match subscribed.await {
        Ok(subscribed) => subscribed,
        Err(fault) => return state.redact_served_paths(fault).into_response(),
    };
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(send_events(client, subscription, last, sender));
    let mut response = Response::new(Body::from_stream(ReceiverStream(receiver)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies are not to wait for more.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// One of the clients that there may be.
struct EventClient(Arc<AppState>);

impl EventClient {
    fn admit(state: &Arc<AppState>) -> Result<Self, Fault> {
        let before = state.metrics.event_clients.fetch_add(1, Ordering::AcqRel);
        let client = EventClient(state.clone());
        match before < state.limits.max_event_clients as u64 {
            true => Ok(client),
            false => Err(Fault::busy("Too many clients listen to events: ask again later")),
        }
    }
}

impl Drop for EventClient {
    fn drop(&mut self) {
        self.0.metrics.event_clients.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Sends a message whenever something has changed, until the client goes or the server ends. What changes while a client
/// does not take its message is in the next one, so a slow client takes no memory.
async fn send_events(client: EventClient, subscription: Subscription, last: Option<String>, sender: Sender<Bytes>) {
    let (mut changes, mut stop) = (subscription.change_counter(), client.0.watches.stop_signal());
    let mut last = last;
    if sender.send(RETRY.into()).await.is_err() {
        return;
    }
    loop {
        changes.mark_unchanged();
        if let Some((id, text)) = subscription.message_since(last.as_deref()) {
            let text = client.0.catalog.folders().redact_folder_paths(&text);
            if sender.send(format!("id: {id}\ndata: {text}\n\n").into()).await.is_err() {
                return;
            }
            client.0.metrics.events_sent.fetch_add(1, Ordering::Relaxed);
            last = Some(id);
            tokio::time::sleep(MIN_INTERVAL).await;
        }
        tokio::select! {
            _ = changes.changed() => {}
            _ = sender.closed() => return,
            () = ended(&mut stop) => return,
            _ = tokio::time::sleep(IDLE_INTERVAL) => {
                if sender.send(Bytes::from_static(ALIVE)).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Waits until the server is told to end.
async fn ended(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

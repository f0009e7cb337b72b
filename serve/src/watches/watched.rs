//! What is known of a watched file, and what clients are told of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicUsize;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio::sync::watch;

use super::snapshot::{ObjectState, Snapshot};
use crate::writers::WriterState;

/// Removed objects that are remembered for clients that come back.
const MAX_REMOVED: usize = 4096;

/// A watched file.
#[derive(Debug)]
pub(super) struct Watched {
    pub subscribers: AtomicUsize,
    known: Mutex<KnownState>,
    changes: watch::Sender<u64>,
    /// Tells the events of this watch from those of an earlier one.
    epoch: String,
}

#[derive(Debug)]
struct KnownState {
    /// Counts changes, from 1 on.
    change: u64,
    objects: BTreeMap<String, KnownObject>,
    removed: VecDeque<(u64, String)>,
    /// The last change of which a removed object was forgotten.
    forgotten: u64,
    writer: WriterState,
    writer_change: u64,
    publication: Option<u64>,
    is_cut: bool,
    fault: Option<String>,
}

#[derive(Debug)]
struct KnownObject {
    state: ObjectState,
    /// The changes with which it came, its extent or kind changed, and its attributes did.
    created: u64,
    changed: u64,
    attributes_changed: u64,
}

impl Default for Watched {
    fn default() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let known = KnownState {
            change: 0,
            objects: BTreeMap::new(),
            removed: VecDeque::new(),
            forgotten: 0,
            writer: WriterState::Closed,
            writer_change: 0,
            publication: None,
            is_cut: false,
            fault: None,
        };
        Watched {
            subscribers: AtomicUsize::new(0),
            known: Mutex::new(known),
            changes: watch::Sender::new(0),
            epoch: format!("{:x}", now.as_nanos()),
        }
    }
}

/// What a look at the file has found.
#[derive(Debug)]
pub(super) struct Look {
    pub snapshot: Result<Snapshot, String>,
    pub writer: WriterState,
    /// Whether the file was written since the last look.
    pub is_written: bool,
}

impl Watched {
    pub fn change_counter(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Takes up what a look has found, and wakes clients if anything is new.
    pub fn apply_look_and_notify(&self, look: Look) {
        let mut known = self.known.lock();
        if known.apply_look(look) {
            let change = known.change;
            drop(known);
            self.changes.send_replace(change);
        }
    }

    /// The identity and the text of the message of everything that has changed since an event. `None` if nothing has.
    pub fn message_since(&self, last_event_id: Option<&str>) -> Option<(String, String)> {
        let known = self.known.lock();
        let since = last_event_id
            .and_then(|last_event_id| last_event_id.split_once('-'))
            .filter(|(epoch, _)| *epoch == self.epoch);
        let since = since.and_then(|(_, change)| change.parse().ok()).filter(|change| *change >= known.forgotten);
        if known.change == 0 || since == Some(known.change) {
            return None;
        }
        Some((format!("{}-{}", self.epoch, known.change), known.message_since(since).to_string()))
    }
}

impl KnownState {
    /// Returns whether anything is new.
    fn apply_look(&mut self, look: Look) -> bool {
        let next = self.change + 1;
        let mut is_new = self.change == 0 || look.is_written;
        if look.writer != self.writer {
            (self.writer, self.writer_change, is_new) = (look.writer, next, true);
        }
        match look.snapshot {
            Ok(snapshot) => {
                is_new |= self.fault.take().is_some() || self.publication != snapshot.publication;
                (self.publication, self.is_cut) = (snapshot.publication, snapshot.is_cut);
                is_new |= self.apply_objects(snapshot.objects, next);
            }
            Err(fault) => {
                is_new |= self.fault.as_ref() != Some(&fault);
                self.fault = Some(fault);
            }
        }
        if is_new {
            self.change = next;
        }
        is_new
    }

    fn apply_objects(&mut self, found: BTreeMap<String, ObjectState>, next: u64) -> bool {
        let mut is_new = false;
        let gone: Vec<_> = self.objects.keys().filter(|path| !found.contains_key(*path)).cloned().collect();
        for path in gone {
            is_new = true;
            self.objects.remove(&path);
            self.removed.push_back((next, path));
            if self.removed.len() > MAX_REMOVED {
                self.forgotten = self.removed.pop_front().map_or(self.forgotten, |(change, _)| change);
            }
        }
        for (path, state) in found {
            match self.objects.get_mut(&path) {
                Some(known) if known.state == state => {}
                Some(known) => {
                    is_new = true;
                    if known.state.attributes != state.attributes {
                        known.attributes_changed = next;
                    }
                    if known.state.shape != state.shape || known.state.kind != state.kind {
                        known.changed = next;
                    }
                    known.state = state;
                }
                None => {
                    is_new = true;
                    self.removed.retain(|(_, removed)| *removed != path);
                    self.objects
                        .insert(path, KnownObject { state, created: next, changed: next, attributes_changed: next });
                }
            }
        }
        is_new
    }

    fn message_since(&self, since: Option<u64>) -> Json {
        let after = since.unwrap_or(0);
        let is_new = |known: &&KnownObject| known.changed.max(known.attributes_changed) > after;
        let object = |path: &String, known: &KnownObject| {
            json!({
                "path": path,
                "kind": known.state.kind,
                "shape": known.state.shape,
                "is_new": known.created > after,
                "attributes_changed": known.attributes_changed > after,
            })
        };
        let objects = self.objects.iter().filter(|(_, known)| is_new(known)).map(|(path, known)| object(path, known));
        let removed = self.removed.iter().filter(|(change, _)| *change > after).map(|(_, path)| path);
        json!({
            "is_whole": since.is_none(),
            "publication": self.publication,
            "writer": self.writer.json(),
            "writer_changed": self.writer_change > after,
            "objects": objects.collect::<Vec<_>>(),
            "removed": removed.collect::<Vec<_>>(),
            "is_cut": self.is_cut,
            "fault": self.fault,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(objects: &[(&str, u64)]) -> Look {
        let state = |shape: &u64| ObjectState { kind: "dataset", shape: Some(vec![*shape]), attributes: 0 };
        let objects = objects.iter().map(|(path, shape)| ((*path).to_owned(), state(shape))).collect();
        let snapshot = Snapshot { objects, ..Snapshot::default() };
        Look { snapshot: Ok(snapshot), writer: WriterState::Closed, is_written: false }
    }

    fn message(watched: &Watched, since: Option<&str>) -> Option<(String, Json)> {
        let (id, text) = watched.message_since(since)?;
        Some((id, serde_json::from_str(&text).unwrap()))
    }

    #[test]
    fn a_client_is_told_what_has_changed_since_its_last_event() {
        let watched = Watched::default();
        assert!(watched.message_since(None).is_none());
        watched.apply_look_and_notify(look(&[("/a", 1), ("/b", 1)]));
        let (first, whole) = message(&watched, None).unwrap();
        assert_eq!((whole["is_whole"].as_bool(), whole["objects"].as_array().unwrap().len()), (Some(true), 2));
        assert!(message(&watched, Some(&first)).is_none());
        watched.apply_look_and_notify(look(&[("/a", 1), ("/b", 1)]));
        assert!(message(&watched, Some(&first)).is_none(), "nothing was new");
        watched.apply_look_and_notify(look(&[("/a", 2), ("/b", 1)]));
        watched.apply_look_and_notify(look(&[("/a", 3), ("/c", 1)]));
        let (second, change) = message(&watched, Some(&first)).unwrap();
        assert_eq!(change["objects"][0]["path"], "/a");
        assert_eq!((&change["objects"][0]["shape"], &change["objects"][0]["is_new"]), (&json!([3]), &json!(false)));
        assert_eq!((&change["objects"][1]["path"], &change["objects"][1]["is_new"]), (&json!("/c"), &json!(true)));
        assert_eq!(change["removed"], json!(["/b"]));
        assert_eq!(change["is_whole"], false);
        assert!(message(&watched, Some(&second)).is_none());
        for unknown in ["", "x-1", "1", "-", "zzz-99999999999999999999"] {
            assert_eq!(message(&watched, Some(unknown)).unwrap().1["is_whole"], true, "{unknown}");
        }
    }

    #[test]
    fn more_removed_objects_than_are_remembered_make_a_whole_message() {
        let watched = Watched::default();
        watched.apply_look_and_notify(look(&[("/a", 1)]));
        let (first, _) = message(&watched, None).unwrap();
        let many: Vec<_> = (0..MAX_REMOVED + 1).map(|n| format!("/{n}")).collect();
        let many: Vec<_> = many.iter().map(|path| (&**path, 1)).collect();
        watched.apply_look_and_notify(look(&many));
        watched.apply_look_and_notify(look(&[]));
        assert_eq!(message(&watched, Some(&first)).unwrap().1["is_whole"], true);
    }

    #[test]
    fn faults_and_their_end_are_told() {
        let watched = Watched::default();
        watched.apply_look_and_notify(look(&[("/a", 1)]));
        let (first, _) = message(&watched, None).unwrap();
        let failed = || Look { snapshot: Err("gone".into()), writer: WriterState::Gone, is_written: false };
        watched.apply_look_and_notify(failed());
        watched.apply_look_and_notify(failed());
        let (second, told) = message(&watched, Some(&first)).unwrap();
        assert_eq!((&told["fault"], &told["writer"]["state"]), (&json!("gone"), &json!("gone")));
        watched.apply_look_and_notify(look(&[("/a", 1)]));
        let (_, told) = message(&watched, Some(&second)).unwrap();
        assert_eq!((&told["fault"], &told["writer_changed"]), (&Json::Null, &json!(true)));
    }
}

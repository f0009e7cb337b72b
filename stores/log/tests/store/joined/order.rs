//! Readers who look at one file after the other, while writers publish in between.

use std::path::Path;
use std::sync::Arc;

use h5live_log::joined_files::JoinedFiles;
use h5live_log::shared_files::{AppendLock, MainLease, SharedFiles};
use h5live_log::{Log, LogRequest, LogStore};
use h5live_model::{Mode, OpenError, Publish, Scope, Store};
use h5live_native::NativeConnector;
use parking_lot::Mutex;

use super::appends::{append, rows, values};
use super::files::{create, dataset, files_of, join, request};

/// Something that happens before the subfile with a number is opened.
type Step = (u32, Box<dyn FnOnce() + Send>);

/// The files of a reader, to whom something happens between two of them.
struct Interrupted {
    files: Arc<JoinedFiles>,
    step: Mutex<Option<Step>>,
}

impl std::fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.files.fmt(f)
    }
}

impl SharedFiles for Interrupted {
    fn lease(&self) -> Result<Box<dyn MainLease>, OpenError> {
        self.files.lease()
    }

    fn open_main(&self, mode: Mode) -> Result<Arc<dyn Store>, OpenError> {
        self.files.open_main(mode)
    }

    fn open_subfile(&self, number: u32, mode: Mode, stays_live: bool) -> Result<Arc<dyn Store>, OpenError> {
        let step = self.step.lock().take_if(|(at, _)| *at == number);
        if let Some((_, step)) = step {
            step();
        }
        self.files.open_subfile(number, mode, stays_live)
    }

    fn leave(&self) {
        self.files.leave();
    }

    fn next_order(&self, last: u64, knows_all: bool) -> Result<Option<u64>, OpenError> {
        self.files.next_order(last, knows_all)
    }

    fn lock_appends(&self) -> Result<Box<dyn AppendLock>, OpenError> {
        self.files.lock_appends()
    }
}

/// The files of a reader, to whom nothing happens yet.
fn interrupted(main: &Path) -> Arc<Interrupted> {
    Arc::new(Interrupted { files: files_of(main, NativeConnector), step: Mutex::new(None) })
}

fn follow(files: &Arc<Interrupted>) -> LogStore {
    let inner = files.open_main(Mode::SwmrRead).unwrap();
    LogStore::open(inner, Some(files.clone()), LogRequest { options: Log::default(), ..request() }).unwrap()
}

fn append_and_publish(writer: &LogStore, new: &[u16]) {
    let data = dataset(writer, "rows").unwrap();
    append(&*data, rows(&*data), new);
    data.publish(Publish::Visible).unwrap();
}

/// The rows of one writer are appended behind those of another one. Who sees the later ones sees the earlier ones.
#[test]
fn whoever_begins_to_follow_meets_no_hole() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let (first, second) = (join(&main, true), join(&main, false));
    create(&first, "rows", 0);
    first.writer().unwrap().commit(Scope::All, Publish::Visible).unwrap();
    // The follower has read the file of the first writer, and not that of the second one.
    let files = interrupted(&main);
    let publish = move || {
        append_and_publish(&first, &[1, 2, 3]);
        append_and_publish(&second, &[4, 5]);
        std::mem::forget((first, second));
    };
    *files.step.lock() = Some((2, Box::new(publish)));
    let follower = follow(&files);
    assert_eq!(values(&*dataset(&follower, "rows").unwrap()), [1, 2, 3, 4, 5]);
}

#[test]
fn whoever_follows_meets_no_hole_when_another_writer_joins() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let first = join(&main, true);
    create(&first, "rows", 0);
    first.writer().unwrap().commit(Scope::All, Publish::Visible).unwrap();
    let files = interrupted(&main);
    let follower = follow(&files);
    let followed = dataset(&follower, "rows").unwrap();
    let second = join(&main, false);
    let publish = move || {
        append_and_publish(&first, &[1, 2, 3]);
        append_and_publish(&second, &[4, 5]);
        std::mem::forget((first, second));
    };
    *files.step.lock() = Some((2, Box::new(publish)));
    follower.refresh(Scope::All).unwrap();
    assert_eq!(values(&*followed), [1, 2, 3, 4, 5]);
}

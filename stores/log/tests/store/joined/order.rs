//! Readers who look at one file after the other, while writers publish in between.

use std::path::Path;
use std::sync::Arc;

use h5live_log::multi_writer_files::MultiWriterFiles;
use h5live_log::{Log, LogOpenRequest, LogStore};
use h5live_model::{Mode, ObjectScope, PublishLevel, Store};
use h5live_native::NativeConnector;
use parking_lot::Mutex;

use super::appends::{append, rows, values};
use super::files::{SteppedFiles, create, dataset, files_of, join, request};

/// Something that happens once before the subfile with a number is opened.
type Step = (u32, Box<dyn FnOnce() + Send>);

/// A follower, and what is to happen to it.
fn follow(main: &Path, step: Option<Step>) -> (LogStore, Arc<Mutex<Option<Step>>>) {
    let coming = Arc::new(Mutex::new(step));
    let next = coming.clone();
    let step = move |number: u32, _, _| {
        let due = next.lock().take_if(|(at, _)| *at == number);
        due.into_iter().for_each(|(_, step)| step());
        None
    };
    let files = SteppedFiles { files: files_of(main, NativeConnector), step: Box::new(step) };
    let inner = files.open_main(Mode::SwmrRead).unwrap();
    let how = LogOpenRequest { options: Log::default(), ..request() };
    (LogStore::open_or_create(inner, Some(Arc::new(files)), how).unwrap(), coming)
}

fn append_and_publish(writer: &LogStore, new: &[u16]) {
    let data = dataset(writer, "rows").unwrap();
    append(&*data, rows(&*data), new);
    data.publish(PublishLevel::Visible).unwrap();
}

/// The rows of one writer are appended behind those of another one. Who sees the later ones sees the earlier ones.
#[test]
fn whoever_begins_to_follow_meets_no_hole() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let (first, second) = (join(&main, true), join(&main, false));
    create(&first, "rows", 0);
    first.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    // The follower has read the file of the first writer, and not that of the second one.
    let publish = move || {
        append_and_publish(&first, &[1, 2, 3]);
        append_and_publish(&second, &[4, 5]);
        std::mem::forget((first, second));
    };
    let (follower, _) = follow(&main, Some((2, Box::new(publish))));
    assert_eq!(values(&*dataset(&follower, "rows").unwrap()), [1, 2, 3, 4, 5]);
}

#[test]
fn whoever_follows_meets_no_hole_when_another_writer_joins() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let first = join(&main, true);
    create(&first, "rows", 0);
    first.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let (follower, coming) = follow(&main, None);
    let followed = dataset(&follower, "rows").unwrap();
    let second = join(&main, false);
    let publish = move || {
        append_and_publish(&first, &[1, 2, 3]);
        append_and_publish(&second, &[4, 5]);
        std::mem::forget((first, second));
    };
    *coming.lock() = Some((2, Box::new(publish)));
    follower.refresh(ObjectScope::All).unwrap();
    assert_eq!(values(&*followed), [1, 2, 3, 4, 5]);
}

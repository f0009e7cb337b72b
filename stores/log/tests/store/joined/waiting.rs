//! Who waits for whom.

use std::fs::File;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use h5live_log::local_multi_writer_files::subfile_folder;
use h5live_model::PublishLevel;

use super::files::{create, element, join, put};

/// How long something is waited for that does happen.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long something is waited for that should not happen.
const SHORT: Duration = Duration::from_millis(200);

#[test]
fn who_reads_does_not_wait_for_a_commit_that_waits_for_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let store = join(&main, true);
    let data = create(&store, "a", 8);
    put(&*data, 0, 1);
    data.publish(PublishLevel::Visible).unwrap();
    // Another process takes a number for a batch.
    let order = File::options().read(true).write(true).open(subfile_folder(&main).join("run.h5.order")).unwrap();
    order.lock().unwrap();
    put(&*data, 1, 2);
    thread::scope(|scope| {
        let (published, is_published) = mpsc::channel();
        let (seen, is_seen) = mpsc::channel();
        let data = &*data;
        scope.spawn(move || published.send(data.publish(PublishLevel::Visible)));
        assert!(is_published.recv_timeout(SHORT).is_err(), "the commit waits");
        scope.spawn(move || seen.send((element(data, 0).unwrap(), element(data, 1).unwrap())));
        assert_eq!(is_seen.recv_timeout(PATIENCE), Ok((1, 2)));
        assert!(is_published.try_recv().is_err());
        order.unlock().unwrap();
        is_published.recv_timeout(PATIENCE).unwrap().unwrap();
    });
}

//! Files that are dropped while they publish by themselves: they are closed when the drop returns, in every store.

use std::time::Duration;

use h5live::File;

/// Runs for each store.
const RUNS: u64 = 60;
/// So often that the thread that publishes is mostly at work.
const EVERY: Duration = Duration::from_micros(50);

#[test]
fn a_file_that_publishes_by_itself_is_closed_when_its_last_handle_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    for store in ["native", "log", "kv", "hsds"] {
        let path = folder.path().join(store);
        let location = format!("{store}:{}", path.display());
        for run in 0..RUNS {
            // A file, or a folder.
            let _ = std::fs::remove_file(&path);
            let _ = std::fs::remove_dir_all(&path);
            let file = File::options().create().publish_every(EVERY).open(location.as_str()).unwrap();
            let rows = file.new_dataset::<u64>().unlimited_rows(&[]).create("rows").unwrap();
            (0..run).for_each(|row| rows.append(&[row]).unwrap());
            drop(file);
            // The handle of the dataset is the last one.
            drop(rows);
            let opened = File::options().write().open(location.as_str());
            let opened = opened.unwrap_or_else(|error| panic!("{store}, run {run}: {error:#}"));
            assert_eq!(opened.dataset("rows").unwrap().shape().unwrap(), [run], "{store}");
            opened.close().unwrap();
        }
    }
}

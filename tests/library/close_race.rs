//! A thread that appends while another one closes the file.

use std::sync::atomic::{AtomicBool, Ordering};

use h5live::{ErrorKind, File, Location};
use h5live_model::Error as ModelError;

/// Runs of each store. The close comes after more appends from one to the next.
const RUNS: u64 = 60;

/// An append that returned `Ok` is in the file that was closed, and one that comes too late is an error.
fn append_while_closing(location: &Location, is_filtered: bool, run: u64) {
    let file = File::options().create().open(location.clone()).unwrap();
    let rows = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[64]);
    let rows = if is_filtered { rows.deflate(1) } else { rows }.create("rows").unwrap();
    let many = AtomicBool::new(false);
    let appended = std::thread::scope(|scope| {
        let appends = scope.spawn(|| {
            for row in 0.. {
                many.fetch_or(row >= run * 7, Ordering::Release);
                match rows.append(&[row]) {
                    Ok(()) => {}
                    Err(error) => {
                        let is_closed = matches!(error.kind(), ErrorKind::Store(ModelError::Closed));
                        assert!(is_closed, "{location}, run {run}: {error}");
                        return row;
                    }
                }
            }
            unreachable!("the file is closed at some time")
        });
        while !many.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        file.close().unwrap();
        appends.join().unwrap()
    });
    drop((rows, file));
    let found = File::open(location.clone()).unwrap().dataset("rows").unwrap().read::<u64>().unwrap();
    assert_eq!(found, (0..appended).collect::<Vec<_>>(), "{location}, run {run}");
}

#[test]
fn an_append_that_has_returned_is_in_the_file_that_another_thread_closes() {
    let folder = tempfile::tempdir().unwrap();
    for run in 0..RUNS {
        for scheme in ["kv", "log", "hsds", ""] {
            let path = folder.path().join(format!("{scheme}{run}"));
            let location = match scheme {
                "" => path.display().to_string(),
                "hsds" => format!("hsds:{}/bucket?domain=/rows", path.display()),
                _ => format!("{scheme}:{}", path.display()),
            };
            if scheme == "hsds" {
                std::fs::create_dir_all(&path).unwrap();
            }
            append_while_closing(&location.as_str().into(), run % 2 == 0 && scheme != "log", run);
        }
    }
}

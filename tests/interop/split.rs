//! libhdf5 publishes the first extent of a dataset before the address of its index, where its header lies in two
//! chunks.

use std::thread;

use h5live::{Dataset, File, Selection};

use crate::script::Script;

const DATASETS: usize = 240;

/// Rows of a dataset as of one look, and how many of them are zeros, which nobody wrote.
fn look(dataset: &Dataset) -> (u64, usize) {
    dataset.refresh().unwrap();
    let rows = dataset.shape().unwrap()[0];
    let bytes = dataset.read_raw(Selection::All).unwrap();
    (rows, bytes.chunks_exact(8).filter(|value| **value == [0; 8]).count())
}

#[test]
fn the_first_rows_that_libhdf5_appends_are_never_fill_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("split.h5");
    let Some(mut writer) = Script::start("split.py", &[path.to_str().unwrap(), &DATASETS.to_string()]) else { return };
    let names = writer.line();
    let names: Vec<&str> = names.split(' ').collect();
    assert!(names.len() > DATASETS / 2, "{names:?}");
    let file = File::options().swmr_read().open(&path).unwrap();
    let (mut looks, mut rows, mut zeros) = (0, 0, 0);
    for name in &names {
        let dataset = file.dataset(name).unwrap();
        assert_eq!(dataset.shape().unwrap()[0], 0);
        writer.say("");
        let mut seen = 0;
        while seen < 2 {
            let (found, fill) = look(&dataset);
            assert!(found >= seen, "the extent of {name} went back from {seen} to {found}");
            (looks, zeros, seen) = (looks + 1, zeros + fill, found);
            thread::yield_now();
        }
        rows += seen;
    }
    println!("{looks} looks at {rows} rows, {zeros} zeros");
    assert_eq!((rows, zeros), (2 * names.len() as u64, 0));
    writer.end();
}

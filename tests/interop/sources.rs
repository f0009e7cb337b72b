//! A virtual dataset in a file that is closed, whose source libhdf5 writes meanwhile.

use std::sync::mpsc::channel;
use std::thread;

use h5live::{Dataset, File, Result, SourceState};

use crate::script::Script;

const ROWS: u64 = 40;

/// The virtual dataset, in a file that is opened anew.
fn open(file: &File) -> Dataset {
    file.dataset("whole").unwrap()
}

#[test]
fn who_opens_or_follows_a_virtual_dataset_sees_what_libhdf5_writes_into_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut writer) = Script::start("sources.py", &[folder.path().to_str().unwrap()]) else { return };
    assert_eq!(writer.line(), "locked");
    let path = folder.path().join("whole.h5");
    // Until it can be followed, nobody can read it.
    let plain = File::open(&path).unwrap();
    assert_eq!(open(&plain).source_states().unwrap(), [SourceState::InExclusiveUse]);
    assert!(open(&plain).is_live().unwrap() && !plain.is_live().unwrap());
    let mut do_next = |what: &str| {
        writer.say(what);
        writer.line().parse::<u64>().unwrap()
    };
    do_next("live");
    assert_eq!([(); 3].map(|()| do_next("row")), [1, 2, 3]);

    // As it is now, whoever opens it.
    for options in [File::options(), File::options().swmr_read()] {
        let file = options.open(&path).unwrap();
        let whole = open(&file);
        assert_eq!(whole.source_states().unwrap(), [SourceState::Live]);
        assert_eq!((whole.shape().unwrap(), whole.read::<u64>().unwrap()), (vec![3], vec![1, 2, 3]));
        assert!(whole.is_live().unwrap() && !file.is_live().unwrap());
    }

    let file = File::options().swmr_read().open(&path).unwrap();
    let mut follow = open(&file).follow::<u64>().into_rows();
    assert_eq!(follow.by_ref().take(3).collect::<Result<Vec<_>>>().unwrap(), [[1], [2], [3]]);
    // Each row is asked for before it is written, as far as threads go.
    let (asks, asked) = channel();
    let followed = thread::spawn(move || {
        let mut rows = Vec::new();
        loop {
            asks.send(()).unwrap();
            match follow.next() {
                Some(row) => rows.extend(row.unwrap()),
                None => return rows,
            }
        }
    });
    for n in 4..=ROWS {
        asked.recv().expect("it follows as long as the source is written");
        assert_eq!(do_next("row"), n);
    }
    asked.recv().expect("it follows as long as the source is written");
    do_next("close");
    assert_eq!(followed.join().unwrap(), (4..=ROWS).collect::<Vec<_>>());
    assert_eq!(open(&file).source_states().unwrap(), [SourceState::AtRest]);
    assert!(!open(&file).is_live().unwrap());
    // The source could not be read when this one was opened.
    let whole = open(&plain);
    assert!(whole.refresh().is_ok());
    assert_eq!(whole.read::<u64>().unwrap(), (1..=ROWS).collect::<Vec<_>>());
    writer.end();
}

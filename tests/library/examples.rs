//! The examples of a writer, a reader and a follower, run together.

use std::time::Duration;

#[path = "../../examples/follower.rs"]
mod follower;
#[path = "../../examples/reader.rs"]
mod reader;
#[path = "../../examples/writer.rs"]
mod writer;

#[test]
fn the_examples_show_a_file_while_it_is_written() {
    const SAMPLES: u64 = 200;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let at = path.clone();
    let following = std::thread::spawn(move || {
        let mut numbers = Vec::new();
        follower::follow(&at, |sample| numbers.push(sample.number)).map(|()| numbers)
    });
    writer::write(&path, SAMPLES, Duration::from_millis(1)).unwrap();
    assert_eq!(following.join().unwrap().unwrap(), (0..SAMPLES).collect::<Vec<_>>());
    let (last, unit) = reader::read_last_samples(&path, 3).unwrap();
    assert_eq!(last.iter().map(|sample| sample.number).collect::<Vec<_>>(), [SAMPLES - 3, SAMPLES - 2, SAMPLES - 1]);
    assert_eq!((last[2].value, &*unit), (((SAMPLES - 1) as f64 / 10.0).sin(), "V"));
}

//! Elements where the file has them.
#![allow(unsafe_code, reason = "nobody else has the files of these tests")]

use bytemuck::Pod;
use h5live_model::DatasetView;

use crate::{File, H5Type, Result};

fn view<T: H5Type + Pod>(file: &File, name: &str) -> Result<DatasetView<T>> {
    file.dataset(name)?.view()
}

fn elements<T: Pod>(view: &DatasetView<T>) -> &[T] {
    // SAFETY: the file is the test's own, and is not changed any more.
    unsafe { view.as_slice() }
}

#[test]
fn a_view_shows_what_was_written_and_outlives_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    let values: Vec<f64> = (0..10_000).map(f64::from).collect();
    let file = File::options().user_block(&[7; 100]).mode(crate::Mode::Create).open(&path).unwrap();
    file.new_dataset::<f64>().shape(&[100, 100]).contiguous().create("data").unwrap().write(&values).unwrap();
    file.new_dataset::<f64>()
        .shape(&[100, 100])
        .chunk_shape(&[100, 100])
        .create("one")
        .unwrap()
        .write(&values)
        .unwrap();
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    let (contiguous, one) = (view::<f64>(&file, "data").unwrap(), view::<f64>(&file, "one").unwrap());
    drop(file);
    assert_eq!(elements(&contiguous), values);
    assert_eq!(elements(&one), values);
}

#[test]
fn what_cannot_be_seen_in_place_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    let file = File::create(&path).unwrap();
    let new = || file.new_dataset::<i32>().shape(&[2002]);
    let values: Vec<i32> = (0..2002).collect();
    new().chunk_shape(&[1001]).create("chunks").unwrap().write(&values).unwrap();
    new().chunk_shape(&[2002]).shuffle().create("filters").unwrap().write(&values).unwrap();
    new().contiguous().create("unwritten").unwrap();
    new().contiguous().create("data").unwrap().write(&values).unwrap();
    let reason = |file: &File, name: &str| view::<i32>(file, name).unwrap_err().to_string();
    assert!(reason(&file, "data").contains("just to be read"));
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    assert!(reason(&file, "chunks").contains("cut into chunks"));
    assert!(reason(&file, "filters").contains("filters"));
    assert!(reason(&file, "unwritten").contains("nobody wrote"));
    assert!(view::<i64>(&file, "data").unwrap_err().to_string().contains("another form"));
    assert_eq!(elements(&view::<i32>(&file, "data").unwrap()), values);
}

//! Writers that leave while others stay.

use h5live_model::{Mode, PublishLevel, Store};

use super::files::{create, dataset, element, join, put, read};

fn append(data: &dyn h5live_model::ChunkStore, at: u64, value: u16) {
    data.set_extent(&[at + 1]).unwrap();
    put(data, at, value);
    data.publish(PublishLevel::Visible).unwrap();
}

/// A writer that leaves writes its index table anew. Then it takes up what the others have published of datasets that it
/// has not looked at, and the old table had entries of these.
#[test]
fn a_writer_leaves_while_another_one_writes_a_dataset_of_its_old_table() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let first = join(&main, true);
    append(&*create(&first, "x", 0), 0, 1);
    append(&*create(&first, "y", 0), 0, 2);
    // The subfile has a table of both datasets now, and the next writer goes on in it.
    first.close().unwrap();
    let (leaving, staying) = (join(&main, false), join(&main, false));
    append(&*dataset(&leaving, "y").unwrap(), 1, 3);
    append(&*dataset(&staying, "x").unwrap(), 1, 4);
    leaving.close().unwrap();
    append(&*dataset(&staying, "x").unwrap(), 2, 5);
    staying.close().unwrap();
    let reader = read(&main, Mode::Read);
    let found = |name: &str| {
        let data = dataset(&reader, name).unwrap();
        let rows = data.spec().unwrap().dataspace.dims()[0];
        (0..rows).map(|at| element(&*data, at).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((found("x"), found("y")), (vec![1, 4, 5], vec![2, 3]));
}

/// An object that a writer has changed is deleted by another one before the first one looks at it again.
#[test]
fn a_writer_goes_on_after_another_one_has_deleted_what_it_changed() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let (one, other) = (join(&main, true), join(&main, false));
    let data = create(&one, "x", 0);
    append(&*data, 0, 1);
    let root = other.session().root;
    other.writer().unwrap().remove_link(root, &"x".into()).unwrap();
    create(&other, "new", 6);
    append(&*create(&one, "y", 0), 0, 2);
    one.close().unwrap();
    other.close().unwrap();
    let reader = read(&main, Mode::Read);
    assert_eq!(dataset(&reader, "new").unwrap().spec().unwrap().dataspace.dims(), [6]);
    assert_eq!(element(&*dataset(&reader, "y").unwrap(), 0).unwrap(), 2);
}

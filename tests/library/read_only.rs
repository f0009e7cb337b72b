//! A file that cannot be written: every change of it is refused at once, through every handle.

use h5live::model::{ChunkCoord, Error as StoreError, VirtualSource};
use h5live::{Copier, Error, ErrorKind, File, Object, Result, Selection, Value};

/// The name of a change, and the change.
type Change<'a> = (&'static str, Box<dyn Fn() -> Result<()> + 'a>);

fn filled(path: &std::path::Path) {
    let file = File::create(path).unwrap();
    let rows = file.new_dataset::<u16>().unlimited_rows(&[]).chunk_shape(&[4]).create("rows").unwrap();
    rows.append(&[1, 2, 3]).unwrap();
    rows.set_attribute("unit", &7u8).unwrap();
    file.new_dataset::<u16>()
        .unlimited_rows(&[])
        .chunk_shape(&[4])
        .deflate(1)
        .create("packed")
        .unwrap()
        .append(&[1, 2, 3])
        .unwrap();
    file.new_dataset::<u16>().create_with_data("plain", &[1, 2, 3]).unwrap();
    file.create_group("group/below").unwrap();
    file.root().commit_datatype("type", &h5live::Datatype::default()).unwrap();
    file.close().unwrap();
}

fn changes_of_elements<'a>(file: &'a File, path: &'static str) -> Vec<Change<'a>> {
    let open = move || file.dataset(path).unwrap();
    vec![
        ("append", Box::new(move || open().append(&[4u16]))),
        ("append of a wrong type", Box::new(move || open().append(&["text".to_owned()]))),
        ("append of nothing", Box::new(move || open().append::<u16>(&[]))),
        ("append_raw", Box::new(move || open().append_raw(&[4, 0]))),
        ("append_values", Box::new(move || open().append_values(&[Value::Integer(4)]))),
        ("transaction", Box::new(move || file.transaction(|all| all.append(&open(), &[4u16])))),
        ("write", Box::new(move || open().write(&[4u16, 5, 6]))),
        ("write of too much", Box::new(move || open().write(&[4u16; 9]))),
        ("append_raw in a transaction", Box::new(move || file.transaction(|all| all.append_raw(&open(), &[4, 0])))),
        ("write_scalar", Box::new(move || open().write_scalar(&4u16))),
        ("write_slice", Box::new(move || open().write_slice(1..2, &[4u16]))),
        ("write_raw", Box::new(move || open().write_raw(1..2, &[4, 0]))),
        ("write_values", Box::new(move || open().write_values(1..2, &[Value::Integer(4)]))),
        ("write_chunk", Box::new(move || open().write_chunk(&ChunkCoord::new(&[0]), 0, &[0; 8]))),
        ("resize to more", Box::new(move || open().resize(&[9]))),
        ("resize to less", Box::new(move || open().resize(&[1]))),
        ("make_scale", Box::new(move || open().make_scale(Some("scale")))),
        ("attach_scale", Box::new(move || open().attach_scale(7, &open()))),
    ]
}

fn changes_of_objects(file: &File) -> Vec<Change<'_>> {
    let root = move || file.root();
    let rows = move || file.dataset("rows").unwrap();
    let named = move || match file.object("type").unwrap() {
        Object::Datatype(datatype) => datatype,
        _ => unreachable!("a datatype was committed"),
    };
    vec![
        ("set_attribute of a dataset", Box::new(move || rows().set_attribute("unit", &8u8))),
        ("set_attribute of a group", Box::new(move || root().set_attribute("new", &8u8))),
        ("set_attribute of a type", Box::new(move || named().set_attribute("new", &8u8))),
        ("an attribute of a wrong shape", Box::new(move || root().new_attribute("new").shape(&[3]).write(&[1]))),
        ("set_attribute_array", Box::new(move || rows().set_attribute_array("unit", &[8u8], &[1]))),
        ("start_swmr", Box::new(move || file.start_swmr())),
        ("remove_attribute", Box::new(move || rows().remove_attribute("unit"))),
        ("remove_attribute of none", Box::new(move || rows().remove_attribute("none"))),
        ("set_comment", Box::new(move || rows().set_comment(Some("text")))),
        ("create_group", Box::new(move || root().create_group("new").map(drop))),
        ("create_group of one that is there", Box::new(move || root().create_group("group").map(drop))),
        ("create a dataset", Box::new(move || file.new_dataset::<u8>().shape(&[1]).create("new").map(drop))),
        ("create_unlinked", Box::new(move || file.new_dataset::<u8>().shape(&[1]).create_unlinked().map(drop))),
        ("create_with", Box::new(move || file.new_dataset::<u8>().create_with_data("new", &[1]).map(drop))),
        ("commit", Box::new(move || root().commit_datatype("new", &h5live::Datatype::default()).map(drop))),
        ("link_soft", Box::new(move || root().link_soft("new", "rows"))),
        ("link_external", Box::new(move || root().link_external("new", "other.h5", "rows"))),
        ("link_hard", Box::new(move || root().link_hard("new", rows().id()))),
        ("remove", Box::new(move || root().unlink("rows"))),
        ("remove of nothing", Box::new(move || root().unlink("none/none"))),
        ("rename", Box::new(move || root().rename("rows", "new"))),
        ("rename of nothing", Box::new(move || root().rename("none/none", "new"))),
        ("copy", Box::new(move || Copier::new(file, file).object(&file.object("rows").unwrap(), &root(), "new"))),
    ]
}

/// Makes the changes; each fails as `is_right` says, and nothing of any is seen.
fn all_are_refused(file: &File, is_right: fn(&Error) -> bool) {
    let elements = ["rows", "packed", "plain"].map(|path| changes_of_elements(file, path));
    for (name, change) in elements.into_iter().flatten().chain(changes_of_objects(file)) {
        let error = change().expect_err(name);
        assert!(is_right(&error), "{name}: {error}");
    }
    for path in ["rows", "packed", "plain"] {
        let dataset = file.dataset(path).unwrap();
        assert_eq!((dataset.shape().unwrap(), dataset.read::<u16>().unwrap()), (vec![3], vec![1, 2, 3]), "{path}");
        dataset.flush().unwrap();
    }
    file.flush().unwrap();
    assert_eq!(file.root().names().unwrap(), ["group", "packed", "plain", "rows", "type"]);
}

fn is_read_only(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Store(StoreError::ReadOnly))
}

#[test]
fn every_change_of_a_file_that_is_open_for_reading_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("closed.h5");
    filled(&path);
    let bytes = std::fs::read(&path).unwrap();
    for options in [File::options().read(), File::options().swmr_read()] {
        let file = options.open(&path).unwrap();
        all_are_refused(&file, is_read_only);
        file.close().unwrap();
    }
    assert!(std::fs::read(&path).unwrap() == bytes, "the file is as it was");
}

#[test]
fn every_change_by_who_follows_a_writer_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.h5");
    filled(&path);
    let writer = File::options().swmr_write().open(&path).unwrap();
    let follower = File::options().swmr_read().open(&path).unwrap();
    all_are_refused(&follower, is_read_only);
    writer.dataset("rows").unwrap().append(&[4u16]).unwrap();
    writer.flush().unwrap();
    let rows = follower.dataset("rows").unwrap();
    rows.refresh().unwrap();
    assert_eq!(rows.read::<u16>().unwrap(), [1, 2, 3, 4]);
}

#[test]
fn rows_for_a_file_that_was_closed_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("closed.h5");
    filled(&path);
    let file = File::options().write().open(&path).unwrap();
    let (rows, packed, root) = (file.dataset("rows").unwrap(), file.dataset("packed").unwrap(), file.root());
    rows.append(&[4u16]).unwrap();
    packed.append(&[4u16]).unwrap();
    file.close().unwrap();
    let is_closed = |done: Result<()>| {
        let error = done.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Store(StoreError::Closed)), "{error}");
    };
    for dataset in [&rows, &packed] {
        is_closed(dataset.append(&[5u16]));
        is_closed(dataset.write_slice(Selection::All, &[5u16; 4]));
        is_closed(dataset.resize(&[9]));
    }
    is_closed(root.create_group("new").map(drop));
    is_closed(root.unlink("rows"));
    is_closed(root.set_attribute("new", &1u8));
    let again = File::open(&path).unwrap();
    assert_eq!(again.dataset("packed").unwrap().read::<u16>().unwrap(), [1, 2, 3, 4]);
}

#[test]
fn elements_of_sources_are_not_written_through_a_file_that_is_open_for_reading() {
    let folder = tempfile::tempdir().unwrap();
    let (source, path) = (folder.path().join("source.h5"), folder.path().join("virtual.h5"));
    filled(&source);
    let piece = VirtualSource {
        file: "source.h5".into(),
        dataset: "plain".into(),
        source: Selection::All,
        target: Selection::block(&[0], &[3]),
    };
    let file = File::create(&path).unwrap();
    file.new_dataset::<u16>().shape(&[3]).virtual_sources(vec![piece]).create("joined").unwrap();
    file.close().unwrap();
    let bytes = std::fs::read(&source).unwrap();
    let file = File::open(&path).unwrap();
    let joined = file.dataset("joined").unwrap();
    assert_eq!(joined.read::<u16>().unwrap(), [1, 2, 3]);
    assert!(is_read_only(&joined.write(&[4u16, 5, 6]).unwrap_err()));
    assert!(is_read_only(&joined.write_slice(1..2, &[4u16]).unwrap_err()));
    file.close().unwrap();
    assert!(std::fs::read(&source).unwrap() == bytes);
}

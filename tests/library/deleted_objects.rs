//! Objects that were deleted: whoever still has their id finds nothing, and nothing is written where they were.

use h5live::{File, Selection, UNLIMITED};

#[test]
fn the_id_of_a_deleted_object_leads_to_nothing_in_any_store() {
    for (store, live) in
        ["native:", "log:", "kv:", "hsds:", "mem:"].iter().flat_map(|store| [(store, false), (store, true)])
    {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(format!("{store}{}/run", folder.path().display())).unwrap();
        if live && !file.session().capabilities.supports_live_reads {
            continue;
        }
        let data = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[4]).create("data").unwrap();
        data.append(&[1u64, 2, 3]).unwrap();
        if live {
            file.start_swmr().unwrap();
        }
        file.flush().unwrap();
        let id = data.id();
        drop(data);
        file.unlink("data").unwrap();
        file.flush().unwrap();
        assert!(file.store().kind(id).is_err(), "{store} {live}: the object is still there");
        let attribute = file.store().attribute(id, &"name".into());
        assert!(attribute.map_or(true, |found| found.is_none()), "{store} {live}");
        // One that takes its place is another one.
        let new = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[4]).create("new").unwrap();
        new.append(&[7u64]).unwrap();
        file.close().unwrap();
    }
}

#[test]
fn the_extent_of_a_deleted_dataset_of_a_log_is_not_written_where_something_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let location = format!("log:{}/run", folder.path().display());
    let file = File::create(&*location).unwrap();
    let new = file.new_dataset::<u64>().shape(&[0, 3]).max_shape(&[UNLIMITED, 3]).chunk_shape(&[6, 3]);
    new.create("h/k").unwrap();
    file.close().unwrap();
    let file = File::options().write().open(&*location).unwrap();
    let data = file.dataset("h/k").unwrap();
    data.append(&[7u64; 12]).unwrap();
    // In a heap of its own, so that what comes later is stored where the header was.
    data.set_attribute_array("large", &vec![3u8; 40_000], &[40_000]).unwrap();
    data.write_slice(Selection::block(&[3, 0], &[1, 3]), &[1u64, 2, 3]).unwrap();
    drop(data);
    file.unlink("h/k").unwrap();
    file.new_dataset::<String>().shape(&[0]).max_shape(&[UNLIMITED]).chunk_shape(&[4]).create("a").unwrap();
    file.new_dataset::<u64>().shape(&[7]).chunk_shape(&[6]).create("h/i/j").unwrap();
    file.close().unwrap();
    let file = File::open(&*location).unwrap();
    assert_eq!(file.dataset("h/i/j").unwrap().read::<u64>().unwrap(), [0; 7]);
}

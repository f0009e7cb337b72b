//! Copies keep the times of what they copy, and leave nothing behind when they fail.

use std::sync::Arc;

use h5live::model::{
    AttributeData, ChunkCoord, Dataspace, Datatype, FillValue, FilterSpec, IntegerType, NewObject, ObjectInfoChange,
    ObjectTimes, StoreWriter,
};
use h5live::{Copier, File, Options};
use h5live_native::{LibVer, MemoryStorage, Mode, NativeFile, OpenOptions, Storage};

fn new(storage: &MemoryStorage) -> (File, Arc<NativeFile>) {
    let options = OpenOptions { mode: Mode::Create, ..OpenOptions::default() };
    let store = Arc::new(NativeFile::open_storage(Arc::new(storage.clone()), &options).unwrap());
    (File::with_store(store.clone(), "file", Options::default()).unwrap(), store)
}

fn image(storage: &MemoryStorage) -> Vec<u8> {
    let mut bytes = vec![0; storage.len().unwrap() as usize];
    let len = storage.read_at(&mut bytes, 0).unwrap();
    bytes.truncate(len);
    bytes
}

#[test]
fn copies_keep_times() {
    let (file, store) = new(&MemoryStorage::new());
    let times = ObjectTimes { access: 1_000_000_001, modification: 1_000_000_002, change: 1_000_000_003, birth: 7 };
    let group = file.root().new_group().track_times().create("group").unwrap();
    let timed = group.new_dataset::<i32>().track_times().create_with_data("timed", &[1, 2, 3]).unwrap();
    let plain = group.new_dataset::<i32>().create_with_data("plain", &[4]).unwrap();
    for id in [group.id(), timed.id()] {
        store.set_info(id, &ObjectInfoChange::Times(times)).unwrap();
    }
    assert_eq!(plain.info().unwrap().times, None);
    file.copy_object("group", "again").unwrap();
    let (other, _) = new(&MemoryStorage::new());
    file.object("group").unwrap().copy_to(&other.root(), "again").unwrap();
    for file in [&file, &other] {
        assert_eq!(file.group("again").unwrap().info().unwrap().times, Some(times));
        assert_eq!(file.dataset("again/timed").unwrap().info().unwrap().times, Some(times));
        assert_eq!(file.dataset("again/plain").unwrap().info().unwrap().times, None);
    }
}

/// A file whose headers have no checksums.
fn with_mode(storage: &MemoryStorage, mode: Mode) -> File {
    let options = OpenOptions { mode, profile: LibVer::Earliest, ..OpenOptions::default() };
    let store = NativeFile::open_storage(Arc::new(storage.clone()), &options).unwrap();
    File::with_store(Arc::new(store), "file", Options::default()).unwrap()
}

#[test]
fn a_fill_value_that_does_not_fit_is_left_out_and_reported() {
    let storage = MemoryStorage::new();
    let file = with_mode(&storage, Mode::Create);
    file.new_dataset::<u32>().shape(&[2]).chunk_shape(&[2]).fill(0x0123_4567u32).create("odd").unwrap();
    file.close().unwrap();
    let stored = [4u32.to_le_bytes(), 0x0123_4567u32.to_le_bytes()].concat();
    let size = image(&storage).windows(8).position(|bytes| bytes == stored).unwrap();
    storage.write_at(&[3], size as u64).unwrap();
    let from = with_mode(&storage, Mode::Read);
    let copied = MemoryStorage::new();
    let (to, _) = new(&copied);
    let mut copy = Copier::new(&from, &to);
    copy.contents(&from.root(), &to.root()).unwrap();
    let report = copy.copy_data_and_finish().unwrap();
    assert!(!report.is_clean() && report.undecodable_chunks.is_empty());
    let [odd] = &report.dropped_fill_values[..] else { panic!("{report:?}") };
    assert_eq!((&*odd.path, odd.fill_value_size, odd.element_size), ("/odd", 3, 4));
    let dataset = to.dataset("odd").unwrap();
    assert_eq!(dataset.spec().unwrap().fill.value, FillValue::Default);
    assert_eq!(dataset.read::<u32>().unwrap(), [0, 0]);
    to.close().unwrap();
    h5live_checker::file::check_storage(&copied).expect_clean();
}

#[test]
fn numbers_that_use_few_bits_are_copied_into_headers_with_checksums() {
    let (from, _) = new(&MemoryStorage::new());
    let narrow = Datatype::Integer(IntegerType { size: 4, precision: 3, ..IntegerType::default() });
    from.root().new_dataset_with_type(narrow.clone()).shape(&[2]).create("dataset").unwrap();
    from.writer()
        .unwrap()
        .create(&NewObject::linked(from.root().id(), &"type".into(), &narrow.clone().into()))
        .unwrap();
    let group = from.root().new_group().create("group").unwrap();
    let attribute = AttributeData {
        name: "bits".into(),
        datatype: narrow,
        committed_datatype: None,
        dataspace: Dataspace::Scalar,
        value: vec![5, 0, 0, 0],
        creation_order: None,
    };
    from.writer().unwrap().set_attribute(group.id(), &attribute).unwrap();
    let storage = MemoryStorage::new();
    let to = with_mode(&storage, Mode::Create);
    let mut copier = Copier::new(&from, &to);
    copier.contents(&from.root(), &to.root()).unwrap();
    assert!(copier.copy_data_and_finish().unwrap().is_clean());
    to.close().unwrap();
    h5live_checker::file::check_storage(&storage).expect_clean();
}

#[test]
fn a_copy_that_fails_leaves_nothing_behind() {
    let (from, _) = new(&MemoryStorage::new());
    let group = from.create_group("group").unwrap();
    group.new_dataset::<i32>().create_with_data("first", &[5; 1000]).unwrap();
    (0..40).for_each(|number| group.set_attribute(&format!("attribute {number}"), &number).unwrap());
    let unknown = FilterSpec { id: 32_999, optional: true, name: None, params: [].into() };
    let last = group.new_dataset::<i32>().shape(&[4]).chunk_shape(&[4]).filter(unknown).create("second").unwrap();
    last.write_chunk(&ChunkCoord::new(&[0]), 0, &[1, 2, 3]).unwrap();
    let (with, without) = (MemoryStorage::new(), MemoryStorage::new());
    for (storage, copies) in [(&with, true), (&without, false)] {
        let (to, _) = new(storage);
        to.create_group("there").unwrap().set_attribute("before", &1).unwrap();
        for path in ["copy", "there/copy"].into_iter().filter(|_| copies) {
            let mut copier = Copier::new(&from, &to).chunk(&[2]);
            copier.object(&from.object("group").unwrap(), &to.root(), path).unwrap();
            let error = copier.copy_data_and_finish().unwrap_err().to_string();
            assert!(error.contains("32999"), "{error}");
            assert!(!to.root().contains("copy").unwrap() && to.group("there").unwrap().names().unwrap().is_empty());
        }
        to.flush().unwrap();
        to.root().new_dataset::<u8>().create_with_data("last", &[1; 600]).unwrap();
        to.close().unwrap();
        let report = h5live_checker::file::check_storage(storage);
        assert!(report.is_clean(), "{report:?}");
        assert_eq!((report.object_count, report.notes.len()), (3, 0), "{report:?}");
    }
    let [with, without] = [image(&with), image(&without)].map(|bytes| bytes.len());
    assert!(with < without + 5000, "{with} bytes after copies of more that failed, {without} without");
}

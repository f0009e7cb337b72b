use h5live_model::{Hyperslab, Layout, Selection, VirtualSource};
use smallvec::smallvec;

use crate::{Dataset, Error, ErrorKind, File, Options, Value};

fn piece(file: &str, dataset: &str, source: Selection, target: Selection) -> VirtualSource {
    VirtualSource { file: file.into(), dataset: dataset.into(), source, target }
}

/// A virtual dataset of 4 x 4 elements over the rows `part0` and `part2`.
fn two_rows(file: &File, of: &str) -> Dataset {
    let row = |i: u64| piece(of, &format!("/part{i}"), Selection::All, Selection::block(&[i, 0], &[1, 4]));
    file.new_dataset::<i32>().shape(&[4, 4]).fill(-1).virtual_sources(vec![row(0), row(2)]).create("whole").unwrap()
}

fn innermost(error: &Error) -> &ErrorKind {
    let mut kind = error.kind();
    while let ErrorKind::OtherFile(inner) = kind {
        kind = inner.kind();
    }
    kind
}

#[test]
fn elements_are_written_to_the_sources_that_have_them() {
    let file = File::in_memory();
    let part = |i: u32| file.new_dataset::<i16>().create_with_data(&format!("part{i}"), &[0; 4]).unwrap();
    let (first, second) = (part(0), part(2));
    let data = two_rows(&file, ".");
    data.write_slice((0, ..), &[1, 2, 3, 4]).unwrap();
    data.write_slice((2, 1..3), &[6, 7]).unwrap();
    assert_eq!(first.read::<i16>().unwrap(), [1, 2, 3, 4]);
    assert_eq!(second.read::<i16>().unwrap(), [0, 6, 7, 0]);
    // Every other element of both, in one selection; the elements between stay.
    let every_other =
        Hyperslab { start: smallvec![0, 1], stride: smallvec![2, 2], count: smallvec![2, 2], block: smallvec![1, 1] };
    data.write_slice(Selection::Hyperslab(every_other), &[-2, -4, -6, -8]).unwrap();
    assert_eq!(first.read::<i16>().unwrap(), [1, -2, 3, -4]);
    assert_eq!(second.read::<i16>().unwrap(), [0, -6, 7, -8]);
    let points = Selection::Points(vec![smallvec![2, 3], smallvec![0, 0]]);
    data.write_values(&points, &[Value::Integer(30), Value::Integer(10)]).unwrap();
    assert_eq!((first.read::<i16>().unwrap()[0], second.read::<i16>().unwrap()[3]), (10, 30));
    let raw: Vec<u8> = [100i32, 200].iter().flat_map(|value| value.to_ne_bytes()).collect();
    data.write_raw((2, ..2), &raw).unwrap();
    assert_eq!(second.read::<i16>().unwrap(), [100, 200, 7, 30]);
    let error = data.write_slice((0, 0..1), &[70_000]).unwrap_err();
    assert!(error.to_string().contains("70000"), "{error}");
    assert_eq!(first.read::<i16>().unwrap()[0], 10);
}

#[test]
fn nothing_is_written_if_an_element_has_no_source() {
    let file = File::in_memory();
    let first = file.new_dataset::<i16>().create_with_data("part0", &[5; 4]).unwrap();
    let data = two_rows(&file, ".");
    let error = data.write_slice(..2, &[0; 8]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::UnmappedVirtualElements { elements: 4 }), "{error}");
    let error = data.write_slice((2, ..), &[0; 4]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::MissingSource { dataset, .. } if dataset == "/part2"), "{error}");
    assert_eq!(first.read::<i16>().unwrap(), [5; 4]);
    assert!(data.append(&[0; 4]).is_err());
    assert!(data.resize(&[5, 4]).is_err());
    // A source that is shorter than its piece, twice: each element counts once.
    let short = || piece(".", "/part0", Selection::block(&[0], &[4]), Selection::block(&[0], &[4]));
    let twice = vec![short(), short()];
    let data = file.new_dataset::<i16>().shape(&[6]).virtual_sources(twice).create("twice").unwrap();
    let error = data.write(&[1i16; 6]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::UnmappedVirtualElements { elements: 2 }), "{error}");
    data.write_slice(..4, &[9i16; 4]).unwrap();
    assert_eq!(first.read::<i16>().unwrap(), [9; 4]);
}

#[test]
fn layers_of_virtual_datasets_are_written_and_a_loop_is_an_error() {
    let file = File::in_memory();
    let first = file.new_dataset::<i16>().create_with_data("part0", &[0; 4]).unwrap();
    two_rows(&file, ".");
    let top = vec![piece(".", "/whole", Selection::block(&[0, 0], &[1, 4]), Selection::block(&[0], &[4]))];
    let top = file.new_dataset::<i64>().shape(&[4]).virtual_sources(top).create("top").unwrap();
    assert!(matches!(top.spec().unwrap().layout, Layout::Virtual(_)));
    top.write_slice(1..3, &[8i64, 9]).unwrap();
    assert_eq!(first.read::<i16>().unwrap(), [0, 8, 9, 0]);
    let own = vec![piece(".", "/own", Selection::All, Selection::All)];
    let own = file.new_dataset::<i32>().shape(&[2]).virtual_sources(own).create("own").unwrap();
    assert!(matches!(innermost(&own.write(&[1, 2]).unwrap_err()), ErrorKind::TooManyVirtualLayers));
}

#[test]
fn a_flush_of_the_virtual_file_flushes_the_files_of_its_sources() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let sources = File::create(at("sources.h5")).unwrap();
    (0..3).for_each(|i| drop(sources.new_dataset::<i32>().create_with_data(&format!("part{i}"), &[0; 4]).unwrap()));
    sources.close().unwrap();
    let file = File::create(at("virtual.h5")).unwrap();
    two_rows(&file, "sources.h5");
    file.close().unwrap();

    let flushes: [fn(&Dataset); 3] = [
        |data| data.file().flush().unwrap(),
        |data| data.flush().unwrap(),
        |data| data.file().flush_durable().unwrap(),
    ];
    for (n, flush) in flushes.into_iter().enumerate() {
        let file = Options::default().write().open(at("virtual.h5")).unwrap();
        let data = file.dataset("whole").unwrap();
        data.write_slice((2, ..), &[n as i32 + 7; 4]).unwrap();
        flush(&data);
        // What lies in the file now is there, whatever happens to this process.
        let copy = at("copy.h5");
        std::fs::copy(at("sources.h5"), &copy).unwrap();
        let copy = File::open_or_recover(&copy).unwrap();
        assert_eq!(copy.dataset("part2").unwrap().read::<i32>().unwrap(), [n as i32 + 7; 4]);
        drop(data);
        file.close().unwrap();
    }
    let file = File::open(at("virtual.h5")).unwrap();
    assert!(file.dataset("whole").unwrap().write_slice((2, ..), &[0; 4]).is_err());
    drop(file);
    // Somebody else has the file of the sources.
    let file = Options::default().write().open(at("virtual.h5")).unwrap();
    let reader = File::open(at("sources.h5")).unwrap();
    assert!(file.dataset("whole").unwrap().write_slice((2, ..), &[0; 4]).is_err());
    drop(file);
    assert_eq!(reader.dataset("part2").unwrap().read::<i32>().unwrap(), [9; 4]);
}

/// A folder with `sources.h5`, which has four elements of 5 in `part0` and in `part2`, and `virtual.h5` over it.
fn folder_with_sources() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let sources = File::create(folder.path().join("sources.h5")).unwrap();
    for name in ["part0", "part2"] {
        sources.new_dataset::<i32>().create_with_data(name, &[5; 4]).unwrap();
    }
    sources.close().unwrap();
    let file = File::create(folder.path().join("virtual.h5")).unwrap();
    two_rows(&file, "sources.h5");
    file.close().unwrap();
    folder
}

#[test]
fn sources_are_opened_for_writing_only_when_elements_are_written() {
    let folder = folder_with_sources();
    let at = |name: &str| folder.path().join(name);
    let file = Options::default().write().open(at("virtual.h5")).unwrap();
    let data = file.dataset("whole").unwrap();
    assert_eq!(data.read_slice::<i32>((0, ..)).unwrap(), [5; 4]);
    let other = File::open(at("sources.h5")).expect("a source that is only read is open to other readers");
    drop(other);
    data.write_slice((0, ..), &[6; 4]).unwrap();
    assert!(File::open(at("sources.h5")).unwrap_err().is_in_use(), "a source that is written has one writer");
    assert_eq!(data.read_slice::<i32>((0, ..)).unwrap(), [6; 4]);
    drop(data);
    file.close().unwrap();
    assert_eq!(File::open(at("sources.h5")).unwrap().dataset("part0").unwrap().read::<i32>().unwrap(), [6; 4]);
}

#[test]
fn threads_read_a_virtual_dataset_while_others_write_it() {
    let folder = folder_with_sources();
    for _ in 0..20 {
        let file = Options::default().write().open(folder.path().join("virtual.h5")).unwrap();
        let (data, start) = (file.dataset("whole").unwrap(), std::sync::Barrier::new(4));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (data, start) = (&data, &start);
                scope.spawn(move || {
                    start.wait();
                    for _ in 0..20 {
                        if thread == 3 {
                            data.write_slice((0, ..), &[5; 4]).unwrap();
                        } else {
                            assert_eq!(data.read_slice::<i32>((0, ..)).unwrap(), [5; 4]);
                        }
                    }
                });
            }
        });
        drop(data);
        file.close().unwrap();
    }
}

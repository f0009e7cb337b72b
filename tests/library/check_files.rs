//! The check of native files through the library.

use std::path::Path;

use h5live::{File, StoreCheck, StoreReport};

const DATA: StoreCheck = StoreCheck { data: true, leaks: false };

fn check(path: &Path) -> StoreReport {
    h5live::check(path, DATA).unwrap()
}

#[test]
fn a_native_file_is_checked_also_beside_its_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let file = File::create(&path).unwrap();
    let rows = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[100]).fletcher32().create("a/rows").unwrap();
    rows.append(&[1u64; 250]).unwrap();
    file.start_swmr().unwrap();
    rows.append(&[2u64; 7]).unwrap();
    rows.flush().unwrap();
    let report = check(&path);
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!(report.unchecksummed_bytes, None, "nobody counts them");
    // Its writer dies: the flags say so.
    let left = folder.path().join("left.h5");
    std::fs::copy(&path, &left).unwrap();
    assert!(!check(&left).is_clean());
    assert_eq!((report.objects, report.undecoded_chunks), (3, 0));
    let chunk = rows.chunks().unwrap()[0].clone();
    file.close().unwrap();
    assert!(check(&path).is_clean());

    let mut bytes = std::fs::read(&path).unwrap();
    bytes[chunk.offset.unwrap() as usize + 8] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let [finding] = &check(&path).findings[..] else { panic!("one finding") };
    assert_eq!(finding.path.as_deref(), Some("/a/rows"));
    assert!(finding.to_string().contains("chunk"), "{finding}");
    let headers_only = h5live::check(&*path, StoreCheck::default()).unwrap();
    assert!(headers_only.is_clean(), "chunks are not read");
}

#[test]
fn what_is_no_file_of_hdf5_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "my notes").unwrap();
    for path in [path, folder.path().join("absent.h5")] {
        let error = h5live::check(&*path, DATA).unwrap_err();
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }
}

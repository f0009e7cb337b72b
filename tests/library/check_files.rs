//! The check of native files through the library.

use std::path::Path;

use h5live::{File, LibVer, StoreCheckOptions, StoreCheckReport};

const DATA: StoreCheckOptions = StoreCheckOptions { verify_data: true, find_lost_domains: false };

fn check(path: &Path) -> StoreCheckReport {
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
    assert!(report.has_no_findings(), "{:?}", report.findings);
    // The chunk that is not full is stored without its filter as long as it grows.
    assert_eq!(report.unchecksummed_bytes, Some(800));
    // Its writer dies: the flags say so.
    let left = folder.path().join("left.h5");
    std::fs::copy(&path, &left).unwrap();
    assert!(!check(&left).has_no_findings());
    assert_eq!((report.object_count, report.unverified_part_count), (3, 0));
    let chunk = rows.stored_chunks().unwrap()[0].clone();
    file.close().unwrap();
    assert!(check(&path).has_no_findings());

    let mut bytes = std::fs::read(&path).unwrap();
    bytes[chunk.file_offset.unwrap() as usize + 8] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let [finding] = &check(&path).findings[..] else { panic!("one finding") };
    assert_eq!(finding.path.as_deref(), Some("/a/rows"));
    assert!(finding.to_string().contains("chunk"), "{finding}");
    let headers_only = h5live::check(&*path, StoreCheckOptions::default()).unwrap();
    assert!(headers_only.has_no_findings(), "chunks are not read");
}

/// Each byte in turn is changed. No more such changes are missed than there are bytes without checksums, and bytes that
/// nothing uses.
#[test]
fn changed_bytes_are_found_where_checksums_cover_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    for libver in [LibVer::Earliest, LibVer::V110] {
        let file = File::options().create().libver(libver).open(&path).unwrap();
        let new = || file.new_dataset::<u64>().shape(&[10]).chunk_shape(&[4]);
        let values: Vec<u64> = (0..10).collect();
        new().create_with_data("plain", &values).unwrap().set_attribute("n", &1u8).unwrap();
        new().fletcher32().create_with_data("summed", &values).unwrap();
        new().deflate(6).create_with_data("deflated", &values).unwrap();
        file.close().unwrap();
        let report = check(&path);
        assert!(report.has_no_findings(), "{:?}", report.findings);
        let bytes = std::fs::read(&path).unwrap();
        let unused = bytes.len() as u64 - report.metadata_bytes - report.raw_bytes;
        let mut missed = 0;
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            std::fs::write(&path, changed).unwrap();
            missed += u64::from(h5live::check(&*path, DATA).is_ok_and(|report| report.has_no_findings()));
        }
        let open = report.unchecksummed_bytes.unwrap();
        println!("{libver:?}: {missed} of {} changes are missed, {open} bytes without checksums", bytes.len());
        // The last byte of deflated data, in three chunks, has bits that mean nothing.
        assert!(missed <= open + unused + 3 && missed > 0, "{libver:?}: {missed} of {open} and {unused} unused bytes");
        assert_eq!(libver == LibVer::V110, open == 3 * 32, "{libver:?}: only the plain chunks: {open}");
    }
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

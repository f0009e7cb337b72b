//! Chunks of 4 GiB and more, and datasets that may come to have very many chunks: files stay small, and other programs
//! read them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use h5live::{File, LibVer, UNLIMITED};
use h5live_checker::file::check_path;

/// Elements of a chunk of 5 GiB of bytes.
const LARGE: u64 = 5 << 30;

/// Bytes that the file system has a place for.
fn stored(path: &Path) -> u64 {
    fs::metadata(path).unwrap().blocks() * 512
}

/// Runs a Python program on a file, if there is a Python with h5py.
#[track_caller]
fn run_h5py(program: &str, path: &Path) {
    let Some(python) = h5live_test_support::python() else { return };
    let program = format!("import sys, h5py\npath = sys.argv[1]\n{program}");
    let output = Command::new(python).arg("-c").arg(program).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[track_caller]
fn assert_sound(path: &Path) {
    let report = check_path(path).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn refuses_to_write_chunks_that_the_version_of_their_layout_does_not_allow() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("oversized.h5");
    let file = File::options().create().libver(LibVer::Earliest).open(&path).unwrap();
    file.new_dataset::<u64>().shape(&[4]).max_shape(&[UNLIMITED]).chunk_shape(&[3]).create("x").unwrap();
    file.close().unwrap();
    // Headers of this profile have no checksums: the chunk comes to have 34 GB.
    let mut bytes = fs::read(&path).unwrap();
    let sides = bytes.windows(8).position(|at| at == [3, 0, 0, 0, 8, 0, 0, 0]).unwrap();
    bytes[sides..sides + 4].fill(0xff);
    fs::write(&path, &bytes).unwrap();

    let findings = check_path(&path).unwrap().findings;
    assert!(findings.iter().any(|finding| finding.to_string().contains("34359738360 is above")), "{findings:?}");
    let file = File::options().write().open(&path).unwrap();
    let data = file.dataset("x").unwrap();
    data.write_slice(1..2, &[7u64]).unwrap();
    let error = file.flush().unwrap_err();
    assert_eq!(error.object(), Some("/x"));
    let text = error.to_string();
    assert!(text.contains("34359738360 bytes") && text.contains("version 3"), "{text}");
    drop((data, file));
    assert!(fs::metadata(&path).unwrap().len() < 1 << 20);
}

#[test]
fn refuses_to_make_chunks_of_4_gib_before_version_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = File::create(folder.path().join("refused.h5")).unwrap();
    let error = file.new_dataset::<u8>().shape(&[LARGE]).chunk_shape(&[LARGE]).create("x").unwrap_err();
    assert_eq!(error.object(), Some("/x"));
    assert!(error.to_string().contains("5368709120 bytes needs LibVer::V200"), "{error}");
}

/// A redo record was where the second chunk comes to lie. Only so much of it has to be cleared.
#[test]
fn an_element_of_each_chunk_of_5_gib_takes_little_space() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.h5");
    let file = File::options().create().libver(LibVer::V200).open(&path).unwrap();
    let max = [UNLIMITED, LARGE];
    let data =
        file.new_dataset::<u8>().shape(&[4, LARGE]).max_shape(&max).chunk_shape(&[1, LARGE]).create("x").unwrap();
    for row in 0..4 {
        data.write_slice((row..row + 1, LARGE / 2..LARGE / 2 + 1), &[row as u8 + 1]).unwrap();
        file.flush().unwrap();
        for other in 0..20 {
            data.set_attribute(&format!("attribute {other}"), &vec![row; 100]).unwrap();
        }
        file.flush().unwrap();
        assert!(stored(&path) < 32 << 20, "after row {row}, {} bytes are stored", stored(&path));
    }
    file.close().unwrap();
    assert!(stored(&path) < 32 << 20, "{} bytes are stored", stored(&path));
    let file = File::open(&path).unwrap();
    let data = file.dataset("x").unwrap();
    for row in 0..4 {
        let found = data.read_slice::<u8>((row..row + 1, LARGE / 2 - 1..LARGE / 2 + 2)).unwrap();
        assert_eq!(found, [0, row as u8 + 1, 0]);
    }
    assert_sound(&path);
}

#[test]
fn a_dataset_that_may_have_very_many_chunks_has_an_index_of_those_that_it_has() {
    let folder = tempfile::tempdir().unwrap();
    for (filtered, max) in [(false, vec![562_949_953_421_316, 5]), (true, vec![1 << 26, 5])] {
        let path = folder.path().join("many.h5");
        let file = File::create(&path).unwrap();
        let mut builder = file.new_dataset::<i32>().shape(&[4, 5]).max_shape(&max).chunk_shape(&[2, 5]);
        if filtered {
            builder = builder.deflate(1);
        }
        let data = builder.create("x").unwrap();
        data.write(&(0..20).collect::<Vec<_>>()).unwrap();
        file.close().unwrap();
        assert!(fs::metadata(&path).unwrap().len() < 1 << 20, "{} bytes", fs::metadata(&path).unwrap().len());
        assert_sound(&path);
        run_h5py(
            "with h5py.File(path, 'a') as f:\n    \
             d = f['x']\n    assert (d[...].ravel() == range(20)).all()\n    \
             d.resize(1 << 25, 0)\n    d[2] = 77\n    d[(1 << 25) - 1] = 78\n    assert (d[5] == 0).all()\n",
            &path,
        );
        assert_sound(&path);
        let file = File::options().write().open(&path).unwrap();
        let data = file.dataset("x").unwrap();
        if data.shape().unwrap()[0] > 4 {
            assert_eq!(data.read_slice::<i32>((2..4, ..)).unwrap(), [77, 77, 77, 77, 77, 15, 16, 17, 18, 19]);
            assert_eq!(data.read_slice::<i32>(((1 << 25) - 2.., ..)).unwrap(), [0, 0, 0, 0, 0, 78, 78, 78, 78, 78]);
        }
        data.resize(&[3, 5]).unwrap();
        file.close().unwrap();
        assert_sound(&path);
        run_h5py("with h5py.File(path) as f:\n    assert (f['x'][1] == range(5, 10)).all()\n", &path);
    }
}

#[test]
fn a_dimension_that_libhdf5_does_not_open_is_a_finding() {
    let folder = tempfile::tempdir().unwrap();
    for (rows, is_opened) in [((1 << 63) - 1, true), (1 << 63, false)] {
        let path = folder.path().join("long.h5");
        let file = File::options().create().libver(LibVer::Earliest).open(&path).unwrap();
        let data = file.new_dataset::<i32>().shape(&[0, 3]).max_shape(&[UNLIMITED, 3]).chunk_shape(&[512, 3]);
        data.create("x").unwrap().resize(&[rows, 3]).unwrap();
        file.close().unwrap();
        assert_eq!(check_path(&path).unwrap().findings.is_empty(), is_opened, "{rows}");
        let opens = if is_opened { "True" } else { "False" };
        run_h5py(
            &format!(
                "with h5py.File(path) as f:\n    try:\n        found = f['x'] is not None\n    \
                 except KeyError:\n        found = False\n    assert found == {opens}\n"
            ),
            &path,
        );
    }
}

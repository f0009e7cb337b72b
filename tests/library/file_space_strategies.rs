//! Files of every strategy by which space is handed out are what libhdf5 takes them for.
//!
//! Needs the Python that `H5LIVE_PYTHON` names, with h5py; without it that part says that it is skipped.

use std::path::Path;
use std::process::Command;

use h5live::model::{FileSpaceSettings, FileSpaceStrategy};
use h5live::{File, LibVer};
use h5live_checker::file::check_path;

fn spaces() -> Vec<FileSpaceSettings> {
    let of = |strategy, persist, threshold, page_size| FileSpaceSettings { strategy, persist, threshold, page_size };
    vec![
        FileSpaceSettings::default(),
        of(FileSpaceStrategy::FreeSpace, true, 1, 4096),
        of(FileSpaceStrategy::FreeSpace, true, 100, 4096),
        of(FileSpaceStrategy::Paged, false, 1, 4096),
        of(FileSpaceStrategy::Paged, true, 1, 512),
        of(FileSpaceStrategy::Paged, true, 1, 8192),
        of(FileSpaceStrategy::Aggregators, false, 1, 4096),
        of(FileSpaceStrategy::None, false, 1, 4096),
    ]
}

fn add(file: &File, numbers: std::ops::Range<i32>) {
    for number in numbers {
        let elements: Vec<i32> = (0..number * 40).collect();
        file.new_dataset::<i32>().create_with_data(&format!("data {number}"), &elements).unwrap();
        file.create_group(&format!("groups/{number}")).unwrap();
    }
}

fn is_sound(path: &Path) {
    check_path(path).unwrap().expect_clean();
}

#[test]
fn libhdf5_agrees_on_how_a_file_hands_out_its_space() {
    let python = h5live_test_support::python();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/space.py");
    let folder = tempfile::tempdir().unwrap();
    for (number, space) in spaces().into_iter().enumerate() {
        for profile in [LibVer::Earliest, LibVer::V18, LibVer::V110, LibVer::V200] {
            println!("{profile} {space:?}");
            let path = folder.path().join(format!("{number}.h5"));
            let file = File::options().create().libver(profile).file_space(space).open(&path).unwrap();
            add(&file, 0..40);
            file.close().unwrap();
            is_sound(&path);
            let file = File::options().write().libver(profile).open(&path).unwrap();
            assert_eq!(file.file_space(), space);
            (20..30).for_each(|number| file.root().unlink(&format!("data {number}")).unwrap());
            add(&file, 40..45);
            file.close().unwrap();
            is_sound(&path);
            if let Some(python) = &python {
                let output = Command::new(python).arg(&script).arg(&path).output().unwrap();
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                let FileSpaceSettings { strategy, persist, threshold, page_size } = space;
                let expected = format!("{} {persist} {threshold} {page_size}\n", strategy.name());
                assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
                is_sound(&path);
                let file = File::options().write().libver(profile).open(&path).unwrap();
                assert_eq!(file.file_space(), space);
                assert_eq!(file.dataset("theirs").unwrap().read::<i64>().unwrap().len(), 700);
                add(&file, 45..50);
                file.close().unwrap();
                is_sound(&path);
            }
            assert_eq!(
                File::open(&path).unwrap().group("groups").unwrap().names().unwrap().len(),
                if python.is_some() { 50 } else { 45 }
            );
        }
    }
}

#[test]
fn refuses_pages_out_of_bounds() {
    for page_size in [0, 511, (1 << 30) + 1] {
        let folder = tempfile::tempdir().unwrap();
        let space = FileSpaceSettings { strategy: FileSpaceStrategy::Paged, page_size, ..FileSpaceSettings::default() };
        let path = folder.path().join("new.h5");
        assert!(File::options().create().file_space(space).open(&path).is_err());
        assert!(!path.exists() || std::fs::metadata(&path).unwrap().len() == 0);
    }
}

#[test]
fn a_file_with_short_addresses_grows_as_far_as_they_reach_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let refused = File::options().create().offset_size(3).open(folder.path().join("3.h5")).unwrap_err();
    assert!(refused.to_string().contains("3.h5") && refused.to_string().contains("2, 4 or 8"), "{refused}");
    for profile in [LibVer::Earliest, LibVer::V18, LibVer::V110, LibVer::V200] {
        for (size, reach) in [(2, 1 << 16), (4, 1 << 32)] {
            let path = folder.path().join(format!("{profile} {size}.h5"));
            let file = File::options().create().libver(profile).offset_size(size).open(&path).unwrap();
            add(&file, 0..12);
            let large = vec![7_u8; 50_000];
            let written = (0..3)
                .try_for_each(|n| file.new_dataset::<u8>().create_with_data(&format!("large {n}"), &large).map(drop));
            assert_eq!(written.is_ok(), size > 2, "{written:?}");
            if let Err(error) = written {
                assert!(error.to_string().contains("large"), "{error}");
            }
            file.close().unwrap();
            is_sound(&path);
            assert!(std::fs::metadata(&path).unwrap().len() < reach);
            let file = File::open(&path).unwrap();
            assert_eq!(file.offset_size(), size);
            assert_eq!(file.dataset("data 11").unwrap().read::<i32>().unwrap().len(), 440);
        }
    }
}

//! Real files, where there are some: `H5LIVE_SHARED`, else `shared` beside the repository or in it, with a folder
//! `corpus`.
#![allow(missing_docs)]

use std::path::Path;
use std::time::Instant;

use h5live_cache::{FileStorage, MemoryStorage};
use h5live_checker::file::{CheckOptions, FileCheckReport, check_storage, check_storage_with};
use h5live_test_support::corpus_files;

fn beside(path: &Path, extension: &str) -> bool {
    path.with_file_name(format!("{}.{extension}", path.file_name().unwrap().display())).exists()
}

fn checked(path: &Path) -> FileCheckReport {
    check_storage(&FileStorage::new(std::fs::File::open(path).unwrap()))
}

/// Files that libhdf5 opens, and what is wrong with them all the same.
const UNSOUND: [(&str, &str); 4] = [
    ("dense_attrs_colliding_v0_28_0.h5", "names of one hash are not sorted: libhdf5 does not find half of them"),
    ("h5stat_filters.h5", "libhdf5 takes the 3 bits of 32 that /nbit uses for damage, and does not open it"),
    ("tfilters.h5", "as h5stat_filters.h5"),
    ("tbogus.h5", "made to be refused: a message of an unknown type must be known"),
];

#[test]
fn nothing_is_wrong_with_what_libhdf5_reads() {
    let Some(corpus) = h5live_test_support::corpus() else { return };
    let mut count = 0;
    for folder in ["libhdf5", "generated", "h5py", "realworld", "jhdf", "pyfive", "purehdf", "hdf5-pure"] {
        for path in corpus_files(&corpus.join(folder)).iter().filter(|path| beside(path, "manifest")) {
            let report = checked(path);
            let sound = !UNSOUND.iter().any(|(name, _)| path.ends_with(name));
            assert_eq!(report.is_clean(), sound, "{}: {:#?}", path.display(), report.findings);
            count += 1;
        }
    }
    println!("{count} files");
    assert!(count > 300);
}

/// Damaged files of which libhdf5 reads all: what made a program of the past fail is no fault of the file, or lies in
/// compressed data.
const HARMLESS: [&str; 3] = ["cve-2018-14034.h5", "cve-2024-32607-1.h5", "cve-2024-32611.h5"];

#[test]
fn something_is_wrong_with_damaged_files() {
    let Some(corpus) = h5live_test_support::corpus() else { return };
    for path in corpus_files(&corpus.join("malformed")) {
        let begin = Instant::now();
        let report = checked(&path);
        let harmless = HARMLESS.iter().any(|name| path.ends_with(name));
        assert_eq!(report.is_clean(), harmless, "{}: {:#?}", path.display(), report.findings);
        assert!(begin.elapsed().as_secs() < 10, "{}", path.display());
    }
}

#[test]
fn something_is_wrong_with_files_that_libhdf5_does_not_open() {
    let Some(corpus) = h5live_test_support::corpus() else { return };
    let mut count = 0;
    for path in corpus_files(&corpus.join("libhdf5")).iter().filter(|path| beside(path, "error")) {
        count += 1;
        // Members of families and the like are no HDF5 files of their own.
        assert!(!checked(path).is_clean(), "{}", path.display());
    }
    assert!(count > 30);
}

#[test]
fn damaged_files_that_were_found_by_fuzzing_are_told() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/finds");
    for path in corpus_files(&folder) {
        assert!(!checked(&path).is_clean(), "{}", path.display());
    }
}

/// The next number of a sequence that looks like chance.
fn chance(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) as usize
}

#[test]
fn no_damage_to_a_real_file_makes_it_panic() {
    let Some(corpus) = h5live_test_support::corpus() else { return };
    let mut state = 7;
    for folder in ["generated", "libhdf5", "hdf5-pure"] {
        for path in corpus_files(&corpus.join(folder)) {
            let sound = std::fs::read(&path).unwrap();
            if sound.len() < 100 || sound.len() > 50_000 {
                continue;
            }
            for _ in 0..12 {
                let mut bytes = sound.clone();
                for _ in 0..=chance(&mut state) % 4 {
                    let at = chance(&mut state) % bytes.len();
                    bytes[at] = [0, 1, 0xff, 0x80, chance(&mut state) as u8][chance(&mut state) % 5];
                }
                let options = CheckOptions {
                    reports_leaks: true,
                    builds_space_map: true,
                    may_be_live: true,
                    ..CheckOptions::default()
                };
                check_storage_with(&MemoryStorage::from(bytes), options);
            }
        }
    }
}

use std::path::PathBuf;

use super::*;

/// Larger files are left out.
const LARGEST: u64 = 24 << 10;
/// Damaged copies of one file.
const COPIES: usize = 120;

/// Small files that h5py made, of every feature and version bound; none, with a line that says so, where they are not.
fn files() -> Vec<PathBuf> {
    let Some(folder) = h5live_test_support::made_corpus() else { return Vec::new() };
    let small = |path: &PathBuf| path.metadata().is_ok_and(|found| found.len() <= LARGEST);
    let h5 = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "h5");
    h5live_test_support::files_below(&folder).into_iter().filter(|path| h5(path) && small(path)).collect()
}

/// A permutation of numbers that looks random (the finaliser of SplitMix64).
fn mix(number: u64) -> u64 {
    let n = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

/// Files on which a fuzzer made something panic, hang or take too much memory.
#[test]
fn what_a_fuzzer_found_stays_mended() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/finds");
    for found in std::fs::read_dir(folder).unwrap() {
        read_image_objects(std::fs::read(found.unwrap().path()).unwrap());
    }
}

#[test]
fn no_truncated_file_panics() {
    for path in files() {
        let bytes = std::fs::read(&path).unwrap();
        let whole = read_image_objects(bytes.clone());
        assert!(whole > 0, "{}", path.display());
        for at in 0..COPIES {
            read_image_objects(bytes[..bytes.len() * at / COPIES].to_vec());
        }
    }
}

#[test]
fn no_file_with_other_bits_panics() {
    let seed = std::env::var("H5LIVE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1u64);
    println!("H5LIVE_SEED={seed}");
    for (number, path) in (0u64..).zip(files()) {
        let bytes = std::fs::read(&path).unwrap();
        for copy in 0..COPIES as u64 {
            let mut damaged = bytes.clone();
            for change in 0..1 + copy % 3 {
                let random = mix(seed ^ mix(number ^ mix(copy ^ mix(change))));
                // Most of what steers a reader is at the beginning.
                let end = if random & 1 == 0 { damaged.len().min(2048) } else { damaged.len() };
                let at = (random >> 32) as usize % end;
                damaged[at] = match random >> 1 & 3 {
                    0 => 0xff,
                    1 => damaged[at].wrapping_add(1),
                    _ => damaged[at] ^ 1 << (random >> 8 & 7),
                };
            }
            read_image_objects(damaged);
        }
    }
}

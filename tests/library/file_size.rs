//! Files are no larger than those that libhdf5 makes of the same things, and space that was given back is used again.
//!
//! The comparison needs the Python that `H5LIVE_PYTHON` names, with h5py; without it it says that it is skipped.
//! `H5LIVE_SIZES=full` compares a million chunks and a million links.

use std::path::Path;
use std::process::Command;

use h5live::{File, LibVer, Mode};

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

fn made(path: &Path, profile: &str, make: impl FnOnce(&File) -> h5live::Result<()>) -> u64 {
    let file = File::options().mode(Mode::Create).libver(profile.parse::<LibVer>().unwrap()).open(path).unwrap();
    make(&file).unwrap();
    file.close().unwrap();
    size(path)
}

#[test]
fn files_are_not_larger_than_those_of_libhdf5() {
    let Some(python) = h5live_test_support::python() else { return };
    let full = std::env::var("H5LIVE_SIZES").is_ok_and(|size| size == "full");
    let (datasets, chunks, links) = if full { (1000u64, 1_000_000, 1_000_000) } else { (1000, 20_000, 20_000) };
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/sizes.py");
    let mut larger = Vec::new();
    for profile in ["earliest", "v110", "latest"] {
        let counts = [datasets, chunks, links].map(|n| n.to_string());
        let output = Command::new(&python).arg(&script).arg(folder.path()).arg(profile).args(counts).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let theirs = String::from_utf8(output.stdout).unwrap();
        let path = folder.path().join("ours.h5");
        for line in theirs.lines() {
            let (name, theirs) = line.split_once(' ').unwrap();
            let theirs: u64 = theirs.parse().unwrap();
            let ours = made(&path, profile, |file| match name {
                "datasets" => (0..datasets).try_for_each(|i| {
                    file.new_dataset::<i32>().create_with_data(&format!("dataset {i}"), &[0, 1, 2, 3]).map(drop)
                }),
                "chunks" => {
                    let data = file.new_dataset::<i32>().unlimited_rows(&[]).chunk_shape(&[16]).create("data")?;
                    let block: Vec<i32> = (0..1 << 16).collect();
                    let (mut left, block) = (chunks as usize * 16, &block);
                    while left > 0 {
                        let len = left.min(block.len());
                        data.append(&block[..len])?;
                        left -= len;
                    }
                    Ok(())
                }
                _ => {
                    let group = file.create_group("group")?;
                    (0..links).try_for_each(|i| group.link_soft(&format!("link {i}"), "/somewhere"))
                }
            });
            println!(
                "{profile:9} {name:9} h5live {ours:>10}  libhdf5 {theirs:>10}  ratio {:.3}",
                ours as f64 / theirs as f64
            );
            if ours > theirs {
                larger.push(format!("{profile} {name}"));
            }
        }
    }
    assert!(larger.is_empty(), "larger than libhdf5's: {larger:?}");
}

#[test]
fn datasets_that_are_deleted_and_made_again_do_not_make_the_file_grow() {
    let count = 10_000;
    let folder = tempfile::tempdir().unwrap();
    let mut grown = Vec::new();
    for profile in ["earliest", "v110", "latest"] {
        let path = folder.path().join(format!("{profile}.h5"));
        let make = |file: &File| {
            (0..count).try_for_each(|i| {
                file.new_dataset::<i32>().create_with_data(&format!("dataset {i}"), &[i, i + 1, i + 2, i + 3]).map(drop)
            })
        };
        let first = made(&path, profile, make);
        let options = File::options().mode(Mode::Write).libver(profile.parse::<LibVer>().unwrap());
        let mut sizes = Vec::new();
        for _ in 0..10 {
            let file = options.open(&path).unwrap();
            (0..count).try_for_each(|i| file.root().unlink(&format!("dataset {i}"))).unwrap();
            make(&file).unwrap();
            file.close().unwrap();
            sizes.push(size(&path));
        }
        let last = *sizes.last().unwrap();
        println!("{profile}: {first} bytes, after ten times {last} (x {:.3})", last as f64 / first as f64);
        if last * 100 >= first * 105 {
            grown.push(profile);
        }
        assert_eq!(File::open(&path).unwrap().root().names().unwrap().len(), count as usize);
    }
    assert!(grown.is_empty(), "grown by five percent or more: {grown:?}");
}

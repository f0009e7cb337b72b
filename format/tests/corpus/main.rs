//! Real files, where there are some: `H5LIVE_SHARED`, else `shared` beside the repository or in it, with a folder
//! `corpus`.
#![allow(missing_docs)]

mod dense;
mod indirect;
mod walk;

use std::path::Path;

use h5live_format::dump;
use h5live_format::fuzz::{self, Seed, run_target_on_systematic_damage};
use h5live_test_support::corpus_files;
use walk::{Findings, Walk};

/// Walks over all files of some folders of the corpus.
fn walk(corpus: &Path, folders: &[&str]) -> Findings {
    let mut all = Findings::default();
    for path in folders.iter().flat_map(|folder| corpus_files(&corpus.join(folder))) {
        let bytes = std::fs::read(&path).unwrap();
        let name = path.strip_prefix(corpus).unwrap().display().to_string();
        all.add(Walk::over(&name, &bytes));
    }
    all
}

/// What is written otherwise on purpose: files of old libraries, and why.
const OTHERWISE: [(&str, &str); 9] = [
    ("libhdf5/test/tarrold.h5", "members with dimensions are written with array types"),
    ("libhdf5/tools/tstr.h5", "members with dimensions are written with array types"),
    ("libhdf5/tools/tenum.h5", "shared messages of version 2 state their type"),
    ("libhdf5/tools/tnullspace.h5", "the dataspace of an attribute has no padding of its own"),
    ("libhdf5/vds/2_vds.h5", "the length of a selection counts its coordinates"),
    ("libhdf5/vds/3_2_vds.h5", "the length of a selection counts its coordinates"),
    ("libhdf5/vds/4_vds.h5", "the length of a selection counts its coordinates"),
    ("libhdf5/vds/5_vds.h5", "the length of a selection counts its coordinates"),
    ("libhdf5/vds/vds-eiger.h5", "the length of a selection counts its coordinates"),
];

#[test]
fn what_libhdf5_wrote_is_written_back_byte_for_byte() {
    let Some(corpus) = h5live_test_support::corpus() else { return };
    let found = walk(&corpus, &["libhdf5", "generated", "h5py", "realworld"]);
    println!("{:#?}", found.same);
    assert!(found.refused.is_empty(), "{}", found.refused.join("\n"));
    let known = |note: &&String| !OTHERWISE.iter().any(|(file, _)| note.starts_with(file));
    let different: Vec<_> = found.different.iter().filter(known).cloned().collect();
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert_eq!(found.different.len(), OTHERWISE.len());
}

#[test]
fn what_other_programs_wrote_is_understood() {
    let Some(corpus) = h5live_test_support::corpus() else { return };
    let found = walk(&corpus, &["jhdf", "pyfive", "purehdf", "hdf5-pure"]);
    println!("{:#?}\nwritten otherwise:\n{}", found.same, found.different.join("\n"));
    assert!(found.refused.is_empty(), "{}", found.refused.join("\n"));
}

#[test]
fn damaged_files_are_walked_without_a_panic() {
    let Some(corpus) = h5live_test_support::corpus() else { return };
    let found = walk(&corpus, &["malformed"]);
    println!("refused:\n{}", found.refused.join("\n"));
    assert!(!found.refused.is_empty());
}

#[test]
fn bytes_of_real_files_survive_damage() {
    let Some(corpus) = h5live_test_support::corpus() else { return };
    let found = walk(&corpus, &["libhdf5", "generated", "h5py", "realworld"]);
    let mut kept = std::collections::BTreeMap::<_, usize>::new();
    for (kind, widths, bytes) in found.bytes {
        let size = bytes.len() / 40;
        let signature = if kind == 0xff { bytes[..4].to_vec() } else { Vec::new() };
        let known = kept.entry((kind, widths, size, signature)).or_default();
        *known += 1;
        if *known > 1 {
            continue;
        }
        let (target, head) = if kind == 0xff { ("dump", vec![widths, 1, 0]) } else { ("message", vec![widths, kind]) };
        let sound = kind != 0xff || {
            let context =
                dump::DumpContext { widths: fuzz::widths_from_byte(widths), chunk_rank: Some(1), ..Default::default() };
            dump::dump_any(&bytes, &context).is_some_and(|dump| dump.result.is_ok())
        };
        if sound {
            let seed =
                Seed { target, data: [&head[..], &bytes].concat(), structure_start: head.len(), checksummed_len: 0 };
            run_target_on_systematic_damage(&seed, |_, run| run());
        }
    }
}

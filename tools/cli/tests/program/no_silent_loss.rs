//! What cannot be read, verified or kept is said, and is no exit code 0.

use std::fs;
use std::path::Path;
use std::process::Output;

use h5live::filters::{DecodeOutcome, EncodeOutcome, Filter, FilterFault, Registry};
use h5live::model::FilterSpec;
use h5live::{File, Selection};

use crate::common::{h5py, new_file, python, run, shared, text};

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A location of each store in a folder, under a name.
fn stores(folder: &Path, name: &str) -> Vec<String> {
    let at = |kind: &str| folder.join(format!("{name}-{kind}")).to_str().unwrap().to_owned();
    let mut stores = vec![at("native.h5"), format!("log:{}", at("log.h5"))];
    stores.extend(cfg!(feature = "kv").then(|| format!("kv:{}", at("kv"))));
    stores.extend(cfg!(feature = "hsds").then(|| format!("hsds:{}", at("hsds"))));
    stores
}

#[test]
fn files_with_other_values_have_other_manifests_and_what_was_not_read_is_equal_to_nothing() {
    let Some(shared) = shared() else { return };
    let [m1, m2] = ["m1.h5", "m2.h5"].map(|name| shared.join("samples/reported").join(name).display().to_string());
    // With room for the chunks, they are read.
    let [first, second] = [&m1, &m2].map(|path| run(&["manifest", "--max-allocation=1GiB", path]));
    assert_eq!((first.status.code(), second.status.code()), (Some(0), Some(0)), "{}", errors(&first));
    assert_ne!(first.stdout, second.stdout);
    let [first, second, again] = [&m1, &m2, &m1].map(|path| run(&["manifest", "--max-allocation=1MiB", path]));
    for output in [&first, &second, &again] {
        assert_eq!(output.status.code(), Some(1));
        assert!(said(output).contains("\tunreadable:"), "{}", said(output));
        assert!(errors(output).contains("max_allocation"), "{}", errors(output));
    }
    assert!(first.stdout != second.stdout && first.stdout != again.stdout);
}

#[test]
fn a_dataset_that_is_larger_than_a_manifest_reads_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.h5").display().to_string();
    let file = File::create(&*path).unwrap();
    file.new_dataset::<u8>().create_with_data("data", &[1; 2000]).unwrap();
    file.close().unwrap();
    text(&run(&["manifest", "--max-dataset=2kB", &path]));
    let skipped = run(&["manifest", "--max-dataset=1999", &path]);
    assert_eq!(skipped.status.code(), Some(1));
    assert!(said(&skipped).contains("\tskipped:"), "{}", said(&skipped));
    assert!(errors(&skipped).contains("/data: not read: 2000 bytes are more than 1999"), "{}", errors(&skipped));
    assert!(errors(&run(&["manifest", "--max-dataset=2 ells", &path])).contains("64KiB"));
}

#[test]
fn a_check_of_data_counts_what_it_did_not_verify() {
    let Some(shared) = shared() else { return };
    let path = shared.join("samples/reported/pc.h5").display().to_string();
    // With room for the chunks, the damage of one is found. There are 19 of 260 MiB.
    if std::env::var_os("H5LIVE_LARGE_FILES").is_some() {
        let found = run(&["check", "--data", "--max-allocation=1GiB", &path]);
        assert_eq!(found.status.code(), Some(1));
        assert!(said(&found).contains("its filters cannot be undone"), "{}", said(&found));
    }
    let unseen = run(&["check", "--data", "--max-allocation=256MiB", &path]);
    assert_eq!(unseen.status.code(), Some(1), "{}", said(&unseen));
    let last = said(&unseen).lines().last().unwrap().to_owned();
    assert!(last.contains("nothing wrong found; not verified: "), "{last}");
    assert!(said(&unseen).contains("not verified: ") && said(&unseen).contains("--max-allocation allows more"));
    let json = run(&["check", "--data", "--json", "--max-allocation=256MiB", &path]);
    let line: serde_json::Value = serde_json::from_str(said(&json).lines().last().unwrap()).unwrap();
    assert!(line["unverified"].as_u64().unwrap() > 0, "{line}");
    // Who does not ask for the data gets no answer about it.
    assert!(text(&run(&["check", &path])).contains(": sound; "));
}

/// Turns every bit over. The program does not know it.
struct Inverted;

impl Filter for Inverted {
    fn id(&self) -> u16 {
        300
    }

    fn name(&self) -> &str {
        "inverted"
    }

    fn decode(&self, _: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutcome, FilterFault> {
        let place = output.get_mut(..input.len()).ok_or(FilterFault::TooLarge { limit: 0 })?;
        place.iter_mut().zip(input).for_each(|(to, from)| *to = !from);
        Ok(DecodeOutcome::Decoded(input.len()))
    }

    fn encode(&self, _: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault> {
        output.extend(input.iter().map(|byte| !byte));
        Ok(EncodeOutcome::Encoded)
    }
}

#[test]
fn chunks_of_unknown_filters_are_not_verified_in_any_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("inverted.h5").display().to_string();
    let mut filters = Registry::default();
    filters.register(Inverted);
    let file = File::options().create().filters(filters).open(&*path).unwrap();
    let filter = FilterSpec { id: 300, ..FilterSpec::default() };
    let data = file.new_dataset::<u8>().shape(&[30]).chunk_shape(&[10]).filter(filter).create("data").unwrap();
    data.write(&[7; 30]).unwrap();
    file.close().unwrap();
    let mut checked = vec![path.clone()];
    if cfg!(feature = "kv") {
        let kv = format!("kv:{}", folder.path().join("kv").display());
        // The chunks are copied as they are stored.
        assert_eq!(run(&["copy", "-q", &path, &kv]).status.code(), Some(1));
        checked.push(kv);
    }
    for path in checked {
        let output = run(&["check", "--data", &path]);
        assert_eq!(output.status.code(), Some(1), "{path}: {}", said(&output));
        let last = said(&output).lines().last().unwrap().to_owned();
        assert!(last.contains("nothing wrong found; not verified: 3 chunks, "), "{last}");
        assert_eq!(run(&["check", &path]).status.code(), Some(0));
        let manifest = run(&["manifest", &path]);
        assert_eq!(manifest.status.code(), Some(1), "{path}");
        assert!(errors(&manifest).contains("300"), "{}", errors(&manifest));
    }
}

#[test]
fn datasets_without_elements_and_with_large_chunks_are_copied_to_every_store() {
    let Some(shared) = shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    for name in ["empty_gzip.h5", "min.h5ad"] {
        let from = shared.join("samples/reported").join(name).display().to_string();
        for store in stores(folder.path(), name) {
            let copied = run(&["copy", &from, &store]);
            assert_eq!(copied.status.code(), Some(0), "{store}: {}", errors(&copied));
            let back = folder.path().join("back.h5").display().to_string();
            let returned = run(&["copy", "--force", &store, &back]);
            assert_eq!(returned.status.code(), Some(0), "{store}: {}", errors(&returned));
            assert_eq!(run(&["diff", &from, &back]).status.code(), Some(0), "{store}");
        }
    }
}

#[test]
fn who_gives_elements_to_a_dataset_that_had_none_keeps_its_chunks() {
    let folder = tempfile::tempdir().unwrap();
    for store in stores(folder.path(), "grown") {
        let file = File::options().create().open(&*store).unwrap();
        let builder = file.new_dataset::<u16>().shape(&[0, 3]).max_shape(&[5, 3]).chunk_shape(&[100, 2]).deflate(1);
        let data = builder.create("data").unwrap();
        data.resize(&[4, 3]).unwrap();
        data.write_slice(1..2, &[1u16, 2, 3]).unwrap();
        file.close().unwrap();
        let file = File::open(&*store).unwrap();
        assert_eq!(file.dataset("data").unwrap().read_slice::<u16>(0..2).unwrap(), [0, 0, 0, 1, 2, 3], "{store}");
        drop(file);
        text(&run(&["check", "--data", &store]));
    }
}

#[test]
fn names_of_other_files_lead_to_them_from_a_copy_in_any_store() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let other = File::create(at("other.h5")).unwrap();
    other.new_dataset::<i32>().create_with_data("rows", &[1, 2, 3]).unwrap();
    other.close().unwrap();
    let whole = File::create(at("whole.h5")).unwrap();
    whole.root().link_external("link", "other.h5", "/rows").unwrap();
    let source = h5live::model::VirtualSource {
        file: "other.h5".into(),
        dataset: "/rows".into(),
        source: Selection::All,
        target: Selection::All,
    };
    whole.new_dataset::<i32>().shape(&[3]).fill(-1).virtual_sources(vec![source]).create("virtual").unwrap();
    whole.close().unwrap();
    fs::create_dir(at("sub")).unwrap();
    let from = at("whole.h5").display().to_string();
    for store in stores(&at("sub"), "copy") {
        if store.starts_with("hsds:") {
            continue;
        }
        let copied = run(&["copy", &from, &store]);
        assert_eq!(copied.status.code(), Some(0), "{store}: {}", errors(&copied));
        for path in ["link", "virtual"] {
            assert_eq!(text(&run(&["dump", &store, path])), "0: 1\n1: 2\n2: 3\n", "{store} {path}");
        }
        // And from there to somewhere else.
        let back = at("back.h5").display().to_string();
        text(&run(&["copy", "-q", "--force", &store, &back]));
        assert_eq!(text(&run(&["dump", &back, "virtual"])), "0: 1\n1: 2\n2: 3\n", "{store}");
    }
    if cfg!(feature = "hsds") {
        // A domain leads to domains of its bucket only.
        let store = format!("hsds:{}?domain=/sub/whole", at("bucket").display());
        text(&run(&["rm", &from, "virtual"]));
        let copied = run(&["copy", &from, &store]);
        assert_eq!(copied.status.code(), Some(1), "{}", errors(&copied));
        assert!(errors(&copied).contains(r#"left as it is: the name "other.h5""#), "{}", errors(&copied));
        assert_eq!(run(&["copy", "--keep-names", "--force", &from, &store]).status.code(), Some(0));
        // With the other file beside it, the name leads there.
        let other = format!("hsds:{}?domain=/sub/other.h5", at("bucket").display());
        text(&run(&["copy", "-q", at("other.h5").to_str().unwrap(), &other]));
        let copied = run(&["copy", "-q", "--force", &from, &store]);
        assert_eq!(copied.status.code(), Some(0), "{}", errors(&copied));
        assert_eq!(text(&run(&["dump", &store, "link"])), "0: 1\n1: 2\n2: 3\n");
    }
}

#[test]
fn values_that_a_filter_rounds_again_are_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let rounding = FilterSpec { id: 6, params: vec![0, 2], ..FilterSpec::default() };
    let (first, log, back) = (at("first.h5"), format!("log:{}", at("log.h5")), at("back.h5"));
    let file = File::create(&*first).unwrap();
    let values: Vec<f64> = (0..100).map(|i| f64::from(i) / 7.0).collect();
    let builder = file.new_dataset::<f64>().shape(&[100]).chunk_shape(&[32]).filter(rounding);
    builder.create("rounded").unwrap().write(&values).unwrap();
    file.new_dataset::<f64>()
        .shape(&[100])
        .chunk_shape(&[32])
        .deflate(1)
        .create("exact")
        .unwrap()
        .write(&values)
        .unwrap();
    file.close().unwrap();
    // Chunks that stay as they are change no values.
    text(&run(&["copy", &first, &at("same.h5")]));
    let rechunked = run(&["copy", "--chunks=50", &first, &at("rechunked.h5")]);
    assert_eq!(rechunked.status.code(), Some(1));
    assert!(errors(&rechunked).contains("rounded again: /rounded: "), "{}", errors(&rechunked));
    assert!(!errors(&rechunked).contains("exact"));
    text(&run(&["copy", &first, &log]));
    let returned = run(&["copy", &log, &back]);
    assert_eq!(returned.status.code(), Some(1));
    assert!(errors(&returned).contains("rounded again: /rounded: "), "{}", errors(&returned));
    // Who asks for the filter knows it.
    text(&run(&["copy", "--filter=deflate:1", &log, &at("deflated.h5")]));
}

#[test]
fn a_filter_that_cannot_encode_here_rounds_nothing_again() {
    let Some(python) = python() else { return };
    let (folder, path, name) = new_file();
    let make = "
import hdf5plugin
with h5py.File(path, 'w') as file:
    file.create_dataset('packed', data=np.arange(64) / 7, chunks=(32,), **hdf5plugin.Zfp(reversible=True))
";
    h5py(&python, make, &path);
    let at = |name: &str| folder.path().join(name).display().to_string();
    let log = format!("log:{}", at("log.h5"));
    text(&run(&["copy", &name, &log]));
    let back = at("back.h5");
    text(&run(&["copy", &log, &back]));
    for copy in [&log, &back] {
        assert_eq!(text(&run(&["dump", copy, "/packed"])), text(&run(&["dump", &name, "/packed"])), "{copy}");
    }
}

#[test]
fn no_store_rounds_values_again_without_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let rounding = FilterSpec { id: 6, params: vec![0, 2], ..FilterSpec::default() };
    let first = at("first.h5");
    let file = File::create(&*first).unwrap();
    let values: Vec<f64> = (0..100).map(|i| f64::from(i) / 7.0).collect();
    let builder = file.new_dataset::<f64>().shape(&[100]).chunk_shape(&[32]).filter(rounding);
    builder.create("rounded").unwrap().write(&values).unwrap();
    file.close().unwrap();
    let dumped = |at: &str| text(&run(&["dump", at, "/rounded"]));
    for (number, store) in stores(folder.path(), "rounded").iter().enumerate() {
        let mut from = first.clone();
        for to in [store.clone(), at(&format!("back-{number}.h5"))] {
            let copied = run(&["copy", &from, &to]);
            let is_told = copied.status.code() == Some(1) && errors(&copied).contains("rounded again: /rounded: ");
            let is_same = copied.status.success() && dumped(&from) == dumped(&to);
            assert!(is_told || is_same, "{from} to {to}: {:?} {}", copied.status, errors(&copied));
            from = to;
        }
    }
}

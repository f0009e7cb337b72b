//! What users of the library call first: short ways that `File` has, data with new datasets, and threads that do so at once.

use std::time::Duration;

use h5live::{ByteOrder, Datatype, File, H5Type, UNLIMITED, Value};
use h5live_model::Sign;

/// A location of each store that is made in a folder.
pub fn stores(folder: &std::path::Path) -> Vec<String> {
    let at = |store: &str| format!("{store}:{}/{store}", folder.display());
    ["native", "log", "kv", "hsds"].map(at).into_iter().chain(["mem:".to_owned()]).collect()
}

#[test]
fn a_file_has_what_its_root_group_has() {
    let file = File::in_memory();
    let number = Datatype::integer(2, ByteOrder::Little, Sign::Signed);
    let data = file.new_dataset_with_type(number.clone()).shape(&[2]).create("numbers").unwrap();
    assert_eq!(data.datatype().unwrap(), number);
    file.set_attribute("title", "a title").unwrap();
    assert_eq!(file.attribute("title").unwrap().read_scalar::<String>().unwrap(), "a title");
    file.rename("numbers", "group/numbers").unwrap();
    assert!(file.dataset("numbers").is_err() && file.dataset("group/numbers").is_ok());
    file.unlink("group").unwrap();
    assert!(file.group("group").is_err());
}

#[test]
fn compounds_are_made_of_names_and_types() {
    #[derive(Debug, Clone, PartialEq, H5Type)]
    struct Sample {
        time: u64,
        value: f32,
    }
    let sample = Datatype::compound([("time", u64::datatype()), ("value", f32::datatype())]);
    assert_eq!(sample.size(), 12);
    let folder = tempfile::tempdir().unwrap();
    for store in stores(folder.path()) {
        let file = File::create(&store).unwrap();
        let data = file.new_dataset_with_type(sample.clone()).unlimited_rows(&[]).create("samples").unwrap();
        data.append(&[Sample { time: 7, value: 0.5 }]).unwrap();
        assert_eq!(data.read::<Sample>().unwrap(), [Sample { time: 7, value: 0.5 }], "{store}");
        let values = data.read_values(..).unwrap();
        assert!(matches!(&values[0], Value::Compound(members) if members.len() == 2), "{values:?}");
    }
}

#[test]
fn a_dataset_of_unlimited_rows_is_made_with_its_data() {
    let folder = tempfile::tempdir().unwrap();
    for store in stores(folder.path()) {
        let file = File::create(&store).unwrap();
        let make = |name: &str, row: &[u64], values: &[i32]| {
            file.new_dataset::<i32>().unlimited_rows(row).create_with_data(name, values)
        };
        let rows = make("rows", &[], &[1, 2, 3]).unwrap();
        rows.append(&[4]).unwrap();
        assert_eq!(rows.read::<i32>().unwrap(), [1, 2, 3, 4], "{store}");
        let pairs = make("pairs", &[2], &[1, 2, 3, 4]).unwrap();
        assert_eq!(pairs.shape().unwrap(), [2, 2], "{store}");
        assert_eq!(make("none", &[2], &[]).unwrap().shape().unwrap(), [0, 2], "{store}");
        assert!(make("odd", &[2], &[1, 2, 3]).is_err() && file.dataset("odd").is_err(), "{store}");
        let fixed = file.new_dataset::<i32>().shape(&[0]).max_shape(&[5]).create_with_data("fixed", &[1]);
        assert!(fixed.is_err(), "{store}: only unlimited rows are made to fit");
        assert_eq!(rows.max_shape().unwrap(), [UNLIMITED]);
    }
}

#[test]
fn followers_wait_as_long_as_there_is_time() {
    let file = File::in_memory();
    let data = file.new_dataset::<u8>().unlimited_rows(&[]).create_with_data("data", &[1, 2]).unwrap();
    let map = file.new_map::<String, u64>().create("map").unwrap();
    map.put("a", &1).unwrap();
    file.flush().unwrap();
    let mut rows = data.follow::<u8>().timeout(Duration::MAX);
    assert_eq!(rows.next().unwrap().unwrap(), [1, 2]);
    assert!(file.root().follow().timeout(Duration::MAX).next().unwrap().is_ok());
    assert!(map.follow().timeout(Duration::MAX).next().is_some());
}

#[test]
fn threads_make_the_same_groups_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for store in stores(folder.path()) {
        let file = File::create(&store).unwrap();
        for round in 0..30 {
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    let file = &file;
                    let store = &store;
                    scope.spawn(move || {
                        let path = format!("{round}/b/c/{thread}");
                        let made = file.new_dataset::<u8>().shape(&[1]).create_with_data(&path, &[thread]);
                        made.unwrap_or_else(|error| panic!("{store}: {error}"));
                        let group = file.create_group(&format!("{round}/b/d/{thread}"));
                        group.unwrap_or_else(|error| panic!("{store}: {error}"));
                    });
                }
            });
            for thread in 0..4 {
                let data = file.dataset(&format!("{round}/b/c/{thread}")).unwrap();
                assert_eq!(data.read::<u8>().unwrap(), [thread], "{store}");
                assert!(file.group(&format!("{round}/b/d/{thread}")).is_ok(), "{store}");
            }
        }
    }
}

#[test]
fn a_link_that_is_not_renamed_takes_no_group_of_others_away() {
    let file = File::in_memory();
    file.create_group("a").unwrap();
    assert!(file.rename("a", "a/b/c").is_err(), "below itself");
    assert!(file.group("a/b").is_err(), "no group is left that was made for it");
    file.create_group("x/y/z").unwrap();
    assert!(file.rename("a", "x/y/z").is_err(), "taken");
    assert!(file.group("x/y/z").is_ok());
}

/// What the checker of a store finds.
fn findings(location: &str) -> Vec<String> {
    if let Some(path) = location.strip_prefix("native:") {
        let report = h5live_checker::file::check_path(std::path::Path::new(path)).unwrap();
        return report.findings.iter().map(ToString::to_string).collect();
    }
    if location.starts_with("mem:") {
        return Vec::new();
    }
    let report = h5live::check(location, h5live::StoreCheckOptions::default()).unwrap();
    report.findings.iter().map(|finding| finding.cause.to_string()).collect()
}

#[test]
fn attributes_change_between_small_and_large() {
    let folder = tempfile::tempdir().unwrap();
    for store in stores(folder.path()) {
        for seed in 0..8_u64 {
            let file = File::create(&store).unwrap();
            let data = file.new_dataset::<u8>().shape(&[1]).create("data").unwrap();
            let mut known = std::collections::BTreeMap::new();
            let mut state = seed;
            for step in 0..30 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let name = format!("attribute {}", (state >> 33) % (1 + seed % 10));
                let len = [1, 60, 3000, 40_000, 70_000, 200_000][(state >> 40) as usize % 6];
                let case = format!("{store}, seed {seed}, step {step}: {len} bytes in {name}");
                if (state >> 50) % 5 == 0 {
                    assert_eq!(data.remove_attribute(&name).is_ok(), known.remove(&name).is_some(), "{case}");
                } else {
                    let value = vec![step as u8; len];
                    match data.set_attribute_array(&name, &value, &[len as u64]) {
                        Ok(()) => drop(known.insert(name, value)),
                        // A header for old programs has no room for it, and keeps what it had.
                        Err(error) => assert!(len > 60_000, "{case}: {error}"),
                    }
                }
                if (state >> 55) % 4 == 0 {
                    file.flush().unwrap_or_else(|error| panic!("{case}: {error}"));
                }
            }
            for (name, value) in &known {
                assert_eq!(data.attribute(name).unwrap().read::<u8>().unwrap(), *value, "{store}, seed {seed}");
            }
            file.close().unwrap();
            assert_eq!(findings(&store), [""; 0], "{store}, seed {seed}");
        }
    }
}

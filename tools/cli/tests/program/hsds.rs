//! Object stores in the schema of HSDS (`hsds:run`), with the commands that a file has.
#![cfg(all(unix, feature = "hsds"))]

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::common::manifests::{check_sound_files, run_large, same_manifest};
use h5live::{File, UNLIMITED};

use crate::common::{error, run, run_with, shared, start, text, until};

/// Files of the corpus that do not come back from an object store as they were, and why.
const EXCEPTIONS: [(&str, &str); 25] = [
    ("generated/external.earliest.h5", "elements are in raw files"),
    ("generated/filters_scaleoffset.v110.h5", "what comes back was rounded by its filter once more"),
    ("generated/links.earliest.h5", "a user-defined link"),
    ("generated/links.v110.h5", "a user-defined link"),
    ("generated/names.latest.h5", "a name that is no UTF-8"),
    ("generated/sizes.earliest.h5", "what comes back has references of eight bytes, and these have four"),
    ("generated/sizes.latest.h5", "what comes back has references of eight bytes, and these have four"),
    ("generated/vds.v108.h5", "a virtual dataset"),
    ("generated/vds.v110.h5", "a virtual dataset"),
    ("libhdf5/h5copy/tudfilter.h5", "a filter that nobody has: chunks go through it decoded"),
    ("libhdf5/h5jam/tall.h5", "a user-defined link"),
    ("libhdf5/h5repack/h5repack_ext.h5", "elements are in raw files"),
    ("libhdf5/h5repack/h5repack_f32le_ex.h5", "elements are in raw files"),
    ("libhdf5/h5repack/h5repack_int32le_1d_ex.h5", "elements are in raw files"),
    ("libhdf5/h5repack/h5repack_int32le_3d_ex.h5", "elements are in raw files"),
    ("libhdf5/h5repack/h5repack_layout.UD.h5", "a filter that nobody has: chunks go through it decoded"),
    ("libhdf5/h5stat/h5stat_filters.h5", "elements are in raw files"),
    ("libhdf5/test/tbogus.h5", "objects in it have messages that are to make programs refuse them"),
    ("libhdf5/tools/filter_fail.h5", "a filter that nobody has: chunks go through it decoded"),
    ("libhdf5/tools/tfilters.h5", "elements are in raw files"),
    ("libhdf5/vds/2_vds.h5", "a virtual dataset"),
    ("libhdf5/vds/3_2_vds.h5", "a virtual dataset"),
    ("libhdf5/vds/4_vds.h5", "a virtual dataset"),
    ("libhdf5/vds/5_vds.h5", "a virtual dataset"),
    ("libhdf5/vds/vds-eiger.h5", "a virtual dataset"),
];

/// Copies a file into an object store and back. Says what went wrong.
fn store_and_back(reference: &Path, folder: &Path) -> Result<(), String> {
    let file = reference.with_extension("");
    let name = file.file_name().unwrap().to_str().unwrap();
    let store = format!("hsds:{}", folder.join(format!("hsds-{name}")).display());
    let back = folder.join(format!("back-{name}")).display().to_string();
    let wanted = std::fs::read_to_string(reference).unwrap();
    run_large(&["copy", "--keep-names", file.to_str().unwrap(), &store])?;
    run_large(&["copy", "--quiet", "--keep-names", &store, &back])?;
    // Elements that lead elsewhere have other sizes in the store itself.
    let found = run_large(&["manifest", &back])?;
    same_manifest(&back, &wanted, &found)
}

#[test]
fn every_sound_file_comes_back_from_an_object_store_as_it_was() {
    let Some(shared) = shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    check_sound_files(&shared, folder.path(), &EXCEPTIONS, store_and_back);
}

/// A folder for a store, its path, and its location.
fn new_store() -> (tempfile::TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let location = format!("hsds:{}", path.display());
    (folder, path, location)
}

#[test]
fn rows_are_followed_while_they_are_recorded() {
    let (_folder, path, store) = new_store();
    let mut writer = start(&["record", "--types=v=i64", &store, "rows"]);
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"v\n1\n").unwrap();
    until("a row", || path.exists() && run(&["dump", &store, "rows"]).stdout == b"0: {v: 1}\n");
    let watch = start(&["watch", "--json", &store, "rows"]);
    input.write_all(b"2\n3\n").unwrap();
    until("more rows", || run(&["dump", &store, "rows"]).stdout == b"0: {v: 1}\n1: {v: 2}\n2: {v: 3}\n");
    let refused = error(&run_with(&["record", &store, "rows"], b"v\n1\n"));
    assert!(refused.contains("another process writes"), "{refused}");
    drop(input);
    text(&writer.wait_with_output().unwrap());
    assert_eq!(text(&watch.wait_with_output().unwrap()), "{\"v\":1}\n{\"v\":2}\n{\"v\":3}\n");
    // The path alone is known to be such a store.
    assert_eq!(text(&run(&["dump", path.to_str().unwrap(), "rows"])), "0: {v: 1}\n1: {v: 2}\n2: {v: 3}\n");
}

#[test]
fn a_killed_recording_has_all_rows_that_were_seen_and_goes_on() {
    let (_folder, path, store) = new_store();
    let mut writer = start(&["record", "--types=v=i64", &store, "rows"]);
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"v\n1\n2\n").unwrap();
    until("rows", || path.exists() && run(&["dump", &store, "rows"]).stdout == b"0: {v: 1}\n1: {v: 2}\n");
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert_eq!(text(&run(&["dump", &store, "rows"])), "0: {v: 1}\n1: {v: 2}\n");
    text(&run_with(&["record", &store, "rows"], b"v\n3\n"));
    assert_eq!(text(&run(&["dump", &store, "rows"])), "0: {v: 1}\n1: {v: 2}\n2: {v: 3}\n");
}

#[test]
fn a_bucket_has_several_domains_and_a_location_names_one() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = folder.path().join("bucket").display().to_string();
    let of = |domain: &str| format!("hsds:{bucket}?domain={domain}");
    for (domain, value) in [("/home/me/one", 1), ("/home/me/two", 2), ("top", 3)] {
        let file = File::options().create_new().open(of(domain).as_str()).unwrap();
        file.new_dataset::<u8>().shape(&[1]).create("a").unwrap().write(&[value]).unwrap();
        file.close().unwrap();
    }
    let read = |location: String| File::open(location.as_str()).unwrap().dataset("a").unwrap().read::<u8>().unwrap();
    assert_eq!(read(of("home/me/two")), [2]);
    assert_eq!(read(format!("hsds:{bucket}/home/me/one")), [1]);
    assert_eq!(read(format!("hsds:{bucket}")), [3], "the only one at the top");
    let said = error(&run(&["dump", &format!("hsds:{bucket}/home")]));
    assert!(said.contains("is a folder of domains"), "{said}");
    let said = error(&run(&["ls", &of("home/me/three")]));
    assert!(said.contains("no domain is at /home/me/three"), "{said}");
    assert!(File::options().create_new().open(of("top").as_str()).is_err(), "it exists");
}

#[test]
fn texts_and_sequences_stay_as_they_are_while_others_beside_them_change() {
    let (_folder, _, store) = new_store();
    let file = File::options().create().open(&*store).unwrap();
    let data = file.new_dataset::<String>().shape(&[0]).max_shape(&[UNLIMITED]).chunk_shape(&[8]).create("t").unwrap();
    let mut want = Vec::new();
    for round in 0..50usize {
        let text = "x".repeat(round % 7) + &round.to_string();
        data.append(std::slice::from_ref(&text)).unwrap();
        want.push(text);
        if round % 3 == 0 {
            data.flush().unwrap();
        }
        if round % 5 == 4 {
            want[round / 2] = format!("changed {round}");
            data.write_slice(round as u64 / 2..round as u64 / 2 + 1, &[want[round / 2].clone()]).unwrap();
        }
        assert_eq!(data.read::<String>().unwrap(), want, "round {round}");
    }
    file.close().unwrap();
    assert_eq!(File::open(&*store).unwrap().dataset("t").unwrap().read::<String>().unwrap(), want);
}

#[test]
fn a_store_is_replaced_as_a_whole() {
    let (folder, path, store) = new_store();
    let source = folder.path().join("source.h5").display().to_string();
    for value in [1u8, 2] {
        let file = File::options().create().open(source.as_str()).unwrap();
        file.new_dataset::<u8>().shape(&[3]).create(&format!("a{value}")).unwrap().write(&[value; 3]).unwrap();
        file.close().unwrap();
        text(&run(&["copy", "--quiet", "--force", &source, &store]));
        text(&run(&["diff", &source, &store]));
    }
    let said = error(&run(&["copy", "--quiet", &source, &store]));
    assert!(said.contains("exists"), "{said}");
    let objects = std::fs::read_dir(path.join("db")).unwrap().count();
    assert_eq!(objects, 1, "the objects of the first one are gone");
}

#[test]
fn rights_are_shown_and_changed_and_hold_for_users_that_are_named() {
    let (_folder, _, store) = new_store();
    let of = |user: &str| format!("{store}?user={user}");
    let file = File::options().create().open(format!("{store}?owner=me").as_str()).unwrap();
    file.new_dataset::<u8>().shape(&[1]).create("a").unwrap().write(&[1]).unwrap();
    file.close().unwrap();
    let all = "create,read,update,delete,readACL,updateACL";
    assert_eq!(text(&run(&["acl", "get", &store])), format!("me: {all}\ndefault: read\n"));
    assert_eq!(text(&run(&["acl", "get", &of("you")])), "default: read\n");
    text(&run(&["dump", &of("you"), "a"]));
    let refused = error(&run(&["rm", &of("you"), "a"]));
    assert!(refused.contains("the user you does not have the right delete for /run"), "{refused}");
    let refused = error(&run(&["acl", "set", &of("you"), "you", "all"]));
    assert!(refused.contains("the right updateACL"), "{refused}");
    text(&run(&["acl", "set", &of("me"), "you", "read,delete"]));
    text(&run(&["rm", &of("you"), "a"]));
    text(&run(&["acl", "set", &store, "default", "none"]));
    assert!(error(&run(&["ls", &of("others")])).contains("the right read"));
    text(&run(&["acl", "rm", &store, "you"]));
    let refused = run(&["acl", "get", &store, "/a"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("have none of their own"), "{said}");
    let json: serde_json::Value = serde_json::from_str(&text(&run(&["acl", "get", "--json", &store]))).unwrap();
    assert_eq!((&json["you"], &json["default"]["read"]), (&serde_json::Value::Null, &false.into()));
}

/// A native file in a bucket with datasets whose chunks can be linked, and with others. Returns the paths of those.
fn linkable_file(path: &Path) -> Vec<&'static str> {
    let file = File::options().create().user_block(&[7; 512]).open(path).unwrap();
    let values: Vec<i32> = (0..60 * 50).collect();
    let shaped = || file.new_dataset::<i32>().shape(&[60, 50]);
    shaped().create_with_data("contiguous", &values).unwrap();
    shaped().chunk_shape(&[16, 16]).create_with_data("chunked", &values).unwrap();
    shaped().chunk_shape(&[16, 16]).shuffle().create_with_data("shuffled", &values).unwrap();
    shaped().chunk_shape(&[4, 4]).shuffle().deflate(4).create_with_data("many/deflated", &values).unwrap();
    let growing = file.new_dataset::<f64>().shape(&[5]).max_shape(&[UNLIMITED]).chunk_shape(&[2]);
    growing.create_with_data("growing", &[0.5, 1.5, 2.5, 3.5, 4.5]).unwrap();
    file.new_dataset::<u8>().shape(&[4]).chunk_shape(&[2]).create("never_written").unwrap();
    shaped().chunk_shape(&[16, 16]).fletcher32().create_with_data("checked", &values).unwrap();
    file.new_dataset::<String>().shape(&[2]).create_with_data("texts", &["a".to_owned(), "bc".to_owned()]).unwrap();
    file.close().unwrap();
    vec!["/checked", "/texts"]
}

#[test]
fn a_domain_has_the_chunks_of_a_native_file_in_its_bucket() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = folder.path().join("bucket");
    std::fs::create_dir_all(bucket.join("data")).unwrap();
    let file = bucket.join("data/run.h5");
    let not_linkable = linkable_file(&file);
    let file = file.to_str().unwrap();
    let store = format!("hsds:{}?domain=/home/me/run", bucket.display());
    let linked = run(&["copy", "--link", file, &store]);
    let said = String::from_utf8(linked.stderr.clone()).unwrap();
    assert_eq!(linked.status.code(), Some(1), "{said}");
    assert!(said.contains("left out: the user block of 512 bytes"), "{said}");
    assert!(said.contains("linked: 6 datasets in bucket/data/run.h5"), "{said}");
    let copied: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("copied, not linked: ")).collect();
    assert_eq!(copied.len(), not_linkable.len(), "{said}");
    for path in not_linkable {
        assert!(copied.iter().any(|line| line.starts_with(path)), "{path}: {said}");
    }
    // Of its chunks, the domain has those of the two that were copied, and of the table of many.
    let chunks = files_below(&bucket.join("db")).into_iter().filter(|path| !path.ends_with("json")).count();
    assert_eq!(chunks, 16 + 1 + 1);
    text(&run(&["diff", file, &store]));
    assert_eq!(text(&run(&["dump", file])), text(&run(&["dump", &store])));
    let checked = text(&run(&["check", "--leaks", &store]));
    assert!(checked.contains("sound") && !checked.contains("leak"), "{checked}");
    // Nothing says of chunks without filters whether the file is still the same.
    let checked = run(&["check", "--data", &store]);
    let said = String::from_utf8(checked.stdout).unwrap();
    assert_eq!((checked.status.code(), said.lines().count()), (Some(1), 2), "{said}");
    assert_eq!(said.matches("without checksums, so that damage of values may not be seen: ").count(), 1, "{said}");
    assert!(said.contains("nothing wrong found; not verified: "), "{said}");
    check_after_changes(Path::new(file), &store);
    text(&run(&["repair", "--reclaim", &store]));
    text(&run(&["diff", file, &store]));
    let opened = File::options().write().open(&*store).unwrap();
    let growing = opened.dataset("growing").unwrap();
    let refused = growing.append(&[5.5]).and_then(|_| growing.flush()).unwrap_err().to_string();
    assert!(refused.contains("chunks that lie in an HDF5 file"), "{refused}");
    drop((growing, opened));
    text(&run(&["rm", &store, "many"]));
    let chunks = files_below(&bucket.join("db")).into_iter().filter(|path| !path.ends_with("json")).count();
    assert_eq!(chunks, 16 + 1, "the table is gone with its dataset");
}

/// Checks a domain whose chunks are in a native file that is gone, shorter or another one.
fn check_after_changes(file: &Path, store: &str) {
    let kept = std::fs::read(file).unwrap();
    let fails = |what: &str| {
        let checked = run(&["check", "--data", store]);
        let said = String::from_utf8(checked.stdout).unwrap();
        assert_eq!(checked.status.code(), Some(1), "{what}: {said}");
        assert!(said.contains("run.h5") && said.contains(" finding"), "{what}: {said}");
    };
    std::fs::remove_file(file).unwrap();
    fails("gone");
    std::fs::write(file, &kept[..kept.len() / 3]).unwrap();
    fails("shorter");
    std::fs::write(file, kept.iter().map(|byte| !byte).collect::<Vec<_>>()).unwrap();
    fails("another one");
    std::fs::write(file, &kept).unwrap();
}

/// The names of all files below a folder.
fn files_below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.path().is_dir() {
            true => found.extend(files_below(&entry.path())),
            false => found.push(entry.path().display().to_string()),
        }
    }
    found
}

#[test]
fn a_file_in_another_bucket_and_stores_of_other_kinds_are_not_linked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.h5");
    linkable_file(&file);
    let file = file.to_str().unwrap();
    let store = format!("hsds:{}?domain=/home/me/run", folder.path().join("bucket").display());
    let refused = error(&run(&["copy", "--link", file, &store]));
    assert!(refused.contains("run.h5 is in another bucket than the domain"), "{refused}");
    let native = folder.path().join("copy.h5");
    let refused = error(&run(&["copy", "--link", file, native.to_str().unwrap()]));
    assert!(refused.contains("needs an object store") && !native.exists(), "{refused}");
    assert!(error(&run(&["ls", &store])).contains("no domain"), "nothing was made");
}

/// A file with a dataset, and with one that no object store can hold.
fn unfit_file(path: &Path) {
    let file = File::create(path).unwrap();
    file.new_dataset::<i32>().shape(&[3]).create_with_data("a", &[4, 5, 6]).unwrap();
    std::fs::write(path.with_file_name("raw"), [0; 16]).unwrap();
    file.new_dataset::<i32>().shape(&[4]).external("raw", 0, 16).create("z").unwrap();
    file.close().unwrap();
}

#[test]
fn a_copy_that_fails_leaves_nothing_or_what_was_there_before() {
    let (folder, path, store) = new_store();
    let (unfit, fit) = (folder.path().join("unfit.h5"), folder.path().join("fit.h5"));
    unfit_file(&unfit);
    let copied = |args: &[&str]| run(&[&["copy", "--quiet"], args].concat());
    let unfit = unfit.to_str().unwrap();
    let refused = error(&copied(&[unfit, &store]));
    assert!(refused.contains("/z") && !path.exists(), "{refused}");
    text(&copied(&["--select", "/a", "--", unfit, fit.to_str().unwrap()]));
    text(&copied(&[fit.to_str().unwrap(), &store]));
    let before = files_below(&path);
    for args in [vec![unfit, &store], vec!["--force", unfit, &store]] {
        error(&copied(&args));
        assert_eq!(files_below(&path), before);
    }
    text(&run(&["diff", fit.to_str().unwrap(), &store]));
    text(&copied(&["--force", fit.to_str().unwrap(), &store]));
    text(&run(&["diff", fit.to_str().unwrap(), &store]));
    assert_eq!(files_below(&path).len(), before.len());
}

#[test]
fn a_domain_is_not_made_where_its_path_names_that_of_another_bucket() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = folder.path().join("bucket").display().to_string();
    let (path, named) = (format!("hsds:{bucket}/home/me/run"), format!("hsds:{bucket}?domain=/home/me/run"));
    text(&run_with(&["record", &path, "rows"], b"v\n1\n"));
    for arguments in [&["record", &named, "rows"][..], &["copy", &path, &named], &["copy", "--force", &path, &named]] {
        let said = error(&run_with(arguments, b"v\n2\n"));
        assert!(said.contains("is a bucket of its own") && said.contains(&path), "{said}");
    }
    assert_eq!(text(&run(&["dump", &path, "rows"])), "0: {v: 1}\n");
    // Beside it there is room.
    let beside = format!("hsds:{bucket}?domain=/home/me/other");
    text(&run_with(&["record", &beside, "rows"], b"v\n3\n"));
    assert_eq!(text(&run(&["dump", &format!("hsds:{bucket}/home/me/other"), "rows"])), "0: {v: 3}\n");
    assert_eq!(text(&run(&["dump", &path, "rows"])), "0: {v: 1}\n");
}

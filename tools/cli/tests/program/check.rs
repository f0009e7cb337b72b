//! `check` tells sound files from damaged ones.

use std::io::{Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::common;
use crate::common::{error, h5py, python, run, text};

const MAKE: &str = r#"
with h5py.File(path, "w", libver="latest") as file:
    file.create_dataset("grid", data=np.arange(600).reshape(20, 30), chunks=(2, 3), compression="gzip", fletcher32=True)
    file["group/texts"] = ["x", "yy"]
"#;

#[test]
fn the_exit_code_says_whether_files_are_sound() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [sound, damaged, text_file] = ["a.h5", "b.h5", "c.txt"].map(|name| folder.path().join(name));
    h5py(&python, MAKE, &sound);
    let mut bytes = std::fs::read(&sound).unwrap();
    let at = bytes.windows(4).position(|window| window == b"FAHD").unwrap();
    bytes[at + 8] ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    std::fs::write(&text_file, "no HDF5").unwrap();
    let [sound, damaged, text_file] = [&sound, &damaged, &text_file].map(|path| path.to_str().unwrap());

    let output = run(&["check", "--data", sound]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output).contains("a.h5: sound; 4 objects"), "{}", text(&output));

    let output = run(&["check", sound, damaged]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    let finding = format!("/grid: fixed array header at {at:#x}: fixed array header: checksum");
    assert!(said.contains(&finding) && said.contains("b.h5: 1 finding;"), "{said}");

    let said = error(&run(&["check", text_file]));
    assert!(said.contains("not an HDF5 file"), "{said}");
    let said = error(&run(&["check", "nowhere.h5"]));
    assert!(said.contains("nowhere.h5"), "{said}");
}

#[test]
fn findings_are_json_for_programs() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    h5py(&python, MAKE, &path);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.truncate(bytes.len() - 1);
    std::fs::write(&path, bytes).unwrap();
    let output = run(&["check", "--json", "--map", "--leaks", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<serde_json::Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |is: &str| lines.iter().filter(|line| line["is"] == is).collect::<Vec<_>>();
    let findings = of("finding");
    assert_eq!((&findings[0]["structure"], &findings[0]["kind"]), (&"superblock".into(), &"count".into()));
    assert!(of("used").iter().any(|line| line["path"] == "/grid" && line["structure"] == "chunk"));
    assert_eq!(of("summary")[0]["objects"], 4);
}

#[test]
fn objects_that_lead_only_to_each_other_are_shown_and_a_copy_leaves_them_out() {
    let (_folder, path, name) = common::new_file();
    let file = h5live::File::create(&path).unwrap();
    file.new_dataset::<i32>().create_with_data("kept", &[1, 2]).unwrap();
    let first = file.create_group("first").unwrap();
    let second = first.create_group("second").unwrap();
    second.link_hard("back", first.id()).unwrap();
    second.new_dataset::<i32>().create_with_data("data", &[3; 1000]).unwrap();
    drop((first, second));
    file.close().unwrap();
    let unreachable = |name: &str| {
        let said = text(&run(&["check", "--leaks", name]));
        said.lines().filter(|line| line.starts_with("unreachable: ")).count()
    };
    assert_eq!(unreachable(&name), 0);
    let file = h5live::Options::default().write().open(&path).unwrap();
    file.root().unlink("first").unwrap();
    file.close().unwrap();
    assert_eq!(unreachable(&name), 3, "two groups and a dataset");
    let copy = path.with_file_name("copy.h5");
    let copy = copy.to_str().unwrap();
    text(&run(&["copy", "--quiet", &name, copy]));
    assert_eq!(unreachable(copy), 0);
    assert!(text(&run(&["check", "--leaks", copy])).contains("sound; 2 objects"));
}

#[test]
fn damage_to_data_is_found_if_it_is_asked_for() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    h5py(&python, MAKE, &path);
    let name = path.to_str().unwrap();
    let map = text(&run(&["check", "--map", name]));
    let line = map.lines().find(|line| line.contains("  chunk  /grid")).unwrap();
    let at = usize::from_str_radix(&line[2..10], 16).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[at + 12] ^= 0x10;
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(run(&["check", name]).status.code(), Some(0));
    let output = run(&["check", "--data", name]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stdout).unwrap().contains("its filters cannot be undone"));
}

/// A file with a group whose header can be damaged, held by `record`, which has written a row.
fn live_file() -> (tempfile::TempDir, std::path::PathBuf, std::process::Child) {
    let (folder, path, name) = common::new_file();
    let file = h5live::File::create(&path).unwrap();
    file.create_group("still").unwrap();
    file.close().unwrap();
    let mut writer = common::start(&["record", "--infer-rows", "1", &name, "rows"]);
    writer.stdin.as_mut().unwrap().write_all(b"n,s\n1,one\n").unwrap();
    let open = || h5live::File::options().swmr_read().open(&path);
    let rows = || open().and_then(|file| Ok(file.dataset("rows")?.shape()?[0]));
    common::until("a row is there", || rows().is_ok_and(|rows| rows > 0));
    (folder, path, writer)
}

fn end(mut writer: std::process::Child) {
    drop(writer.stdin.take());
    assert!(writer.wait_with_output().unwrap().status.success());
}

#[test]
fn a_sound_file_that_is_being_written_is_sound() {
    let (_folder, path, writer) = live_file();
    let output = run(&["check", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = text(&output);
    assert!(said.contains("being written by") && said.contains("run.h5: sound; 3 objects"), "{said}");
    end(writer);
}

#[test]
fn damage_to_a_file_that_is_being_written_is_found() {
    let (_folder, path, writer) = live_file();
    let map = text(&run(&["check", "--map", path.to_str().unwrap()]));
    let line = map.lines().find(|line| line.ends_with("  /still")).unwrap();
    let at = u64::from_str_radix(&line[2..10], 16).unwrap();
    let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(at + 6)).unwrap();
    file.write_all(&[0xEE]).unwrap();
    let output = run(&["check", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains(&format!("object header at {at:#x}")) && said.contains("run.h5: 1 finding"), "{said}");
    end(writer);
}

#[test]
fn a_file_that_grows_during_the_check_is_sound() {
    let (_folder, path, mut writer) = live_file();
    let mut input = writer.stdin.take().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let rows = {
        let stop = Arc::clone(&stop);
        let rows = "5,many rows\n".repeat(1000);
        std::thread::spawn(move || {
            while !stop.load(Relaxed) {
                input.write_all(rows.as_bytes()).unwrap();
            }
        })
    };
    let name = path.to_str().unwrap();
    for options in [&["check", name][..], &["check", "--live", name]] {
        for _ in 0..10 {
            assert_eq!(text(&run(options)).lines().count(), 2);
        }
    }
    stop.store(true, Relaxed);
    rows.join().unwrap();
    end(writer);
}

#[test]
fn nouns_agree_with_numbers() {
    let (_folder, path, name) = common::new_file();
    h5live::File::create(&path).unwrap().close().unwrap();
    assert!(text(&run(&["check", &name])).contains("sound; 1 object, "));
    let file = h5live::Options::default().write().open(&path).unwrap();
    file.new_dataset::<i32>().create_with_data("one", &[7]).unwrap();
    file.close().unwrap();
    let said = text(&run(&["watch", &name, "one"]));
    assert!(said.contains("1 row  7"), "{said}");
    let other = path.with_file_name("other.h5");
    std::fs::copy(&path, &other).unwrap();
    let file = h5live::Options::default().write().open(&other).unwrap();
    file.dataset("one").unwrap().write_scalar(&8).unwrap();
    file.close().unwrap();
    let output = run(&["diff", "--limit", "0", &name, other.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("/one: 1 value differs"), "{output:?}");
    assert!(error(&run(&["dump", &name, "one", "--slice", "5"])).contains("has 1 element"));
}

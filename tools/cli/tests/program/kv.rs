//! Key-value stores (`kv:run`), with every command that a file has.
#![cfg(all(unix, feature = "kv"))]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::manifests::{MAX_ALLOCATION, check_sound_files, names_only_losses, same_manifest};
use h5live::{File, UNLIMITED};

#[cfg(target_os = "linux")]
use crate::common::on_small_disk;
use crate::common::{error, run, run_with, shared, start, text, until};

/// Files of the corpus that do not come back from a key-value store as they were, and why.
const EXCEPTIONS: [(&str, &str); 10] = [
    ("generated/external.earliest.h5", "elements are in raw files, and a key-value store has no path for them"),
    ("libhdf5/h5repack/h5repack_ext.h5", "elements are in raw files"),
    ("libhdf5/h5repack/h5repack_f32le_ex.h5", "elements are in raw files"),
    ("libhdf5/h5repack/h5repack_int32le_1d_ex.h5", "elements are in raw files"),
    ("libhdf5/h5repack/h5repack_int32le_3d_ex.h5", "elements are in raw files"),
    ("libhdf5/h5stat/h5stat_filters.h5", "elements are in raw files"),
    ("libhdf5/tools/tfilters.h5", "elements are in raw files"),
    ("libhdf5/test/tbogus.h5", "objects in it have messages that are to make programs refuse them"),
    ("generated/sizes.earliest.h5", "what comes back has references of eight bytes, and these have four"),
    ("generated/sizes.latest.h5", "what comes back has references of eight bytes, and these have four"),
];

/// Copies a file into a key-value store and back. Says what went wrong.
fn store_and_back(reference: &Path, folder: &Path) -> Result<(), String> {
    let file = reference.with_extension("");
    let name = file.file_name().unwrap().to_str().unwrap();
    let store = format!("kv:{}?sync=never", folder.join(format!("kv-{name}")).display());
    let back = folder.join(format!("back-{name}")).display().to_string();
    let wanted = std::fs::read_to_string(reference).unwrap();
    let ends = |arguments: &[&str]| {
        let output = run(&[&["--max-allocation", MAX_ALLOCATION], arguments].concat());
        // Chunks that nobody can decode are copied as they are: then the exit code is 1, and no error is said.
        let said = String::from_utf8_lossy(&output.stderr);
        let is_named = said.is_empty() || names_only_losses(&said);
        match output.status.success() || output.status.code() == Some(1) && is_named {
            true => Ok((String::from_utf8_lossy(&output.stdout).into_owned(), output.status.success())),
            false => Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr))),
        }
    };
    let (_, can_be_decoded) = ends(&["copy", "--quiet", "--keep-names", file.to_str().unwrap(), &store])?;
    let (checked, is_sound) = ends(&["check", "--leaks", "--data", &store])?;
    let undecoded = checked.matches("its filters cannot be undone").count();
    let is_expected = is_sound
        || (!can_be_decoded && checked.contains(&format!("{store}: {undecoded} finding")))
        || checked.contains(": nothing wrong found; not verified: ");
    if !is_expected || checked.contains("unused") {
        return Err(checked);
    }
    ends(&["copy", "--quiet", "--keep-names", &store, &back])?;
    // Elements that lead elsewhere have other sizes in the store itself.
    let (found, _) = ends(&["manifest", &back])?;
    same_manifest(&back, &wanted, &found)
}

#[test]
fn every_sound_file_comes_back_from_a_key_value_store_as_it_was() {
    let Some(shared) = shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    check_sound_files(&shared, folder.path(), &EXCEPTIONS, store_and_back);
}

/// A folder for a store, its path, and its location.
fn new_store() -> (tempfile::TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let location = format!("kv:{}", path.display());
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
fn a_second_writer_and_a_folder_of_something_else_are_refused() {
    let (folder, path, store) = new_store();
    let file = File::options().create().open(&*store).unwrap();
    file.new_dataset::<u8>().shape(&[1]).create("a").unwrap();
    file.flush().unwrap();
    let refused = error(&run_with(&["record", &store, "rows"], b"v\n1\n"));
    assert!(refused.contains("open for writing"), "{refused}");
    file.close().unwrap();
    let source = folder.path().join("source.h5");
    File::create(&source).unwrap().close().unwrap();
    let refused = error(&run(&["copy", source.to_str().unwrap(), &store]));
    assert!(refused.contains("exists"), "{refused}");
    assert!(text(&run(&["ls", &store])).contains("/a"), "nothing was replaced");
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("thesis.tex"), "precious").unwrap();
    let refused = error(&run_with(&["record", &format!("kv:{}", other.display()), "rows"], b"v\n1\n"));
    assert!(refused.contains("exists"), "{refused}");
    assert_eq!(std::fs::read_to_string(other.join("thesis.tex")).unwrap(), "precious");
    assert!(path.exists());
    let missing = error(&run(&["ls", &format!("kv:{}", folder.path().join("nothing").display())]));
    assert!(missing.contains("no key-value store"), "{missing}");
}

#[test]
fn a_reader_stays_at_its_snapshot_until_it_refreshes() {
    let (_folder, _, store) = new_store();
    let writer = File::options().create().open(&*store).unwrap();
    let names = ["a", "b", "c", "d", "e"];
    let make = |name: &&str| {
        writer.new_dataset::<u64>().shape(&[0]).max_shape(&[UNLIMITED]).chunk_shape(&[4]).create(name).unwrap()
    };
    let data: Vec<_> = names.iter().map(make).collect();
    writer.flush().unwrap();
    let reader = File::options().swmr_read().open(&*store).unwrap();
    let seen: Vec<_> = names.iter().map(|name| reader.dataset(name).unwrap()).collect();
    for round in 1..=20u64 {
        for data in &data {
            data.append(&[round]).unwrap();
        }
        assert!(seen.iter().all(|seen| seen.shape().unwrap() == [round - 1]), "nothing moves by itself");
        writer.flush().unwrap();
        assert!(seen.iter().all(|seen| seen.shape().unwrap() == [round - 1]), "nothing moves by itself");
        reader.refresh().unwrap();
        for seen in &seen {
            assert_eq!(seen.read::<u64>().unwrap(), (1..=round).collect::<Vec<_>>());
        }
    }
}

#[test]
fn what_is_wrong_with_a_store_is_found_and_what_nothing_leads_to_is_reclaimed() {
    let (folder, path, store) = new_store();
    let file = File::options().create().open(&*store).unwrap();
    file.root().create_group("a/b").unwrap();
    file.new_dataset::<String>().shape(&[2]).create("text").unwrap().write(&["x".to_owned(), "y".to_owned()]).unwrap();
    file.flush().unwrap();
    assert!(text(&run(&["check", &store])).contains(": sound; 4 objects"), "while it is written");
    // Two groups that lead to each other.
    let (outer, inner) = (file.root().group("a").unwrap(), file.root().group("a/b").unwrap());
    inner.link_hard("up", outer.id()).unwrap();
    file.root().unlink("a").unwrap();
    file.close().unwrap();
    let said = text(&run(&["check", &store]));
    assert!(said.contains(": sound; 4 objects") && said.contains("2 unused (--leaks)"), "{said}");
    let said = text(&run(&["check", "--leaks", &store]));
    assert_eq!(said.lines().filter(|line| line.starts_with("unused: group with the identity ")).count(), 2, "{said}");
    let said = text(&run(&["repair", "--reclaim", &store]));
    assert!(said.contains(": nothing to repair") && said.contains("2 objects reclaimed"), "{said}");
    let json = text(&run(&["check", "--json", "--leaks", &store]));
    let summary: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["objects"], &summary["unused"], &summary["findings"]), (&2.into(), &0.into(), &0.into()));
    assert_eq!(File::open(&*store).unwrap().dataset("text").unwrap().read::<String>().unwrap(), ["x", "y"]);
    let missing = error(&run(&["check", &format!("kv:{}", folder.path().join("no").display())]));
    assert!(missing.contains("no key-value store"), "{missing}");
    // A count that is too high.
    let options = h5live_kv::engine::LmdbOptions::default();
    let engine = h5live_kv::engine::LmdbEngine::open(&path, h5live::Mode::Write, &options).unwrap();
    let id = h5live_kv::layout::oid::new(h5live::model::ObjectKind::Dataset, 4);
    let key = h5live_kv::layout::key::metadata(id, h5live_kv::layout::MetadataField::RefCount);
    let mut edits = h5live_kv::engine::EditBatch::new();
    edits.put(key.as_bytes(), 2u64.to_le_bytes().to_vec());
    edits.add_checksums();
    h5live_kv::engine::Engine::commit(&engine, &edits, h5live::model::PublishLevel::Visible).unwrap();
    drop(engine);
    let output = run(&["check", &store]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("{store}: /text: it states 2 hard links and uses, and has 1")), "{said}");
    let refused = error(&run(&["repair", "--reclaim", &store]));
    assert!(refused.contains("nothing is deleted, because a check has 1 findings"), "{refused}");
}

#[test]
fn the_room_and_the_users_of_a_store_are_shown() {
    let (_folder, _, store) = new_store();
    let file = File::options().create().open(&*store).unwrap();
    file.new_dataset::<u8>().shape(&[100_000]).create("a").unwrap().write(&vec![1; 100_000]).unwrap();
    file.new_map::<u64, u64>().create("map").unwrap().put(&1, &2).unwrap();
    file.flush().unwrap();
    let said = text(&run(&["kv", "stat", &store]));
    let pid = std::process::id();
    assert!(said.contains("engine LMDB") && said.contains(&format!("open for writing: process {pid} ")), "{said}");
    assert!(said.contains("chunks: 2 keys") && said.contains("map pairs: 1 key,"), "{said}");
    assert!(said.contains("durable: an earlier commit") && said.contains("0 dead"), "{said}");
    assert!(said.contains(&format!("  process {pid} reads commit ")), "the last durable state is kept: {said}");
    file.close().unwrap();
    let json: serde_json::Value = serde_json::from_str(&text(&run(&["kv", "stat", "--json", &store]))).unwrap();
    assert_eq!((&json["is_written"], &json["durable"]), (&false.into(), &"newest".into()));
    assert_eq!(json["records"]["map_pairs"]["keys"], 1);
    assert_eq!(json["pages"], json["used_pages"].as_u64().unwrap() + json["free_pages"].as_u64().unwrap());
    assert!(error(&run(&["kv", "stat", "mem:x"])).contains("needs a key-value store"));
}

#[test]
fn a_command_waits_for_a_store_that_does_not_exist_yet() {
    let (_folder, _, store) = new_store();
    let watch = start(&["watch", "--wait", "60", "--json", &store, "rows"]);
    let late = error(&run(&["watch", "--wait", "0.2", &store, "rows"]));
    assert!(late.contains("waited 0.2 s for"), "{late}");
    text(&run_with(&["record", &store, "rows"], b"v\n1\n2\n"));
    assert_eq!(text(&watch.wait_with_output().unwrap()), "{\"v\":1}\n{\"v\":2}\n");
}

#[test]
fn a_store_is_replaced_as_a_whole_and_never_while_it_is_written() {
    let (folder, path, store) = new_store();
    let source = folder.path().join("source.h5");
    let file = File::create(&source).unwrap();
    file.new_dataset::<u8>().shape(&[3]).create("new").unwrap().write(&[1, 2, 3]).unwrap();
    file.close().unwrap();
    let source = source.to_str().unwrap();
    let file = File::options().create().open(&*store).unwrap();
    file.new_dataset::<u8>().shape(&[1]).create("old").unwrap();
    file.flush().unwrap();
    let refused = error(&run(&["copy", source, &store]));
    assert!(refused.contains("exists; --force replaces it"), "{refused}");
    let refused = error(&run(&["copy", "--force", source, &store]));
    assert!(refused.contains("open for writing"), "{refused}");
    file.close().unwrap();
    let reader = File::open(&*store).unwrap();
    text(&run(&["copy", "--quiet", "--force", source, &format!("{store}?sync=always")]));
    assert_eq!(File::open(source).unwrap().dataset("new").unwrap().read::<u8>().unwrap(), [1, 2, 3]);
    assert_eq!(text(&run(&["ls", &store])).matches("/new").count(), 1);
    assert!(reader.dataset("old").is_ok(), "a reader goes on with what it has opened");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    let thesis = folder.path().join("other");
    std::fs::create_dir(&thesis).unwrap();
    std::fs::write(thesis.join("thesis.tex"), "precious").unwrap();
    let refused = error(&run(&["copy", "--force", source, &format!("kv:{}", thesis.display())]));
    assert!(refused.contains("no key-value store"), "{refused}");
    assert!(thesis.join("thesis.tex").exists() && path.exists());
}

/// Runs the program as a user who may not write in a folder.
fn run_without_rights(arguments: &[&str]) -> std::process::Output {
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_h5live"));
    // Who runs the tests as the superuser may write everywhere.
    if std::fs::metadata("/proc/self").is_ok_and(|found| std::os::unix::fs::MetadataExt::uid(&found) == 0) {
        command.uid(65534).gid(65534);
    }
    command.args(arguments).output().unwrap()
}

#[test]
fn a_store_that_may_not_be_written_can_be_read_unless_it_is_written() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path, store) = new_store();
    let make = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(folder.path(), make(0o755)).unwrap();
    let file = File::options().create().open(&*store).unwrap();
    file.new_dataset::<u8>().shape(&[1]).create("a").unwrap();
    file.flush().unwrap();
    for entry in std::fs::read_dir(&path).unwrap() {
        std::fs::set_permissions(entry.unwrap().path(), make(0o444)).unwrap();
    }
    std::fs::set_permissions(&path, make(0o555)).unwrap();
    let refused = error(&run_without_rights(&["ls", &store]));
    assert!(refused.contains("may not write its table of readers"), "{refused}");
    file.close().unwrap();
    drop(file);
    assert!(text(&run_without_rights(&["ls", &store])).contains("/a"));
    assert!(text(&run_without_rights(&["check", &store])).contains("sound"));
    assert!(text(&run_without_rights(&["kv", "stat", &store])).contains("newest commit"));
    let refused = run_without_rights(&["set", &store, "a@b", "1"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    std::fs::set_permissions(&path, make(0o755)).unwrap();
}

/// On a file system of its own, where the machine lets us have one.
#[test]
fn a_full_disk_is_called_so_and_loses_no_row_that_was_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"mount -t tmpfs -o size=2m none "$1" || exit 77
        seq 1 200000 | "$2" record --every=100 --no-header "kv:$1/s" x
        echo "ended $?"
        "$2" check "kv:$1/s" && "$2" dump --json "kv:$1/s" x"#;
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "bash", "-c", script, "bash"]);
    let output = command.arg(folder.path()).arg(env!("CARGO_BIN_EXE_h5live")).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        println!("skipped: this machine gives us no file system of our own");
        return;
    };
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("there is no room for what is to be written: "), "{said}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let mut lines = printed.lines();
    assert_eq!(lines.next(), Some("ended 2"));
    assert!(lines.next().unwrap().contains(": sound; "), "{printed}");
    let rows = lines.enumerate().map(|(row, line)| assert_eq!(line, format!("{{\"c0\":{}}}", row + 1))).count();
    assert!(said.ends_with(&format!(": {rows} rows stored\n")) && rows > 0, "{rows} rows: {said}");
}

/// More would wait for a flush than may, if the copy went on after the first one.
#[test]
fn a_copy_to_a_full_disk_says_that_there_is_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let (source, place) = (folder.path().join("source.h5"), folder.path().join("small"));
    let file = File::create(&source).unwrap();
    let data = file.new_dataset::<u64>().shape(&[0]).max_shape(&[UNLIMITED]).chunk_shape(&[1 << 20]).deflate(1);
    let data = data.create("ones").unwrap();
    let ones = vec![1u64; 1 << 20];
    (0..40).for_each(|_| data.append(&ones).unwrap());
    file.close().unwrap();
    std::fs::create_dir(&place).unwrap();
    let script = r#"mount -t tmpfs -o size=4m none "$1" || exit 77
        "$2" copy "$3" "kv:$1/k?max_uncommitted=300000000" --filter none
        echo "ended $?"
        ls -A "$1""#;
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "bash", "-c", script, "bash"]);
    let output = command.arg(&place).arg(env!("CARGO_BIN_EXE_h5live")).arg(&source).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        println!("skipped: this machine gives us no file system of our own");
        return;
    };
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("there is no room for what is to be written: ") && said.contains("small/k"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "ended 2\n");
}

#[test]
fn the_files_of_a_new_store_have_the_permissions_that_new_files_have() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path, store) = new_store();
    let source = folder.path().join("source.h5");
    File::create(&source).unwrap().new_dataset::<u8>().shape(&[1]).create("a").unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    for (mask, mode) in [("022", 0o644), ("027", 0o640), ("002", 0o664)] {
        let script = r#"umask $1; "$2" copy --force "$3" "$4""#;
        let mut command = Command::new("bash");
        command.args(["-c", script, "bash", mask, env!("CARGO_BIN_EXE_h5live")]).arg(&source).arg(&store);
        text(&command.output().unwrap());
        for entry in std::fs::read_dir(&path).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, mode, "{mask}: {:?}", entry.path());
        }
        if mask == "022" {
            assert!(text(&run_without_rights(&["ls", &store])).contains("/a"));
        }
    }
    if std::fs::metadata("/proc/self").is_ok_and(|found| std::os::unix::fs::MetadataExt::uid(&found) != 0) {
        println!("skipped: only the superuser can be another user");
        return;
    }
    std::fs::set_permissions(path.join("data.mdb"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let refused = error(&run_without_rights(&["ls", &store]));
    assert!(refused.contains("data.mdb") && refused.contains("Permission denied"), "{refused}");
}

#[test]
fn a_store_whose_file_was_cut_short_is_an_error_for_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let store = format!("kv:{}", path.display());
    let rows: String = (0..20_000).map(|row| format!("{row},abc\n")).collect();
    text(&run_with(&["record", &store, "x"], format!("n,s\n{rows}").as_bytes()));
    let data = path.join("data.mdb");
    let len = std::fs::metadata(&data).unwrap().len();
    std::fs::File::options().write(true).open(&data).unwrap().set_len(len / 2).unwrap();
    for arguments in [&["check", &store][..], &["ls", &store], &["dump", &store, "x"], &["repair", &store]] {
        let output = run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2)
                && said.contains("of data.mdb is damaged: the file was cut short before it"),
            "{arguments:?}: {output:?}"
        );
    }
    assert_eq!(std::fs::metadata(&data).unwrap().len(), len / 2, "nothing was written");
}

#[test]
fn texts_that_are_there_are_appended_to_and_set_again() {
    let (folder, _, kv) = new_store();
    let stores = [kv.clone(), folder.path().join("run.h5").display().to_string()];
    for store in &stores {
        for rows in ["text,n\none,1\n", "text,n\ntwo,2\n"] {
            text(&run_with(&["record", store, "rows"], rows.as_bytes()));
        }
        assert_eq!(text(&run(&["dump", store, "rows"])), "0: {text: \"one\", n: 1}\n1: {text: \"two\", n: 2}\n");
        for value in ["seconds", "a longer text", "s"] {
            text(&run(&["set", store, "rows@unit", value]));
            assert!(text(&run(&["dump", store, "rows@unit"])).contains(value), "{store}");
        }
        let refused = run_with(&["record", store, "rows"], b"text,n\none,x\n");
        let refused = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.contains("\"x\" is not a value of type i64"), "the columns of the dataset count: {refused}");
    }
    let checked = text(&run(&["check", "--data", "--leaks", &kv]));
    assert!(!checked.contains("unused"), "texts that were set anew are gone: {checked}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_store_is_not_made_where_the_disk_has_no_room_and_nothing_stays() {
    let script = "echo n > rows; seq 100 >> rows; \
         for size in 0 4 8 16 40 100 200 250 260 264 268 280; do \
         rm -rf full x; [ $size = 0 ] || head -c ${size}K /dev/zero > full; \
         head -c 1M /dev/zero > rest 2> /dev/null; rm -f full; \
         said=$(\"$0\" record kv:x rows < rows 2>&1 > /dev/null); echo \"$size: $?: $said\"; \
         rm -f rest; ls -d x .*.unfinished 2> /dev/null; done";
    let Some(output) = on_small_disk(600 << 10, script, &[]) else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    let ends: Vec<_> = said.lines().filter(|line| line.contains(": ")).collect();
    assert_eq!(ends.len(), 12, "{said}");
    assert!(ends.iter().all(|line| line.contains(": 0: ") || line.contains(": 2: ")), "no signal: {said}");
    assert!(ends.iter().any(|line| line.contains("no room")), "{said}");
    assert!(!said.contains("unfinished"), "{said}");
}

//! Files with a log (`log:run.h5`), with every command that a file has.
#![cfg(unix)]

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::common::manifests::{check_sound_files, files, run_large, same_manifest};
use h5live::{File, UNLIMITED};
use sha2::{Digest, Sha256};

use crate::common::{error, failed_recording, h5py, new_file, python, run, run_with, shared, start, text, until};

/// Files of the corpus that do not come back from a log as they were, and why.
const EXCEPTIONS: [(&str, &str); 9] = [
    ("generated/filters_scaleoffset.v110.h5", "its filter loses digits each time that values go through it"),
    ("libhdf5/h5copy/tudfilter.h5", "a filter is unknown, and a log has decoded values"),
    ("libhdf5/h5repack/h5repack_layout.UD.h5", "a filter is unknown, and a log has decoded values"),
    ("libhdf5/h5stat/h5stat_filters.h5", "a chunk has a wrong checksum, and a log has decoded values"),
    ("libhdf5/test/tbogus.h5", "objects in it have messages that are to make programs refuse them"),
    ("libhdf5/tools/filter_fail.h5", "a filter is unknown, and a log has decoded values"),
    ("libhdf5/tools/tfilters.h5", "a filter is unknown, and a log has decoded values"),
    ("generated/sizes.earliest.h5", "a log is in a file with offsets of eight bytes, which references in it have too"),
    ("generated/sizes.latest.h5", "a log is in a file with offsets of eight bytes, which references in it have too"),
];

/// Copies a file into a log and back. Says what went wrong.
fn log_and_back(reference: &Path, folder: &Path) -> Result<(), String> {
    let file = reference.with_extension("");
    let name = file.file_name().unwrap().to_str().unwrap();
    let log = format!("log:{}", folder.join(format!("log-{name}")).display());
    let back = folder.join(format!("back-{name}")).display().to_string();
    let wanted = std::fs::read_to_string(reference).unwrap();
    run_large(&["copy", "--keep-names", file.to_str().unwrap(), &log])?;
    run_large(&["copy", "--quiet", "--keep-names", &log, &back])?;
    for copy in [&log, &back] {
        same_manifest(copy, &wanted, &run_large(&["manifest", copy])?)?;
    }
    Ok(())
}

#[test]
fn every_sound_file_comes_back_from_a_log_as_it_was() {
    let Some(shared) = shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    check_sound_files(&shared, folder.path(), &EXCEPTIONS, log_and_back);
}

#[test]
fn libhdf5_sees_anchors_and_the_group_of_the_log() {
    let (_folder, path, name) = new_file();
    text(&run_with(&["record", &format!("log:{name}"), "rows"], b"t,v\n1,0.5\n2,1.5\n"));
    let Some(python) = python() else { return };
    let program = "f = h5py.File(path, 'r')\n\
        assert sorted(f) == ['_LOG', 'rows'], list(f)\n\
        assert f['rows'].shape == () and f['rows'].dtype.names == ('t', 'v')\n\
        attributes = dict(f['rows'].attrs)\n\
        assert attributes['_log_id'] == 0 and list(attributes['_log_shape']) == [2], attributes\n\
        assert list(attributes['_log_max_shape']) == [-1], attributes\n\
        log = f['_LOG']\n\
        assert dict(log.attrs) == {'layout_version': 1, 'datasets': 1, 'log_datasets': 1}\n\
        assert log['log_1'].dtype == 'u1' and log['log_1'].chunks is None and log['log_1'].maxshape[0] is not None\n\
        assert log['index_table'].dtype == 'u1' and log['index_table'].maxshape == (None,)\n\
        assert log['skip_list'].dtype == 'u8' and list(log['skip_list'][:1]) == [0]\n\
        assert bytes(log['log_1'][:4]) == b'LENT'\n\
        print('seen')";
    assert_eq!(h5py(&python, program, &path).trim(), "seen");
}

#[test]
fn rows_are_followed_while_they_are_recorded() {
    let (_folder, path, name) = new_file();
    let log = format!("log:{name}");
    let mut writer = start(&["record", "--types=v=i64", &log, "rows"]);
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"v\n1\n").unwrap();
    until("a row", || path.exists() && run(&["dump", &log, "rows"]).stdout == b"0: {v: 1}\n");
    let watch = start(&["watch", "--json", &log, "rows"]);
    input.write_all(b"2\n3\n").unwrap();
    until("more rows", || run(&["dump", &log, "rows"]).stdout == b"0: {v: 1}\n1: {v: 2}\n2: {v: 3}\n");
    drop(input);
    text(&writer.wait_with_output().unwrap());
    assert_eq!(text(&watch.wait_with_output().unwrap()), "{\"v\":1}\n{\"v\":2}\n{\"v\":3}\n");
}

#[test]
fn a_killed_recording_has_all_rows_that_were_seen_and_goes_on() {
    let (_folder, path, name) = new_file();
    let log = format!("log:{name}");
    let mut writer = start(&["record", "--types=v=i64", &log, "rows"]);
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"v\n1\n2\n").unwrap();
    until("rows", || path.exists() && run(&["dump", &log, "rows"]).stdout == b"0: {v: 1}\n1: {v: 2}\n");
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert_eq!(text(&run(&["dump", &log, "rows"])), "0: {v: 1}\n1: {v: 2}\n");
    text(&run_with(&["record", &log, "rows"], b"v\n3\n"));
    assert_eq!(text(&run(&["dump", &log, "rows"])), "0: {v: 1}\n1: {v: 2}\n2: {v: 3}\n");
    assert!(text(&run(&["check", &name])).contains("sound"));
}

/// Writers that are killed at moments that nobody has chosen: after each, what was seen is still there, and right.
#[test]
fn many_killed_writers_lose_nothing_that_was_seen() {
    const KILLS: u64 = 12;
    let (_folder, path, name) = new_file();
    let log = format!("log:{name}?min_log_size=64KiB&max_log_size=64KiB");
    let mut seen = 0;
    for round in 0..KILLS {
        let mut writer = start(&["record", "--types=v=i64", &log, "rows"]);
        let mut input = writer.stdin.take().unwrap();
        let first = seen;
        let feed = std::thread::spawn(move || {
            // Until the reader is gone.
            let mut rows = (first..).map(|row| format!("{row},{}\n", row * row % 1000));
            let _ = input.write_all(b"n,v\n");
            while rows.next().is_some_and(|row| input.write_all(row.as_bytes()).is_ok()) {}
        });
        let wanted = seen + 500 * (round % 3 + 1);
        until("rows are seen", || {
            let Ok(file) = File::options().swmr_read().open(format!("log:{name}").as_str()) else { return false };
            let shape = file.dataset("rows").and_then(|data| data.shape()).unwrap_or_default();
            seen = shape.first().copied().unwrap_or(0).max(seen);
            seen >= wanted
        });
        writer.kill().unwrap();
        writer.wait().unwrap();
        feed.join().unwrap();
        let file = File::open(format!("log:{name}").as_str()).unwrap();
        let rows = file.dataset("rows").unwrap();
        let found = rows.shape().unwrap()[0];
        assert!(found >= seen, "{found} rows of {seen} that were seen");
        let numbers = rows.read::<Row>().unwrap();
        assert!(numbers.iter().zip(0..).all(|(row, n)| row.n == n && row.v == n * n % 1000));
        seen = found;
        file.close().unwrap();
        if round % 3 == 0 {
            text(&run(&["repair", path.to_str().unwrap()]));
            assert!(text(&run(&["check", path.to_str().unwrap()])).contains("sound"));
        }
    }
}

/// A row of these recordings.
#[derive(Clone, Copy, h5live::H5Type)]
#[repr(C)]
struct Row {
    n: i64,
    v: i64,
}

#[test]
fn a_plain_file_stays_one_and_an_existing_file_is_not_replaced() {
    let (folder, _, name) = new_file();
    text(&run_with(&["record", &name, "rows"], b"v\n1\n"));
    let log = format!("log:{name}");
    assert_eq!(text(&run(&["dump", &log, "rows"])), "0: {v: 1}\n");
    text(&run_with(&["record", &log, "rows"], b"v\n2\n"));
    assert!(!text(&run(&["ls", &name])).contains("_LOG"));
    let other = folder.path().join("other.h5").display().to_string();
    let to = format!("log:{other}");
    text(&run(&["copy", "--quiet", &name, &to]));
    assert!(error(&run(&["copy", &name, &to])).contains("exists"));
    text(&run(&["copy", "--quiet", "--force", &name, &to]));
    text(&run(&["diff", &name, &to]));
    assert!(text(&run(&["ls", &format!("native:{other}")])).contains("/_LOG/log_1"));
    assert!(!text(&run(&["ls", &to])).contains("_LOG"));
}

#[test]
fn a_damaged_index_is_made_anew_from_the_entries() {
    let (_folder, path, name) = new_file();
    let log = format!("log:{name}");
    text(&run_with(&["record", &log, "rows"], b"v\n1\n2\n3\n"));
    let info = text(&run(&["log", "info", &name]));
    assert!(info.contains("layout 1, 1 dataset made\n") && info.contains("index table: of the whole log\n"), "{info}");
    let mut bytes = std::fs::read(&path).unwrap();
    // The last entry that is found is one of the table.
    let table = bytes.windows(4).rposition(|bytes| bytes == b"LENT").unwrap();
    bytes[table + 50] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let said = error(&run(&["dump", &log, "rows"]));
    assert!(said.contains("the index table of the log is damaged") && said.contains("h5live log rebuild"), "{said}");
    text(&run(&["log", "rebuild", &log]));
    assert_eq!(text(&run(&["dump", &log, "rows"])), "0: {v: 1}\n1: {v: 2}\n2: {v: 3}\n");
    let info = text(&run(&["log", "info", "--json", &log]));
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["log_bytes"], info["files"][0]["indexed_bytes"]);
    text(&run_with(&["record", &format!("{name}.plain"), "rows"], b"v\n1\n"));
    assert!(error(&run(&["log", "rebuild", &format!("{name}.plain")])).contains("it is no file with a log"));
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a sample of Log VOL holds, and what we read: each dataset with its shapes and values.
fn check_sample(values: &Path) {
    let sample = values.to_str().unwrap().strip_suffix(".values.json").unwrap();
    let wanted: serde_json::Value = serde_json::from_slice(&std::fs::read(values).unwrap()).unwrap();
    let file = File::open(format!("log:{sample}.h5").as_str()).unwrap();
    for (stored, wanted) in wanted.as_object().unwrap() {
        // Names are as in the file, where an underscore in front is doubled.
        let path = stored.split('/').map(|name| if name.starts_with("__") { &name[1..] } else { name });
        let data = file.dataset(&path.collect::<Vec<_>>().join("/")).unwrap();
        let shape =
            |shape: Vec<u64>| shape.into_iter().map(|dim| (dim != UNLIMITED).then_some(dim)).collect::<Vec<_>>();
        assert_eq!(serde_json::json!(shape(data.shape().unwrap())), wanted["shape"], "{sample}: {stored}");
        assert_eq!(serde_json::json!(shape(data.max_shape().unwrap())), wanted["max_shape"], "{sample}: {stored}");
        let found = data.read::<f64>().unwrap();
        let values: Vec<f64> = wanted["values"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        assert!(!values.is_empty());
        assert_eq!(found[..values.len()], values, "{sample}: {stored}");
        let bytes: Vec<u8> = match wanted["dtype"].as_str().unwrap() {
            "<i4" => found.iter().flat_map(|value| (*value as i32).to_le_bytes()).collect(),
            "<f8" => found.iter().flat_map(|value| value.to_le_bytes()).collect(),
            other => panic!("{other} is not expected"),
        };
        assert_eq!(sha256(&bytes), wanted["sha256"].as_str().unwrap(), "{sample}: {stored}");
    }
}

#[test]
fn samples_of_log_vol_have_the_values_that_were_written() {
    let Some(shared) = shared() else { return };
    let folder = shared.join("samples/log-vol");
    let samples = files(&folder, "json");
    assert_eq!(samples.len(), 8);
    samples.iter().for_each(|values| check_sample(values));
    let listed = text(&run(&["ls", &format!("log:{}", folder.join("log_sample_sub.h5").display())]));
    assert!(listed.contains("/_under ") && !listed.contains("_ID") && !listed.contains("_LOG"), "{listed}");
    let (_folder, path, name) = new_file();
    std::fs::write(&path, std::fs::read(folder.join("log_sample.h5")).unwrap()).unwrap();
    let log = format!("log:{name}");
    let refused = error(&run(&["record", &log, "x"]));
    assert!(refused.contains("following a log in Log VOL's layout"), "{refused}");
    let info = text(&run(&["log", "info", &log]));
    assert!(info.contains("layout logvol, 3 datasets made\n") && info.contains("_ld_1: 164 bytes"), "{info}");
    assert!(error(&run(&["log", "rebuild", &log])).contains("no index table"));
    let in_subfiles = folder.join("log_sample_sub.h5").display().to_string();
    assert!(error(&run(&["log", "info", &in_subfiles])).contains("in subfiles"));
    assert!(error(&run(&["log", "compact", &log])).contains("layout=logvol"));
    // A sample is not opened for writing.
    std::fs::copy(&in_subfiles, &path).unwrap();
    assert!(error(&run(&["set", &log, "ints", "1"])).contains("in subfiles"));
}

/// What h5dump says of a file: all of it can be read. There may be no such program.
fn dumped(path: &Path) {
    let Ok(output) = std::process::Command::new("h5dump").arg(path).output() else { return };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !said.contains("error"), "h5dump {}: {said}", path.display());
}

#[test]
fn several_recordings_into_one_log_at_once_are_followed_and_read_by_other_programs() {
    let (_folder, path, name) = new_file();
    let (log, joined) = (format!("log:{name}"), format!("log:{name}?join=yes"));
    let mut writers: Vec<_> =
        (0..3).map(|number| start(&["record", "--types=v=i64", &joined, &format!("rows{number}")])).collect();
    let mut inputs: Vec<_> = writers.iter_mut().map(|writer| writer.stdin.take().unwrap()).collect();
    for (number, input) in inputs.iter_mut().enumerate() {
        input.write_all(format!("v,t\n{number},a\n{},bc\n", number + 10).as_bytes()).unwrap();
    }
    let rows = |number: usize| format!("0: {{v: {number}, t: \"a\"}}\n1: {{v: {}, t: \"bc\"}}\n", number + 10);
    for number in 0..3 {
        let dataset = format!("rows{number}");
        until("rows", || path.exists() && run(&["dump", &log, &dataset]).stdout == rows(number).as_bytes());
    }
    // One is killed; what it had flushed is there, and the others go on.
    writers[1].kill().unwrap();
    writers[1].wait().unwrap();
    inputs[2].write_all(b"7,d\n").unwrap();
    let longer = format!("{}2: {{v: 7, t: \"d\"}}\n", rows(2));
    until("the other goes on", || run(&["dump", &log, "rows2"]).stdout == longer.as_bytes());
    assert_eq!(text(&run(&["dump", &log, "rows1"])), rows(1));
    // It is in use: nobody replaces it, or writes it alone.
    for command in [vec!["copy", "--force", &name, &name], vec!["record", &log, "rows0"], vec!["repair", &name]] {
        let refused = run_with(&command, b"v,t\n1,x\n");
        assert!(!refused.status.success(), "{command:?}");
    }
    drop(inputs);
    for number in [0, 2] {
        assert!(writers[number].wait().unwrap().success());
    }
    // Another one writes on where the killed one was.
    text(&run_with(&["record", &joined, "rows1"], b"v,t\n5,e\n"));
    assert_eq!(text(&run(&["dump", &log, "rows1"])), format!("{}2: {{v: 5, t: \"e\"}}\n", rows(1)));
    let info = text(&run(&["log", "info", &name]));
    assert!(
        info.contains("3 datasets made\n") && info.contains("subfile 3:\n") && !info.contains("subfile 4"),
        "{info}"
    );
    text(&run(&["log", "rebuild", &name]));
    assert_eq!(text(&run(&["dump", &log, "rows2"])), longer);
    let plain = format!("{name}.plain.h5");
    text(&run(&["copy", "--quiet", &log, &plain]));
    assert_eq!(text(&run(&["dump", &plain, "rows2"])), longer);
    let subfiles: Vec<PathBuf> =
        (1..=3).map(|number| h5live_log::local_multi_writer_files::subfile_path(&path, number)).collect();
    for file in subfiles.iter().chain([&path]) {
        dumped(file);
        assert!(text(&run(&["check", file.to_str().unwrap()])).contains("sound"));
    }
    let Some(python) = python() else { return };
    let program = "f = h5py.File(path, 'r')\n\
        assert sorted(f) == ['_LOG', 'rows0', 'rows1', 'rows2'], list(f)\n\
        assert f['rows1'].shape == () and f['_LOG'].attrs['subfiles'] == 3\n\
        import os\n\
        g = h5py.File(f'{path}.subfiles/{os.path.basename(path)}.1', 'r')\n\
        assert g['_LOG'].attrs['file_id'] == f['_LOG'].attrs['file_id'] != 0\n\
        assert bytes(g['_LOG/log_1'][:4]) == b'LENT'\n\
        print('seen')";
    assert_eq!(h5py(&python, program, &path).trim(), "seen");
}

#[test]
fn a_subfile_that_is_missing_or_foreign_is_named() {
    let (_folder, path, name) = new_file();
    let log = format!("log:{name}?join=yes");
    text(&run_with(&["record", &log, "rows"], b"v\n1\n2\n"));
    let subfile = h5live_log::local_multi_writer_files::subfile_path(&path, 1);
    let other = path.with_file_name("other.h5");
    text(&run_with(&["record", &format!("log:{}?join=yes", other.display()), "rows"], b"v\n3\n"));
    let kept = std::fs::read(&subfile).unwrap();
    std::fs::copy(h5live_log::local_multi_writer_files::subfile_path(&other, 1), &subfile).unwrap();
    let said = error(&run(&["dump", &format!("log:{name}"), "rows"]));
    assert!(said.contains("subfile 1 of the log belongs to another file"), "{said}");
    std::fs::remove_file(&subfile).unwrap();
    let said = error(&run(&["dump", &format!("log:{name}"), "rows"]));
    assert!(said.contains("subfile 1 of 1"), "{said}");
    let said = error(&run_with(&["record", &log, "rows"], b"v\n3\n"));
    assert!(said.contains("subfile 1 of 1"), "{said}");
    std::fs::write(&subfile, kept).unwrap();
    assert_eq!(text(&run(&["dump", &format!("log:{name}"), "rows"])), "0: {v: 1}\n1: {v: 2}\n");
}

#[test]
fn a_compacted_log_has_what_was_not_overwritten_and_a_replayed_one_is_a_plain_file() {
    let (_folder, path, name) = new_file();
    let log = format!("log:{name}");
    let joined = format!("{log}?join=yes&max_log_size=1MiB");
    let file = File::options().create().open(joined.as_str()).unwrap();
    let data = file.new_dataset::<u64>().shape(&[100_000]).create("data").unwrap();
    for round in 0..8u64 {
        data.write(&vec![round; 100_000]).unwrap();
        file.flush().unwrap();
    }
    let refused = error(&run(&["log", "compact", &name]));
    assert!(refused.contains("in use") || refused.contains("writ"), "{refused}");
    file.close().unwrap();
    let info = |what: &str| -> u64 {
        let info: serde_json::Value = serde_json::from_str(&text(&run(&["log", "info", "--json", &name]))).unwrap();
        info[what].as_u64().unwrap()
    };
    assert_eq!(info("data_bytes"), 8 * 800_000);
    text(&run(&["log", "compact", "--quiet", &name]));
    assert_eq!(info("data_bytes"), 800_000);
    assert!(!path.with_file_name(format!("{}.subfiles", path.file_name().unwrap().to_str().unwrap())).exists());
    let plain = format!("{name}.plain.h5");
    text(&run(&["log", "replay", "--quiet", &name, &plain]));
    for location in [&log, &plain] {
        let file = File::open(location.as_str()).unwrap();
        assert!(file.dataset("data").unwrap().read::<u64>().unwrap() == vec![7; 100_000]);
    }
    assert!(!text(&run(&["ls", &plain])).contains("_LOG"));
    assert!(error(&run(&["log", "replay", &plain, "other.h5"])).contains("it is no file with a log"));
    // A copy is complete before others may join it.
    let said = error(&run(&["copy", &plain, &format!("log:{name}.new.h5?join=yes")]));
    assert!(said.contains("leave out `join`"), "{said}");
}

/// What `check --leaks` says of what deleted datasets leave is true: the command that it names takes it.
#[test]
fn what_deleted_datasets_leave_goes_by_the_command_that_check_names() {
    let (_folder, path, name) = new_file();
    let log = format!("log:{name}");
    let file = File::create(log.as_str()).unwrap();
    file.new_dataset::<u32>().unlimited_rows(&[]).create("kept").unwrap().append(&[7u32]).unwrap();
    file.start_swmr().unwrap();
    for n in 0..10u32 {
        file.new_dataset::<u32>().unlimited_rows(&[]).create("x").unwrap().append(&[n]).unwrap();
        file.flush().unwrap();
        file.root().unlink("x").unwrap();
        file.flush().unwrap();
    }
    file.close().unwrap();
    let leaks = || -> Vec<String> {
        let said = text(&run(&["check", "--leaks", &log]));
        let leaks = said.lines().filter(|line| line.starts_with("unreachable") || line.starts_with("unused"));
        leaks.map(str::to_owned).collect()
    };
    let before = leaks();
    assert_eq!(before.iter().filter(|line| line.starts_with("unreachable")).count(), 10, "{before:?}");
    assert!(before.iter().all(|line| line.ends_with("; `h5live log compact` leaves it out")), "{before:?}");
    let bytes = std::fs::metadata(&path).unwrap().len();
    text(&run(&["log", "compact", "--quiet", &name]));
    assert_eq!(leaks(), [""; 0]);
    assert!(std::fs::metadata(&path).unwrap().len() < bytes / 2, "{bytes}");
    assert_eq!(File::open(log.as_str()).unwrap().dataset("kept").unwrap().read::<u32>().unwrap(), [7]);
}

#[test]
fn a_full_disk_leaves_rows_that_were_written_and_no_others() {
    let mut csv = b"n,text\n".to_vec();
    (0..30_000).for_each(|row| writeln!(csv, "{row},text of row {row}").unwrap());
    // A file of so many KiB fails in the same way as a full disk.
    for limit in [8, 16, 40, 64, 100, 200, 400, 900] {
        let (_folder, path, name) = new_file();
        let log = format!("log:{name}");
        let limited = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$@\"");
        let mut command = std::process::Command::new("bash");
        command.args(["-c", &limited, "bash", env!("CARGO_BIN_EXE_h5live"), "record", &log, "x"]);
        let pipe = std::process::Stdio::piped;
        let mut child = command.stdin(pipe()).stderr(pipe()).spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(&csv);
        let (said, stored) = failed_recording(&child.wait_with_output().unwrap());
        assert!(said.contains("not written yet: rows ") || said.contains(" failed at "), "{limit} KiB: {said}");
        if !path.exists() {
            continue;
        }
        // The dataset may not be there. If it is, its rows are those that were flushed, and the next ones come behind them.
        run_with(&["record", &log, "x"], b"n,text\n-1,next\n");
        let rows = text(&run(&["dump", "--json", &log, "x"]));
        let kept = rows.lines().count() - 1;
        assert!(kept.is_multiple_of(1000), "{limit} KiB: {kept} rows");
        assert_eq!(stored, (kept > 0).then(|| format!("h5live: {log}: {kept} rows stored")), "{limit} KiB");
        for (row, line) in rows.lines().take(kept).enumerate() {
            assert_eq!(line, format!("{{\"n\":{row},\"text\":\"text of row {row}\"}}"), "{limit} KiB");
        }
        assert_eq!(rows.lines().last(), Some("{\"n\":-1,\"text\":\"next\"}"), "{limit} KiB");
    }
}

//! `repair` and the state that `check` tells, on what writers leave that die.

use std::io::Write;
use std::path::Path;
use std::process::Child;

use crate::common;
use crate::common::{error, h5py, python, run, text};
use h5live::model::FileSpaceSettings;
use h5live::{File, FileOpenState, LibVer};

/// A recording that has flushed more than twenty rows and goes on.
fn writer(path: &Path) -> Child {
    let mut child = common::start(&["record", path.to_str().unwrap(), "data0", "--every", "1"]);
    let rows: String = (0..30).map(|row| format!("{row}\n")).collect();
    child.stdin.as_mut().unwrap().write_all(format!("row\n{rows}").as_bytes()).unwrap();
    // Who opens a file that nobody writes keeps writers out.
    let live = || {
        h5live::diagnose(path)
            .is_ok_and(|found| matches!(found.open_state, FileOpenState::OpenForWriting { live: true, .. }))
    };
    common::until("the writer has begun", live);
    let rows = || File::options().swmr_read().open(path).ok()?.dataset("data0").ok()?.shape().ok();
    common::until("rows are visible", || rows().is_some_and(|shape| shape[0] > 20));
    child
}

fn kill(mut writer: Child) {
    writer.kill().unwrap();
    writer.wait().unwrap();
}

#[test]
fn a_file_whose_writer_died_is_brought_into_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("left.h5");
    let name = path.to_str().unwrap();
    let first = writer(&path);
    let pid = first.id().to_string();

    let said = text(&run(&["check", "--live", name]));
    let names_writer = !cfg!(target_os = "linux") || said.contains(&pid);
    assert!(said.contains("being written by") && names_writer && said.contains("readers may follow"), "{said}");
    let refused = error(&run(&["repair", name]));
    assert!(refused.contains("left.h5") && (!cfg!(target_os = "linux") || refused.contains(&pid)), "{refused}");

    let mut follower = common::start(&["dump", "--follow", name, "data0"]);
    let mut followed = std::io::BufReader::new(follower.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut followed, &mut String::new()).unwrap();
    kill(first);
    std::io::Read::read_to_end(&mut followed, &mut Vec::new()).unwrap();
    let output = follower.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("its writer has died"), "{output:?}");
    let said = text(&run(&["check", "--live", name]));
    assert!(said.contains("its writer, which others could follow, died") && said.contains("h5live repair"), "{said}");
    let bytes = std::fs::read(&path).unwrap();
    let output = run(&["repair", "--dry-run", name]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "a dry run changes nothing");

    let said = text(&run(&["repair", name]));
    assert!(said.contains("brought into order; its writer had died"), "{said}");
    assert_eq!(h5live::diagnose(&path).unwrap().open_state, FileOpenState::Closed);
    let said = text(&run(&["check", name]));
    assert!(said.contains("left.h5: sound") && !said.contains("died"), "{said}");
    assert!(File::open(&path).unwrap().dataset("data0").unwrap().shape().unwrap()[0] > 20);

    assert!(text(&run(&["repair", name])).ends_with("left.h5: nothing to repair\n"));
    assert_eq!(run(&["repair", "--dry-run", name]).status.code(), Some(0));
}

#[test]
fn what_is_no_file_of_hdf5_is_not_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.txt");
    std::fs::write(&path, "no HDF5").unwrap();
    assert!(error(&run(&["repair", path.to_str().unwrap()])).contains("not an HDF5 file"));
    assert!(error(&run(&["repair", "nowhere.h5"])).contains("nowhere.h5"));
    // The files behind it are checked and repaired all the same.
    let sound = folder.path().join("sound.h5");
    h5live::File::create(&sound).unwrap();
    for (command, said) in [("repair", "nothing to repair"), ("check", "sound; ")] {
        let output = run(&[command, path.to_str().unwrap(), sound.to_str().unwrap()]);
        assert!(error(&output).contains("not an HDF5 file"), "{command}");
        assert!(String::from_utf8_lossy(&output.stdout).contains(said), "{command}");
    }
}

#[test]
fn the_state_is_json_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("left.h5");
    let name = path.to_str().unwrap();
    kill(writer(&path));
    let line = |output: std::process::Output| -> serde_json::Value {
        serde_json::from_slice(output.stdout.split(|byte| *byte == b'\n').next().unwrap()).unwrap()
    };
    let state = line(run(&["check", "--live", "--json", name]));
    assert_eq!((&state["is"], &state["state"], &state["live"]), (&"state".into(), &"abandoned".into(), &true.into()));
    let repaired = line(run(&["repair", "--json", name]));
    assert_eq!((&repaired["before"]["state"], &repaired["after"]["state"]), (&"abandoned".into(), &"closed".into()));
}

/// What a writer of libhdf5 leaves that dies: h5py cannot open the file, h5clear and `repair` make that it can.
#[test]
fn a_file_that_a_writer_of_libhdf5_has_left_is_brought_into_order() {
    let Some(python) = common::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    for live in ["True", "False"] {
        let path = folder.path().join(format!("libhdf5-{live}.h5"));
        let program = format!(
            "import os\nfile = h5py.File(path, 'w', libver='latest')\n\
             data = file.create_dataset('data', (100,), maxshape=(None,), chunks=(10,), dtype='u8')\n\
             file.swmr_mode = {live}\ndata[:] = np.arange(100)\ndata.flush()\nfile.flush()\n\
             print('written', flush=True)\nos._exit(0)"
        );
        let program = program.replace("file.swmr_mode = False\n", "");
        assert!(common::h5py(&python, &program, &path).contains("written"));
        let output = run(&["repair", "--dry-run", path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = text(&run(&["repair", path.to_str().unwrap()]));
        assert!(said.contains("brought into order"), "{said}");
        let sum = common::h5py(&python, "print(int(h5py.File(path, 'r')['data'][...].sum()))", &path);
        assert_eq!(sum.trim(), "4950");
    }
}

/// The lines of a check that name objects to which no path leads.
fn unreachable(name: &str) -> Vec<String> {
    let said = text(&run(&["check", "--leaks", name]));
    assert!(said.contains(": sound; "), "{said}");
    said.lines().filter(|line| line.starts_with("unreachable: ")).map(str::to_owned).collect()
}

/// Makes a file with two groups in a circle of links, and datasets in them, to which no path leads any more. One dataset
/// is in a reachable group, too.
fn file_with_circle(path: &Path, libver: LibVer, space: FileSpaceSettings) {
    let file = File::options().create().libver(libver).file_space(space).open(path).unwrap();
    let kept = file.new_dataset::<i32>().create_with_data("kept", &[1, 2]).unwrap();
    let first = file.create_group("first").unwrap();
    let second = first.create_group("second").unwrap();
    second.link_hard("back", first.id()).unwrap();
    second.link_hard("kept too", kept.id()).unwrap();
    second.new_dataset::<i32>().create_with_data("data", &[3; 1000]).unwrap();
    let rows = second.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[16]).deflate(1).create("rows").unwrap();
    rows.append(&(0..4000).collect::<Vec<u64>>()).unwrap();
    // More links and attributes than a header keeps.
    for n in 0..20 {
        first.link_soft(&format!("link{n}"), "/kept").unwrap();
        second.new_attribute(&format!("attribute{n}")).write(&[n]).unwrap();
    }
    file.new_dataset::<i32>().create_with_data("last", &[7; 100]).unwrap();
    drop((kept, first, second, rows));
    file.close().unwrap();
    let file = File::options().write().open(path).unwrap();
    file.root().unlink("first").unwrap();
    file.close().unwrap();
}

#[test]
fn objects_to_which_no_path_leads_are_reclaimed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circle.h5");
    let name = path.to_str().unwrap();
    let tracked = FileSpaceSettings { persist: true, ..FileSpaceSettings::default() };
    for (libver, space) in [
        (LibVer::Earliest, FileSpaceSettings::default()),
        (LibVer::V110, FileSpaceSettings::default()),
        (LibVer::V110, tracked),
    ] {
        file_with_circle(&path, libver, space);
        let links = || File::open(&path).unwrap().dataset("kept").unwrap().info().unwrap().hard_link_count;
        assert_eq!(links(), 2);
        if libver != LibVer::Earliest {
            assert_eq!(unreachable(name).len(), 4, "two groups and two datasets");
        }
        let said = text(&run(&["repair", "--reclaim", name]));
        let of = |kind: &str| said.lines().filter(|line| line.contains(&format!("reclaimed: {kind} at "))).count();
        assert_eq!((of("group"), of("dataset"), of("remainder")), (2, 2, 0), "{libver:?}: {said}");
        assert!(said.contains("4 objects reclaimed, "), "{said}");
        assert_eq!(unreachable(name), [""; 0]);
        assert_eq!(links(), 1, "a link that is gone does not count");
        let file = File::open(&path).unwrap();
        assert_eq!(file.root().names().unwrap(), ["kept", "last"]);
        assert_eq!(file.dataset("last").unwrap().read::<i32>().unwrap(), [7; 100]);
        assert_eq!(file.dataset("kept").unwrap().read::<i32>().unwrap(), [1, 2]);
        drop(file);
        let said = text(&run(&["repair", "--reclaim", name]));
        assert!(said.ends_with("0 objects reclaimed, 0 bytes; the file is 0 bytes shorter\n"), "{said}");
        if space.persist {
            let said = text(&run(&["check", "--leaks", name]));
            assert!(!said.contains("unused: "), "the file lists its free space: {said}");
        }
        if let Some(python) = python() {
            let code = "import sys, h5py\n\
                        with h5py.File(sys.argv[1], 'r+') as file:\n    \
                        assert sorted(file) == ['kept', 'last'] and (file['last'][:] == 7).all()\n    \
                        file['new'] = range(1000)\n    del file['kept']\n\
                        with h5py.File(sys.argv[1]) as file:\n    \
                        assert sorted(file) == ['last', 'new'] and (file['last'][:] == 7).all()";
            h5py(&python, code, &path);
            text(&run(&["check", name]));
        }
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn nothing_is_reclaimed_in_a_file_that_is_held_or_from_what_was_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("held.h5");
    let name = path.to_str().unwrap();
    file_with_circle(&path, LibVer::V110, FileSpaceSettings::default());
    let bytes = std::fs::read(&path).unwrap();
    let held = File::options().write().open(&path).unwrap();
    assert!(error(&run(&["repair", "--reclaim", name])).contains("held.h5"));
    drop(held);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);

    // The header of a deleted group still leads to what is left.
    let file = File::options().write().open(&path).unwrap();
    let group = file.create_group("group").unwrap();
    group.link_hard("shared", file.dataset("kept").unwrap().id()).unwrap();
    file.create_group("after").unwrap();
    drop(group);
    file.close().unwrap();
    let file = File::options().write().open(&path).unwrap();
    file.root().unlink("group").unwrap();
    file.close().unwrap();
    let said = text(&run(&["repair", "--reclaim", name]));
    assert!(said.contains("reclaimed: remainder at "), "{said}");
    let file = File::open(&path).unwrap();
    assert_eq!(file.dataset("kept").unwrap().info().unwrap().hard_link_count, 1);
    assert_eq!(file.dataset("kept").unwrap().read::<i32>().unwrap(), [1, 2]);
    drop(file);
    assert_eq!(unreachable(name), [""; 0]);
}

#[test]
fn what_is_reclaimed_at_the_end_makes_the_file_shorter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("end.h5");
    let file = File::create(&path).unwrap();
    let group = file.create_group("group").unwrap();
    group.link_hard("itself", group.id()).unwrap();
    group.new_dataset::<u8>().create_with_data("data", &vec![1; 1 << 20]).unwrap();
    drop(group);
    file.close().unwrap();
    let file = File::options().write().open(&path).unwrap();
    file.root().unlink("group").unwrap();
    file.close().unwrap();
    let said = text(&run(&["repair", "--json", "--reclaim", path.to_str().unwrap()]));
    let lines: Vec<serde_json::Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let reclaimed: Vec<_> = lines.iter().filter(|line| line["is"] == "reclaimed").collect();
    assert_eq!(reclaimed.len(), 2, "{said}");
    assert!(reclaimed.iter().any(|line| line["kind"] == "dataset" && line["bytes"].as_u64() > Some(1 << 20)));
    let len = std::fs::metadata(&path).unwrap().len();
    assert!(len <= 1 << 12, "{len} bytes: {said}");
    assert_eq!(unreachable(path.to_str().unwrap()), [""; 0]);
}

#[test]
fn circles_that_libhdf5_has_left_are_reclaimed() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.h5");
    let name = path.to_str().unwrap();
    for bounds in ["'earliest'", "'latest'"] {
        let make = format!(
            "import sys, h5py\n\
             with h5py.File(sys.argv[1], 'w', libver={bounds}) as file:\n    \
             file['kept'] = range(10)\n    \
             inner = file.create_group('ring/inner')\n    \
             inner['back'] = file['ring']\n    inner['kept'] = file['kept']\n    \
             inner.create_dataset('chunks', data=range(10000), chunks=(64,), compression=1)\n    \
             for n in range(30): inner[f'text{{n}}'] = f'text {{n}}'\n    \
             del file['ring']\n    file['last'] = range(20)"
        );
        h5py(&python, &make, &path);
        let said = text(&run(&["repair", "--reclaim", name]));
        assert!(said.contains("33 objects reclaimed, "), "{bounds}: {said}");
        assert_eq!(unreachable(name), [""; 0]);
        let look = "import sys, h5py\n\
                    with h5py.File(sys.argv[1], 'r+') as file:\n    \
                    assert list(file['kept'][:]) == list(range(10)) and list(file['last'][:]) == list(range(20))\n    \
                    assert h5py.h5o.get_info(file['kept'].id).rc == 1\n    \
                    file.create_dataset('chunks', data=range(10000), chunks=(64,), compression=1)\n    del file['kept']";
        h5py(&python, look, &path);
        text(&run(&["check", name]));
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn reclaiming_changes_nothing_to_which_a_path_leads() {
    let Some(shared) = common::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.h5");
    let name = path.to_str().unwrap();
    let mut reclaimed = 0;
    for entry in std::fs::read_dir(shared.join("corpus/generated")).unwrap() {
        let from = entry.unwrap().path();
        if from.extension().is_none_or(|ending| ending != "h5") {
            continue;
        }
        std::fs::write(&path, std::fs::read(&from).unwrap()).unwrap();
        let before = run(&["manifest", name]);
        let done = run(&["repair", "--reclaim", name]);
        // Files with shared messages are refused.
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success() || text.contains("among shared messages"), "{}: {text}", from.display());
        reclaimed += u32::from(done.status.success());
        // What is too large to be read is like nothing else.
        let read = |output: &std::process::Output| -> Vec<String> {
            let lines = String::from_utf8_lossy(&output.stdout).into_owned();
            let is_read = |line: &&str| !line.contains("\tskipped:") && !line.contains("\tunreadable:");
            lines.lines().filter(is_read).map(str::to_owned).collect()
        };
        assert_eq!(read(&run(&["manifest", name])), read(&before), "{}", from.display());
        assert_eq!(run(&["check", name]).status.code(), Some(0), "{}", from.display());
    }
    assert!(reclaimed > 20, "{reclaimed}");
}

#[test]
fn a_closed_file_that_was_cut_short_is_not_made_to_look_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.h5");
    let name = path.to_str().unwrap();
    let file = File::create(&path).unwrap();
    file.new_dataset::<u64>().create_with_data("data", &vec![7; 10_000]).unwrap();
    file.close().unwrap();
    let whole = std::fs::metadata(&path).unwrap().len();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(whole / 2).unwrap();
    let said = error(&run(&["repair", name]));
    assert!(said.contains("the file is truncated: ") && said.contains(&whole.to_string()), "{said}");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), whole / 2, "nothing is changed");
    assert_eq!(run(&["check", name]).status.code(), Some(1));
}

#[test]
fn what_a_repair_cannot_read_is_said_by_every_command_that_repairs() {
    let folder = tempfile::tempdir().unwrap();
    let (path, left) = (folder.path().join("live.h5"), folder.path().join("left.h5"));
    let file = File::create(&path).unwrap();
    file.new_dataset::<u64>().unlimited_rows(&[]).create("sound").unwrap();
    let damaged = file.new_dataset::<u64>().unlimited_rows(&[]).create("damaged").unwrap();
    file.start_swmr().unwrap();
    damaged.append(&[1u64]).unwrap();
    file.flush().unwrap();
    // What the writer would leave if it died now, with a byte of a header changed.
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[damaged.id().0 as usize + 12] ^= 1;
    let name = left.to_str().unwrap();
    let commands: [&[&str]; 3] =
        [&["repair", name], &["repair", "--json", name], &["guard", "--quiet", "--file", name, "--", "true"]];
    for command in commands {
        std::fs::write(&left, &bytes).unwrap();
        let output = run(command);
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {said}");
        assert!(said.contains("left") && said.contains("/damaged"), "{command:?}: {said}");
        assert_eq!(h5live::diagnose(&left).unwrap().open_state, FileOpenState::Closed, "{command:?}");
    }
}

#[test]
fn what_sessions_have_left_unused_is_reclaimed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rounds.h5");
    let name = path.to_str().unwrap();
    let texts = ["a text".to_owned(), "another one".to_owned()];
    for libver in [LibVer::Earliest, LibVer::V110] {
        let file = File::options().create().libver(libver).open(&path).unwrap();
        file.new_dataset::<String>().deflate(1).chunk_shape(&[2]).create_with_data("texts", &texts).unwrap();
        file.new_dataset::<u8>().create_with_data("bytes", &[1; 300]).unwrap().set_attribute("text", "of it").unwrap();
        file.close().unwrap();
        let kept = manifest(name);
        let before = std::fs::metadata(&path).unwrap().len();
        for _ in 0..5 {
            let file = File::options().write().open(&path).unwrap();
            file.new_dataset::<u64>().unlimited_rows(&[]).create_with_data("more", &[7; 100]).unwrap();
            file.close().unwrap();
            let file = File::options().write().open(&path).unwrap();
            file.unlink("more").unwrap();
            file.close().unwrap();
        }
        let grown = std::fs::metadata(&path).unwrap().len();
        println!("{libver:?}: {before} bytes, {grown} after the rounds");
        text(&run(&["repair", "--reclaim", name]));
        let after = std::fs::metadata(&path).unwrap().len();
        assert!(after <= before, "{libver:?}: {before} bytes, {grown} after the rounds, and {after}");
        assert_eq!(manifest(name), kept, "{libver:?}");
        let said = text(&run(&["check", "--data", "--leaks", name]));
        assert!(said.contains("sound"), "{libver:?}: {said}");
        if let Some(python) = python() {
            let code = "import sys, h5py\n\
                        with h5py.File(sys.argv[1], 'r+') as file:\n    \
                        assert list(file['texts'].asstr()) == ['a text', 'another one'] and (file['bytes'][:] == 1).all()\n    \
                        file['new'] = range(1000)";
            h5py(&python, code, &path);
            text(&run(&["check", name]));
        }
    }
}

/// What is in a file.
fn manifest(name: &str) -> String {
    text(&run(&["manifest", name]))
}

//! Files of another user: the system tells only the owner of a file whether its writer lives.
#![cfg(target_os = "linux")]

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::common::{self, error, start, text, until};

/// Runs a program as another user: `nobody`, whom every system has.
const AS_OTHER_USER: [&str; 6] = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];

/// A folder in which everybody may write, with the program in it, and a file that everybody may write.
struct SharedFolder {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl SharedFolder {
    /// `None`, and a line that says so, where this process cannot become another user.
    fn new() -> Option<SharedFolder> {
        let folder = tempfile::tempdir().unwrap();
        let allow = |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        allow(folder.path());
        let program = folder.path().join("h5live");
        std::fs::copy(env!("CARGO_BIN_EXE_h5live"), &program).unwrap();
        allow(&program);
        let shared = SharedFolder { folder, program };
        let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
        if !is_root || !shared.as_other_user(&["--version"]).output().is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: what needs a second user (root, and setpriv)");
            return None;
        }
        Some(shared)
    }

    fn as_other_user(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(AS_OTHER_USER[0]);
        command.args(&AS_OTHER_USER[1..]).arg(&self.program).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A recorder of one of the two users that has got a row, and whose new files everybody may write.
    fn recorder(&self, is_other: bool, location: &str, number: usize) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", "umask 000; exec \"$@\"", "sh"]).args(if is_other { &AS_OTHER_USER[..] } else { &[] });
        command.arg(&self.program).args(["record", location, "rows", "--every", "1"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // One that is refused does not read it.
        let _ = write!(child.stdin.as_mut().unwrap(), "number\n{number}\n");
        child
    }

    fn run_as_other_user(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self.as_other_user(arguments).spawn().unwrap();
        // A program that has seen enough closes its input.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    fn file(&self) -> String {
        self.folder.path().join("run.h5").to_str().unwrap().to_owned()
    }

    /// A writer of ten rows that waits for more. Everybody may write its file.
    fn writer(&self) -> Child {
        let file = self.file();
        let mut child = start(&["record", &file, "/rows", "--every", "1"]);
        let input = child.stdin.as_mut().unwrap();
        input.write_all(b"number\n").unwrap();
        (0..10).for_each(|number| writeln!(input, "{number}").unwrap());
        input.flush().unwrap();
        let rows = || h5live::File::options().swmr_read().open(&file).ok()?.dataset("/rows").ok()?.shape().ok();
        until("all rows are visible", || rows().is_some_and(|shape| shape[0] == 10));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
        child
    }

    /// The file of a writer that was killed.
    fn abandoned(&self) -> String {
        kill(self.writer());
        self.file()
    }
}

fn kill(mut writer: Child) {
    writer.kill().unwrap();
    writer.wait().unwrap();
}

#[test]
fn a_follower_of_another_user_ends_when_the_writer_dies() {
    let Some(shared) = SharedFolder::new() else { return };
    for command in [&["watch", "--json"][..], &["dump", "--follow"]] {
        let writer = shared.writer();
        let file = shared.file();
        let arguments = [command, &[&file, "/rows"]].concat();
        let mut follower = shared.as_other_user(&arguments).spawn().unwrap();
        let lines = std::io::BufRead::lines(std::io::BufReader::new(follower.stdout.take().unwrap()));
        assert_eq!(lines.take(10).filter(Result::is_ok).count(), 10, "{command:?}");
        kill(writer);
        until("the follower ends", || follower.try_wait().unwrap().is_some());
        let output = follower.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("its writer has died"), "{command:?}: {said}");
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn another_user_brings_a_file_into_order_by_taking_it_over() {
    let Some(shared) = SharedFolder::new() else { return };
    let file = shared.abandoned();
    let said = error(&shared.run_as_other_user(&["repair", &file], ""));
    assert!(said.contains("--take-over"), "{said}");
    let said = text(&shared.run_as_other_user(&["repair", "--dry-run", "--take-over", &file], ""));
    assert!(said.contains("h5live repair --take-over"), "{said}");
    let said = text(&shared.run_as_other_user(&["repair", "--take-over", &file], ""));
    assert!(said.contains("brought into order"), "{said}");
    assert_eq!(h5live::File::open(&file).unwrap().dataset("/rows").unwrap().shape().unwrap(), [10]);
    if let Some(python) = common::python() {
        let rows = common::h5py(&python, "print(len(h5py.File(path)['rows']))", Path::new(&file));
        assert_eq!(rows.trim(), "10");
    }
}

#[test]
fn another_user_records_on_by_taking_a_file_over() {
    let Some(shared) = SharedFolder::new() else { return };
    let file = shared.abandoned();
    let refused = shared.run_as_other_user(&["record", &file, "/rows"], "number\n10\n");
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && said.contains("--take-over"), "{said}");
    text(&shared.run_as_other_user(&["record", "--take-over", &file, "/rows"], "number\n10\n"));
    assert_eq!(h5live::File::open(&file).unwrap().dataset("/rows").unwrap().shape().unwrap(), [11]);
}

#[test]
fn a_live_writer_is_not_taken_over_by_another_user() {
    let Some(shared) = SharedFolder::new() else { return };
    let writer = shared.writer();
    let file = shared.file();
    for command in [&["repair", "--take-over", &file][..], &["record", "--take-over", &file, "/rows"]] {
        let output = shared.run_as_other_user(command, "number\n10\n");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains("another process"), "{command:?}: {said}");
        assert!(!said.contains("--take-over"), "{said}");
    }
    kill(writer);
}

#[test]
fn another_user_reads_what_a_dead_writer_has_flushed() {
    let Some(shared) = SharedFolder::new() else { return };
    let file = shared.abandoned();
    let listed = text(&shared.run_as_other_user(&["ls", &file], ""));
    assert!(listed.contains("/rows"), "{listed}");
    let dumped = text(&shared.run_as_other_user(&["dump", &file, "/rows"], ""));
    assert!(dumped.contains('9'), "{dumped}");
    let checked = shared.run_as_other_user(&["check", &file], "");
    assert!(checked.status.code().is_some_and(|code| code < 2), "{checked:?}");
}

#[test]
fn a_writer_of_libhdf5_is_not_known_to_another_user() {
    let Some(shared) = SharedFolder::new() else { return };
    let Some(python) = common::python() else { return };
    let file = shared.file();
    let program = "
import sys, time, h5py
f = h5py.File(sys.argv[1], 'w', libver='latest')
f.create_dataset('rows', data=[1, 2], maxshape=(None,), chunks=(100,))
f.swmr_mode = True
f.flush()
print('ready', flush=True)
sys.stdin.read()
";
    let mut child =
        Command::new(python).args(["-c", program, &file]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    let said = error(&shared.run_as_other_user(&["repair", &file], ""));
    assert!(said.contains("if you know that no process writes the file"), "{said}");
    kill(child);
}

/// The stores beside native files, which lie in folders, or in a file of their own.
const OTHER_STORES: [&str; 3] = ["log", "kv", "hsds"];

/// Waits until another user's `ls` says that the store is being written; what it says of a store whose reader must be able
/// to write.
fn seen_live(shared: &SharedFolder, location: &str) -> String {
    let mut said = String::new();
    until("the writer is there for the other user", || {
        let listed = shared.run_as_other_user(&["ls", location], "");
        said = [listed.stdout, listed.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        said.contains("being written")
    });
    said
}

#[test]
fn another_user_reads_every_store_and_writes_none_that_is_not_his() {
    let Some(shared) = SharedFolder::new() else { return };
    for store in OTHER_STORES {
        let location = format!("{store}:{}", shared.folder.path().join(store).display());
        text(&common::run_with(&["record", &location, "rows"], b"number\n1\n2\n"));
        for command in [&["dump", &location, "/rows"][..], &["ls", &location], &["check", &location]] {
            text(&shared.run_as_other_user(command, ""));
        }
        let refused = shared.run_as_other_user(&["record", &location, "rows"], "number\n3\n");
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(2) && said.contains("Permission denied"), "{store}: {said}");
        assert_eq!(text(&common::run(&["dump", &location, "/rows"])).lines().count(), 2, "{store}");
    }
}

#[test]
fn another_user_follows_stores_or_is_told_why_not() {
    let Some(shared) = SharedFolder::new() else { return };
    for store in OTHER_STORES {
        let location = format!("{store}:{}", shared.folder.path().join(store).display());
        let mut writer = start(&["record", &location, "rows", "--every", "1"]);
        let input = writer.stdin.as_mut().unwrap();
        input.write_all(b"number\n1\n2\n").unwrap();
        input.flush().unwrap();
        let rows = || common::run(&["dump", &location, "/rows"]).stdout.iter().filter(|byte| **byte == b'\n').count();
        until("the rows are visible", || rows() == 2);
        let said = seen_live(&shared, &location);
        let dumped = shared.run_as_other_user(&["dump", &location, "/rows"], "");
        if store == "kv" {
            // Without an entry in the table, the writer would use the pages again that this reader still reads.
            assert!(said.contains("lock.mdb"), "{said}");
            assert_eq!(dumped.status.code(), Some(2));
        } else {
            assert_eq!(text(&dumped).lines().count(), 2, "{store}");
        }
        kill(writer);
    }
}

#[test]
fn a_reader_that_may_not_enter_itself_keeps_writers_away_and_they_are_told_so() {
    let Some(shared) = SharedFolder::new() else { return };
    let location = format!("kv:{}", shared.folder.path().join("kv").display());
    // More than a pipe holds: who prints them waits, with the store open, until somebody reads on.
    let rows: String = std::iter::once("number\n".to_owned()).chain((0..50_000).map(|n| format!("{n}\n"))).collect();
    text(&common::run_with(&["record", &location, "rows"], rows.as_bytes()));
    let mut reader = shared.as_other_user(&["dump", &location, "/rows"]).spawn().unwrap();
    let mut first = [0];
    std::io::Read::read_exact(reader.stdout.as_mut().unwrap(), &mut first).unwrap();
    let refused = common::run_with(&["record", &location, "rows"], b"number\n3\n");
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && said.contains("may not write its table of readers"), "{said}");
    kill(reader);
    text(&common::run_with(&["record", &location, "rows"], b"number\n3\n"));
    assert_eq!(text(&common::run(&["dump", &location, "/rows"])).lines().count(), 50_001);
}

#[test]
fn two_users_write_one_store_in_turns_and_go_on_when_the_other_one_dies() {
    let Some(shared) = SharedFolder::new() else { return };
    for store in OTHER_STORES {
        let location = format!("{store}:{}", shared.folder.path().join(store).display());
        let rows = || common::run(&["dump", &location, "/rows"]).stdout.iter().filter(|byte| **byte == b'\n').count();
        let record = |is_other, number| shared.recorder(is_other, &location, number).wait_with_output().unwrap();
        for (number, is_other) in [(1, false), (2, true), (3, false)] {
            text(&record(is_other, number));
        }
        for (number, is_other) in [(4, true), (6, false)] {
            let dying = shared.recorder(is_other, &location, number);
            until("the row is visible", || rows() == number);
            kill(dying);
            let next = record(!is_other, number + 1);
            if store == "log" && !is_other {
                // As of a native file: the system tells only its owner, and root, that nobody writes it.
                assert!(error(&next).contains("--take-over"), "{next:?}");
                text(&common::run(&["repair", &location]));
                text(&record(true, number + 1));
            } else {
                text(&next);
            }
        }
        assert_eq!(rows(), 7, "{store}");
        text(&common::run(&["check", &location]));
    }
}

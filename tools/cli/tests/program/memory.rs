//! No command takes more memory than it is given, whatever a file says.
#![cfg(target_os = "linux")]

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{error, shared, text};
use h5live::{File, UNLIMITED};

/// Most address space of a command (KiB).
const LIMIT: u64 = 1 << 20;

/// Runs the program with little memory.
fn run(arguments: &[&OsStr]) -> Output {
    let shell = format!("ulimit -v {LIMIT}; exec \"$0\" \"$@\"");
    Command::new("sh").arg("-c").arg(shell).arg(env!("CARGO_BIN_EXE_h5live")).args(arguments).output().unwrap()
}

fn run_on(command: &str, files: &[&Path]) -> Output {
    let arguments = command.split(' ').map(OsStr::new).chain(files.iter().map(|path| path.as_os_str()));
    run(&arguments.collect::<Vec<_>>())
}

/// A sound file with 32 GB of contiguous elements, of which two are written.
fn large(folder: &Path) -> PathBuf {
    let path = folder.join("large.h5");
    let file = File::create(&path).unwrap();
    let data = file.new_dataset::<f64>().shape(&[4_000_000_000]).contiguous().create("x").unwrap();
    data.write_slice(5..6, &[1.0]).unwrap();
    data.write_slice(3_999_999_999u64..4_000_000_000, &[2.0]).unwrap();
    file.close().unwrap();
    path
}

#[test]
fn a_file_with_a_large_dataset_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (large(folder.path()), folder.path().join("copy.h5"));
    text(&run_on("copy --quiet", &[&from, &to]));
    assert!(to.metadata().unwrap().blocks() * 512 < 1 << 20);
    let rows = text(&run(&["dump".as_ref(), to.as_os_str(), "x".as_ref(), "--rows=4..7".as_ref()]));
    assert_eq!(rows, "4: 0.0\n5: 1.0\n6: 0.0\n");
}

#[test]
fn values_that_take_too_much_memory_are_an_error_that_names_the_option() {
    let folder = tempfile::tempdir().unwrap();
    let path = large(folder.path());
    let output = run_on("dump --json", &[&path]);
    let found = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(found.contains("large.h5: /x: ") && found.contains("option max_allocation"), "{found}");
    // Each of these values is a list.
    let parts = folder.path().join("parts.h5");
    let file = File::create(&parts).unwrap();
    let data = file.new_dataset::<[u8; 2]>().shape(&[4_000_000]).chunk_shape(&[1000]).create("x").unwrap();
    data.write_slice(0..1, &[[1, 2]]).unwrap();
    file.close().unwrap();
    let output = run_on("dump --json", &[&parts]);
    let found = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(found.contains("parts.h5: /x: ") && found.contains("option max_allocation"), "{found}");
    let wide = folder.path().join("wide.h5");
    let file = File::create(&wide).unwrap();
    file.new_dataset::<u8>().shape(&[1, 4_000_000_000]).chunk_shape(&[1, 1 << 20]).create("x").unwrap();
    file.close().unwrap();
    let found = error(&run(&["dump".as_ref(), wide.as_os_str(), "x".as_ref()]));
    assert!(found.contains("wide.h5: /x: ") && found.contains("option max_allocation"), "{found}");
}

#[test]
fn long_texts_are_shown_and_compared_in_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str, last: &str| {
        let path = folder.path().join(name);
        let file = File::create(&path).unwrap();
        let mut texts = vec!["x".repeat(2000); 2000];
        texts.push(last.to_owned());
        file.new_dataset::<String>().shape(&[2001]).create("x").unwrap().write(&texts).unwrap();
        file.close().unwrap();
        path
    };
    let (a, b) = (make("a.h5", "a"), make("b.h5", "b"));
    let limited = |arguments: &[&OsStr]| run(&[&["--max-allocation=1048576".as_ref()], arguments].concat());
    let shown = text(&limited(&["dump".as_ref(), a.as_os_str(), "x".as_ref()]));
    assert_eq!(shown.lines().count(), 2001);
    let found = limited(&["diff".as_ref(), a.as_os_str(), b.as_os_str()]);
    assert_eq!(found.status.code(), Some(1), "{}", String::from_utf8_lossy(&found.stderr));
    assert!(String::from_utf8_lossy(&found.stdout).contains("2000"), "{}", String::from_utf8_lossy(&found.stdout));
}

#[test]
fn what_nobody_wrote_is_compared_without_reading_it() {
    let folder = tempfile::tempdir().unwrap();
    let made = |name: &str, fill: i32, last: i32| {
        let path = folder.path().join(name);
        let file = File::create(&path).unwrap();
        let shape = [1_000_000_000, 1_000_000_000];
        let new =
            file.new_dataset::<i32>().shape(&shape).max_shape(&[UNLIMITED; 2]).chunk_shape(&[100, 1000]).fill(fill);
        let data = new.create("chunks").unwrap();
        data.write_slice((500_020..500_022, 70..72), &[1, 2, 3, last]).unwrap();
        file.new_dataset::<i32>().shape(&[1 << 40]).contiguous().fill(fill).create("nothing").unwrap();
        file.close().unwrap();
        path
    };
    let a = made("a.h5", 0, 4);
    assert_eq!(text(&run_on("diff", &[&a, &a])), "");
    let found = run_on("diff", &[&a, &made("b.h5", 0, 5)]);
    assert_eq!(String::from_utf8(found.stdout).unwrap(), "/chunks[500021, 71]: 4 and 5\n");
    let found = run_on("diff --limit 2", &[&a, &made("c.h5", 6, 4)]);
    let wanted = "/chunks[0, 0]: 0 and 6\n/chunks[0, 1]: 0 and 6\n/chunks: 999999999999999996 values differ\n\
                  /nothing[0]: 0 and 6\n/nothing[1]: 0 and 6\n/nothing: 1099511627776 values differ\n";
    assert_eq!(String::from_utf8(found.stdout).unwrap(), wanted);
}

/// Elements of a type that has no value here are compared by the bytes of their fill values.
#[test]
fn what_nobody_wrote_is_compared_whatever_its_type() {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str, datatype: &str| {
        let (path, description) = (folder.path().join(name), folder.path().join("new.json"));
        let spec = format!(r#"{{"type": "{datatype}", "shape": [100000000000], "layout": "contiguous"}}"#);
        std::fs::write(&description, format!(r#"{{"links": {{"wide": {spec}}}}}"#)).unwrap();
        let made = run_on("new", &[&path, &description]);
        assert!(made.status.success(), "{made:?}");
        path
    };
    let wide = "i4128le(prec=32,off=0,pad=zero/zero)";
    let (a, b) = (make("a.h5", wide), make("b.h5", wide));
    let same = run_on("diff", &[&a, &b]);
    assert_eq!(same.status.code(), Some(0), "{same:?}");
}

#[test]
fn hostile_files_end_no_command_for_want_of_memory() {
    let Some(shared) = shared() else { return };
    let folder = shared.join("samples/adversarial");
    let names =
        ["copy_abort_contiguous", "copy_abort_typesize", "dump_abort_reference", "edit_abort", "sparse", "sparse2"];
    let scratch = tempfile::tempdir().unwrap();
    for name in names {
        let path = folder.join(format!("{name}.h5"));
        let edited = scratch.path().join("edited.h5");
        let copy = scratch.path().join("copy.h5");
        std::fs::write(&edited, std::fs::read(&path).unwrap()).unwrap();
        let outputs = [
            run_on("ls", &[&path]),
            run_on("check", &[&path]),
            run_on("dump --json", &[&path]),
            run_on("diff", &[&path, &path]),
            run_on("copy --quiet", &[&path, &copy]),
            run_on("copy --quiet --profile latest --chunks 2,3", &[&path, &copy]),
            run_on("copy --quiet --profile latest --filter shuffle --filter deflate:1", &[&path, &copy]),
            run_on("repair", &[&edited]),
        ];
        for (number, output) in outputs.iter().enumerate() {
            let code = output.status.code();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(matches!(code, Some(0..=2)), "{name}, command {number}: {}: {errors}", output.status);
        }
    }
}

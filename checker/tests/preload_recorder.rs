//! The recorder, preloaded into a program.

use std::path::Path;
use std::process::Command;

use h5live_cache::StorageOp;
use h5live_checker::trace::Trace;

fn write(at: u64, bytes: &[u8]) -> StorageOp {
    StorageOp::Write { at, bytes: bytes.to_vec() }
}

/// The recorder as a library, if there is a compiler.
fn recorder(folder: &Path) -> Option<std::path::PathBuf> {
    let library = folder.join("record.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/record.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Wextra", "-O2", "-shared", "-fPIC", "-o"]).arg(&library).arg(source);
    match compiler.arg("-ldl").status() {
        Ok(status) => assert!(status.success(), "the recorder does not compile"),
        Err(_) => return None,
    }
    Some(library)
}

#[test]
#[cfg(target_os = "linux")]
fn records_what_a_shell_does_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = recorder(folder.path()) else { return println!("skipped: there is no cc") };
    std::fs::write(folder.path().join("run.h5"), b"before").unwrap();
    let script = "printf abc >> run.h5; echo rows 1 >> run.h5.marks; printf other > run.h5.txt; printf de > run.h5";
    let done = Command::new("sh")
        .args(["-c", script])
        .current_dir(folder.path())
        .env("H5TRACE_FILE", "run.h5")
        .env("H5TRACE_LOG", "run.h5trace")
        .env("LD_PRELOAD", library)
        .status();
    assert!(done.unwrap().success());
    let trace = Trace::load(&*std::fs::read(folder.path().join("run.h5trace")).unwrap()).unwrap();
    assert_eq!(trace.base(), b"before");
    let mark = StorageOp::Mark("rows 1".into());
    assert_eq!(trace.operations(), [write(6, b"abc"), mark, StorageOp::SetLen(0), write(0, b"de")]);
}

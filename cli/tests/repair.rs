//! `repair` and the state that `check` tells, on what writers leave that die.

mod common;

use std::path::Path;
use std::process::Child;

use common::{error, h5live, run, text};
use h5live::{File, FileCondition};

/// A writer of `stress`, that has flushed and goes on.
fn writer(path: &Path) -> Child {
    let file = File::create(path).unwrap();
    file.new_dataset::<u64>().shape(&[0]).max_shape(&[h5live::UNLIMITED]).chunk_shape(&[4]).create("data0").unwrap();
    file.close().unwrap();
    let mut command = h5live();
    let choices = ["--index=extensible-array", "--work=append", "--filter=none", "--type=fixed"];
    command.args(["stress", "--role=writer"]).args(choices).arg(path);
    let child = command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    // Who opens a file that nobody writes keeps writers out.
    let live = || {
        h5live::diagnose(path)
            .is_ok_and(|found| matches!(found.condition, FileCondition::OpenForWriting { live: true, .. }))
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

    kill(first);
    let said = text(&run(&["check", "--live", name]));
    assert!(said.contains("its writer, which others could follow, died") && said.contains("h5live repair"), "{said}");
    let bytes = std::fs::read(&path).unwrap();
    let output = run(&["repair", "--dry-run", name]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "a dry run changes nothing");

    let said = text(&run(&["repair", name]));
    assert!(said.contains("brought into order; its writer had died"), "{said}");
    assert_eq!(h5live::diagnose(&path).unwrap().condition, FileCondition::Closed);
    let said = text(&run(&["check", name]));
    assert!(said.contains("left.h5: sound") && !said.contains("died"), "{said}");
    assert!(File::open(&path).unwrap().dataset("data0").unwrap().shape().unwrap()[0] > 20);

    assert!(text(&run(&["repair", name])).ends_with("left.h5: in order\n"));
    assert_eq!(run(&["repair", "--dry-run", name]).status.code(), Some(0));
}

#[test]
fn what_is_no_file_of_hdf5_is_not_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.txt");
    std::fs::write(&path, "no HDF5").unwrap();
    assert!(error(&run(&["repair", path.to_str().unwrap()])).contains("not an HDF5 file"));
    assert!(error(&run(&["repair", "nowhere.h5"])).contains("nowhere.h5"));
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
